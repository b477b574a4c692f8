"""The exact path: rounding toward zero, whole sums, discrete noise; brute force on tiny data."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from privamp import Neighbors, Poisson, Population, WithoutReplacement, amplify
from privamp.core.influence import clipped, norms
from privamp.core.mechanism import Change
from privamp.core.multiplicity import Multiplicity
from privamp.errors import InvalidInput
from privamp.mechanisms import fixed_point
from privamp.mechanisms.discrete_laplace import binned_mixture, discrete_laplace_mixture
from privamp.mechanisms.fixed_point import ExactGaussian, ExactLaplace, grid_for, in_grid_units, toward_zero
from privamp.mechanisms.laplace import laplace_curve
from privamp.testing import seeded_key, seeded_stream

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
BOTH = [ExactLaplace(2.0, 1.0), ExactGaussian(2.0, 1.0)]


# --- rounding


@given(
    st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=4),
    st.one_of(st.just(1.0), st.floats(1.0, 1e9)),
    st.integers(-40, 3),
)
def test_rounding_toward_zero_never_lengthens(row, weight, k):
    grid = 2.0**k
    units = toward_zero(np.array([row]), grid, np.array([weight]))[0]
    exact = [Fraction(x) * Fraction(weight) / Fraction(grid) for x in row]
    for whole, value in zip(units, exact, strict=True):
        assert abs(int(whole)) <= abs(value)
        assert min(abs(value), 2**62) - abs(int(whole)) <= 1 + abs(value) / 2**49
        assert int(whole) * value >= 0
    if weight == 1.0 and max(map(abs, exact)) < 2**62:  # nothing but the rounding itself
        assert [int(u) for u in units] == [math.trunc(v) for v in exact]


def test_a_product_that_rounds_up_to_a_whole_number_is_not_taken():
    """Negative control: in floats 3 * (1/3 rounded up) is 1 although it is more or less than 1 in exact arithmetic."""
    random = np.random.default_rng(0)
    x, w = random.uniform(0.1, 1, 200_000), random.uniform(1, 100, 200_000)
    whole = np.ceil(x * w)
    x = whole / w  # products that land on or next to whole numbers
    naive = np.trunc(x * w).astype(int)
    ours = toward_zero(x[:, None], 1.0, w)[:, 0]
    longer = [Fraction(int(k)) > Fraction(a) * Fraction(b) for k, a, b in zip(naive[:5000], x, w, strict=False)]
    assert any(longer)
    assert not any(Fraction(int(k)) > Fraction(a) * Fraction(b) for k, a, b in zip(ours[:5000], x, w, strict=False))


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_clipping_holds_in_exact_arithmetic(p):
    random = np.random.default_rng(1)
    rows = random.normal(size=(300, 7)) * np.exp(random.uniform(-8, 8, (300, 1)))
    for row in clipped(rows, 1.5, p):
        size = sum(abs(Fraction(x)) ** int(p) for x in row)
        assert size <= Fraction(1.5) ** int(p)
    inside = rows[norms(rows, p) < 1.5]
    assert np.array_equal(clipped(inside, 1.5, p), inside)


# --- brute force: every sample of a tiny population, exact discrete noise


def contributions(rows, weights, grid, rounding):
    units = rows * weights[:, None] / grid
    return (np.trunc(units) if rounding == "zero" else np.rint(units)).astype(int)


def loss_of(units, chances, scale):
    """Exact worst log ratio of the last record's presence, over all outputs, under discrete Laplace noise.

    Between two possible sums the ratio of two mixtures is monotone in each coordinate and beyond them it is constant,
    so the extremes lie at possible values of partial sums.
    """
    kept = np.array(list(product((0, 1), repeat=len(units))))
    sums = kept @ units
    points = np.array(list(product(*(np.unique(column) for column in sums.T))), dtype=float)

    def mixture(which, chances):
        with np.errstate(divide="ignore"):
            log_chance = np.log(np.where(which, chances, 1 - chances).prod(axis=1))
        away = np.abs(points[:, None, :] - (which @ units[: which.shape[1]])[None, :, :]).sum(axis=2)
        return np.logaddexp.reduce(log_chance - away / scale, axis=1)

    others = kept[kept[:, -1] == 0][:, :-1]
    return float(np.max(np.abs(mixture(kept, chances) - mixture(others, chances[:-1]))))


ROWS = np.array([[0.31, -0.22], [0.047, 0.3], [0.0333, -0.0127], [0.2579, 0.1164]])


@pytest.mark.parametrize("last", [0, 1, 2, 3])
def test_privacy_constrained_weights_keep_their_promise_on_the_grid(last):
    """t = 64: coarse on purpose, so that half a unit of rounding is visible."""
    scale, grid, target = 1.0, 2.0**-6, 0.9
    rows = np.roll(ROWS, 3 - last, axis=0)
    weights = np.array([_largest_weight(c, target) for c in np.abs(rows).sum(axis=1) / scale])
    units = contributions(rows, weights, grid, "zero")
    assert np.array_equal(units, toward_zero(rows, grid, weights))
    assert loss_of(units, 1 / weights, scale / grid) <= target + 1e-9


def _largest_weight(c, target):
    low, high = 1.0, 1e6
    for _ in range(200):
        middle = 0.5 * (low + high)
        fits = math.log1p(math.expm1(min(c * middle, 700)) / middle) <= target
        low, high = (middle, high) if fits else (low, middle)
    return low


def test_brute_force_catches_rounding_to_nearest_and_heavier_weights():
    """Two negative controls on the same brute force: each breaks the promise of 0.9 for some record."""
    scale, grid, target = 1.0, 2.0**-6, 0.9

    def losses(rounding, factor):
        found = []
        for last in range(4):
            rows = np.roll(ROWS, 3 - last, axis=0)
            weights = np.array([_largest_weight(x, target) for x in np.abs(rows).sum(axis=1)])
            units = contributions(rows, weights * factor, grid, rounding)
            found.append(loss_of(units, 1 / weights, scale / grid))
        return max(found)

    assert losses("zero", 1.0) <= target
    assert losses("nearest", 1.0) > target + 1e-4
    assert losses("zero", 1.05) > target + 1e-4


@pytest.mark.parametrize("make", [ExactLaplace, ExactGaussian])
@pytest.mark.parametrize("rate", [1.0, 0.4])
@pytest.mark.parametrize("on_axis", [False, True])
def test_the_whole_curve_holds_by_enumeration(make, rate, on_axis):
    """One record of norm 1, both directions, all epsilons; t = 64 and two coordinates."""
    noise = make(1.0, 1.0, grid=2.0**-6)
    row = np.array([[1.0, 0.0] if on_axis else [0.63, 0.37] if make is ExactLaplace else [0.6, 0.8]])
    units = toward_zero(row, noise.grid)[0]
    reach = 64 * 12
    k = np.arange(-reach, reach + 1)

    def moved(by):  # true masses on a window: what lies outside is only missing, so the sums are lower bounds
        if make is ExactLaplace:
            return math.tanh(0.5 / 64) * np.exp(-np.abs(k - by) / 64)
        return np.exp(-0.5 * ((k - by) / 64) ** 2) / (64 * math.sqrt(2 * math.pi))

    q_law = np.multiply.outer(moved(0), moved(0))
    p_law = np.multiply.outer(moved(units[0]), moved(units[1]))
    p_law = (1 - rate) * q_law + rate * p_law
    guarantee = amplify(noise, Poisson(rate))
    for epsilon in (0.0, 0.2, 0.5, 0.8):
        forward = np.maximum(p_law - math.exp(epsilon) * q_law, 0).sum()
        backward = np.maximum(q_law - math.exp(epsilon) * p_law, 0).sum()
        assert max(forward, backward) <= guarantee.delta(epsilon)
        if on_axis:  # the curve is reached
            assert max(forward, backward) >= 0.97 * guarantee.delta(epsilon) - 1e-5
    assert IDEAL not in guarantee.assumes


IDEAL = "idealised real arithmetic"


def test_the_continuous_laplace_curve_would_be_a_lie():
    noise = ExactLaplace(1.0, 1.0, grid=2.0**-6)
    epsilons = np.linspace(0, 0.99, 200)
    own = noise.profile(AR).forward(epsilons)
    assert np.any(own > laplace_curve(1.0)(epsilons) + 1e-5)
    assert np.all(own <= laplace_curve(float(noise.influence.at(1.0)))(epsilons) + 1e-12)
    for weight in (1.0, 3.7, 20.0):  # the influence bounds the curve at every weight and norm
        for u in (0.01, 0.3, 1.0):
            curve = noise.profile(AR, Change(weight=weight, norm=u)).forward
            assert np.all(curve(epsilons) <= laplace_curve(weight * float(noise.influence.at(u)))(epsilons) + 1e-12)


# --- the noise


@pytest.mark.parametrize("make", [ExactLaplace, ExactGaussian])
def test_the_noise_has_the_declared_law(make):
    noise = make(3.0, 1.0)
    zeros = in_grid_units(np.zeros(20_000))
    draws = noise.release(zeros, seeded_stream(31))
    law = stats.laplace(scale=3.0).cdf if make is ExactLaplace else stats.norm(scale=3.0).cdf
    assert stats.kstest(draws, law).pvalue > 1e-9
    assert stats.kstest(make(3.6, 1.0).release(zeros, seeded_stream(32)), law).pvalue < 1e-9
    units = draws / noise.grid
    assert np.array_equal(units, np.rint(units))


def test_textbook_noise_in_floats_tells_values_apart_and_exact_noise_does_not():
    """1 + noise is always a multiple of 2^-53, 0 + noise is not: an event of chance 0 under one value."""
    many = 20_000

    def fine(y):
        return np.count_nonzero(y != np.rint(y * 2.0**53) / 2.0**53)

    stream = seeded_stream(33)
    assert fine(1.0 + stream.laplaces(many)) == 0
    assert fine(0.0 + stream.laplaces(many)) > 100
    noise = ExactLaplace(1.0)
    for value in (0.0, 1.0):
        units = np.repeat(toward_zero(np.array([[value]]), noise.grid)[0], many)
        y = noise.release(in_grid_units(units), stream)
        assert np.array_equal(y, np.rint(y / noise.grid) * noise.grid)  # the same outcomes for every value


@pytest.mark.parametrize("noise", BOTH)
def test_sums_go_through_a_sample(noise):
    rows = np.random.default_rng(5).normal(size=(200, 3)) * 0.1
    sample = Poisson(0.5).draw(Population(200), seeded_key(6))
    answer = sample.release(noise, noise.sum_of(rows))
    kept = sample.reveal_secret().positions
    assert np.all(np.abs(answer - rows[kept].sum(axis=0)) < 60)
    assert isinstance(noise.release(np.int64(5), seeded_stream(1)), float)
    empty = Poisson(0.0).draw(Population(200), seeded_key(6))
    assert empty.release(noise, noise.sum_of(rows)).shape == (3,)
    again = Poisson(0.5).draw(Population(200), seeded_key(7))
    plain = again.release(noise, rows)
    assert np.all(np.abs(plain - rows[again.reveal_secret().positions].sum(axis=0)) < 60)


@pytest.mark.parametrize("noise", BOTH)
def test_a_sum_over_64_bits_wraps_around_in_silence(noise):
    """An exception would depend on the data; wrapping around is a function of the sum."""
    top = in_grid_units(np.full(50, 2**63 - 1))
    assert np.all(np.isfinite(noise.release(top, seeded_stream(8))))
    assert isinstance(noise.release(in_grid_units(2**63 - 1), seeded_stream(8)), float)


@pytest.mark.parametrize("noise", BOTH)
@pytest.mark.parametrize("kind", [int, float, np.int64, np.float32, np.array, bool, list])
def test_numbers_are_numbers_and_not_units_of_the_grid(noise, kind):
    """A count of 5,000 once came back as 0.26: whole numbers were read in units of the grid."""
    odd = {bool: (True, 1.0), list: ([5000, 2500.5], [5000.0, 2500.5])}
    value, about = odd[kind] if kind in odd else (kind(5000), 5000.0)
    answer = noise.release(value, seeded_stream(9))
    assert np.shape(answer) == np.shape(value)
    assert np.all(np.abs(np.subtract(answer, about)) < 100)
    assert np.all(np.abs(np.subtract(noise.release(in_grid_units(5000), seeded_stream(9)), 5000 * noise.grid)) < 100)


@pytest.mark.parametrize("noise", BOTH)
def test_columns_of_any_type_are_summed_as_they_are(noise):
    for ones in (np.ones(5000, bool), np.ones(5000, np.int64), np.ones(5000, np.float16), [1] * 5000, [True] * 5000):
        assert abs(Poisson(1.0).draw(5000, seeded_key(4)).release(noise, ones) - 5000) < 100


@pytest.mark.parametrize(
    "noise", [ExactLaplace(3.0, 0.3), ExactLaplace(2.0, 0.7, 2.0**-6), ExactGaussian(2.0, 0.7, 2.0**-6)]
)
def test_numbers_move_no_more_units_than_the_curve_has(noise):
    """Rounding after the sum costs up to a unit in every entry, which the factor makes room for."""
    moved = []
    rng = np.random.default_rng(8)
    for d in (1, 2, 5):
        for _ in range(200):
            x = rng.normal(size=d) * 10
            step = rng.normal(size=d)
            step *= noise.sensitivity / np.linalg.norm(step, ord=noise.p)
            one, other = (fixed_point._whole(v, scale_of(noise, d)) for v in (x, x + step))
            moved.append(np.linalg.norm((one - other).astype(float), ord=noise.p) * noise.grid)
    assert max(moved) <= noise.sensitivity


def scale_of(noise, d):
    return (1 - (d + 1) * Fraction(noise.grid) / Fraction(noise.sensitivity)) / Fraction(noise.grid)


# --- the grid


@given(st.floats(1e-3, 1e6), st.floats(1e-3, 1e6), st.integers(1, 2**34))
def test_the_grid_is_public_fine_and_never_overflows(noise, bound, records):
    if records * bound / 2**61 > noise / 128:  # near or beyond what fits
        return
    grid = grid_for(noise, bound, records)
    assert math.frexp(grid)[0] == 0.5
    assert records * bound / grid <= 2**62
    assert noise / grid <= 2**49
    assert records * grid <= noise * 2**-19 or grid <= 2 * max(records * bound / 2**61, noise / 2**49)


@pytest.mark.parametrize("make", [ExactLaplace, ExactGaussian])
def test_bad_grids_and_scales(make):
    for bad in (0.3, -0.5, math.nan, 2.0**-5, 2.0**-60, "x"):
        with pytest.raises(InvalidInput, match="grid must be"):
            make(1.0, 1.0, grid=bad)
    for bad in (0, -1, math.nan, math.inf, "1", None, True):
        with pytest.raises(InvalidInput, match="must be"):
            make(bad)
    with pytest.raises(InvalidInput, match="64 bits"):
        make(1.0, 1e12)


def test_rounding_is_in_the_sensitivity():
    """A shift below one unit of the grid is no shift at all; replacing costs two records."""
    noise = ExactLaplace(1.0, 1.0, grid=2.0**-6)
    assert noise.profile(AR, Change(norm=2.0**-7)).epsilon() == 0.0
    assert noise.profile(AR, Change(norm=1.5 * 2.0**-6)).epsilon() == 2.0**-6
    assert noise.profile(RO).epsilon() == 2.0
    gaussian = ExactGaussian(1.0, 1.0, grid=2.0**-6)
    assert gaussian.profile(AR).delta(0.5) > ExactGaussian(1.0, 1.0).profile(AR).delta(0.5)


@pytest.mark.parametrize("law", [Multiplicity.certain(), Multiplicity.binomial(1, 0.2), Multiplicity.binomial(5, 0.3)])
@pytest.mark.parametrize(("scale", "shift"), [(3.0, 4), (50.0, 120)])
def test_the_attack_in_bins_is_below_the_exact_pair_and_near_it(law, scale, shift):
    exact = discrete_laplace_mixture(1 / scale, shift, law)
    few, many = binned_mixture(1 / scale, shift, law, bins=8), binned_mixture(1 / scale, shift, law)
    epsilons = np.linspace(0, 0.98 * exact.largest_loss, 40)
    for name in ("forward", "backward"):
        one, other, truth = (np.exp(getattr(p, name)(epsilons)) for p in (few, many, exact))
        assert np.all(one <= truth * (1 + 1e-9))
        assert np.allclose(other, truth, rtol=1e-9, atol=1e-15)  # as many bins as outcomes: exact
        assert np.all(one[:20] >= 0.5 * truth[:20])
    assert few.largest_loss == pytest.approx(exact.largest_loss, rel=1e-12)  # the outermost bins keep it


@pytest.mark.parametrize("design", [Poisson(0.1), WithoutReplacement(10, 100)])
def test_guarantees_of_exact_laplace_noise_are_two_sided(design):
    guarantee = amplify(ExactLaplace(1.0), design)
    assert guarantee.lower.epsilon() == pytest.approx(guarantee.epsilon(), rel=1e-6)
    assert 0.99 * guarantee.delta(0.01) < guarantee.lower.delta(0.01) <= guarantee.delta(0.01)


@pytest.mark.parametrize("noise", [1e300, 5e-324])
@pytest.mark.parametrize("kind", [ExactLaplace, ExactGaussian])
def test_numbers_at_the_ends_of_the_doubles_are_refused_in_a_sentence(kind, noise):
    with pytest.raises(InvalidInput, match="use another unit"):
        kind(noise, noise)
