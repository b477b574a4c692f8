"""What a record is read as depends on it alone: no record decides whether others count, or how they are read."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (make test-torch)")

from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset  # noqa: E402

from privamp.errors import InvalidInput  # noqa: E402
from privamp.testing import seeded_key  # noqa: E402
from privamp.torch import PrivacyEngine  # noqa: E402

torch.set_num_threads(1)
CLIP = 0.01
EXAMPLE = [torch.rand(3, 8, 3), torch.zeros(3, dtype=torch.long)]


class Mean(nn.Module):
    """Takes sequences of any length."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x):
        self.seen = x.detach()
        return self.layer(x).mean(dim=1)


class Items(Dataset):
    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, at):
        if self.items[at] is None:
            raise ValueError
        return self.items[at]


class Skipping(Items):
    def __getitems__(self, places):
        return [self.items[at] for at in places if self.items[at] is not None]


def trained(data, **options):
    torch.manual_seed(0)
    module, engine = Mean(), PrivacyEngine(key=seeded_key(1))
    engine.make_private(
        module=module, optimizer=torch.optim.SGD(module.parameters(), 1.0), criterion=nn.CrossEntropyLoss(),
        data_loader=data, max_grad_norm=CLIP, population=100, sampler="uniform", sample_rate=1.0, steps=1,
        noise_multiplier=1e-12, **options,
    )  # fmt: skip
    engine.train()
    return module, torch.cat([p.grad.double().flatten() for p in module.parameters()]) * 100


def clips_moved(one, other, **options):
    return float((trained(one, **options)[1] - trained(other, **options)[1]).norm()) / CLIP


def record(length=8, dtype=torch.float32, label=0):
    return torch.ones(length, 3, dtype=dtype), label


ODD = {
    "shape": record(6), "float64": record(dtype=torch.float64), "whole": record(dtype=torch.int64),
    "label": record(label=0.0), "unreadable": None,
}  # fmt: skip


@pytest.mark.parametrize("kind", [Items, Skipping])
@pytest.mark.parametrize("name", ODD)
def test_an_odd_record_counts_as_nothing_and_changes_nobody(name, kind):
    some = [record()] * 9
    assert clips_moved(kind([*some, ODD[name]]), kind(some)) == 0.0


@pytest.mark.parametrize("name", ["shape", "float64", "whole", "label"])
def test_odd_records_count_as_nothing_among_themselves(name):
    """With one usual record they were lost; without it they must be, too. The first is only there for its shape."""
    odd = [ODD[name]] * 9
    data = Items([record(), *odd, record()])
    assert clips_moved(data, Items([record(), *odd])) == pytest.approx(1.0, abs=1e-4)
    assert float(trained(Items([record(), *odd]))[1].norm()) == pytest.approx(CLIP, rel=1e-4)


def test_an_example_must_have_the_shapes_of_the_records():
    with pytest.raises(InvalidInput, match="shapes and types"):
        trained(Items([record(6)] * 9), example=EXAMPLE)


def rows(items):
    ((x, label),) = items
    return torch.stack([x] * label), torch.zeros(label, dtype=torch.long)


def test_a_record_of_several_rows_counts_as_nothing():
    def loader(*counts):
        return DataLoader(Items([record(label=n) for n in counts]), collate_fn=rows)

    usual = [1] * 9
    assert clips_moved(loader(*usual, 3), loader(*usual)) == 0.0
    assert clips_moved(loader(*usual, 3, 0, 0), loader(*usual)) == 0.0


def test_a_collate_fn_that_gives_more_than_tensors_is_refused():
    """It cannot be joined from records alone, and on the whole batch it could mix them."""

    def named(items):
        return {"x": torch.stack([x for x, _ in items]), "labels": torch.zeros(len(items)).long(), "names": ["a"]}

    with pytest.raises(InvalidInput, match="no tensor"):
        trained(DataLoader(Items([record()] * 9), collate_fn=named), example={"x": EXAMPLE[0], "labels": EXAMPLE[1]})


class Scaled(TensorDataset):
    def __getitem__(self, at):
        x, y = super().__getitem__(at)
        return 10.0 * x, y


class ScaledPart(Subset):
    def __getitem__(self, at):
        x, y = super().__getitem__(at)
        return 10.0 * x, y

    def __getitems__(self, places):
        return [self[at] for at in places]


def scaled(items):
    return torch.stack([10.0 * x for x, _ in items]), torch.stack([y for _, y in items])


@pytest.mark.parametrize("how", ["class", "part", "collate"])
def test_records_are_read_as_the_data_set_says(how):
    tensors = torch.ones(4, 8, 3), torch.zeros(4, dtype=torch.long)
    plain = TensorDataset(*tensors)
    data = {
        "class": Scaled(*tensors), "part": ScaledPart(plain, range(4)), "collate": DataLoader(plain, collate_fn=scaled)
    }  # fmt: skip
    module, _ = trained(data[how])
    assert bool((module.seen == 10.0).all())


PLACES, FEW = 67, 0.9 * 2.0**-24


def cancelling():
    """Positions that cancel, except for what float32 loses when they are added in turn."""
    return torch.tensor([1.0, *[FEW] * 64, -64 * FEW, -1.0])[None, :, None]


@pytest.mark.parametrize("share", [0.5, 0.67, 1.0])
def test_what_rounding_leaves_of_cancelling_positions_is_within_a_clip(share):
    width = 4 * PLACES + 8
    numbers = cancelling().clone()
    numbers[:, 1:-1] *= share
    for module, x, wide in (
        (nn.Linear(width, width, bias=False), torch.ones(1, PLACES, width), width),
        (nn.Embedding(5, 2), torch.zeros(1, PLACES, dtype=torch.long), 2),
    ):
        engine = PrivacyEngine(key=seeded_key(1))
        engine.make_private(
            module=module, optimizer=torch.optim.SGD(module.parameters(), 1.0),
            criterion=lambda out, y: (out * y).flatten(1).sum(dim=1),
            data_loader=TensorDataset(x, 1e9 * numbers.expand(1, PLACES, wide)), max_grad_norm=CLIP, population=1,
            sampler="uniform", sample_rate=1.0, steps=1, noise_multiplier=1e-12,
        )  # fmt: skip
        engine.train()
        assert float(module.weight.grad.double().norm()) <= 1.01 * CLIP
