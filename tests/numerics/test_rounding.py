"""Outward rounding moves every number to its own safe side."""

import math

import numpy as np
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
