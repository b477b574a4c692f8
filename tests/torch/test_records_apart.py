"""Models and losses that mix records, or whose gradients are not known, are refused before a record is drawn."""

import random
import types

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (make test-torch)")

from torch import nn  # noqa: E402
from torch.utils.data import TensorDataset  # noqa: E402

from privamp import InvalidInput  # noqa: E402
from privamp.testing import seeded_key  # noqa: E402
from privamp.torch import LSTM, PrivacyEngine  # noqa: E402

torch.set_num_threads(1)
chain = nn.Sequential


def private(module, tensors, criterion=None, **options):
    engine = PrivacyEngine(key=seeded_key(1))
    trained = [p for p in module.parameters() if p.requires_grad]
    settings = {"sample_rate": 1.0, "steps": 2, "noise_multiplier": 1.0, "max_grad_norm": 1.0, "population": 8}
    engine.make_private(
        module=module, optimizer=torch.optim.SGD(trained, 0.1), criterion=criterion or nn.CrossEntropyLoss(),
        data_loader=TensorDataset(*tensors), **(settings | options),
    )  # fmt: skip
    engine.train()
    return engine


class TimeFirst(nn.Module):
    """(records, places, width) read as (places, records, width) from the second layer on."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x):
        return self.two(torch.tanh(self.one(x)).transpose(0, 1)).mean(dim=0)


class Negatives(nn.Module):
    """Scores against the other records of the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        found = self.layer(x)
        return found - found.mean(dim=0)


class Around(nn.Module):
    """Mixes what no layer hears."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        return self.layer(x - x.mean(dim=0))


class Queue(nn.Module):
    """Scores against what earlier records gave, kept where no buffer is."""

    def __init__(self, dropout=0.0) -> None:
        super().__init__()
        self.layer, self.dropout = nn.Linear(4, 3), nn.Dropout(dropout)
        self.held = torch.randn(20_000, 3)

    def forward(self, x):
        found = self.dropout(self.layer(x))
        against = torch.logsumexp(found @ self.held.T, dim=1, keepdim=True)
        self.held = torch.cat([found.detach(), self.held])[:20_000]
        return found * against


X, Y = torch.randn(8, 4), torch.arange(8) % 3
MIXING = {
    "broadcasting loss": (lambda: nn.Linear(4, 1), (X, torch.randn(8)), nn.MSELoss()),
    "time first": (TimeFirst, (torch.randn(8, 8, 4), Y), None),
    "time first, as long as made-up batches": (TimeFirst, (torch.randn(8, 3, 4), Y), None),
    "negatives": (Negatives, (X, Y), None),
    "mixed before the first layer": (Around, (X, Y), None),
    "divided by the batch": (
        lambda: nn.Linear(4, 3),
        (X, Y),
        lambda out, y: nn.functional.cross_entropy(out, y, reduction="none") / len(out),
    ),
    "with dropout": (lambda: chain(nn.Dropout(0.5), Around()), (X, Y), None),
    "a queue of earlier records": (Queue, (X, Y), None),
    "a queue behind dropout": (lambda: Queue(0.5), (X, Y), None),
}


@pytest.mark.filterwarnings("ignore:Using a target size:UserWarning")
@pytest.mark.parametrize("name", MIXING)
def test_what_mixes_records_is_refused(name):
    make, tensors, criterion = MIXING[name]
    with pytest.raises(InvalidInput, match=r"records are mixed|first dimension"):
        private(make(), tensors, criterion)


@pytest.mark.filterwarnings("ignore:Using a target size:UserWarning")
def test_an_example_as_long_as_the_sequence_does_not_help(monkeypatch):
    """The first dimension is right by accident; a batch of another size shows it, and so do the derivatives."""
    with pytest.raises(InvalidInput, match=r"'two' must keep records apart"):
        private(TimeFirst(), (torch.randn(8, 5, 4), Y), example=[torch.rand(5, 5, 4), torch.arange(5) % 3])
    monkeypatch.setattr("privamp.torch.measuring.settle", lambda run, batch: None)
    with pytest.raises(InvalidInput, match=r"records are mixed: .* layer 'two'"):
        private(TimeFirst(), (torch.randn(8, 5, 4), Y), example=[torch.rand(5, 5, 4), torch.arange(5) % 3])


def weight_norm():
    with pytest.warns(FutureWarning):
        return nn.utils.weight_norm(nn.Linear(4, 3))


def extra():
    layer = nn.Linear(4, 3)
    layer.extra = nn.Parameter(torch.ones(3))
    return layer


def patched():
    layer = nn.Linear(4, 3)
    layer.forward = types.MethodType(lambda self, x: nn.functional.linear(x, self.weight * 2, self.bias), layer)
    return layer


class Tied(nn.Module):
    """The table of words read once more as the weights of the exit."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(3, 4)

    def forward(self, ids):
        return nn.functional.linear(self.words(ids).mean(dim=1), self.words.weight)


@pytest.mark.parametrize("make", [weight_norm, extra], ids=lambda f: f.__name__)
def test_parameters_with_other_gradients_are_refused(make):
    with pytest.raises(InvalidInput, match=r"gets a different gradient than by autograd|no rule"):
        private(make(), (X, Y))


def test_what_rules_do_not_see_is_computed_record_by_record():
    """A forward of one's own, or a weight used behind its layer's back: the check finds it."""
    engine = private(Tied(), (torch.randint(0, 3, (8, 5)), Y))
    assert engine._run.recorder.apart == {""}
    assert list(private(patched(), (X, Y))._run.recorder.layout.replaced) == [""]


class Reader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.lstm, self.out = nn.Embedding(5, 4), LSTM(4, 3), nn.Linear(3, 3)

    def forward(self, ids):
        return self.out(nn.functional.dropout(self.lstm(self.words(ids)).mean(dim=1), 0.4, self.training))


class Noisy(nn.Module):
    """Draws by itself, in evaluation mode too."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        found = self.layer(x)
        return found + torch.randn_like(found)


class Drawn(nn.Module):
    """Leaves a layer out by the generators of NumPy and Python."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        return self.layer(x) * (2.0 if np.random.random() < 0.5 else 1.0) * (1.0 + random.random())


GOOD = {
    "other generators": (Drawn, (X, Y), None),
    "linear": (lambda: nn.Linear(4, 3), (X, Y), None),
    "dropout": (lambda: chain(nn.Linear(4, 6), nn.Dropout(0.5), nn.ReLU(inplace=True), nn.Linear(6, 3)), (X, Y), None),
    "reader": (Reader, (torch.randint(0, 5, (8, 7)), Y), None),
    "noisy": (Noisy, (X, Y), None),
    "half": (lambda: chain(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)).bfloat16(), (X.bfloat16(), Y), None),
    "double": (lambda: nn.Linear(4, 3).double(), (X.double(), Y), None),
    "regression": (lambda: nn.Linear(4, 1), (X, torch.randn(8, 1)), nn.MSELoss()),
    "probabilities": (lambda: chain(nn.Linear(4, 1), nn.Sigmoid()), (X, torch.rand(8, 1)), nn.BCELoss()),
    "divergence": (lambda: chain(nn.Linear(4, 3), nn.LogSoftmax(1)), (X, torch.rand(8, 3)), nn.KLDivLoss()),
    "pictures": (
        lambda: chain(nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten(), nn.Linear(16, 3)),
        (torch.randn(8, 1, 4, 4), Y),
        None,
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_good_models_are_accepted(name):
    make, tensors, criterion = GOOD[name]
    assert private(make(), tensors, criterion).step == 2


def test_the_check_leaves_no_trace():
    """Modes, random numbers and parameters are as before."""
    module = chain(nn.Linear(4, 6), nn.Dropout(0.5), nn.Linear(6, 3))
    module[1].eval()
    before, state = [p.detach().clone() for p in module.parameters()], torch.get_rng_state()
    engine = PrivacyEngine(key=seeded_key(1))
    engine.make_private(
        module=module, optimizer=torch.optim.SGD(module.parameters(), 0.1), criterion=nn.CrossEntropyLoss(),
        data_loader=TensorDataset(X, Y), sample_rate=1.0, steps=2, noise_multiplier=1.0, max_grad_norm=1.0,
        population=8,
    )  # fmt: skip
    assert torch.equal(torch.get_rng_state(), state)
    assert [layer.training for layer in module] == [True, False, True]
    assert all(torch.equal(a, p) and p.grad is None for a, p in zip(before, module.parameters(), strict=True))


def test_the_verdict_is_about_shapes_not_about_records():
    """Records that mix nothing by their values (all equal) do not save a model that mixes."""
    with pytest.raises(InvalidInput, match="records are mixed"):
        private(Negatives(), (torch.zeros(8, 4), torch.zeros(8).long()))


class Named(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, *, numbers):
        return self.layer(numbers)


def test_loops_of_ones_own_say_how_a_batch_becomes_losses():
    with pytest.raises(InvalidInput, match="fails on made-up records"):
        private(Named(), (X, Y))
    compute = lambda module, criterion, batch: criterion(module(numbers=batch[0]), batch[1])  # noqa: E731
    assert private(Named(), (X, Y), compute=compute).step == 2
