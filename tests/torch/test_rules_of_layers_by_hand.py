"""Rules of layers against torch's own gradients record by record; precision, layouts, coins and loaders by hand."""

import logging
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (make test-torch)")

from torch import nn  # noqa: E402
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, SequentialSampler, TensorDataset  # noqa: E402

from privamp import CyclicPoisson, InvalidInput, NoTheorem, Poisson, WithoutReplacement  # noqa: E402
from privamp.accounting.banded import band  # noqa: E402
from privamp.torch import after_model, from_loader, half_products, layers, optimizers, precision  # noqa: E402
from privamp.torch.alone import Alone  # noqa: E402
from privamp.torch.attention import Attention  # noqa: E402
from privamp.torch.banded_noise import BandedNoise, inverse  # noqa: E402
from privamp.torch.bands import BandsPlan, TriedBands  # noqa: E402
from privamp.torch.batches import Batch, joined  # noqa: E402
from privamp.torch.importance import ImportanceRule  # noqa: E402
from privamp.torch.layout import holder_of, layout_of  # noqa: E402
from privamp.torch.recurrent import Cell, Recurrent  # noqa: E402
from privamp.torch.uses import measured  # noqa: E402

RECORDS = 3
LAYERS = {
    "linear": (nn.Linear(4, 3), (5, 4)),
    "conv1d": (nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2), (4, 9)),
    "conv1d, strips": (nn.Conv1d(16, 2, 4, stride=2), (16, 10)),
    "conv2d": (nn.Conv2d(3, 2, (3, 2), stride=(1, 2), dilation=(2, 1), padding=(1, 0)), (3, 8, 7)),
    "conv2d, strips": (nn.Conv2d(16, 3, 3, padding=1), (16, 5, 6)),
    "conv2d, strips by two": (nn.Conv2d(16, 3, (4, 3), stride=(2, 1)), (16, 9, 6)),
    "conv2d, same": (nn.Conv2d(2, 3, (2, 3), padding="same", padding_mode="reflect"), (2, 6, 5)),
    "conv2d, uneven": (nn.Conv2d(2, 3, (2, 3), padding="same"), (2, 6, 5)),
    "conv2d, valid": (nn.Conv2d(2, 3, 2, padding="valid", bias=False), (2, 4, 5)),
    "conv3d": (nn.Conv3d(2, 2, 2, stride=(1, 2, 1)), (2, 4, 5, 3)),
    "transposed": (nn.ConvTranspose1d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2), (4, 5)),
    "transposed 2d": (nn.ConvTranspose2d(3, 2, (3, 2), stride=(2, 3), dilation=(2, 1), padding=(1, 0)), (3, 4, 3)),
    "group norm": (nn.GroupNorm(2, 6), (6, 4, 3)),
    "layer norm": (nn.LayerNorm((4, 3)), (5, 4, 3)),
    "layer norm without bias": (nn.LayerNorm(4, bias=False), (5, 4)),
    "rms norm": (nn.RMSNorm(4, eps=0.1), (5, 4)),
    "instance norm": (nn.InstanceNorm1d(3, affine=True), (3, 7)),
    "batch norm at rest": (nn.BatchNorm2d(3).eval(), (3, 4, 2)),
    "batch norm of columns": (nn.BatchNorm1d(3).eval(), (3,)),
    "prelu": (nn.PReLU(), (4, 3)),
    "prelu of channels": (nn.PReLU(4), (4, 3)),
    "prelu of columns": (nn.PReLU(4), (4,)),
}


def prepared(name):
    torch.manual_seed(3)
    layer, shape = LAYERS[name]
    layer = layer.double()
    for p in layer.parameters():
        p.data = torch.randn_like(p)
    if isinstance(layer, nn.modules.batchnorm._BatchNorm):
        layer.running_mean.copy_(torch.randn(3))
        layer.running_var.copy_(torch.rand(3) + 0.5)
    x = torch.randn(RECORDS, *shape, dtype=torch.float64)
    return layer, x, torch.randn_like(layer(x))


@pytest.mark.parametrize("name", LAYERS)
def test_a_rule_gives_each_records_gradient_its_norm_and_the_weighted_sum(name):
    layer, x, back = prepared(name)
    parts = layers.rule_of(layer)(layer, x, back)
    weights = torch.tensor([0.5, 2.0, 0.0], dtype=torch.float64)
    for p in layer.parameters():
        truth = torch.stack([torch.autograd.grad((layer(x) * back)[r].sum(), p)[0] for r in range(RECORDS)])
        uses = [part.use for part in parts if part.parameter is p]
        torch.testing.assert_close(sum(use.written(p.shape) for use in uses), truth)
        norms = truth.flatten(1).norm(dim=1)
        for written in (False, True):
            found = measured(uses, p.shape, written=written)
            torch.testing.assert_close(found.squares.sqrt(), norms, rtol=1e-6, atol=1e-9)
            assert torch.all(found.squares.sqrt() >= norms * (1.0 - 1e-12))
            total = torch.einsum("r,r...->...", weights, truth)
            torch.testing.assert_close(found.summed(weights), total)
            only = found.only(weights > 0)
            torch.testing.assert_close(only.summed(weights), total)
    assert len(parts) == len(list(layer.parameters()))


@pytest.mark.parametrize("name", ["conv2d", "conv2d, strips", "linear", "group norm"])
def test_a_layer_that_is_called_twice_has_the_sum_of_both_gradients(name):
    layer, x, back = prepared(name)
    parts = layers.rule_of(layer)(layer, x, back) + layers.rule_of(layer)(layer, x.flip(0), back)
    for p in layer.parameters():
        both = (layer(x) * back)[0].sum() + (layer(x.flip(0)) * back)[0].sum()
        truth = torch.autograd.grad(both, p)[0]
        found = measured([part.use for part in parts if part.parameter is p], p.shape)
        torch.testing.assert_close(found.squares[0].sqrt(), truth.norm(), rtol=1e-6, atol=1e-9)
        torch.testing.assert_close(found.summed(torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)), truth)


def test_frozen_parameters_have_no_part():
    layer = nn.Conv1d(2, 3, 2)
    x, back = torch.randn(2, 2, 4), torch.randn(2, 3, 3)
    layer.weight.requires_grad_(False)
    assert [part.parameter for part in layers._conv(layer, x, back)] == [layer.bias]
    layer.weight.requires_grad_(True)
    layer.bias.requires_grad_(False)
    assert [part.parameter for part in layers._conv(layer, x, back)] == [layer.weight]
    linear = nn.Linear(4, 2)
    linear.bias.requires_grad_(False)
    assert [part.parameter for part in layers._linear(linear, torch.randn(2, 4), torch.randn(2, 2))] == [linear.weight]


def test_layers_of_ones_own_have_no_rule():
    class Own(nn.Linear):
        def forward(self, x):
            return 2.0 * super().forward(x)

    patched = nn.Linear(2, 2)
    patched.forward = lambda x: x
    more = nn.Linear(2, 2)
    more.extra = nn.Parameter(torch.ones(1))
    assert [layers.rule_of(one) for one in (Own(2, 2), patched, more, nn.Bilinear(2, 2, 2))] == [None] * 4
    assert layers.rule_of(nn.Linear(2, 2)) is layers._linear
    assert layers.rule_of(nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))) is None


# --- layouts


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Parameter(torch.zeros(3))
        self.frozen = nn.Parameter(torch.zeros(3), requires_grad=False)
        self.several = nn.ParameterList([nn.Parameter(torch.zeros(2))])
        self.first, self.tied = nn.Linear(3, 3), nn.Linear(3, 3)
        self.tied.weight = self.first.weight
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        self.reader, self.cell = nn.GRU(3, 2), nn.LSTMCell(3, 2)
        self.odd = nn.Bilinear(2, 2, 2)
        self.norm = nn.BatchNorm1d(3).eval()


def test_every_parameter_has_one_way():
    module = Mixed()
    found = layout_of(module)
    assert list(found.heard) == ["first", "tied", "norm"]
    kinds = {name: kind for name, (_, kind) in found.replaced.items()}
    assert kinds == {"attention": Attention, "reader": Recurrent, "cell": Cell, "odd": Alone}
    assert list(found.own) == ["token", "several.0"]
    assert found.still == [module.norm]
    assert layout_of(module, frozenset(["first"])).replaced["first"][1] is Alone
    assert holder_of(module, "several.0") == holder_of(module, "token") == ""
    assert holder_of(module, "first.weight") == "first"


def test_layouts_that_are_refused():
    with pytest.raises(InvalidInput, match="mixes the records"):
        layout_of(nn.Sequential(nn.BatchNorm1d(3)))
    with pytest.raises(InvalidInput, match="mixes the records"):
        layout_of(nn.BatchNorm1d(3, track_running_stats=False).eval())
    with pytest.raises(InvalidInput, match="no trainable parameters"):
        layout_of(nn.Linear(2, 2).requires_grad_(False))
    for option in ("scale_grad_by_freq", "sparse"):
        with pytest.raises(InvalidInput, match="must not use"):
            layout_of(nn.Embedding(3, 2, **{option: True}))
    with pytest.raises(InvalidInput, match="must not use"):
        layout_of(nn.Sequential(nn.Embedding(3, 2, max_norm=1.0)))


# --- precision


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_norms_of_numbers_whose_squares_are_no_numbers(dtype):
    for size in (3e-40, 1.0, 3e30) if dtype in (torch.float32, torch.bfloat16) else (3e-8, 1.0, 2e4):
        rows = torch.tensor([[3.0, -4.0, 0.0], [0.0, 0.0, 0.0]], dtype=torch.float64).mul(size).to(dtype)
        exact = rows.double().norm(dim=1)
        torch.testing.assert_close(precision.norms_of(rows), exact, rtol=1e-12, atol=0.0)
    huge = torch.tensor([[3e300, 4e300], [3e-300, 4e-300]], dtype=torch.float64)
    torch.testing.assert_close(precision.norms_of(huge), torch.tensor([5e300, 5e-300], dtype=torch.float64))


def test_norms_of_no_records_and_of_many(monkeypatch):
    assert precision.norms_of(torch.zeros(0, 3)).tolist() == []
    rows = torch.randn(7, 5)
    whole = precision.norms_of(rows)
    monkeypatch.setattr(precision, "_CACHED", 10)
    torch.testing.assert_close(precision.norms_of(rows), whole)
    monkeypatch.setattr(precision, "_CACHED", 1)
    torch.testing.assert_close(precision.norms_of(rows), whole)


def test_upper_norms_are_never_below_and_little_above():
    for size in (1e-30, 1.0, 1e15):
        rows = torch.randn(20, 384, generator=torch.Generator().manual_seed(1)) * size
        exact, upper = precision.norms_of(rows), precision.upper_norms(rows)
        assert torch.all(upper >= exact)
        assert torch.all(upper <= exact * (1.0 + 1e-5) + 1e-15)
    odd = torch.randn(3, 100)
    assert torch.equal(precision.upper_norms(odd), precision.norms_of(odd))


def test_weights_are_rounded_down():
    weights = torch.tensor([1.0 + 2.0**-30, 1.0 / 3.0, 1e-39, 0.0, 5e4], dtype=torch.float64)
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        found = precision.shortened(weights, dtype)
        assert found.dtype == dtype
        assert torch.all(found.double() <= weights)
        assert torch.all(found.double()[[0, 1, 4]] >= weights[[0, 1, 4]] * (1.0 - 8.0 * torch.finfo(dtype).eps))
    assert precision.shortened(weights, torch.float32)[2] == 0.0


def test_types_of_sums():
    assert [precision.sum_dtype(d) for d in (torch.float64, torch.float32, torch.bfloat16)] == [
        torch.float64, torch.float32, torch.float32
    ]  # fmt: skip
    assert precision.widened(torch.zeros(1, dtype=torch.float16)).dtype == torch.float32
    assert precision.widened(torch.zeros(1, dtype=torch.float64)).dtype == torch.float64
    x = torch.zeros(2)
    assert precision.as_cast(x) is x
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert precision.as_cast(x).dtype == torch.bfloat16
        assert precision.as_cast(x.double()).dtype == torch.float64
        assert precision.is_autocast("cpu")
        with precision.full_precision("cpu"):
            assert not precision.is_autocast("cpu")
    assert not precision.is_autocast("cpu")


def test_products_of_short_numbers_are_added_up_in_long_ones():
    a, b = torch.randn(2, 3, 4).bfloat16(), torch.randn(2, 4, 5).bfloat16()
    found = half_products.multiplied(a, b)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), a.double() @ b.double(), rtol=1e-5, atol=1e-5)
    assert not half_products.is_kept(a)
    assert half_products.scaled(a, torch.tensor([2.0, 0.0])).dtype == torch.bfloat16
    assert torch.equal(half_products.scaled(a, torch.tensor([2.0, 0.0]))[0], 2.0 * a[0])
    assert half_products.unit_of_products(a) == 2.0**-22
    assert half_products.unit_of_products(a.float()) == 2.0**-24
    assert half_products.unit_of_products(a.double()) == 2.0**-53
    assert half_products.summing_error(a.float(), 7) == 7 * 2.0**-23
    assert half_products.summing_error(a, 7) == 7 * 2.0**-23 + 2.0**-8
    assert half_products.summing_error(a.double(), 7) == 7 * 2.0**-52


# --- batches, coins and noise


def test_parts_of_a_batch_are_joined_again():
    whole = Batch(4, np.arange(5), np.array([1, 2, 1, 3, 1]), np.linspace(0.1, 0.5, 5))
    norms = np.linspace(1.0, 5.0, 5)
    parts = [(whole.part(at, at + 2), norms[at : at + 2]) for at in (0, 2, 4)]
    found, together = joined(parts)
    assert found.step == 4
    for name in ("positions", "counts", "bounds"):
        assert np.array_equal(getattr(found, name), getattr(whole, name))
    assert np.array_equal(together, norms)
    assert joined(parts[:1]) is parts[0]


@pytest.mark.parametrize("rejects", [False, True])
def test_no_record_adds_more_than_the_clip_and_its_mean_is_kept(rejects):
    """Drawn with share b/C and accepted with min(n, b)/b, a gradient of norm n adds C in its direction at most."""
    rule = ImportanceRule(0.1, 2.0, growth=3.0, floor=0.25, rejects=rejects)
    bounds, norms = np.array([0.5, 2.0, 1.0, 0.1]), np.array([0.4, 5.0, 0.0, 3.0])
    assert rule.start(2).tolist() == [2.0, 2.0]
    assert rule.shares(bounds).tolist() == [0.25, 1.0, 0.5, 0.05]
    added = rule.coefficients(bounds, norms) * norms
    assert np.all(added <= 2.0 * (1.0 + 1e-12))
    if rejects:
        assert rule.acceptance(bounds, norms) == pytest.approx([0.8, 1.0, 0.0, 1.0])
        mean = rule.shares(bounds) * rule.acceptance(bounds, norms) * added
    else:
        assert added == pytest.approx([2.0 * 0.4 / 0.5, 2.0, 0.0, 2.0])
        mean = rule.shares(bounds) * added
    assert mean == pytest.approx(np.minimum(norms, bounds))
    assert rule.remembered(norms) == pytest.approx([1.2, 2.0, 0.75, 2.0])


def test_shared_noise_is_that_of_the_inverse_matrix():
    """C n = z, row by row; kept or made again it is the same, and a run that begins anew begins with C again."""
    column = band(3)
    z = torch.randn(7, 4, dtype=torch.float64)
    matrix = sum(np.diag(np.full(7 - k, column[k]), -k) for k in range(3))
    exact = np.linalg.solve(matrix, z.numpy())
    for keeps in (True, False):
        noise = BandedNoise(3, keeps=keeps)
        found = [noise.shared(z[t].clone(), t, lambda i, t=t: z[t - i].clone()) for t in range(7)]
        np.testing.assert_allclose(torch.stack(found).numpy(), exact, rtol=1e-12, atol=1e-12)
        noise.begin_anew()
        again = noise.shared(z[5].clone(), 0, lambda i: None)
        np.testing.assert_allclose(again.numpy(), z[5].numpy() / column[0], rtol=1e-12)
    assert not BandedNoise(3).is_independent
    assert BandedNoise(1).is_independent
    product = np.convolve(inverse(column.tolist(), 9), column)[:9]
    np.testing.assert_allclose(product, [1.0] + [0.0] * 8, atol=1e-12)


def test_the_best_bands_have_the_smallest_ratio_and_of_equal_ones_the_fewest():
    tried = (TriedBands(1, 1.0, 1.0), TriedBands(2, 1.1, 0.8), TriedBands(4, 1.2, 0.8))
    plan = BandsPlan(0.05, 100, 1.0, 1e-6, tried)
    assert (plan.bands, plan.ratio) == (2, 0.8)
    assert plan.sampler == CyclicPoisson(0.05, 2, 100)
    assert str(plan).count("<- best") == 1
    assert BandsPlan(0.05, 100, 1.0, 1e-6, tried[:1]).sampler == Poisson(0.05)


# --- what a run is given


def test_loaders_of_data_say_how_a_run_is_drawn(caplog):
    data = TensorDataset(torch.zeros(45, 2))
    loader = DataLoader(data, batch_size=10)
    expected = {"sample_rate": 10 / 45, "steps": 15, "population": 45, "steps_per_epoch": 5}
    assert from_loader.sizes_of(loader, 3) == expected
    assert from_loader.sizes_of(DataLoader(data, batch_size=99), 1)["sample_rate"] == 1.0
    given = {"sample_rate": None, "steps": None, "population": None, "steps_per_epoch": None}
    assert from_loader.filled(loader, 3, "poisson", given) == expected
    assert from_loader.filled(loader, 3, "poisson", {**given, "steps_per_epoch": 7})["steps_per_epoch"] == 7
    assert from_loader.filled(loader, 3, Poisson(0.1), given)["sample_rate"] is None
    fixed = from_loader.filled(loader, 3, WithoutReplacement(5, 45), given)
    assert (fixed["population"], fixed["steps"]) == (None, 15)
    assert from_loader.filled(loader, 3, CyclicPoisson(0.05, 2, 15), given)["steps"] == 15
    with pytest.raises(InvalidInput, match="has 16 steps"):
        from_loader.filled(loader, 3, CyclicPoisson(0.05, 2, 16), given)
    with pytest.raises(InvalidInput, match="omit steps"):
        from_loader.filled(loader, 3, "poisson", {**given, "steps": 15})
    for wrong in (0, True, 1.5):
        with pytest.raises(InvalidInput, match="epochs must be"):
            from_loader.sizes_of(loader, wrong)
    with pytest.raises(InvalidInput, match="needs a DataLoader"):
        from_loader.sizes_of(data, 1)
    with pytest.raises(InvalidInput, match="is empty"):
        from_loader.sizes_of(DataLoader(TensorDataset(torch.zeros(0, 2)), batch_size=2), 1)
    with pytest.raises(InvalidInput, match="no length"):
        from_loader.sizes_of(DataLoader(Endless(), batch_size=2), 1)
    with caplog.at_level(logging.INFO, logger="privamp"):
        from_loader.check_loader(DataLoader(data, num_workers=2))
    assert "num_workers" in caplog.text
    from_loader.check_loader(data)
    with pytest.raises(InvalidInput, match="drop_last"):
        from_loader.check_loader(DataLoader(data, drop_last=True))

    class Own(BatchSampler):
        pass

    with pytest.raises(NoTheorem, match="own batch sampler"):
        from_loader.check_loader(DataLoader(data, batch_sampler=Own(SequentialSampler(data), 4, False)))


class Endless(IterableDataset):
    def __iter__(self):
        return iter([])


def test_optimisers_hold_exactly_what_is_trained():
    module = nn.Linear(2, 2)
    every = list(module.parameters())
    optimizers.check_optimizer(torch.optim.SGD(every, lr=0.1), every)
    frozen = nn.Parameter(torch.zeros(1), requires_grad=False)
    optimizers.check_optimizer(torch.optim.SGD([*every, frozen], lr=0.1), every)
    for held in (every[:1], [*every, nn.Parameter(torch.zeros(1))]):
        with pytest.raises(InvalidInput, match="exactly the trainable"):
            optimizers.check_optimizer(torch.optim.SGD(held, lr=0.1), every)
    with pytest.raises(InvalidInput, match="LBFGS"):
        optimizers.check_optimizer(torch.optim.LBFGS(every), every)
    with pytest.raises(InvalidInput, match="must be a torch optimizer"):
        optimizers.check_optimizer("SGD", every)
    late = nn.Parameter(torch.zeros(1))
    sgd = torch.optim.SGD([*every, late], lr=0.1)
    optimizers.check_others(sgd, every)
    late.grad = torch.zeros(1)
    with pytest.raises(InvalidInput, match="does not train"):
        optimizers.check_others(sgd, every)
    assert optimizers.settings_of(sgd)[0]["lr"] == 0.1
    assert "params" not in optimizers.settings_of(sgd)[0]
    with pytest.raises(InvalidInput, match="ReduceLROnPlateau"):
        optimizers.check_scheduler(torch.optim.lr_scheduler.ReduceLROnPlateau(sgd))
    optimizers.check_scheduler(torch.optim.lr_scheduler.StepLR(sgd, 1))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_parameters_that_are_no_numbers_end_the_run(bad):
    fine = [torch.ones(2), torch.full((1,), 1e300, dtype=torch.float64), torch.zeros(0)]
    optimizers.require_finite(fine, 3)
    for at in (0, 1):
        some = [one.clone() for one in fine]
        some[at][-1] = bad
        with pytest.raises(InvalidInput, match="after step 3"):
            optimizers.require_finite(some, 3)


def test_losses_keep_their_factors():
    outputs = after_model.Outputs()
    outputs.require_scales((2.0, -1.0))
    outputs.require_scales((2.0 * (1.0 + 9e-10), -1.0))
    for wrong in ((2.0 * (1.0 + 2e-9), -1.0), (2.0, 1.0), (2.0,), (2.0, -1.0, 1.0)):
        with pytest.raises(InvalidInput, match="same number in every batch"):
            outputs.require_scales(wrong)
