"""What mechanisms release, made again from the stream's own words, and the public facts that they state."""

import math
from fractions import Fraction

import numpy as np
import pytest

from privamp import (
    ApproxDP,
    DiscreteGaussian,
    DiscreteLaplace,
    ExactGaussian,
    ExactLaplace,
    Gaussian,
    GeometricCount,
    Influence,
    InvalidInput,
    Laplace,
    Neighbors,
    NormNoise,
    NoTheorem,
    PureDP,
    RandomizedResponse,
    SumAndCount,
)
from privamp.chance.discrete import discrete_gaussian, discrete_laplace
from privamp.core.mechanism import Change
from privamp.core.multiplicity import Multiplicity
from privamp.mechanisms.discrete_gaussian_vectors import discrete_gaussian_vector_curve
from privamp.mechanisms.discrete_laplace import binned_mixture
from privamp.mechanisms.discrete_mixture import identical
from privamp.mechanisms.fixed_point import RECORDS, grid_for, in_grid_units
from privamp.mechanisms.laplace_mixture import excess, in_pieces, value_of
from privamp.mechanisms.noise import check_sizes, like, numbers, on_grid, shift_of, whole_numbers, whole_shift_of
from privamp.mechanisms.per_stratum import PerStratum
from privamp.testing import seeded_stream

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
WITHIN = Neighbors("replace-one", scope="within stratum")


# --- releases


@pytest.mark.parametrize("value", [0.3, [1.0, -2.5, 1e6], [[1, 2], [3, 4]]])
@pytest.mark.parametrize("scale", [0.7, 1.0, 3e5])
def test_continuous_noise_is_added_and_rounded_to_a_grid_of_2_to_the_24(value, scale):
    shape = np.shape(value)
    for noise, drawn in (
        (Laplace(scale), seeded_stream(1).laplaces(shape)),
        (Gaussian(scale), seeded_stream(1).normals(shape)),
    ):
        grid = 2.0 ** (math.floor(math.log2(scale)) + 1 - 24)
        expected = np.rint((np.asarray(value) + scale * drawn) / grid) * grid
        found = noise.release(value, seeded_stream(1))
        assert np.array_equal(found, expected)
        assert isinstance(found, float if shape == () else np.ndarray)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, math.inf])
def test_norm_noise_is_a_gamma_radius_times_a_direction(p):
    value, stream = np.arange(12.0).reshape(2, 2, 3), seeded_stream(2)
    radius = 1.5 * stream.gammas(3.0, (2, 2))
    if p == math.inf:
        points = 2.0 * stream.uniforms((2, 2, 3)) - 1.0
    elif p < 3.0:
        points = stream.laplaces((2, 2, 3)) if p == 1.0 else stream.normals((2, 2, 3))
    else:
        sizes = stream.gammas(1.0 + 1.0 / p, (2, 2, 3)) ** (1.0 / p) * stream.uniforms((2, 2, 3))
        points = stream.signs((2, 2, 3)) * sizes
    unit = points / np.linalg.norm(points, p, axis=-1, keepdims=True)
    found = NormNoise(1.5, 3, p).release(value, seeded_stream(2))
    assert found == pytest.approx(value + radius[..., None] * unit, abs=2.0**-23)
    for shape in ((), (2,), (3, 2)):
        with pytest.raises(InvalidInput, match="the last axis must be 3 long, got shape"):
            NormNoise(1.5, 3, p).release(np.zeros(shape), seeded_stream(2))


@pytest.mark.parametrize("value", [5, [1, 2, -3], np.array([[1, 2], [3, 4]], dtype=np.int16)])
def test_whole_noise_is_added_to_whole_numbers(value):
    size = np.size(value)
    for noise, drawn in (
        (DiscreteLaplace(2.5), discrete_laplace(seeded_stream(3), 2.5, size)),
        (DiscreteGaussian(2.5), discrete_gaussian(seeded_stream(3), 2.5, size)),
        (GeometricCount(0.4), discrete_laplace(seeded_stream(3), math.nextafter(2.5, 3.0), size)),
    ):
        found = noise.release(value, seeded_stream(3))
        assert np.array_equal(found, np.asarray(value) + drawn.reshape(np.shape(value)))
        assert isinstance(found, int if np.shape(value) == () else np.ndarray)


@pytest.mark.parametrize(("noise", "draw"), [
    (ExactLaplace(3.0, 2.0, 2.0**-12), discrete_laplace), (ExactGaussian(3.0, 2.0, 2.0**-12), discrete_gaussian)
])  # fmt: skip
def test_exact_noise_is_whole_on_its_grid(noise, draw):
    """Numbers are first multiplied by 1 - (d + 1) grid/sensitivity, rounded toward zero; units stay as they are."""
    value, grid = np.array([0.7, -1.3, 1e3]), Fraction(1, 2**12)
    factor = 1 - 4 * grid / 2
    units = [int(Fraction(x) * factor / grid) for x in value.tolist()]
    drawn = draw(seeded_stream(4), 3 * 2**12, 3)
    expected = [(u + int(k)) * float(grid) / float(factor) for u, k in zip(units, drawn, strict=True)]
    assert noise.release(value, seeded_stream(4)).tolist() == pytest.approx(expected, rel=1e-15)
    whole = in_grid_units([5, -7, 0])
    assert noise.release(whole, seeded_stream(4)) == pytest.approx((np.array([5, -7, 0]) + drawn) * float(grid))
    assert isinstance(noise.release(0.5, seeded_stream(4)), float)
    with pytest.raises(InvalidInput, match="is too coarse for 5000 numbers of sensitivity 2"):
        noise.release(np.zeros(5000), seeded_stream(4))
    noise.release(np.zeros(4094), seeded_stream(4))


@pytest.mark.parametrize(("epsilon", "categories"), [(0.5, 2), (2.0, 5), (1e-9, 3)])
def test_a_randomised_answer_forgets_by_one_word_and_asks_anyone_by_another(epsilon, categories):
    noise, value = RandomizedResponse(epsilon, categories), np.arange(400) % categories
    stream = seeded_stream(5)
    words, anyone = stream.words(400), stream.below(categories, 400)
    chance = categories / (math.exp(epsilon) + categories - 1)
    last = int(noise._last_forgetting_word)
    assert (last + 1) / 2**64 == pytest.approx(chance, rel=3e-13)
    assert Fraction(last + 1, 2**64) >= Fraction(chance) * (1 - Fraction(1, 10**14)) or last + 1 == 2**64
    expected = np.where(words <= np.uint64(last), anyone, value)
    assert np.array_equal(noise.release(value, seeded_stream(5)), expected)
    assert isinstance(noise.release(0, seeded_stream(5)), int)
    assert RandomizedResponse(epsilon, 2**32).categories == 2**32
    for wrong in (-1, categories):
        with pytest.raises(InvalidInput, match=f"every category must be from 0 to {categories - 1}; recode them first"):
            noise.release([0, wrong], seeded_stream(5))


def test_sums_and_counts_are_drawn_one_after_the_other():
    both, stream = SumAndCount(Laplace(2.0, 5.0), Laplace(3.0)), seeded_stream(6)
    expected = Laplace(2.0).release(np.ones((2, 3)), stream), Laplace(3.0).release(np.ones(2), stream)
    found = both.release((np.ones((2, 3)), np.ones(2)), seeded_stream(6))
    assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


# --- what all noise shares


def test_values_that_noise_takes():
    assert numbers([1, 2]).tolist() == [1.0, 2.0]
    for bad in ("a", ["a"], None, [1j], [[1], [1, 2]], [True]):
        with pytest.raises(InvalidInput, match="the value must be a number or an array of numbers, got something else"):
            numbers(bad)
    for bad in (math.nan, [1.0, math.inf]):
        with pytest.raises(InvalidInput, match="the value must be finite"):
            numbers(bad)
    top = 2**62
    assert whole_numbers([10**30, -(10**30), 5]).tolist() == [top, -top, 5]
    assert whole_numbers(np.array([2**64 - 1, 3], dtype=np.uint64)).tolist() == [top, 3]
    assert whole_numbers(np.array([2**63 - 1, -(2**63)])).tolist() == [top, -top]
    assert whole_numbers(np.array([[1, 2]], dtype=object)).shape == (1, 2)
    for bad in (1.0, [1.5], [True], ["a"], [[1], [1, 2]], np.array([1, 2.5], dtype=object)):
        with pytest.raises(InvalidInput, match="the value must be whole numbers"):
            whole_numbers(bad)
    assert (like(3, np.array(4)), like([3], np.array([4])).tolist(), like((3,), np.array([4])).tolist()) == (
        4,
        [4],
        [4],
    )
    assert on_grid(np.array([0.3]), 1.0)[0] == round(0.3 * 2**23) / 2**23


def test_shifts_are_copies_times_weight_times_norm_times_steps():
    noise = Laplace(2.0, sensitivity=3.0)
    assert shift_of(noise, 3.0, AR, Change()) == 3.0
    assert shift_of(noise, 3.0, RO, Change(copies=2, weight=1.5)) == 18.0
    assert shift_of(noise, 3.0, AR, Change(weight=2.0, norm=0.5)) == 1.0
    with pytest.raises(InvalidInput, match="the shift of the value must be finite, got inf instead"):
        shift_of(noise, 1e300, AR, Change(weight=1e300))
    whole = DiscreteLaplace(2.0, 3)
    assert whole_shift_of(whole, 3, RO, Change(copies=2)) == 12
    assert whole_shift_of(whole, 2**53, AR, Change()) == 2**53
    for sensitivity, change in ((3, Change(weight=1.5)), (2**53, Change(copies=2))):
        with pytest.raises(NoTheorem, match=r"DiscreteLaplace hides whole numbers up to 2\^53"):
            whole_shift_of(whole, sensitivity, AR, change)
    check_sizes(1.0, scale=0.99e100)
    check_sizes(1.0, scale=1.01e-100)
    for scale in (1.01e100, 0.99e-100):
        with pytest.raises(InvalidInput, match="scale must be within 1e100 times the sensitivity"):
            check_sizes(1.0, scale=scale)


@pytest.mark.parametrize("noise", [1.0, 3e-5, 7e8])
@pytest.mark.parametrize("bound", [0.5, 8.0, 1e4])
@pytest.mark.parametrize("records", [1000, RECORDS])
def test_a_grid_is_the_finest_that_fits_up_to_a_millionth(noise, bound, records):
    """Of noise/records, but so that 2^61 holds all contributions, 2^49 the noise, and no coarser than 2^-6 of it."""
    wanted = Fraction(2) ** math.floor(math.log2(noise / records) - 20)
    finest = max(Fraction(records) * Fraction(bound) / 2**61, Fraction(noise) / 2**49)
    finest = Fraction(2) ** math.ceil(math.log2(finest))
    expected = max(wanted, finest)
    if expected > Fraction(noise) / 64:
        with pytest.raises(InvalidInput, match="do not fit 64 bits at noise"):
            grid_for(noise, bound, records)
    else:
        assert Fraction(grid_for(noise, bound, records)) == expected


def test_grids_at_their_limits():
    for grid in (2.0**-49, 2.0**-6):
        assert ExactLaplace(1.0, 1.0, grid).grid == grid
    for grid in (2.0**-50, 2.0**-5, 0.003):
        with pytest.raises(InvalidInput, match=r"grid must be a power of two from 2\^-49 to 2\^-6 times the noise"):
            ExactGaussian(1.0, 1.0, grid)
    for noise, bound in ((1e-289, 1e-300), (1e-200, 1e285)):
        with pytest.raises(InvalidInput, match="exact noise needs numbers from 1e-290 to 1e\\+290"):
            grid_for(noise, bound)


# --- public facts


@pytest.mark.parametrize("relation", [AR, RO])
def test_rows_influences_and_steps_of_every_noise(relation):
    replaced = relation is RO
    facts = {
        Laplace(2.0, 3.0, relation): (1.0, 3.0, 2.0, False, None, Influence("pure", 0.0, 0.5, 1.0, True)),
        Gaussian(2.0, 3.0, relation): (2.0, 3.0, 2.0, False, None, Influence("gaussian", 0.0, 0.5, 2.0, True)),
        NormNoise(2.0, 4, 3.0, 3.0, relation): (3.0, 3.0, 2.0, False, 4, Influence("pure", 0.0, 0.5, 3.0, False)),
        NormNoise(2.0, 4, 1.0, 3.0, relation): (1.0, 3.0, 2.0, False, 4, Influence("pure", 0.0, 0.5, 1.0, True)),
        DiscreteGaussian(2.0, 3, relation): (2.0, 3.0, 2.0, True, 1, None),
    }
    for noise, (p, sensitivity, scale, is_whole, width, influence) in facts.items():
        bound = noise.row_bound
        assert (bound.p, bound.sensitivity, bound.noise) == (p, sensitivity, scale)
        assert (bound.is_whole, bound.are_replaced, bound.width) == (is_whole, replaced, width)
        assert noise.influence == (None if replaced else influence)
    whole = DiscreteLaplace(2.0, 3, relation)
    assert (whole.row_bound.p, whole.row_bound.width, whole.row_bound.is_whole) == (1.0, None, True)
    assert (whole.influence is None) == replaced
    if not replaced:
        assert whole.influence.per_record == pytest.approx(2.0 * math.log(math.cosh(0.25)), rel=1e-12)
    count = GeometricCount(0.5, relation).row_bound
    assert (count.sensitivity, count.p, count.width, count.are_replaced) == (1, 1.0, 1, replaced)


def test_an_attack_on_exact_noise_counts_a_unit_less_than_the_sensitivity_has():
    """2.3 is 9420.8 units of 2^-12: rounding toward zero and clipping leave 9419."""
    law = Multiplicity.binomial(1, 0.5)
    noise = ExactLaplace(3.0, 2.3, 2.0**-12)
    for relation, units in ((AR, 9419), (RO, 2 * 9419)):
        expected = binned_mixture(1.0 / (3 * 2**12), units, law)
        found = noise.mixture(relation, law)
        assert [float(found.forward(e)) for e in (0.0, 0.2)] == [float(expected.forward(e)) for e in (0.0, 0.2)]
    assert binned_mixture(0.1, 0, law) is None
    assert binned_mixture(0.1, 5, law, bins=4_000_000) is None


def test_steps_on_a_line_and_slopes():
    places = np.array([-3.0, -1.0, -0.25, 0.5])
    laplace, gaussian = Laplace(2.0, 3.0), Gaussian(2.0, 3.0)
    assert (laplace.line_step, gaussian.line_step, PureDP(1.0).line_step) == (1.5, 1.5, 0.0)
    assert laplace.log_slope(places) == pytest.approx([1.5, 1.5, -0.75, -1.5])
    densities = [-0.5 * (1.5 * (f + 1)) ** 2 + 0.5 * (1.5 * f) ** 2 for f in places]
    assert gaussian.log_slope(places) == pytest.approx(densities)
    assert PureDP(1.0).log_slope(places) is None
    for noise in (Laplace(2.0, neighbors=RO), Gaussian(2.0, neighbors=RO), PureDP(1.0, RO)):
        assert noise.on_a_line({0.0: 1.0}, {1.0: 1.0}) is None
        assert noise.opposite_mixture(0.5) is None
    assert laplace.opposite_mixture(0.5, 2) is None
    assert PureDP(1.0).opposite_mixture(0.5, 2) is None
    assert gaussian.opposite_mixture(0.5, 2) is not None


def test_black_boxes_at_a_distance():
    for copies, relation, steps in ((1, AR, 1), (3, AR, 3), (2, RO, 4)):
        assert PureDP(0.5).profile(relation, Change(copies=copies)).epsilon() == pytest.approx(0.5 * steps)
        assert ApproxDP(0.5, 0.0).profile(relation, Change(copies=copies)).epsilon() == pytest.approx(0.5 * steps)
    assert PureDP(0.0).profile(AR, Change(copies=3)).epsilon() == 0.0
    family = PureDP(0.5).family(RO)
    for copies in (1.0, 2.0):
        exact = PureDP(0.5).profile(RO, Change(copies=int(copies))).forward(0.3)
        assert float(family(np.array(copies), np.array(0.3))) == pytest.approx(float(exact), rel=1e-12)
    assert float(PureDP(0.0).family(AR)(np.array(1.0), np.array(0.3))) == -math.inf
    approx = ApproxDP(0.5, 1e-5).profile(AR, Change(copies=2))
    assert approx.delta(1.0) == approx.delta(5.0)  # never grows, and is least at 2 epsilon
    for change in (Change(weight=2.0), Change(norm=1.0)):
        with pytest.raises(NoTheorem, match="PureDP is a black box, without weights or norms of records"):
            PureDP(1.0).profile(AR, change)
    assert identical().delta(0.0) == 0.0


def test_sensitivities_by_stratum():
    noise = PerStratum(Laplace(2.0, neighbors=RO), (("small", 1.0), ("large", 4.0), ("mid", 2.0)))
    assert noise.neighbors == WITHIN
    assert noise.profile(WITHIN).epsilon() == pytest.approx(2.0)
    assert noise.in_stratum("mid") == Laplace(2.0, 2.0, RO)
    assert PerStratum(Gaussian(2.0), (("a", 1.0),)).neighbors == AR
    with pytest.raises(NoTheorem, match="do not cover a record that changes its stratum"):
        noise.profile(RO)
    with pytest.raises(InvalidInput, match="no sensitivity is declared for stratum 'huge'"):
        noise.in_stratum("huge")
    for bad, match in (((), "at least one stratum"), ((("a", 1.0), ("a", 2.0)), "every stratum once"),
                       ((("a", 0.0),), "sensitivity must be a finite number above 0")):  # fmt: skip
        with pytest.raises(InvalidInput, match=match):
            PerStratum(Laplace(2.0), bad)
    with pytest.raises(InvalidInput, match="noise must be Laplace or Gaussian, exact or not, got PureDP instead"):
        PerStratum(PureDP(1.0), (("a", 1.0),))


def test_sums_and_counts_lose_together():
    pure = SumAndCount(NormNoise(4.0, 3, 2.0, 5.0), Laplace(2.0))
    assert pure.influence == Influence("pure", 0.5, 0.25, 2.0)
    assert pure.profile(AR).epsilon() == pytest.approx(0.5 + 5.0 / 4.0)
    assert pure.profile(RO, Change(copies=2, weight=3.0, norm=2.0)).epsilon() == pytest.approx((0.5 + 0.5) * 12)
    gaussian = SumAndCount(Gaussian(4.0, 5.0), Gaussian(2.0))
    theta = math.hypot(0.5, 1.25)
    assert gaussian.profile(AR).delta(0.7) == pytest.approx(Gaussian(1.0 / theta).profile(AR).delta(0.7), rel=1e-9)
    assert gaussian.mixture(AR, Multiplicity.binomial(1, 0.5)) is not None
    assert pure.mixture(AR, Multiplicity.binomial(1, 0.5)) is None
    assert SumAndCount(Laplace(4.0), Laplace(2.0)).influence.p == 1.0


def test_numbers_that_keep_their_digits():
    """log(e^y - V), sums of p (e^x - 1), and pieces of a long argument."""
    y, v = np.array([1e-8, 0.5, 3.0, 800.0]), np.array([-1e-9, 0.2, 5.0, 0.5])
    exact = [math.log(math.expm1(1e-8) + 1e-9), math.log(math.expm1(0.5) - 0.2), math.log(math.exp(3.0) - 6.0), 800.0]
    assert excess(y, v, np.log1p(v)) == pytest.approx(exact, rel=1e-12)
    log_p, x = np.log([0.25, 0.5]), np.array([1e-12, 2e-12])
    assert float(value_of(log_p, x)) == pytest.approx(1.25e-12, rel=1e-11)
    assert float(value_of(log_p, np.array([1.0, 41.0]))) == pytest.approx(0.25 * math.expm1(1.0) + 0.5 * math.exp(41.0))
    seen = []
    found = in_pieces(lambda part: seen.append(part.size) or 2.0 * part, np.arange(10.0).reshape(2, 5), 700_000)
    assert found.tolist() == (2.0 * np.arange(10.0).reshape(2, 5)).tolist()
    assert seen == [2, 2, 2, 2, 2]
    assert in_pieces(lambda part: part, np.zeros((0, 3)), 5).shape == (0, 3)


@pytest.mark.parametrize("dimension", [2, 10_000])
def test_vectors_of_whole_numbers_lie_a_little_above_the_continuous_curve(dimension):
    curve = discrete_gaussian_vector_curve(20.0, 5.0, dimension)
    exact = Gaussian(20.0, 5.0).profile(AR).forward
    for epsilon in (0.0, 0.3, 1.0):
        assert 0.0 <= float(curve(epsilon)) - float(exact(epsilon)) < 0.05
