"""One record moves a step's sum by at most one clip, whatever it holds and in whatever precision the model runs."""

import copy

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (make test-torch)")

from torch import nn  # noqa: E402
from torch.utils.data import TensorDataset  # noqa: E402

from privamp.testing import seeded_key  # noqa: E402
from privamp.torch import LSTM, PrivacyEngine  # noqa: E402

torch.set_num_threads(1)
CLIP, NONE = 0.5, 1e-12  # a noise multiplier that is none
SLACK = 1e-2  # of a clip: float32 sums of a few records, rounded in an order that depends on the batch


def summed(module, tensors, criterion=None, autocast=None, clip=CLIP, **options):
    """The sum of clipped gradients of one step on all records."""
    module = copy.deepcopy(module)
    engine = PrivacyEngine(key=seeded_key(1))
    settings = {"sampler": "uniform", "sample_rate": 1.0, "steps": 1, "noise_multiplier": NONE} | options
    engine.make_private(
        module=module, optimizer=torch.optim.SGD([p for p in module.parameters() if p.requires_grad], 1.0),
        criterion=criterion or nn.CrossEntropyLoss(), data_loader=TensorDataset(*tensors), max_grad_norm=clip,
        population=100, **settings,
    )  # fmt: skip
    with torch.autocast("cpu", dtype=autocast or torch.bfloat16, enabled=autocast is not None):
        engine.train()
    return torch.cat([p.grad.double().flatten() for p in module.parameters() if p.requires_grad]) * 100


def clips_moved(module, tensors, at=0, clip=CLIP, **options):
    """By how many clips the sum moves when the record at `at` leaves."""
    rest = [torch.cat([t[:at], t[at + 1 :]]) for t in tensors]
    both = (summed(module, some, clip=clip, **options) for some in (tensors, rest))
    return float((next(both) - next(both)).norm()) / clip


class Reader(nn.Module):
    """Word ids to classes."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.lstm, self.out = nn.Embedding(11, 5), LSTM(5, 4), nn.Linear(4, 3)

    def forward(self, ids):
        return self.out(self.lstm(self.words(ids)).mean(dim=1))


def mlp():
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.LayerNorm(8), nn.Linear(8, 3))


def cnn():
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.Tanh(), nn.GroupNorm(2, 4), nn.Flatten(), nn.Linear(64, 3))


def long_cnn():
    """Its second layer takes the ghost norm."""
    return nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 32, 4), nn.Flatten(), nn.Linear(32, 3))


MODELS = {"mlp": (mlp, (6,)), "cnn": (cnn, (1, 6, 6)), "long cnn": (long_cnn, (1, 6, 6))}
NAN, INF = float("nan"), float("inf")
HURTING = [0.0, -0.0, NAN, INF, -INF, 1e-45, 1e-30, -1e-20, 1e18, 3.4e38, -3.4e38]


def records_of(shape, n=9):
    generator = torch.Generator().manual_seed(2)
    return torch.randn(n, *shape, generator=generator), torch.randint(0, 3, (n,), generator=generator)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("options", [{}, {"max_physical_batch_size": 4}], ids=["whole", "parts"])
def test_no_value_moves_more_than_a_clip(name, dtype, options):
    make, shape = MODELS[name]
    torch.manual_seed(0)
    module = make().to(dtype)
    for value in HURTING:
        x, y = records_of(shape)
        x[4] = value
        moved = clips_moved(module, (x.to(dtype), y), at=4, **options)
        assert moved <= 1 + SLACK, value
        if value != value or abs(value) == INF:
            assert moved <= SLACK, value  # counts as nothing


@pytest.mark.parametrize("sampler", ["importance", "importance-reject"])
def test_gradients_that_nearly_vanish_leave_the_sum_a_number(sampler):
    """The rejecting rule multiplies by clip/norm: with a norm of 1e-310 that was infinite, and the sum not a number."""
    module = nn.Linear(4, 3, bias=False).double()
    for value in (1e-310, 1e-250, 1e-100):
        x = torch.randn(6, 4).double()
        x[2] = value
        assert clips_moved(module, (x, torch.arange(6) % 3), at=2, sampler=sampler) <= 1 + SLACK


@pytest.mark.parametrize("wide", [False, True], ids=["float32", "float64"])
def test_squares_that_vanish_do_not_make_norms_too_small(wide):
    """A tiny derivative and a huge input: |b|^2 was 0 in the model's own precision, the gradient |a||b| is not."""
    dtype = torch.float64 if wide else torch.float32
    small, large, clip = (1e-163, 1e152, 1e-12) if wide else (1.8e-23, 2.5e18, 4e-5)

    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.far, self.near = nn.Linear(40, 40, bias=False), nn.Linear(40, 3)

        def forward(self, x):
            return torch.cat([self.near(x[:, :40]), self.far(x[:, 40:])], dim=1)

    def criterion(outputs, target):
        near = nn.functional.cross_entropy(outputs[:, :3], target, reduction="none")
        return near * clip / 100 + small * outputs[:, 3:].sum(dim=1)

    torch.manual_seed(0)
    x = torch.rand(5, 80).to(dtype)
    x[:, 40:] = 0.0
    x[2, 40:] = large
    moved = clips_moved(Both().to(dtype), (x, torch.arange(5) % 3), at=2, criterion=criterion, clip=clip)
    assert 0.9 < moved <= 1 + SLACK


def test_half_precision_models_add_up_in_single_precision():
    """In bfloat16 itself the sum of 10,000 gradients moves by several clips when one of them leaves."""
    torch.manual_seed(0)
    module = nn.Linear(4, 2).bfloat16()
    x = torch.randn(10_000, 4).bfloat16()
    y = (x[:, 0] > 0).long()
    assert clips_moved(module, (x, y), at=17) <= 1 + SLACK
    assert clips_moved(module, (x, y), at=17, max_physical_batch_size=100) <= 1 + SLACK


@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", MODELS)
def test_autocast_works_and_keeps_to_the_clip(name, half):
    make, shape = MODELS[name]
    torch.manual_seed(0)
    module, (x, y) = make(), records_of(shape)
    plain, cast = summed(module, (x, y)), summed(module, (x, y), autocast=half)
    assert float((plain - cast).norm()) < 0.05 * float(plain.norm())
    assert 0.9 < clips_moved(module, (x, y), at=4, autocast=half) <= 1 + SLACK or float(plain.norm()) < CLIP


@pytest.mark.parametrize("precision", ["high", "medium"])
def test_faster_products_are_not_used_for_sums(precision):
    module, (x, y) = long_cnn(), records_of((1, 6, 6))
    plain = summed(module, (x, y))
    try:
        torch.set_float32_matmul_precision(precision)
        assert float((plain - summed(module, (x, y))).norm()) < 0.05 * CLIP
        assert torch.get_float32_matmul_precision() == precision
    finally:
        torch.set_float32_matmul_precision("highest")


@pytest.mark.parametrize("label", [-1, 3, 7351, -100, 2**40])
def test_labels_out_of_range_count_as_nothing(label):
    module, (x, y) = mlp(), records_of((6,))
    y[4] = label
    assert clips_moved(module, (x, y), at=4) <= SLACK
    assert clips_moved(module, (x, y), at=4, criterion=own_criterion) <= SLACK


def own_criterion(output, target):
    """Fails with the label in its message when one is out of range."""
    return nn.functional.cross_entropy(output, target, reduction="none")


@pytest.mark.parametrize("word", [-1, 11, 2**40])
def test_unknown_words_count_as_nothing(word):
    torch.manual_seed(0)
    module = Reader()
    ids = torch.randint(0, 11, (8, 6))
    ids[3, 2] = word
    y = torch.arange(8) % 3
    assert clips_moved(module, (ids, y), at=3) <= SLACK
    module.words.weight.requires_grad_(False)
    assert clips_moved(module, (ids, y), at=3) <= SLACK


def test_labels_of_places_count_as_nothing_where_one_is_out_of_range():
    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 3)

        def forward(self, x):
            return self.layer(x).transpose(1, 2)

    x, y = torch.randn(5, 6, 4), torch.randint(0, 3, (5, 6))
    y[1, 3] = 9
    y[2, 3] = -100  # a place that is left out on purpose
    assert clips_moved(Tagger(), (x, y), at=1) <= SLACK
    assert 0.1 < clips_moved(Tagger(), (x, y), at=2) <= 1 + SLACK


def test_a_criterion_that_does_not_fit_is_named_by_its_kind():
    from privamp import InvalidInput

    with pytest.raises(InvalidInput, match="criterion"):
        summed(mlp(), (torch.randn(5, 6), torch.randn(5, 4)), criterion=nn.MSELoss())


def test_batchmean_adds_up_within_a_record():
    """KLDivLoss("batchmean") is the sum over classes, divided by the batch: a record's loss is the sum."""
    module = nn.Sequential(nn.Linear(6, 3), nn.LogSoftmax(dim=1))
    x, y = torch.randn(1, 6), torch.tensor([[0.2, 0.3, 0.5]])
    found = summed(module, (x, y), criterion=nn.KLDivLoss(reduction="batchmean"), max_physical_batch_size=3)
    nn.KLDivLoss(reduction="sum")(module(x), y).backward()
    truth = torch.cat([p.grad.flatten() for p in module.parameters()]).double()
    truth *= min(1.0, CLIP / float(truth.norm()))
    torch.testing.assert_close(found, truth, rtol=1e-4, atol=1e-6)
