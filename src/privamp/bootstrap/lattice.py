"""Records as whole numbers, whose sums and sums of products are exact in any order.

A value in [L, U] becomes u, the whole number nearest to 2^26 (x - c)/h, with c the middle and h half the width of the
bounds: |u| <= 2^26, a function of that record and the bounds alone. A value beyond the bounds is clipped to them; an
entry that is not a number counts as the middle, u = 0.

Resamples have at most 2^26 entries. A sum of u stays within 2^52, and with u = 2^13 a + b, |a| <= 2^13, 0 <= b < 2^13
so do the sums of a a', a b' and b b': whole numbers that doubles hold exactly, whichever way a matrix product adds them
up. The result is combined from those as Python integers, and rounded three times at the very end, by less than
2^-50 of the largest value it can have. `rounded` adds that, for both neighbours, to a sensitivity.
"""

from fractions import Fraction
from typing import Any

import numpy as np

from ..numerics.entries import column_of
from ..numerics.log_domain import FloatArray

UNIT = 2.0**26  # whole numbers in half the width of the bounds
_HALF = 2.0**13


def whole(values: Any, bounds: tuple[float, float], what: str = "values") -> FloatArray:
    """One whole number per record, as doubles."""
    low, high = bounds
    x = np.clip(column_of(values, what), low, high)
    scaled = np.clip((x - (0.5 * low + 0.5 * high)) / (0.5 * high - 0.5 * low), -1.0, 1.0)
    return np.where(np.isnan(scaled), 0.0, np.rint(scaled * UNIT)) + 0.0


def total(rows: FloatArray, counts: FloatArray) -> int:
    """The sum of a column, row i `counts[i]` times."""
    return int(counts @ rows)


def products(left: FloatArray, right: FloatArray, counts: FloatArray) -> Any:
    """The sums of products of two columns, or of every two columns of two tables: Python integers."""
    (a, b), (c, d) = _split(left), _split(right)
    parts = [np.asarray((one.T * counts) @ other) for one, other in ((a, c), (a, d), (b, c), (b, d))]
    whole_parts = [part.astype(np.int64).astype(object) for part in parts]
    return (whole_parts[0] << 26) + ((whole_parts[1] + whole_parts[2]) << 13) + whole_parts[3]


def _split(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    upper = np.floor(rows / _HALF)
    return upper, rows - _HALF * upper


def real(value: Any) -> float:
    """A whole number, or a quotient of two, as a double: rounded once."""
    return float(Fraction(value))


def rounded(sensitivity: float, size: int) -> float:
    """The sensitivity of a statistic of `size` entries, and what rounding both neighbours may add to it.

    A statistic is at most `size` times its sensitivity (l2, from the middle), and rounded by less than 2^-50 of it.
    """
    return sensitivity * (1.0 + size * 2.0**-49)
