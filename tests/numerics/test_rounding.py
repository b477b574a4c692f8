"""Outward rounding moves every number to its own safe side."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privamp.numerics import rounding


@given(st.floats(-1e6, 0))
def test_up_is_up_and_down_is_down(x):
    assert rounding.down(x) < x
    assert rounding.up(x) > x or rounding.up(x) == 0.0
    assert rounding.up(x) <= 0.0


def test_zero_stays_zero():
    assert np.isneginf(rounding.up(-np.inf))
    assert np.isneginf(rounding.down(-np.inf))
    assert rounding.number_up(0.0) == 0.0
    assert rounding.number_down(0.0) == 0.0
    assert rounding.number_up(math.inf) == math.inf


@given(st.floats(5e-324, 1e300))
def test_numbers(x):
    assert rounding.number_up(x) > x
    assert 0.0 <= rounding.number_down(x) < x


def test_margin_grows_with_the_logarithm():
    assert rounding.margin(0.0) == rounding.RELATIVE
    assert rounding.margin(-999.0) == 1000 * rounding.RELATIVE


def test_margins_are_a_trillionth_of_one_and_of_the_logarithm():
    assert rounding.margin([0.0, -3.0, 5.0, -np.inf, np.nan]).tolist() == [1e-12, 4e-12, 6e-12, 1e-12, 1e-12]
    assert (rounding.up(-3.0), rounding.down(-3.0)) == (-3.0 + 4e-12, -3.0 - 4e-12)
    assert rounding.up([-1e-13, 0.5]).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("x", [1e-300, 0.3, 1.0, 2.0, 7.5, 1e12])
def test_numbers_move_by_four_parts_in_1e15(x):
    """One last place more at most: 4e-15 of the number upward, and downward of the number or of 1."""
    above, below = Fraction(rounding.number_up(x)), Fraction(rounding.number_down(x))
    share, place = Fraction(4e-15), Fraction(math.ulp(x))
    assert Fraction(x) * (1 + share) <= above <= Fraction(x) * (1 + share) + 3 * place
    assert abs(Fraction(x) - share * max(Fraction(x), 1) - below) <= place or (x == 1e-300 and below == 0)


def test_numbers_at_and_below_zero_and_beyond_all():
    assert rounding.number_up(-1.0) == -math.nextafter(1.0, 0.0)
    assert rounding.number_up(5e-324) == 1e-323
    assert [rounding.number_down(x) for x in (-1.0, -math.inf, 4e-15, math.inf)] == [0.0, 0.0, 0.0, math.inf]
    assert rounding.number_down(5e-15) == pytest.approx(1e-15, rel=1e-9)


@given(st.lists(st.tuples(st.integers(0, 9), st.floats(0.0, 1e9))))
def test_totals_are_exact_and_rounded_up_once(terms):
    exact = sum((times * Fraction(value) for times, value in terms), Fraction(0))
    found = rounding.total_up(terms)
    assert Fraction(found) >= exact
    assert found == 0.0 or Fraction(math.nextafter(found, -math.inf)) < exact


def test_totals_of_little_beside_much():
    assert rounding.total_up([]) == 0.0
    assert rounding.total_up([(3, 0.25), (0, math.inf), (0, math.nan)]) == 0.75
    assert rounding.total_up([(1, 1.0), (1, 1e-30)]) == math.nextafter(1.0, 2.0)
    assert rounding.total_up([(1, 1.0), (1, -1e-30)]) == 1.0
    assert rounding.total_up([(2, 1.0), (1, math.inf)]) == math.inf
