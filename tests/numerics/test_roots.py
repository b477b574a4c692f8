"""A root is returned from the side where the condition holds, or an error is raised."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privamp.numerics.roots import (
    NumericalFailure,
    bisected,
    first_at_most,
    halved,
    largest_passing,
    least_passing,
    passing_beside,
    passing_near,
    rough_root,
)


@given(st.floats(1e-9, 1e5), st.floats(-600, -1e-3))
@settings(deadline=None)
def test_first_at_most_is_on_the_private_side(scale, target):
    def f(x):
        return -x / scale

    if -target * scale > 1e6:
        with pytest.raises(NumericalFailure):
            first_at_most(f, target)
        return
    x = first_at_most(f, target)
    assert f(x) <= target
    assert f(x * (1 - 1e-14)) > target


def test_first_at_most_at_a_step_and_at_the_start():
    step = first_at_most(lambda x: np.where(x >= 0.3, -5.0, 0.0), -1.0)
    assert step >= 0.3
    assert step == pytest.approx(0.3, rel=1e-14)
    assert first_at_most(lambda x: -x - 9.0, -1.0) == 0.0
    assert first_at_most(lambda x: -x, -1.0, start=5.0) == 5.0


def test_first_at_most_raises():
    with pytest.raises(NumericalFailure, match="stays above"):
        first_at_most(np.zeros_like, -1.0)
    with pytest.raises(NumericalFailure, match="NaN"):
        first_at_most(lambda x: x * np.nan, -1.0)
    with pytest.raises(NumericalFailure, match="NaN"):
        first_at_most(lambda x: np.where((x > 0.2) & (x < 0.8), np.nan, -2.0 * (x > 0.1)), -1.0)


SHAPES = [
    lambda x, root: math.log(root / x),
    lambda x, root: (root / x) ** 3 - 1.0,
    lambda x, root: -1.0 if x >= root else 1.0,
    lambda x, root: -math.inf if x >= root else 1e-300,
]


@pytest.mark.parametrize("shape", SHAPES)
@given(root=st.floats(1e-8, 1e8))
@settings(deadline=None, max_examples=40)
def test_least_passing_passes(shape, root):
    x = least_passing(lambda v: shape(v, root), 1e-9, 1e9)
    assert shape(x, root) <= 0
    assert root * (1 - 1e-15) <= x <= root * (1 + 1.2e-9)


def test_least_passing_ends():
    assert least_passing(lambda v: -1.0, 0.5, 2.0) == 0.5
    assert least_passing(lambda v: 0.0 if v == 2.0 else 1.0, 0.5, 2.0) == 2.0
    with pytest.raises(NumericalFailure, match="fails even at 2"):
        least_passing(lambda v: 1.0, 0.5, 2.0)
    with pytest.raises(NumericalFailure, match="fails even at 2"):
        least_passing(lambda v: math.nan, 0.5, 2.0)
    with pytest.raises(NumericalFailure, match="NaN"):
        least_passing(lambda v: math.nan if 0.6 < v < 1.9 else 1.2 - v, 0.5, 2.0)


@given(st.integers(0, 1000), st.integers(0, 1000))
def test_largest_passing(root, high):
    x = largest_passing(lambda v: v <= root, 0, high)
    assert x == min(root, high)


ROUGH_SHAPES = [
    lambda x, root: math.log(root / x) * 9.0,
    lambda x, root: 9.0 * (1.0 - (x / root) ** 0.5),
    lambda x, root: math.log(root / x) * (9.0 if x < root else 40.0) + (0.3 if x < root else -0.3),  # jumps
    lambda x, root: math.inf if x < 0.5 * root else (-math.inf if x > 2.0 * root else math.log(root / x)),
]


@pytest.mark.parametrize("shape", ROUGH_SHAPES)
@pytest.mark.parametrize("root", [1e-4, 0.9, 1.0, 37.0, 1e7])
def test_a_guess_leads_to_a_point_that_passes_and_is_the_least(shape, root):
    tried = []

    def excess(x):
        tried.append(x)
        return shape(x, root)

    guess = rough_root(lambda x: shape(x, 1.03 * root), low=1e-9, high=1e9)  # three percent off
    if guess is None:
        assert shape is ROUGH_SHAPES[2]  # a secant across a jump never gets short
        return
    assert guess[1] < 0.0
    found = passing_beside(excess, *guess, low=1e-9, high=1e9, relative=1e-8)
    if found is None:
        assert shape is ROUGH_SHAPES[3]  # infinite values end the search, and the caller begins anew
        return
    assert shape(found, root) <= 0.0 < shape(found * (1.0 - 1.1e-8), root)
    assert len(tried) <= (8 if shape is not ROUGH_SHAPES[2] else 40)


def test_a_guess_that_is_not_near_gives_nothing():
    assert rough_root(lambda x: 1.0, low=1e-9, high=1e9) is None
    assert rough_root(lambda x: -1.0, low=1e-9, high=1e9) is None
    assert passing_beside(lambda x: 1.0, 1.0, -1.0, low=0.5, high=2.0, relative=1e-8) is None
    assert passing_beside(lambda x: -1.0, 1.0, -1.0, low=0.5, high=2.0, relative=1e-8) is None
    assert passing_beside(lambda x: math.nan, 1.0, -1.0, low=0.5, high=2.0, relative=1e-8) is None


def test_largest_passing_raises():
    with pytest.raises(NumericalFailure, match="fails even at 3"):
        largest_passing(lambda v: False, 3, 9)
    assert math.isfinite(largest_passing(lambda v: True, 3, 3))


def test_many_brackets_are_halved_together_and_keep_their_roots():
    squares = np.array([2.0, 3.0, 1e-8])
    for geometric in (False, True):
        low, high = bisected(lambda x: x * x > squares, np.full(3, 1e-9), np.full(3, 4.0), geometric=geometric)
        assert np.all(low * low <= squares)
        assert np.all(squares < high * high)
    is_narrow = lambda low, high: np.all(high - low <= 1e-6)  # noqa: E731
    low, high = bisected(lambda x: x * x > squares, np.zeros(3), np.full(3, 4.0), until=is_narrow)
    assert np.all(high - low <= 1e-6)


def test_a_bracket_that_stays_wide_is_an_error():
    with pytest.raises(NumericalFailure, match="3 halvings did not narrow"):
        bisected(lambda x: x > 1.0, np.zeros(1), np.full(1, 4.0), rounds=3, until=lambda a, b: np.all(b - a <= 1e-6))


def test_one_bracket_that_stays_wide_is_an_error_and_one_that_does_not_is_none():
    def wide(low, high):
        return high - low < 1e-6

    with pytest.raises(NumericalFailure, match="3 halvings"):
        halved(lambda x: x > 0.3, 0.0, 1.0, rounds=3, until=wide)
    low, high = halved(
        lambda x: x > 0.3, 0.0, 1.0, rounds=20, until=wide
    )  # narrow after the last round, and no earlier
    assert low <= 0.3 < high < low + 1e-6
    assert halved(lambda x: x > 0.3, 0.0, 1.0, rounds=2) == (0.25, 0.5)


def test_one_bracket_is_halved_to_neighbouring_numbers():
    low, high = halved(lambda x: x**3 > 5.0, 0.0, 8.0)
    assert low**3 <= 5.0 < high**3
    assert high == np.nextafter(low, 9.0)
    assert halved(lambda x: x > 3.0, 1.0, 9.0, rounds=2) == (3.0, 5.0)


def test_halving_stops_where_it_is_told_and_asks_nothing_more():
    asked = []
    found = halved(lambda x: bool(asked.append(x)) or x > 3.3, 0.0, 8.0, until=lambda a, b: b - a <= 1.0)
    assert found == (3.0, 4.0)
    assert len(asked) == 3
    assert halved(lambda x: x > 3.0, 1.0, 1.5, until=lambda a, b: b - a <= 1.0) == (1.0, 1.5)


def test_a_bracket_may_be_given_from_above():
    inside, outside = halved(lambda x: x < 2.0, 5.0, 1.0)
    assert outside < 2.0 <= inside


def test_a_point_near_the_root_is_on_the_passing_side():
    for start in (-3.0, 0.0, 3.0):
        found = passing_near(lambda x: np.expm1(x - 1.0), start, close=1e-3, lowest=-40.0, highest=10.0)
        assert -1e-3 < np.expm1(found - 1.0) <= 0.0
    assert passing_near(lambda x: 1.0, 0.0, close=0.1, lowest=-40.0, highest=10.0) is None
    assert passing_near(lambda x: -1.0, 0.0, close=0.1, lowest=-40.0, highest=10.0) > 3.0


def test_a_point_near_the_root_where_the_function_ends():
    found = passing_near(lambda x: x - 5.0 if x < 2.0 else math.inf, 8.0, close=1e-3, lowest=-40.0, highest=10.0)
    assert 1.98 < found < 2.0
