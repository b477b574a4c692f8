"""Outward rounding: one margin, wide enough for every curve, applied once to the final result.

Curves are computed to well within `margin`; tests hold them to a tenth of it against mpmath. A bound then moves by the
margin in its own safe direction, so no reported number depends on the last bits.
"""

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from .log_domain import FloatArray, as_floats

RELATIVE = 1e-12
ARGUMENT = 4e-15


def margin(log_value: ArrayLike) -> FloatArray:
    """Allowed error of a computed logarithm of a probability."""
    log_value = as_floats(log_value)
    return RELATIVE * (1.0 + np.where(np.isfinite(log_value), np.abs(log_value), 0.0))


def up(log_value: ArrayLike) -> FloatArray:
    """The logarithm of an upper bound."""
    return np.minimum(as_floats(log_value) + margin(log_value), 0.0)


def down(log_value: ArrayLike) -> FloatArray:
    """The logarithm of a lower bound."""
    return as_floats(log_value) - margin(log_value)


def number_up(x: float) -> float:
    """x nudged up by a few units in the last place (at least to the smallest positive double)."""
    return math.nextafter(x * (1.0 + ARGUMENT) if x > 0 else x, math.inf) if x != 0.0 else 0.0


def number_down(x: float) -> float:
    """x nudged down by a few units in the last place (of 1 at least: it may be a difference), not below zero."""
    return max(x - ARGUMENT * max(x, 1.0), 0.0) if 0 < x < math.inf else max(x, 0.0)


def total_up(terms: Iterable[tuple[int, float]]) -> float:
    """The sum of times * value, added up exactly and rounded up once; inf when a value is."""
    several = tuple(terms)
    if any(times and math.isinf(value) for times, value in several):
        return math.inf
    exact = sum((times * Fraction(value) for times, value in several if times), Fraction(0))
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)
