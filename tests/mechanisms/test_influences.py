"""What a mechanism says about one record's norm, against its own curve at that norm and against closed forms."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from privamp import (
    DiscreteLaplace,
    ExactGaussian,
    ExactLaplace,
    Gaussian,
    GeometricCount,
    InvalidInput,
    Laplace,
    Neighbors,
    NormNoise,
    NoTheorem,
    PureDP,
    RandomizedResponse,
)
from privamp.core.mechanism import Change
from privamp.core.multiplicity import Multiplicity
from privamp.mechanisms.augmented_rows import AugmentedRows
from privamp.mechanisms.gaussian_losses import GaussianLosses, covers
from privamp.mechanisms.per_stratum import PerStratum
from privamp.mechanisms.sum_and_count import SumAndCount
from privamp.testing import seeded_stream

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
WITHIN = Neighbors("replace-one", scope="within stratum")
PURE = [Laplace(4.0, 5.0), NormNoise(4.0, 3, 2.0, 5.0), NormNoise(4.0, 3, 1.0, 5.0), ExactLaplace(4.0, 5.0)]


def normal_delta(shift, epsilon):
    """Balle and Wang's formula."""
    low, high = shift / 2 - epsilon / shift, -shift / 2 - epsilon / shift
    return norm.cdf(low) - math.exp(epsilon) * norm.cdf(high)


@pytest.mark.parametrize(("mechanism", "p"), list(zip(PURE, (1.0, 2.0, 1.0, 1.0), strict=True)), ids=repr)
def test_pure_influences_are_the_epsilon_of_a_record_of_that_norm(mechanism, p):
    assert mechanism.influence.kind == "pure"
    for u in (0.5, 2.0, 5.0):
        assert float(mechanism.influence.at(u)) == pytest.approx(u / 4.0, rel=1e-6)
        own = mechanism.profile(AR, Change(norm=u)).epsilon()
        assert own == pytest.approx(u / 4.0, rel=1e-6)
    assert mechanism.influence.p == mechanism.row_bound.p == p  # in another norm, rows would be clipped too little


def test_discrete_noise_is_covered_by_the_continuous_curve_at_its_influence():
    """Laplace's curve at the influence lies nowhere below that of whole noise."""
    mechanism = DiscreteLaplace(3.0, 6)
    influence = mechanism.influence
    assert influence.per_norm == 1.0 / 3.0
    for u in (1, 2, 6):
        whole = mechanism.profile(AR, Change(norm=float(u)))
        shift = float(influence.at(u))
        assert shift == pytest.approx(u / 3.0, abs=0.03)
        for epsilon in np.linspace(0.0, u / 3.0, 9):
            assert whole.delta(epsilon) <= 1.0 - math.exp((epsilon - shift) / 2.0) + 1e-15


@pytest.mark.parametrize("mechanism", [Gaussian(4.0, 5.0), ExactGaussian(4.0, 5.0)], ids=repr)
def test_gaussian_influences_are_shifts(mechanism):
    assert mechanism.influence.kind == "gaussian"
    for u in (0.5, 2.0, 5.0):
        assert float(mechanism.influence.at(u)) == pytest.approx(u / 4.0, rel=1e-6)
        assert mechanism.profile(AR, Change(norm=u)).delta(0.3) == pytest.approx(normal_delta(u / 4.0, 0.3), rel=1e-5)


def test_curves_that_are_reached_say_so():
    """An attack may use the curve at this size only if some record reaches it."""
    assert Laplace(1.0).influence.is_exact
    assert Gaussian(1.0).influence.is_exact
    assert NormNoise(1.0, 3, 1.0).influence.is_exact
    assert not NormNoise(1.0, 3, 2.0).influence.is_exact
    assert not DiscreteLaplace(3.0).influence.is_exact


@pytest.mark.parametrize(
    "mechanism",
    [
        Laplace(1.0, neighbors=RO),
        Gaussian(1.0, neighbors=RO),
        NormNoise(1.0, 2, neighbors=RO),
        DiscreteLaplace(2.0, neighbors=RO),
    ],
    ids=repr,
)
def test_a_mechanism_for_replacements_has_no_influence_of_one_record(mechanism):
    assert mechanism.influence is None
    assert mechanism.row_bound.are_replaced


def test_rows_are_bounded_in_the_norm_of_the_noise():
    for mechanism, p, noise in [(Laplace(4.0, 5.0), 1.0, 4.0), (Gaussian(3.0, 5.0), 2.0, 3.0), (PURE[1], 2.0, 4.0)]:
        bound = mechanism.row_bound
        assert (bound.sensitivity, bound.p, bound.noise, bound.are_replaced) == (5.0, p, noise, False)
    count = GeometricCount(0.5).row_bound
    assert (count.sensitivity, count.p, count.is_whole, count.width) == (1, 1.0, True, 1)
    assert not count.are_replaced
    assert GeometricCount(0.5, neighbors=RO).row_bound.are_replaced


def test_sums_and_counts_together():
    pure = SumAndCount(NormNoise(40.0, 3, 2.0, 5.0), Laplace(10.0))
    gauss = SumAndCount(Gaussian(4.0, 5.0), Gaussian(2.0))
    for u in (0.0, 1.0, 5.0):
        assert pure.profile(AR, Change(norm=u)).epsilon() == pytest.approx(1 / 10 + u / 40)
        shift = math.hypot(1 / 2, u / 4)
        assert gauss.profile(AR, Change(norm=u)).delta(0.4) == pytest.approx(normal_delta(shift, 0.4), rel=1e-9)
    assert pure.profile(AR).epsilon() == pytest.approx(1 / 10 + 5 / 40)
    assert pure.profile(AR, Change(copies=3, weight=2.0)).epsilon() == pytest.approx(6 * (1 / 10 + 5 / 40))
    assert pure.profile(RO).epsilon() == pytest.approx(2 * (1 / 10 + 5 / 40))
    assert pure.influence.p == 2.0
    assert SumAndCount(Laplace(40.0, 5.0), Laplace(10.0)).influence.p == 1.0


def test_a_sampled_step_of_sums_and_counts_is_a_gaussian_mixture():
    law, shift = Multiplicity.binomial(1, 0.2), math.hypot(1 / 2, 5 / 4)
    mixed = SumAndCount(Gaussian(4.0, 5.0), Gaussian(2.0)).mixture(AR, law)
    assert mixed.delta(0.5) == pytest.approx(Gaussian(1.0, shift).mixture(AR, law).delta(0.5), rel=1e-9)
    assert SumAndCount(NormNoise(40.0, 3), Laplace(10.0)).mixture(AR, law) is None


@pytest.mark.parametrize(
    "parts",
    [
        (PureDP(1.0), Laplace(1.0)),
        (Laplace(1.0), NormNoise(1.0, 2)),
        (Gaussian(1.0), Laplace(1.0)),
        (Laplace(1.0), Gaussian(1.0)),
        (Laplace(1.0, neighbors=RO), Laplace(1.0)),
        (Laplace(1.0), Laplace(1.0, neighbors=RO)),
        (Laplace(1.0), Laplace(1.0, 2.0)),
    ],
)
def test_sums_and_counts_that_do_not_belong_together(parts):
    with pytest.raises(InvalidInput):
        SumAndCount(*parts)


def test_rows_that_hold_more_than_the_record():
    pure = AugmentedRows(Laplace(4.0), radius=3.0, per_record=2.0, per_norm=1.5)
    gauss = AugmentedRows(Gaussian(4.0), radius=3.0, per_record=2.0, per_norm=1.5)
    for u in (0.0, 1.0, 3.0):
        long, round_one = 2.0 + 1.5 * u, math.hypot(2.0, 1.5 * u)
        assert (pure.longest(u), gauss.longest(u)) == pytest.approx((long, round_one))
        assert Fraction(gauss.longest(u)) ** 2 >= 4 + Fraction(1.5 * u) ** 2  # rounded up
        assert float(pure.influence.at(u)) == pytest.approx(long / 4.0)
        assert float(gauss.influence.at(u)) == pytest.approx(round_one / 4.0)
        assert pure.profile(AR, Change(norm=u)).epsilon() == pytest.approx(long / 4.0)
        assert gauss.profile(AR, Change(norm=u)).delta(0.3) == pytest.approx(normal_delta(round_one / 4.0, 0.3))
    assert pure.profile(AR).epsilon() == pytest.approx((2.0 + 4.5) / 4.0)
    assert AugmentedRows(Gaussian(4.0), 3.0, per_norm=2.0).longest(3.0) == 6.0
    assert not pure.influence.is_exact


@pytest.mark.parametrize("bad", [{"radius": 0}, {"radius": 1, "per_record": -1}, {"radius": 1, "per_norm": 0}])
def test_rows_need_positive_sizes(bad):
    with pytest.raises(InvalidInput):
        AugmentedRows(Laplace(1.0), **bad)
    with pytest.raises(NoTheorem, match="PureDP"):
        AugmentedRows(PureDP(1.0), 1.0)


def test_strata_have_their_own_sensitivities_and_the_largest_counts():
    noise = PerStratum(Laplace(2.0, neighbors=RO), (("small", 1.0), ("large", 4.0), ("middle", 2.0)))
    assert [noise.in_stratum(name).profile(RO).epsilon() for name in ("small", "large", "middle")] == [0.5, 2.0, 1.0]
    assert noise.profile(WITHIN).epsilon() == 2.0
    assert noise.neighbors == WITHIN
    with pytest.raises(NoTheorem, match="changes its stratum"):
        noise.profile(RO)
    with pytest.raises(InvalidInput, match="'tiny'"):
        noise.in_stratum("tiny")
    added = PerStratum(Gaussian(2.0), (("a", 1.0), ("b", 3.0)))
    assert added.neighbors == AR
    assert added.profile(AR).delta(0.2) == pytest.approx(normal_delta(1.5, 0.2))
    assert added.profile(RO).delta(0.2) == pytest.approx(normal_delta(3.0, 0.2))


@pytest.mark.parametrize("bad", [(), (("a", 1.0), ("a", 2.0)), (("a", 0.0),)])
def test_bad_sensitivities_are_refused(bad):
    with pytest.raises(InvalidInput):
        PerStratum(Laplace(1.0), bad)
    with pytest.raises(InvalidInput, match="NormNoise"):
        PerStratum(NormNoise(1.0, 2), (("a", 1.0),))


def test_exact_noise_by_strata_takes_units_of_its_grid_only():
    noise = PerStratum(ExactLaplace(2.0, 1.0), (("a", 1.0),))
    with pytest.raises(InvalidInput, match="in units of its grid"):
        noise.release(np.array([1.0]), seeded_stream(1))
    assert abs(PerStratum(Laplace(2.0), (("a", 1.0),)).release(5.0, seeded_stream(1)) - 5.0) < 100.0


def test_adaptive_gaussian_releases_add_up_in_squares():
    parts = (Gaussian(4.0, 5.0), ExactGaussian(3.0, 2.0), Gaussian(1.0, 0.1))
    shift = math.sqrt((5 / 4) ** 2 + (2 / 3) ** 2 + 0.1**2)
    together = GaussianLosses(parts)
    assert together.profile(AR).delta(0.5) == pytest.approx(normal_delta(shift, 0.5), rel=1e-6)
    assert together.covering.sensitivity == pytest.approx(shift, rel=1e-6)
    assert together.profile(RO).delta(0.5) == pytest.approx(normal_delta(2 * shift, 0.5), rel=1e-6)
    assert [covers(m) for m in (*parts, Laplace(1.0), PureDP(1.0))] == [True, True, True, False, False]
    assert not covers(SumAndCount(Gaussian(4.0), Gaussian(2.0)))
    assert not covers(AugmentedRows(Gaussian(4.0), 1.0, per_record=1.0))
    with pytest.raises(InvalidInput):
        GaussianLosses((Gaussian(1.0), Laplace(1.0)))


def test_rows_with_whole_noise_add_its_own_part_and_round_up():
    base = DiscreteLaplace(3.0, 6).influence
    found = AugmentedRows(DiscreteLaplace(3.0, 6), radius=5.0, per_record=2.0, per_norm=1.3).influence
    assert found.per_record == pytest.approx(2.0 / 3.0 + base.per_record)
    assert Fraction(found.per_norm) >= Fraction(base.per_norm) * Fraction(1.3)
    assert found.per_norm == pytest.approx(1.3 / 3.0)
    assert AugmentedRows(Laplace(3.0), radius=5.0, per_record=2.0).influence.per_norm == 1.0 / 3.0  # nothing to round


@pytest.mark.parametrize("answers", [[0, 1, 3], [-1, 1, 2], [5]])
def test_a_category_that_does_not_exist_is_refused_wherever_it_stands(answers):
    with pytest.raises(InvalidInput, match="from 0 to 2"):
        RandomizedResponse(1.0, 3).release(np.array(answers), seeded_stream(1))
