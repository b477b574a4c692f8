"""Sums of rows in whole numbers of a grid: exact, so the same in any order, batch, partition or number of threads.

A row is rounded *toward zero* to multiples of a grid, a power of two, which shortens it in every norm. Whole numbers
are then added up without any rounding, however many there are.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .log_domain import FloatArray
from .row_norms import clipped, clipped_columns

Whole = NDArray[np.int64]
TOP = 2.0**62  # one entry never leaves int64, whatever the weight
_DOWN = 1.0 - 2.0**-50  # covers the rounding of a product
_HALF = 31  # bits
_ROWS = 2**30  # whose halves are added up at once


def toward_zero(rows: FloatArray, grid: float, weights: FloatArray | None = None) -> Whole:
    """weights * rows / grid, each entry rounded toward zero; never longer than in exact arithmetic."""
    with np.errstate(all="ignore"):
        if weights is None or np.all(weights == 1.0):
            units = rows * (1.0 / grid)  # a power of two: the same as dividing
        else:
            down = np.where(weights == 1.0, 1.0, weights * _DOWN) / grid
            units = rows * (down if rows.ndim == 1 else down.reshape(-1, *[1] * (rows.ndim - 1)))
        np.clip(units, -TOP, TOP, out=units)
    return units.astype(np.int64)  # a cast rounds toward zero


def clipped_total(
    rows: ArrayLike, radius: float, p: float, grid: float, weights: FloatArray, counts: NDArray[np.int64]
) -> Whole:
    """The sum of rows, each shortened to p-norm `radius`, weighted, rounded toward zero and counted `counts` times.

    In units of the grid, for one row per record; modulo 2^64. Some rows at a time, so that they stay in cache.
    """
    x = np.asarray(rows)
    if x.ndim == 1:
        return np.asarray(np.sum(toward_zero(clipped(x, radius, p), grid, weights) * counts, dtype=np.int64))
    total: Whole = np.zeros(x.shape[1], dtype=np.int64)
    for at, columns in clipped_columns(x, radius, p):
        units = toward_zero(columns.T, grid, weights[at])
        units *= counts[at, None]
        total += np.sum(units, axis=0, dtype=np.int64)
    return total


def sum_grid(noise: float, bound: float) -> float:
    """A power of two so small that rounding 2^32 records changes a sum by a millionth of the noise, or 2^-40 of a
    record's bound.

    Either way 22 bits are left for weights; an entry beyond them is cut.
    """
    return 2.0 ** max(math.floor(math.log2(noise)) - 52, math.ceil(math.log2(bound)) - 40, -1000)


def exact_total(units: Whole, counts: NDArray[np.int64]) -> NDArray[Any]:
    """The sum over the first axis, each row counted `times` times, as Python integers."""
    total = np.zeros(units.shape[1:], dtype=object)
    for bit in range(max(int(counts.max(initial=0)).bit_length(), 0)):
        mine = units if np.all(counts == 1) else units[(counts >> bit) & 1 == 1]
        for start in range(0, len(mine), _ROWS):
            part = mine[start : start + _ROWS]
            high = np.sum(part >> _HALF, axis=0, dtype=np.int64).astype(object)
            low = np.sum(part & ((1 << _HALF) - 1), axis=0, dtype=np.int64).astype(object)
            total = total + (high * 2**_HALF + low) * 2**bit
    return np.asarray(total, dtype=object)


def whole_clipped(rows: FloatArray, radius: float, p: float) -> FloatArray:
    """Rows of whole numbers, shortened to norm `radius` and whole again; a row no longer than it stays as it is.

    Norms are compared as whole numbers, so a row exactly at the radius is not touched.
    """
    x = np.trunc(clipped(rows.reshape(-1), math.floor(radius)).reshape(rows.shape))
    if x.ndim == 1:
        return x
    power, most = (1, math.floor(radius)) if p == 1.0 else (2, math.floor(Fraction(radius) ** 2))
    whole = np.abs(x).astype(np.int64)
    fits = max(x.shape[1], 1) * int(radius) ** power < 2**62
    long = np.sum((whole if fits else whole.astype(object)) ** power, axis=1) > most
    short = np.trunc(clipped(x, radius, p))
    return np.where(np.asarray(long, dtype=np.bool_)[:, None], short, x)
