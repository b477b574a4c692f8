"""What is concluded from released averages, worked out by hand: bounds that do not start at 0, sums that are not 1."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import t as student

from privamp.bootstrap import Mean, Quantile, Regression, Variance
from privamp.bootstrap.direct import WEIGHT, DirectMean, direct
from privamp.bootstrap.regression import _widened
from privamp.bootstrap.spread import Finding, Spread, correction
from privamp.bootstrap.statistic import Series, at_least_two, numbers, range_of
from privamp.errors import InvalidInput

EDGES = np.array([10.0, 12.0, 14.0, 16.0, 18.0])
Z = float(ndtri(0.975))


def series(averages, noise, *, ratio=1.0, level=0.95, kept=1.0):
    table = np.atleast_2d(np.asarray(averages, dtype=float))
    return Series(table, noise, Spread(len(table), ratio, level), kept)


def test_a_finding_from_three_averages():
    """S² = 4 of (1, 3, 5); noise 1, so E = 3; with k = 2 the error is sqrt((4 + 2·3)/3)."""
    found = Spread(3, 2.0, 0.9).finding("f", np.array([1.0, 3.0, 5.0]), 1.0)
    assert (found.name, found.value) == ("f", 3.0)
    assert found.standard_error == pytest.approx(math.sqrt(10.0 / 3.0))
    assert found.standard_error_sampling == pytest.approx(math.sqrt(6.0 / 3.0))
    assert found.standard_error_noise == pytest.approx(1.0 / math.sqrt(3.0))
    boost, stretch = correction(3, 2.0, 0.9)
    h = math.sqrt(2.0 / 2.0)
    spread = 4.0 + 2.0 * 3.0 * (1.0 + boost * h / (h + 3.0))
    half = stretch * student.ppf(0.95, 2) * math.sqrt(spread / 3.0)
    assert found.interval == pytest.approx((3.0 - half, 3.0 + half))


def test_a_finding_from_averages_closer_than_their_noise():
    """S² = 0.02 is below the noise's 1: nothing is left for sampling, and the error is that of the noise."""
    found = Spread(2, 2.0, 0.9).finding("f", np.array([1.0, 1.2]), 1.0)
    assert found.standard_error_sampling == 0.0
    assert found.standard_error == pytest.approx(math.sqrt(0.5)) == found.standard_error_noise
    _, stretch = correction(2, 2.0, 0.9)
    half = stretch * student.ppf(0.95, 1) * math.sqrt(0.02 / 2.0)
    assert found.interval == pytest.approx((1.1 - half, 1.1 + half))


def test_a_finding_is_cut_to_the_range_at_both_ends():
    found = Finding("f", 5.0, 1.0, (2.0, 9.0), 0.5, 0.5)
    assert found.within(3.0, 4.0) == replace(found, value=4.0, interval=(3.0, 4.0))
    assert found.within(1.0, 20.0) == found


@pytest.mark.parametrize("extra", [0.0, 0.05, -0.1])
def test_the_quantile_of_one_series(extra):
    """Shares 0.1, 0.3, 0.4, 0.2 of the bins, off by the same number each, which noise may do: F is 0.1, 0.4, 0.8.

    Half is reached a quarter of the way from 14 to 16; the noise is tiny, so all other bins are ruled out.
    """
    asked = Quantile((10.0, 18.0), 0.5, 4)
    (found,) = asked.conclude(series(np.tile([0.1, 0.3, 0.4, 0.2], (2, 1)) + extra, 1e-9))
    assert found.value == pytest.approx(14.5)
    assert found.interval == (14.0, 16.0)
    assert found.standard_error == pytest.approx(2.0 / (2.0 * Z))
    assert found.standard_error_sampling == 0.0
    assert found.standard_error_noise == pytest.approx(found.standard_error)  # the averages do not differ
    assert found.name == "quantile 0.5"


@pytest.mark.parametrize(
    ("rows", "probability", "value", "interval", "part"),
    [
        ([[0.2, 0.3, 0.4, 0.1], [0.2, 0.4, 0.3, 0.1]], 0.56, 14.0 + 2.0 * 0.01 / 0.35, (12.0, 16.0), 1.0),
        ([[0.15, 0.35, 0.4, 0.1], [0.25, 0.25, 0.4, 0.1]], 0.21, 12.0 + 2.0 * 0.01 / 0.3, (10.0, 14.0), 0.75),
    ],
)
def test_the_quantile_of_averages_that_differ(rows, probability, value, interval, part):
    """F is known least, S² = 0.005, where it passes the probability: the bins on both sides of that edge are left.

    The error is divided as that edge's is, whose noise has the variance tau² k(4 - k)/4: 3/4 of it at 12, all at 14.
    """
    asked = Quantile((10.0, 18.0), probability, 4)
    (found,) = asked.conclude(series(rows, 0.05, ratio=2.0, level=0.2))
    assert found.value == pytest.approx(value)
    assert found.interval == interval
    noise = part * 0.05**2
    error, excess = 4.0 / (2.0 * float(ndtri(0.6))), 0.005 - noise
    own = math.sqrt((0.005 + 2.0 * excess) / 2.0)
    assert found.standard_error == pytest.approx(error)
    assert found.standard_error_sampling == pytest.approx(error * math.sqrt(2.0 * excess / 2.0) / own)
    assert found.standard_error_noise == pytest.approx(error * math.sqrt(noise / 2.0) / own)


def test_a_histogram_of_other_bins_is_refused():
    with pytest.raises(InvalidInput, match="does not belong"):
        Quantile((0.0, 4.0), 0.3, 4).conclude(series(np.ones((2, 5)), 1.0))


def test_records_fall_into_bins():
    asked = Quantile((10.0, 18.0), 0.5, 4)
    np.testing.assert_array_equal(asked.edges, EDGES)
    rows = asked.rows([9.0, 10.0, 11.0, 12.0, 12.1, 14.0, np.nan, 16.5, 18.0, 99.0])
    assert rows.tolist() == [0, 0, 0, 0, 1, 1, 1, 3, 3, 3]
    shares = asked.compute(rows[:5].astype(float), np.array([1.0, 0.0, 2.0, 0.0, 1.0]))
    np.testing.assert_allclose(shares, [0.75, 0.25, 0.0, 0.0])


@pytest.mark.parametrize("values", [{"probability": 0.0}, {"probability": 1.0}, {"bins": 1}, {"bins": 4097}])
def test_quantiles_outside_their_range_are_refused(values):
    with pytest.raises(InvalidInput):
        Quantile((0.0, 1.0), **values)


def test_the_ends_of_the_range_of_bins_are_allowed():
    assert Quantile((0.0, 1.0), bins=2).bins == 2
    assert Quantile((0.0, 1.0), bins=4096).bins == 4096


def test_a_flat_distribution_function_is_crossed_in_the_middle_of_its_step():
    asked = Quantile((10.0, 18.0), 0.5, 4)
    assert asked._crossing(np.array([0.5, 0.5, 0.9])) == 12.0  # reached at the first edge
    assert asked._crossing(np.array([0.2, 0.2, 0.2])) == pytest.approx(16.0 + 2.0 * 0.3 / 0.8)
    assert asked._crossing(np.array([-0.5, 0.25, 1.5])) == pytest.approx(14.0 + 2.0 * 0.25 / 0.75)  # cut to 0 and 1
    assert asked._crossing(np.array([1.0, 1.0, 1.0])) == pytest.approx(11.0)


def test_a_mean_is_put_back_on_its_centre_and_cut_to_its_bounds():
    (found,) = Mean((10.0, 18.0)).conclude(series([[1.0], [2.0]], 1e-3))
    assert found.value == pytest.approx(15.5)
    (found,) = Mean((10.0, 18.0)).conclude(series([[4.5], [4.6]], 1e-3))
    assert found.value == found.interval[1] == 18.0


def test_a_mean_and_a_variance_of_entries_drawn_several_times():
    """12, 12, 17 in [10, 18]: the mean is 41/3, the variance 25/3."""
    counts, values = np.array([2.0, 0.0, 1.0]), [12.0, 15.0, 17.0]
    mean, variance = Mean((10.0, 18.0)), Variance((10.0, 18.0))
    assert mean.centre + mean.compute(mean.rows(values), counts)[0] == pytest.approx(41.0 / 3.0)
    assert variance.compute(variance.rows(values), counts)[0] == pytest.approx(25.0 / 3.0)
    assert mean.sensitivity(5) == pytest.approx(8.0 / 5.0, rel=1e-12)
    assert variance.sensitivity(5) == pytest.approx(64.0 / 5.0, rel=1e-12)


def test_a_variance_is_divided_by_what_is_kept_of_it():
    """Averages 3 and 5 of three quarters of a variance: 4/0.75, with noise that grows as much; at most half² = 16."""
    (found,) = Variance((10.0, 18.0)).conclude(series([[3.0], [5.0]], 0.3, kept=0.75))
    assert found.value == pytest.approx(4.0 / 0.75)
    assert found.standard_error_noise == pytest.approx(0.3 / 0.75 / math.sqrt(2.0))
    assert found.standard_error_sampling == pytest.approx(math.sqrt((2.0 - 0.09) / 0.75**2 / 2.0))
    (found,) = Variance((10.0, 18.0)).conclude(series([[20.0], [20.0]], 0.3))
    assert found.value == 16.0


def test_the_direct_mean_of_one_release():
    """z averages 0.5 and z² 0.41, noise 0.1 in these units: s² = 0.41 - 0.25 + 0.01 and one error of its noise."""
    h, n, noise = 4.0, 26, 0.1
    asked = direct(Mean((10.0, 18.0)), n)
    assert asked == DirectMean((10.0, 18.0), n)
    (found,) = asked.conclude(series([[h * 0.5, h * WEIGHT * 0.41]], h * noise, level=0.95))
    variance = 0.41 - 0.25 + 0.01 + noise * math.hypot(1.0 / WEIGHT, 1.0)
    sampling = math.sqrt(variance / 25.0)
    error = h * math.hypot(sampling, noise)
    assert found.value == pytest.approx(16.0)
    assert found.standard_error == pytest.approx(error)
    assert found.interval == pytest.approx((16.0 - Z * error, min(16.0 + Z * error, 18.0)))
    assert found.standard_error_sampling == pytest.approx(h * sampling)
    assert found.standard_error_noise == pytest.approx(h * noise)


@pytest.mark.parametrize(("square", "variance"), [(9.0, 1.0), (0.01, 0.02 * math.hypot(1.0 / WEIGHT, 2.0))])
def test_the_direct_mean_of_squares_that_noise_moved_too_far(square, variance):
    """No variance in [-1, 1] is above 1, and none is below 0; a mean beyond 1 counts as 1 in the error of squares."""
    (found,) = DirectMean((10.0, 18.0), 101).conclude(series([[4.0 * 1.5, 4.0 * WEIGHT * square]], 4.0 * 0.02))
    assert found.standard_error_sampling == pytest.approx(4.0 * math.sqrt(variance / 100.0))
    assert found.value == found.interval[1] == 18.0


def test_what_the_direct_mean_adds_up():
    asked = DirectMean((10.0, 18.0), 3)
    found = asked.compute(asked.rows([10.0, 16.0, 18.0]), np.array([1.0, 2.0, 1.0]))
    np.testing.assert_allclose(found, [4.0 * (-1.0 + 1.0 + 1.0) / 4.0, 4.0 * WEIGHT * 2.5 / 4.0])


def test_a_regression_on_columns_whose_middles_are_not_0():
    """y = 2 + 3 x on x in [1, 5], y in [0, 20], from two groups that disagree: each slope is its own group's."""
    x = np.array([1.0, 2.0, 4.0, 5.0])
    asked = Regression([(1.0, 5.0), (0.0, 20.0)])
    groups = [asked.compute(asked.rows((x, 2.0 + 3.0 * x + one)), np.ones(4)) for one in (0.0, 0.5)]
    intercept, slope = asked.conclude(series(groups, 1e-9))
    assert (intercept.value, slope.value) == pytest.approx((2.25, 3.0))
    assert slope.standard_error_sampling == pytest.approx(0.0, abs=1e-7)
    assert intercept.standard_error_sampling == pytest.approx(0.25)  # two groups 0.5 apart: S² = 0.125, over 2 groups
    # noise 1e-9 on the averages: z = (x - 3)/2 and w = (y - 10)/10 have the moments 5/8, so slope = 10/2 c/(5/8)
    beta = 3.0 * 2.0 / 10.0
    c, e, m = 1.0 / (5.0 / 8.0), 10.0 / 2.0, math.sqrt(0.5)
    mean_w = (2.25 + 9.0 - 10.0) / 10.0
    parts = [m * mean_w, 0.0, beta, m]  # of zx through its product with the mean, of z², of zy
    of_slope = e * c * math.sqrt((m * mean_w) ** 2 + beta**2 + m**2)
    assert len(parts) == 4
    assert slope.standard_error_noise == pytest.approx(1e-9 * of_slope / math.sqrt(2.0), rel=1e-6)


def test_an_interval_widens_with_the_distrust_of_its_matrix():
    found = Finding("f", 5.0, 1.0, (2.0, 9.0), 0.5, 0.5)
    half = 3.5 / 0.25
    assert _widened(found, 7.0, 0.25) == replace(found, value=7.0, standard_error=4.0, interval=(7 - half, 7 + half))
    lost = _widened(found, 7.0, 0.0)
    assert lost.interval == (-math.inf, math.inf)
    assert lost.standard_error == math.inf


@pytest.mark.parametrize("noise", [0.01, 0.05, 0.2])
def test_trust_is_what_noise_leaves_of_the_least_eigenvalue(noise):
    """A = diag(1, 5/8) for x = ±1, ±1/2 around the middle; 2 groups: the noise in A is noise·2·sqrt(2/2)."""
    x = np.array([1.0, 2.0, 4.0, 5.0])
    asked = Regression([(1.0, 5.0), (-1.0, 1.0)])
    one = asked.compute(asked.rows((x, 0.0 * x)), np.ones(4))
    intercept, slope = asked.conclude(series([one, one], noise))
    trust = 1.0 - 2.0 * noise / (5.0 / 8.0)
    assert slope.standard_error == pytest.approx(0.5 * noise * math.sqrt(0.5) / (5.0 / 8.0) / math.sqrt(2.0) / trust)
    # w = y; the intercept is beta_0 - 3/2 beta_1, each with the noise of one product: 1 and 8/5, times sqrt(1/2)
    of_intercept = noise * math.sqrt(0.5) * math.hypot(1.0, 1.5 * 8.0 / 5.0) / math.sqrt(2.0)
    assert intercept.standard_error == pytest.approx(of_intercept / trust)


def test_ranges_that_doubles_can_tell_apart():
    assert range_of((1.0, 1.0 + 1e-8)) == (1.0, 1.0 + 1e-8)
    assert range_of((-1e60, 1e60)) == (-1e60, 1e60)
    assert range_of((0.0, 2e-60)) == (0.0, 2e-60)
    for pair in [(1.0, 1.0 + 1e-9), (-1.1e60, 1.1e60), (0.0, 1.9e-60), (-5e60, -1.0)]:
        with pytest.raises(InvalidInput, match="change the unit"):
            range_of(pair)


def test_numbers_are_cut_and_what_is_none_is_in_the_middle():
    assert numbers([1.0, 11.0, np.nan, 99.0], (10.0, 18.0)).tolist() == [10.0, 11.0, 14.0, 18.0]
    assert at_least_two(np.ones(2)).size == 2
    with pytest.raises(InvalidInput, match="at least 2"):
        at_least_two(np.ones(1))
