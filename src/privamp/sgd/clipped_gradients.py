"""Clipped gradients of linear and logistic regression, summed in whole numbers.

The gradient of both losses is (residual) * x, residual = prediction - target, so clipping it to norm C is clipping the
residual to C/|x|. Scores and gradients are computed column by column with one operation per entry, so that a record's
gradient is a function of that record and the parameters alone, bit for bit. Each entry is rounded toward zero to a
whole number of a small unit, which lengthens nothing, and whole numbers add up exactly. A record with a number that is
not finite, or with another label, adds nothing.
"""

import math
from collections.abc import Callable

import numpy as np

from ..numerics.log_domain import FloatArray
from .descent import ClippedSum, Ints

Link = Callable[[FloatArray], FloatArray]


_MOST = 2.0**53  # whole numbers that doubles hold


def clipped_sum_of(
    features: FloatArray, targets: FloatArray, link: Link, clip: float, expected: float = 1.0
) -> ClippedSum:
    """The sum of clipped gradients of (link(x . parameters) - target) x, for samples of about `expected` copies.

    Entries are whole multiples of the clip times 2^-30 (more for samples beyond two million copies). A sum of more than
    four times the expected copies, all of them in one direction, is clamped, which moves no two sums farther apart.
    """
    columns = np.ascontiguousarray(features.T)
    usable = np.isfinite(targets) & np.isfinite(columns).all(axis=0)
    columns, goals = np.where(usable, columns, 0.0), np.where(usable, targets, 0.0)
    limits = np.where(usable, _limits(columns, clip), 0.0)
    unit = _unit(clip, expected)

    def clipped_sum(parameters: FloatArray, rows: Ints, counts: Ints) -> FloatArray:
        with np.errstate(all="ignore"):  # a warning would leak information about the records
            score = np.zeros(rows.size)
            for column, parameter in zip(columns, parameters, strict=True):
                score += column[rows] * parameter
            residuals = np.nan_to_num(link(score) - goals[rows], nan=0.0)
            kept = np.clip(residuals, -limits[rows], limits[rows])
            sums = [int((counts * np.trunc(column[rows] * kept / unit).astype(np.int64)).sum()) for column in columns]
        return np.array([min(max(float(total), -_MOST), _MOST) * unit for total in sums])

    return clipped_sum


def _limits(columns: FloatArray, clip: float) -> FloatArray:
    """clip/|x| for every record, rounded down; inf for x = 0."""
    length = np.zeros(columns.shape[1])
    with np.errstate(all="ignore"):
        for column in columns:
            length = np.hypot(length, column)  # squares would vanish or overflow
        return np.asarray(clip / length * (1.0 - (columns.shape[0] + 8) * 2.0**-51))


def _unit(clip: float, expected: float) -> float:
    """A power of two near clip 2^-30, such that four times the expected copies add up within the doubles."""
    spare = math.log2(max(expected, 2.0**21)) - 21.0
    return 2.0 ** math.ceil(math.log2(clip) - 30.0 + spare)
