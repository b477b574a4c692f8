"""Ratios of elementary symmetric polynomials against the polynomials themselves, in fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest

from privamp.numerics.symmetric import log_symmetric_ratio


def polynomials(numbers):
    """E_0, E_1, ... of whole numbers: the coefficients of prod(1 + t x)."""
    found = [Fraction(1)]
    for t in numbers:
        found = [a + t * b for a, b in zip([*found, 0], [0, *found], strict=True)]
    return found


@pytest.mark.parametrize(
    "numbers", [[3], [1, 2], [1, 2, 3], [5, 5, 5, 5, 5], [1, 10**6, 7, 10**12, 2, 9], range(1, 18)]
)
def test_every_order(numbers):
    exact = polynomials(numbers)
    for order in range(1, len(exact)):
        truth = math.log(exact[order] / exact[order - 1])
        assert log_symmetric_ratio(np.log([float(t) for t in numbers]), order) == pytest.approx(truth, abs=1e-12)


def test_no_order_beyond_the_numbers():
    for order in (0, -1, 4):
        assert log_symmetric_ratio(np.zeros(3), order) == -math.inf


def test_numbers_too_large_and_too_small_for_a_float():
    far = log_symmetric_ratio(np.array([2000.0, 2000.0, -2000.0]), 2)
    assert far == pytest.approx(2000.0 - math.log(2.0), abs=1e-9)  # t^2/(2t)
    assert log_symmetric_ratio(np.array([-2000.0, -2000.0]), 1) == pytest.approx(math.log(2.0) - 2000.0, abs=1e-9)
