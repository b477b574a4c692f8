"""Loops that go round the checks of a batch: parts of the model, hidden outputs, losses over chosen rows, copies."""

import copy
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (make test-torch)")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.utils.data import Dataset, TensorDataset  # noqa: E402

from privamp import InvalidInput  # noqa: E402
from privamp.testing import seeded_key  # noqa: E402
from privamp.torch import PrivacyEngine  # noqa: E402

torch.set_num_threads(1)
CLIP, N = 0.5, 8
X = torch.rand(N, 5, generator=torch.Generator().manual_seed(3), dtype=torch.float64) * 5
Y = torch.arange(N) % 3


def private(model, data=None, **options):
    torch.manual_seed(0)
    settings = {"sampler": "uniform", "sample_rate": 1.0, "steps": 4, "noise_multiplier": 1e-12, "population": 1}
    settings |= {"max_grad_norm": CLIP, "criterion": nn.CrossEntropyLoss()}
    engine = PrivacyEngine(key=seeded_key(1))
    parts = engine.make_private(
        module=model.double(), optimizer=torch.optim.SGD(model.parameters(), 0.0),
        data_loader=TensorDataset(X, Y) if data is None else data, **(settings | options),
    )  # fmt: skip
    return engine, parts


def one_step(parts, loss):
    model, optimizer, criterion, loader = parts
    for batch in loader:
        loss(model, criterion, batch).backward()
        optimizer.step()
        break
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def plain(model, criterion, batch):
    return criterion(model(batch[0]), batch[1])


def centred(values):
    return values - values.mean(dim=0)


def layers():
    return nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3))


@pytest.mark.parametrize(
    "loss",
    [
        lambda model, criterion, batch: criterion(centred(model.forward(batch[0])), batch[1]),
        lambda model, criterion, batch: criterion(model[2](centred(model[0](batch[0]))), batch[1]),
        lambda model, criterion, batch: criterion(model(batch[0]) + centred(model[0](batch[0]))[:, :3], batch[1]),
    ],
    ids=["forward", "parts", "model and part"],
)
def test_parts_of_the_model_are_not_called_by_themselves(loss):
    """Between them a loop may mix records, which is seen only where the whole model is called."""
    engine, parts = private(layers())
    with pytest.raises(InvalidInput, match="call the module itself"):
        one_step(parts, loss)
    with pytest.raises(InvalidInput, match="no gradient to step with"):
        parts[1].step()
    assert engine.step == 0
    engine, parts = private(
        layers(), compute=lambda module, criterion, batch: criterion(module.forward(batch[0]), batch[1])
    )
    assert engine.train(1) == 1  # tried on made-up records as it is


@pytest.mark.parametrize(("looks", "at"), [(1, 3), (3, 1), (0, 1), (5, 7), (7, 0)])
def test_one_record_that_looks_at_another_is_seen(looks, at):
    """Whichever of the two it is: one half of the losses is asked after the other."""
    engine, (model, optimizer, criterion, loader) = private(layers(), steps=12)

    def peeked(values):
        row = torch.zeros(N, N, dtype=values.dtype)
        row[looks, at] = 1e-3
        return values + row @ values

    def epoch():
        for x, y in loader:
            criterion(peeked(model(x)), y).backward()
            optimizer.step()

    with pytest.raises(InvalidInput, match="records are mixed"):
        [epoch() for _ in range(12)]
    assert engine.step < 6


class Shaped(nn.Module):
    """What a linear layer gives, in another shape."""

    def __init__(self, change) -> None:
        super().__init__()
        self.exit, self.change = nn.Linear(5, 6), change

    def forward(self, x):
        return self.change(self.exit(x).view(len(x), 2, 3))


HIDDEN = {
    "object": (lambda t: SimpleNamespace(scores=t), lambda out: out.scores),
    "places first": (lambda t: t.transpose(0, 1), lambda out: out.transpose(0, 1)),
    "part of a tuple": (lambda t: (t[:, 0], t.transpose(0, 1)), lambda out: out[1].transpose(0, 1)),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_outputs_without_rows_of_records_are_looked_at_behind_the_layers(name):
    hide, find = HIDDEN[name]

    def compute(module, criterion, batch):
        return criterion(find(module(batch[0])).mean(dim=1), batch[1])

    def mixing(model, criterion, batch):
        return criterion(centred(find(model(batch[0])).mean(dim=1)), batch[1])

    _, parts = private(Shaped(hide), compute=compute)
    found = one_step(parts, compute)
    engine, _ = private(parts[0], compute=compute)
    engine.train(1)
    torch.testing.assert_close(
        found, torch.cat([p.grad.flatten() for p in parts[0].parameters()]), rtol=1e-9, atol=1e-9
    )
    _, parts = private(Shaped(hide), compute=compute)
    with pytest.raises(InvalidInput, match="what the model gave for another"):
        one_step(parts, mixing)


class Chosen(nn.Module):
    """Its own loss is the mean over the places that have a label."""

    def __init__(self, is_chosen) -> None:
        super().__init__()
        self.table, self.exit, self.is_chosen = nn.Embedding(10, 4), nn.Linear(4, 3), is_chosen

    def forward(self, ids, labels):
        scores, labels = self.exit(self.table(ids)).flatten(0, 1), labels.flatten()
        here = self.is_chosen(labels)
        return {"loss": functional.cross_entropy(scores[here], labels[here])}


class Words(Dataset):
    """Half of the records have labels at 2 places of 8, the others at 6: 4 a record, whatever the batch."""

    def __len__(self):
        return N

    def __getitem__(self, i):
        places = torch.arange(8)
        return {"ids": (places + i) % 10, "labels": torch.where(places < (2 if i % 2 else 6), i % 3, -100)}


def test_a_loss_over_chosen_rows_is_refused():
    """Rows of one record were counted as another's where their number happened to be a multiple of the batch."""
    with pytest.raises(InvalidInput, match="not the same number for each record"):
        private(Chosen(lambda labels: labels != -100), Words(), criterion=None)


def test_a_loss_over_rows_that_are_chosen_late_is_refused_at_the_batch():
    model = Chosen(lambda labels: slice(None))
    _, parts = private(model, Words(), criterion=None)
    model.is_chosen = lambda labels: labels != -100
    with pytest.raises(InvalidInput, match="not the same number for each record"):
        one_step(parts, lambda model, _, batch: model(**batch)["loss"])


@pytest.mark.parametrize("is_frozen", [True, False])
def test_a_copy_of_the_model_may_teach_it(is_frozen):
    """A copy has the hooks of the model, but none of its gradients."""
    _, parts = private(layers())
    teacher = copy.deepcopy(parts[0]).requires_grad_(not is_frozen)
    found = one_step(parts, lambda model, criterion, b: criterion(model(b[0]) + teacher(b[0]), b[1]))
    truth = torch.zeros_like(found)
    for x, y in zip(X, Y, strict=True):
        loss = functional.cross_entropy((parts[0](x[None]) + teacher(x[None])), y[None])
        own = torch.autograd.grad(loss, list(parts[0].parameters()))
        whole = torch.cat([g.flatten() for g in own])
        truth += whole * min(1.0, CLIP / float(whole.norm()))
    torch.testing.assert_close(found, truth, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    "loss",
    [
        lambda model, criterion, batch: criterion(model(batch[0]) @ model[2].weight @ model[2].weight.T, batch[1]),
        lambda model, criterion, batch: criterion(model(batch[0]) + model[2].bias, batch[1]),
    ],
)
def test_a_parameter_that_the_loop_uses_by_itself_is_refused(loss):
    """That part of its gradient would be missing."""
    _, parts = private(layers())
    with pytest.raises(InvalidInput, match="uses a parameter of the module by itself"):
        one_step(parts, loss)


def test_a_small_penalty_in_the_criterion_is_not_passed_over():
    model = layers()

    def criterion(output, target):
        penalty = 1e-6 * sum(p.square().sum() for p in model.parameters())
        return functional.cross_entropy(output, target, reduction="none") + penalty

    with pytest.raises(InvalidInput, match="as penalty="):
        private(model, criterion=criterion)
