"""Bounds on a convex curve from points: never below it, close to it where it was asked to be, flat beyond the end."""

import math
import threading

import numpy as np
import pytest

from privamp.numerics.convex_table import Growing, tabulated

ALPHAS = 1.0 + np.geomspace(1e-6, 50.0, 400)


def falling(log_x):
    """The curve e^-(alpha - 1), whose parameter is log(alpha - 1)."""
    return log_x, -np.exp(log_x)


def table(tolerance=1e-4, most=10_000):
    return tabulated(falling, 0.0, np.linspace(math.log(1e-3), math.log(40.0), 4), tolerance, most)


def over(found):
    """How far its logarithm is above the curve's."""
    return found.at(np.log(ALPHAS - 1.0)) + (ALPHAS - 1.0)


def test_the_chords_bound_the_curve_and_are_as_close_as_asked():
    inside = ALPHAS < 30.0
    far = np.maximum(1.0, np.abs(0.05 * (ALPHAS - 1.0)) ** 3)
    for tolerance in (1e-2, 1e-4):
        off = over(table(tolerance))
        assert np.all(off >= 0.0)
        assert np.all(off[inside] <= 2.0 * (tolerance * far)[inside])


def test_beyond_the_last_point_the_bound_stays_at_its_value():
    beyond = table().at(np.log(np.array([41.0, 100.0, 1e9])))
    assert beyond == pytest.approx(-40.0, rel=1e-9)
    assert np.all(beyond >= -40.0)


def test_few_points_are_a_looser_bound_that_still_holds():
    few, many = table(most=6), table()
    assert few.log_x.size < 20 < many.log_x.size
    assert np.all(over(few) >= 0.0)
    assert np.max(over(few)) > np.max(over(many))


def test_at_alpha_one_it_is_the_value_given():
    assert table().at(np.array([-np.inf])) == 0.0
    assert table().log_delta(np.array([0.0])) == pytest.approx(0.0, abs=1e-11)
    assert table().log_delta(np.array([0.0])) > 0.0  # rounded up


def test_the_slope_is_that_of_the_chords():
    found = table()
    x, v = np.exp(found.log_x), np.exp(found.log_v)
    slope = (v[:-1] - v[1:]) / (x[1:] - x[:-1])
    near = x[1:] < 5.0
    assert np.exp(found.log_slope)[near] == pytest.approx(slope[near], rel=1e-6)


def test_a_bound_that_grows_is_replaced_by_the_one_before():
    """delta never grows with alpha, so a smaller bound to the left holds on the right as well."""
    log_x = np.log(np.array([0.5, 1.0, 2.0]))
    found = tabulated(lambda t: (t, np.where(t < log_x[1], -1.0, -0.5)), 0.0, log_x, 10.0, 10)
    assert found.at(log_x) == pytest.approx(-1.0)


class Counted:
    """The curve e^-(alpha - 1), and at how many points it was asked for."""

    def __init__(self):
        self.points = 0

    def __call__(self, log_x):
        self.points += log_x.size
        return falling(log_x)


@pytest.mark.parametrize("shift", [0.0, -3.0])
def test_a_growing_table_gives_the_answers_of_the_whole_one_in_any_order(shift):
    start, asked = np.linspace(math.log(1e-3), math.log(40.0), 9), np.log(ALPHAS - 1.0)
    whole = tabulated(falling, 0.0, start, 1e-4, 10_000)
    wanted = whole.at(asked - shift) + shift
    for order in (np.arange(asked.size), np.arange(asked.size)[::-1], np.random.default_rng(0).permutation(asked.size)):
        growing = Growing(falling, 0.0, start, 1e-4, shift)
        found = np.concatenate([growing.at(part) for part in np.array_split(asked[order], 20)])
        assert found == pytest.approx(wanted[order], rel=1e-13)


def test_a_growing_table_makes_only_what_is_asked_for():
    start = np.linspace(math.log(1e-3), math.log(40.0), 9)
    few, many = Counted(), Counted()
    tabulated(many, 0.0, start, 1e-4, 10_000)
    growing = Growing(few, 0.0, start, 1e-4)
    assert few.points == start.size
    growing.at(np.array([-np.inf, 20.0]))  # before the first point and after the last
    assert few.points == start.size
    growing.log_delta(np.array([1.0]))
    after_one = few.points
    assert start.size < after_one < many.points / 3
    growing.log_delta(np.array([1.0, 1.01]))
    assert few.points == after_one
    growing.at(0.5 * (start[1:] + start[:-1]))
    assert few.points == many.points


def test_threads_that_ask_at_once_lose_nothing():
    """A second question while a gap is halved must not be forgotten when the first one is done."""
    start = np.linspace(math.log(1e-3), math.log(40.0), 9)
    middles = 0.5 * (start[1:] + start[:-1])
    second = []

    def asked_meanwhile(log_x):
        if len(log_x) < start.size and not second:
            second.append(threading.Thread(target=lambda: growing.at(middles[6:7])))
            second[0].start()
            second[0].join(0.2)  # it waits for this question
        return falling(log_x)

    growing = Growing(asked_meanwhile, 0.0, start, 1e-4)
    growing.at(middles[2:3])
    second[0].join()
    alone = Growing(falling, 0.0, start, 1e-4)
    assert growing.at(middles) == pytest.approx(alone.at(middles), rel=1e-13)
