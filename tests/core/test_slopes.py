"""Points of equal slope on several curves at once, against the slope of the Gaussian curve in closed form."""

import numpy as np
import pytest
from scipy.special import log_ndtr

from privamp import Gaussian, Neighbors
from privamp.core.direct_plan import Slopes

DISTANCES = np.array([1.0, 2.0, 5.0])
STAKES = Gaussian(2.0).family(Neighbors.ADD_REMOVE)
FAR = DISTANCES[:, None]
MASS = np.log(np.array([[0.5], [0.3], [0.2]]))
TARGETS = np.log(np.array([0.2, 0.7, 1.0, 1.5, 4.0]))


def log_odds(distances, log_gamma):
    """Of minus the slope of H in gamma: Phi(-theta/2 - log gamma/theta), theta = distance/sigma."""
    theta = distances / 2.0
    at = 0.5 * theta + log_gamma / theta
    return log_ndtr(-at) - log_ndtr(at)


@pytest.fixture(scope="module")
def slopes():
    return Slopes(DISTANCES, STAKES)


def test_scaled_points_share_a_slope_and_add_up(slopes):
    found = slopes.scaled(FAR, MASS, TARGETS)
    assert np.log(np.sum(np.exp(MASS + found), axis=0)) == pytest.approx(TARGETS, abs=1e-12)
    odds = log_odds(FAR, found)
    assert np.max(odds, axis=0) - np.min(odds, axis=0) == pytest.approx(0.0, abs=0.02)
    assert np.all(np.diff(odds[0]) < 0.0)  # a larger target has a smaller slope


def test_one_distance_alone_takes_it_all(slopes):
    assert slopes.scaled(FAR[:1], MASS[:1], TARGETS)[0] == pytest.approx(TARGETS - MASS[0, 0])


def test_at_most_the_target_and_nothing_below_its_floor(slopes):
    targets = TARGETS[1:]  # the floors alone are above the first
    floor = np.log(np.array([[0.05], [0.6], [0.05]])) + np.zeros((3, targets.size))
    found = slopes.at_most(FAR, MASS, floor, targets)
    totals = np.sum(np.exp(MASS + found), axis=0)
    assert np.all(found >= floor)
    assert np.all(totals <= np.exp(targets) * (1.0 + 1e-12))
    assert totals == pytest.approx(np.exp(targets), rel=0.02)  # and little less
    free = found > floor
    for column, mine in zip(log_odds(FAR, found).T, free.T, strict=True):
        assert np.ptp(column[mine]) == pytest.approx(0.0, abs=0.02)


def test_gammas_at_a_slope_have_it(slopes):
    wanted = np.array([-3.0, -0.5, 0.0, 2.0])
    found = slopes.log_gammas(DISTANCES, wanted)
    assert log_odds(FAR, found) == pytest.approx(np.broadcast_to(wanted, found.shape), abs=0.02)
    assert np.all(slopes.log_gammas(np.array([0.0]), wanted) == 0.0)
    assert slopes.farthest > 5.0


def test_the_table_is_entered_between_two_neighbours(slopes):
    """The total at the first of them is below the target, and that at the second is not."""

    def total(at):
        return np.log(np.sum(np.exp(MASS + slopes.log_gamma[:, at]), axis=0))

    low, high = slopes._between(total, TARGETS)
    assert np.array_equal(high, low + 1)
    assert np.all(total(low) < TARGETS)
    assert np.all(total(high) >= TARGETS)
    ends = np.array([-1e9, 1e9])
    low, high = slopes._between(total, ends)
    assert (low[0], high[0]) == (0, 1)
    assert high[1] == slopes.points - 1
