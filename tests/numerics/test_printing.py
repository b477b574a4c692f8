"""Printed bounds against fractions: never on the wrong side of the number, and no further off than the last digit."""

import math
from fractions import Fraction

import numpy as np
import pytest

from privamp.numerics.printing import as_asked, shown_down, shown_up

VALUES = [*np.random.default_rng(3).lognormal(0.0, 8.0, 60).tolist(), 1.0, 0.1, 123456.5, 9.9999996, 2.5e-300, 1e300]


@pytest.mark.parametrize("digits", [3, 6])
def test_the_text_is_on_the_safe_side_within_one_digit(digits):
    for value in VALUES:
        for sign in (1, -1):
            exact = Fraction(sign * value)
            above, below = Fraction(shown_up(sign * value, digits)), Fraction(shown_down(sign * value, digits))
            assert below <= exact <= above
            assert above - below <= 2 * abs(exact) / 10 ** (digits - 1)


def test_decimals():
    for value in [*VALUES[:60], 0.005, 12.0]:
        above, below = (Fraction(shown(value, decimals=2)) for shown in (shown_up, shown_down))
        assert below <= Fraction(value) <= above <= below + Fraction(1, 100)
    assert (shown_up(12.0, decimals=2), shown_down(-0.001, decimals=2)) == ("12.00", "-0.01")


def test_ends():
    assert (shown_up(math.inf), shown_down(-math.inf), shown_up(math.nan)) == ("∞", "-∞", "nan")
    assert (shown_up(5e-324), shown_down(5e-324), shown_up(0.0)) == ("1e-300", "0", "0")
    assert shown_up(1e-300, 3) == "1.01e-300"  # this double is above the number 1e-300
    assert shown_up(1.7976931348623157e308, 3) == "∞"  # three digits above it are no double


def test_what_was_asked_is_printed_as_it_was_written():
    assert [as_asked(x) for x in (0.1, 3.0, 1e-6, 0.25)] == ["0.1", "3", "1e-06", "0.25"]
    assert (as_asked(1 / 3, 3), as_asked(math.inf)) == ("0.334", "∞")
