"""Compiled passes over records, with the extra `fast` (numba). The same numbers as the NumPy versions beside their use.

Every number that leaves a pass is the same to the last bit: operations that work entry by entry, exact sums of whole
numbers (exact.py), and decisions with a margin that are made again elsewhere where the margin does not suffice. No pass
is compiled with permission to change formulas; "contract" lets a product and a sum be rounded once instead of twice,
and is given only where the margin covers both. So the choice reveals nothing. Small tables use NumPy, because compiling
takes a second.
"""

import importlib.util
from functools import cache
from typing import Any

import numpy as np

from .lanes import decided, padded_width, squared_distance, tile, tile_rows, whole_part

_WORTH_IT = 1 << 21  # entries of a table from which compiling saves time
_ROWS = 32  # measured together
FAR = 2.0**500  # radii: entries beyond are clipped
NEAR = 2.0**-300  # radii: shorter lengths are rounded up to this
DROPPED = (1 << 22) - 1  # of the 52 bits of a length
SQUARE_UNITS = 2.0**20  # of a squared coordinate in the unit ball


def is_worth_compiling(table: Any) -> bool:
    """Whether numba is installed and the table is large."""
    return table.size >= _WORTH_IT and has_numba()


@cache
def has_numba() -> bool:
    """Whether the extra `fast` is installed."""
    return importlib.util.find_spec("numba") is not None


@cache
def lloyd_pass() -> Any:
    """f(rows, weights, points, less, room, total, unsure): how many rows are unsure; the others are added to `total`.

    `points` and `less` are as in `lanes.padded`. The best point of a row has the largest score. A row with another
    score within `room` of it is unsure; the places of such rows are listed in `unsure`.
    """
    from numba import njit  # type: ignore[import-not-found,import-untyped,unused-ignore]

    height, width = tile_rows(), padded_width()
    several, one, best_of, whole = tile(height), tile(1), decided(), whole_part()

    def kernel(rows: Any, weights: Any, points: Any, less: Any, room: Any, total: Any, unsure: Any) -> int:
        n, d = rows.shape
        scores = np.empty((height, less.size), np.float32)
        found = 0
        for start in range(0, n, height):
            size = min(height, n - start)
            for at in range(0, less.size, width):
                if size == height:
                    several(rows, start, points, at, scores)
                else:
                    for r in range(size):
                        one(rows, start + r, points, at, scores[r:])
            for r in range(size):
                best, i = best_of(scores, r, less, room), start + r
                if best >= 0:
                    row, into, w = rows[i], total[best], weights[i]
                    for j in range(d):
                        into[j] += whole(w * np.float64(row[j]))
                    into[d] += w
                else:
                    unsure[found] = i
                    found += 1
        return found

    return njit(nogil=True)(kernel)


@cache
def gather() -> Any:
    """f(X, taken, columns, center, inverse, shrink, units, rows): some columns of the taken rows, as in `Ball.unit`.

    They are multiplied with `shrink` and rounded toward zero to multiples of 1/units, a power of two.
    """
    from numba import njit  # type: ignore[import-not-found,import-untyped,unused-ignore]

    whole = whole_part()

    def kernel(
        X: Any, taken: Any, columns: Any, center: Any, inverse: float, shrink: Any, units: float, rows: Any
    ) -> None:
        grid = 1.0 / units
        picked, to = np.empty(columns.size, X.dtype), center[columns]
        are_all = columns.size == X.shape[1] and np.all(columns == np.arange(X.shape[1]))
        for i in range(taken.size):
            row, less = X[taken[i]], shrink[i]
            if not are_all:
                for c in range(columns.size):
                    picked[c] = row[columns[c]]
                row = picked
            for c in range(columns.size):
                v = (row[c] - to[c]) * inverse
                v = v if v == v else 0.0
                v = -FAR if v < -FAR else v
                v = FAR if v > FAR else v
                rows[i, c] = whole(v * less * units) * grid

    return njit(nogil=True)(kernel)


@cache
def measure() -> Any:
    """f(X, center, inverse, off, lengths, total, unsure): how many rows are unsure.

    The others get their lengths, and add their squares to `total` if it has any entries; see `lengths` and `squares` in
    ball.py. The places of unsure rows are listed in `unsure`.
    """
    from numba import njit  # type: ignore[import-not-found,import-untyped,unused-ignore]

    whole, squared = whole_part(), squared_distance()

    def kernel(X: Any, center: Any, inverse: float, off: float, lengths: Any, total: Any, unsure: Any) -> int:
        n, found = X.shape[0], 0
        quick, low = np.empty(_ROWS), np.empty(_ROWS)
        every_bits, low_bits = lengths.view(np.int64), low.view(np.int64)
        for start in range(0, n, _ROWS):  # rows that stay in the cache, in short loops that use vectors
            size = min(_ROWS, n - start)
            high, high_bits = lengths[start : start + size], every_bits[start : start + size]
            for i in range(size):
                quick[i] = np.sqrt(squared(X, start + i, center)) * inverse
            for i in range(size):
                one, other = quick[i] * (1.0 + off), quick[i] * (1.0 - off)
                high[i], low[i] = one if one > NEAR else NEAR, other if other > NEAR else NEAR
            for i in range(size):
                high_bits[i] = (high_bits[i] + DROPPED) & ~DROPPED
                low_bits[i] = (low_bits[i] + DROPPED) & ~DROPPED
            for i in range(size):
                beyond = high[i] if high[i] > 1.0 else 1.0
                is_sure = quick[i] < 0.5 * FAR and high_bits[i] == low_bits[i]
                quick[i] = SQUARE_UNITS / (beyond * beyond) if is_sure else 0.0
            for i in range(size):
                row, share = X[start + i], quick[i]
                if share > 0.0:
                    for j in range(total.size):
                        v = (row[j] - center[j]) * inverse
                        total[j] += whole((v * v) * share)
                else:
                    unsure[found] = start + i
                    found += 1
        return found

    return njit(nogil=True)(kernel)


@cache
def count_octaves() -> Any:
    """f(lengths, first, counts): in which octave, up to 1, the square of each length is, by its bits."""
    from numba import njit  # type: ignore[import-not-found,import-untyped,unused-ignore]

    def kernel(lengths: Any, first: int, counts: Any) -> None:
        square = np.empty(1)
        bits = square.view(np.int64)
        last = counts.size - 1
        for i in range(lengths.size):
            capped = min(lengths[i], 1.0)
            square[0] = capped * capped
            counts[min(max(((bits[0] - 1) >> 52) - first, 0), last)] += 1.0

    return njit(nogil=True)(kernel)
