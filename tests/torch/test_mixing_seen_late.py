"""What mixes records only in training mode, in one's own loop, in the collate_fn, or for other values is refused."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (make test-torch)")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.utils.data import DataLoader, Dataset, TensorDataset, default_collate  # noqa: E402

from privamp import InvalidInput  # noqa: E402
from privamp.testing import seeded_key  # noqa: E402
from privamp.torch import PrivacyEngine  # noqa: E402

torch.set_num_threads(1)
CLIP, N = 0.5, 8
X = torch.rand(N, 5, generator=torch.Generator().manual_seed(3), dtype=torch.float64) * 5
X[-1] *= 30
Y = torch.arange(N) % 3


def private(model, data, **options):
    trained = [p for p in model.parameters() if p.requires_grad]
    settings = {"sampler": "uniform", "sample_rate": 1.0, "steps": 4, "noise_multiplier": 1e-12, "population": 1}
    settings |= {"max_grad_norm": CLIP, "criterion": nn.CrossEntropyLoss()}
    engine = PrivacyEngine(key=seeded_key(1))
    parts = engine.make_private(
        module=model.double(), optimizer=torch.optim.SGD(trained, 0.0), data_loader=data, **(settings | options)
    )
    return engine, parts


def steps(count, parts, loss):
    for _ in range(count):
        one_step(parts, loss)


def one_step(parts, loss=lambda model, criterion, x, y: criterion(model(x), y)):
    model, optimizer, criterion, loader = parts
    for x, y in loader:
        loss(model, criterion, x, y).backward()
        optimizer.step()
        break
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


class Before(nn.Module):
    """Something before a linear layer."""

    def __init__(self, change) -> None:
        super().__init__()
        self.change, self.exit = change, nn.Linear(5, 3)

    def forward(self, x):
        return self.exit(self.change(self, x))


def centred_in_training(module, x):
    return x - x.mean(dim=0) if module.training else x


@pytest.mark.parametrize("when", ["before the pass", "in the loop"])
def test_a_model_is_tried_again_in_another_mode(when):
    _, parts = private(Before(centred_in_training).eval(), TensorDataset(X, Y))
    model = parts[0]
    if when == "before the pass":
        model.train()
    with pytest.raises(InvalidInput, match="records are mixed"):
        one_step(parts, lambda model, criterion, x, y: criterion(model.train()(x), y))


def test_a_mode_for_the_forward_pass_alone_is_tried_too():
    def loss(model, criterion, x, y):
        found = criterion(model.train()(x), y)
        model.eval()
        return found

    _, parts = private(Before(centred_in_training).eval(), TensorDataset(X, Y))
    with pytest.raises(InvalidInput, match="records are mixed"):
        one_step(parts, loss)
    assert not parts[0].training
    with pytest.raises(InvalidInput, match="no gradient to step with"):
        parts[1].step()


def test_training_mode_alone_is_no_reason_to_refuse():
    model = nn.Sequential(nn.Dropout(0.3), nn.BatchNorm1d(5), nn.Linear(5, 3)).eval()
    engine, parts = private(model, TensorDataset(X, Y))
    model.train()
    one_step(parts)
    assert engine.step == 1


@pytest.mark.parametrize(
    "loss",
    [
        lambda model, criterion, x, y: criterion(model(x) @ model(x).T, torch.arange(len(x))),
        lambda model, criterion, x, y: criterion(model(x) - model(x).mean(dim=0), y),
    ],
    ids=["in-batch negatives", "centred"],
)
def test_a_loop_that_mixes_records_after_the_model_is_refused(loss):
    engine, parts = private(nn.Linear(5, 3), TensorDataset(X, Y))
    with pytest.raises(InvalidInput, match="what the model gave for another"):
        one_step(parts, loss)
    with pytest.raises(InvalidInput, match="no gradient to step with"):
        parts[1].step()
    assert engine.step == 0


def test_any_two_records_are_told_apart_within_some_steps():
    def swapped(step):
        def loss(model, criterion, x, y):
            out = model(x)
            return criterion(torch.cat([out[1:2], out[0:1], out[2:]]) if step == "swap" else out, y)

        return loss

    _, parts = private(nn.Linear(5, 3), TensorDataset(X, Y))
    one_step(parts, swapped("none"))
    with pytest.raises(InvalidInput, match="what the model gave for another"):
        steps(3, parts, swapped("swap"))


def test_losses_are_multiplied_by_one_number():
    _, parts = private(nn.Linear(5, 3), TensorDataset(X, Y), sample_rate=0.5)
    with pytest.raises(InvalidInput, match="same number in every batch"):
        steps(4, parts, lambda model, criterion, x, y: criterion(model(x), y) / len(x))
    engine, parts = private(nn.Linear(5, 3), TensorDataset(X, Y), sample_rate=0.5)
    for step in range(4):
        one_step(parts, lambda model, criterion, x, y, n=step: criterion(model(x), y) / 4 + n)
    assert engine.is_finished


class Items(Dataset):
    def __init__(self, count, ragged=False):
        self.count, self.ragged = count, ragged

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return X[i, : 3 + i % 2] if self.ragged else X[i], Y[i]


def mixing(items):
    x, y = default_collate(items)
    return x + x.flip(0), y


def test_a_collate_fn_sees_one_record_at_a_time():
    """Pictures mixed while they are collated would let one record change the gradients of all."""
    sums = []
    for count in (N, N - 1):
        torch.manual_seed(0)
        _, parts = private(nn.Linear(5, 3), DataLoader(Items(count), collate_fn=mixing))
        sums.append(one_step(parts))
    assert float((sums[0] - sums[1]).norm()) <= CLIP * (1 + 1e-9)


def padded(items):
    x, y = zip(*items, strict=True)
    return nn.utils.rnn.pad_sequence(list(x), batch_first=True), torch.stack(y)


@pytest.mark.parametrize(
    ("collate", "ragged", "words"),
    [
        (padded, True, "public length"),
        (lambda items: [*default_collate(items), torch.tensor(len(items))], False, "a row per record"),
    ],
    ids=["pads to the longest", "counts the batch"],
)
def test_a_collate_fn_that_needs_the_whole_batch_is_refused(collate, ragged, words):
    with pytest.raises(InvalidInput, match=words):
        private(nn.Linear(5, 3), DataLoader(Items(N, ragged), collate_fn=collate))


class Tracking(nn.Module):
    """Writes the mean of a batch into a tensor through `.data`, which moves no version."""

    def __init__(self, kind) -> None:
        super().__init__()
        self.exit = nn.Linear(5, 3)
        if kind == "buffer":
            self.register_buffer("mean", torch.zeros(5))
        else:
            self.mean = nn.Parameter(torch.zeros(5), requires_grad=False)

    def forward(self, x):
        self.mean.data.mul_(0.9).add_(x.detach().mean(dim=0))
        return self.exit(x)


class Renormed(nn.Module):
    """A frozen table, whose rows shrink when they are looked up."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.exit = nn.Embedding(300, 5, max_norm=0.1), nn.Linear(5, 3)
        self.table.weight.requires_grad_(False)

    def forward(self, x):
        return self.exit(self.table(x.long().clamp(0, 299)).mean(dim=1))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Tracking("buffer"), "a buffer of the module changed"),
        (lambda: Tracking("frozen parameter"), "a parameter of the module changed"),
        (Renormed, "a parameter of the module changed"),
    ],
    ids=["buffer", "frozen parameter", "max_norm"],
)
def test_a_forward_pass_that_writes_into_the_module_is_refused(make, words):
    with pytest.raises(InvalidInput, match=words):
        private(make(), TensorDataset(X, Y))


def by_class_two(output, y):
    return functional.cross_entropy(output, y, reduction="none") / (0.1 + (y == 2).double().mean())


def by_kept_labels(output, y):
    return functional.cross_entropy(output, y, reduction="none") / (y != -100).double().mean()


@pytest.mark.parametrize(
    ("change", "criterion"),
    [
        (lambda module, x: x - x.mean(dim=0) if len(x) > 6 else x, nn.CrossEntropyLoss()),
        (lambda module, x: x - torch.relu(x - 1).mean(dim=0), nn.CrossEntropyLoss()),
        (lambda module, x: x, by_class_two),
        (lambda module, x: x, by_kept_labels),
    ],
    ids=["many records", "large values", "another class", "labels to ignore"],
)
def test_mixing_beyond_the_first_made_up_values_is_refused(change, criterion):
    with pytest.raises(InvalidInput, match="records are mixed"):
        private(Before(change), TensorDataset(X, Y), criterion=criterion)


def moved_with_a_hook(hook):
    """How far the last record moves the second step, before which the hook came."""
    sums = []
    for count in (N, N - 1):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3))
        _, parts = private(model, TensorDataset(X[:count], Y[:count]))
        one_step(parts)
        model[2].register_full_backward_hook(hook)
        sums.append(one_step(parts))
    return float((sums[0] - sums[1]).norm())


def test_hooks_that_come_later_are_tried_too(monkeypatch):
    def mixes(layer, back, after):
        return (back[0] - 1e3 * back[0].sum(dim=0),)

    def of_the_batch(layer, back, after):
        return (back[0] / back[0].norm(),)

    with pytest.raises(InvalidInput, match="records are mixed"):
        moved_with_a_hook(mixes)
    assert moved_with_a_hook(of_the_batch) <= CLIP * (1 + 1e-9)  # records are computed one by one from then on
    monkeypatch.setattr("privamp.torch.trial.Trial._hooks", lambda trial: None)
    assert moved_with_a_hook(mixes) > CLIP * 1.1  # planted: hooks not seen


def test_a_parameter_that_comes_later_does_not_move_without_noise():
    engine, parts = private(nn.Linear(5, 3), TensorDataset(X, Y))
    model, optimizer, criterion, loader = parts
    later = nn.Linear(5, 1).double()
    optimizer.add_param_group({"params": later.parameters()})
    x, y = next(iter(loader))
    criterion(model(x), y).backward()
    later(x).mean().backward()
    with pytest.raises(InvalidInput, match="carries no noise"):
        optimizer.step()
    assert engine.step == 0
