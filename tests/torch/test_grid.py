"""The grid on which sums and noise are added: exact, and as wide as its price says."""

import math
from fractions import Fraction

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (make test-torch)")

from torch import nn  # noqa: E402
from torch.utils.data import TensorDataset  # noqa: E402

from privamp.chance import compiled_normals  # noqa: E402
from privamp.chance.grid_normals import grid_normals  # noqa: E402
from privamp.errors import InvalidInput  # noqa: E402
from privamp.mechanisms.gaussian import Gaussian  # noqa: E402
from privamp.testing import seeded_key, seeded_stream  # noqa: E402
from privamp.torch import PrivacyEngine  # noqa: E402
from privamp.torch import grid as module  # noqa: E402
from privamp.torch.grid import Grid, normals  # noqa: E402


def parameters(*sizes, dtype=torch.float32):
    return [nn.Parameter(torch.zeros(size, dtype=dtype)) for size in sizes]


def grid(sigma=1.5, clip=1.0, size=5, normaliser=8.0):
    return Grid(Gaussian(sigma, sensitivity=clip), size, normaliser)


@pytest.mark.parametrize(("sigma", "normaliser"), [(1.5, 8.0), (0.03, 1e6), (1e-12, 4.0)])
def test_a_noisy_sum_is_the_rounded_sum_plus_whole_noise_exactly(sigma, normaliser):
    """Against whole numbers and fractions: nothing is rounded between the sum's rounding and the result's."""
    numbers = torch.tensor([0.1, -3.75, 1e-12, 50.0, 0.0], dtype=torch.float64)
    one, two = parameters(2, 3, dtype=torch.float64)
    made = grid(sigma, size=5, normaliser=normaliser)
    found = made.noisy(seeded_stream(1), [one, two], {id(one): numbers[:2], id(two): numbers[2:]}, torch.float64)
    noise = grid_normals(seeded_stream(1), 5) >> made.coarser
    for value, drawn, released in zip(numbers.tolist(), noise.tolist(), found.tolist(), strict=True):
        whole = round(value * (1.0 / made.unit)) + drawn
        assert abs(whole) < 2**53
        assert released == pytest.approx(float(whole * Fraction(made.unit / normaliser)), rel=1e-15, abs=0)


def test_absent_sums_are_zero_and_pieces_do_not_matter(monkeypatch):
    several = parameters(3, 70_000, 2)
    sums = {id(several[1]): torch.arange(70_000.0)}
    made = grid(size=70_005)
    found = made.noisy(seeded_stream(2), several, sums, torch.float32)
    monkeypatch.setattr(module, "_PIECE", 1000)
    assert torch.equal(made.noisy(seeded_stream(2), several, sums, torch.float32), found)
    noise = torch.from_numpy(grid_normals(seeded_stream(2), 70_005) * 2.0**-31) * made.spread / 8
    assert torch.allclose(found[:3].double(), noise[:3], rtol=1e-6)
    assert torch.allclose(found[3:-2].double(), noise[3:-2] + torch.arange(70_000.0) / 8, rtol=1e-6)


def test_neighbouring_sums_stay_within_the_price():
    """The largest distance of rounded sums, over sums just beside rounding edges, is paid for; a unit less is not."""
    made = grid(sigma=2.0, size=400)
    unit, clip = made.unit, 1.0
    edges = (np.arange(400) + 0.5) * unit
    with_it, without = edges * (1 + 1e-9), edges * (1 - 1e-9)  # rounded apart, though they hardly differ
    moved = np.rint(with_it / unit) - np.rint(without / unit)
    assert np.linalg.norm(moved * unit) == pytest.approx(unit * 20)
    assert made.spread >= 2.0 * (clip + np.linalg.norm(moved * unit))
    assert made.spread / 2.0 < clip + 1.51 * unit * 20
    assert 2.0 * (clip + np.linalg.norm(moved * unit)) > 2.0  # planted: without the price the noise is too small


def test_large_coordinates_are_cut_to_a_public_bound():
    (one,) = parameters(2, dtype=torch.float64)
    made = grid(size=2)
    found = made.noisy(seeded_stream(3), [one], {id(one): torch.tensor([1e30, -torch.inf])}, torch.float64)
    assert torch.isfinite(found).all()
    assert float(found[0]) == pytest.approx(2.0**49 * made.unit / 8.0, rel=1e-4)
    assert 2.0**49 * made.unit > 16 * 8  # beyond anything that 16 expected batches could add up to


def test_the_price_is_small_and_grows_with_the_root():
    prices = [grid(1.0, size=size).price for size in (26_010, 5_800_000, 110_000_000)]
    assert prices == pytest.approx([1.5 * 2.0**-31 * math.sqrt(n) for n in (26_010, 5_800_000, 110_000_000)], rel=1e-4)
    assert prices[-1] < 1e-5
    with pytest.raises(InvalidInput, match="too much for the grid"):
        _ = grid(1e6, size=10**8).price


def test_too_much_noise_is_refused_before_anything_is_drawn():
    module, engine = nn.Linear(3, 2), PrivacyEngine(key=seeded_key(1))
    with pytest.raises(InvalidInput, match="too much for the grid"):
        engine.make_private(
            module=module, optimizer=torch.optim.SGD(module.parameters(), 0.1), criterion=nn.CrossEntropyLoss(),
            data_loader=TensorDataset(torch.zeros(4, 3), torch.zeros(4).long()), sampler="uniform", sample_rate=0.5,
            steps=2, noise_multiplier=1e9, max_grad_norm=1.0, population=4,
        )  # fmt: skip
    assert not module._forward_hooks


def test_the_compiled_pass_gives_the_same_bits(monkeypatch):
    pytest.importorskip("numba", reason="numba is not installed (the extra `fast`)")
    several = parameters(3, 70_000, 2, 300_000)
    sums = {id(several[1]): torch.arange(70_000.0) - 3e4, id(several[3]): torch.randn(300_000)}
    made, found = grid(size=370_005, normaliser=1e9), []
    for worth_it in (0, 2**62):
        monkeypatch.setattr(compiled_normals, "_WORTH_IT", worth_it)
        vectors = normals(seeded_stream(4), 1000, torch.device("cpu"), torch.float64, 3.0)
        found.append((made.noisy(seeded_stream(2), several, sums, torch.float32), vectors))
    assert made.coarser > 0
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_normals_are_those_of_the_stream():
    found = normals(seeded_stream(4), 1000, torch.device("cpu"), torch.float32, 3.0)
    expected = grid_normals(seeded_stream(4), 1000) * 2.0**-31 * 3.0
    assert np.allclose(found.numpy(), expected, rtol=1e-6)
