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

from .lanes import decided, fetched, padded_width, squares, tile, tile_rows, whole_part

_WORTH_IT = 1 << 21  # entries of a table from which compiling saves time
_ROWS = 32  # measured together
_FETCHED = 8  # rows taken ahead
_COUNTERS = 4  # of each kind: adding to the same one twice in a row takes a while
FAR = 2.0**500  # radii: entries beyond are clipped
NEAR = 2.0**-300  # radii: shorter lengths are rounded up to this
DROPPED = (1 << 22) - 1  # of the 52 bits of a length
SQUARE_UNITS = 2.0**20  # of a squared coordinate in the unit ball
UNIT = 2.0**10  # of which that is the square


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

    whole, fetch = whole_part(), fetched()

    def kernel(
        X: Any, taken: Any, columns: Any, center: Any, inverse: float, shrink: Any, units: float, rows: Any
    ) -> None:
        grid = 1.0 / units
        picked, to = np.empty(columns.size, X.dtype), center[columns]
        are_all = columns.size == X.shape[1] and np.all(columns == np.arange(X.shape[1]))
        for i in range(taken.size):
            if i + _FETCHED < taken.size:
                fetch(X, taken[i + _FETCHED])
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

    whole, width = whole_part(), padded_width()
    several, one = squares(_ROWS), squares(1)

    def kernel(X: Any, center: Any, inverse: float, off: float, lengths: Any, total: Any, unsure: Any) -> int:
        n, found, factor = X.shape[0], 0, inverse * UNIT
        quick, low, parts = np.empty(_ROWS), np.empty(_ROWS), np.empty((_ROWS, width))
        part = np.empty(X.shape[1])
        every_bits, low_bits = lengths.view(np.int64), low.view(np.int64)
        for start in range(0, n, _ROWS):  # rows that stay in the cache, in short loops that use vectors
            size = min(_ROWS, n - start)
            high, high_bits = lengths[start : start + size], every_bits[start : start + size]
            part[:] = 0.0
            if size == _ROWS:
                several(X, start, center, factor, parts, quick, part)
            else:
                for i in range(size):
                    one(X, start + i, center, factor, parts, quick[i:], part)
            for i in range(size):
                quick[i] = np.sqrt(quick[i]) * (1.0 / UNIT)
                up, down = quick[i] * (1.0 + off), quick[i] * (1.0 - off)
                high[i], low[i] = up if up > NEAR else NEAR, down if down > NEAR else NEAR
            for i in range(size):
                high_bits[i] = (high_bits[i] + DROPPED) & ~DROPPED
                low_bits[i] = (low_bits[i] + DROPPED) & ~DROPPED
            inside = 0
            for i in range(size):
                inside += quick[i] <= 1.0 and high_bits[i] == low_bits[i] and high[i] <= 1.0  # quick may be NaN
            if inside == size:
                for j in range(total.size):
                    total[j] += part[j]
                continue
            for i in range(size):
                if not (quick[i] < 0.5 * FAR and high_bits[i] == low_bits[i]):
                    unsure[found] = start + i
                    found += 1
                    continue
                row, beyond = X[start + i], high[i] if high[i] > 1.0 else 1.0
                share = SQUARE_UNITS / (beyond * beyond)
                for j in range(total.size):
                    v = (row[j] - center[j]) * inverse
                    total[j] += whole((v * v) * share)
        return found

    return njit(nogil=True)(kernel)


@cache
def count_octaves() -> Any:
    """f(lengths, first, counts): in which octave, up to 1, the square of each length is, by its bits."""
    from numba import njit  # type: ignore[import-not-found,import-untyped,unused-ignore]

    def kernel(lengths: Any, first: int, counts: Any) -> None:
        squares, last = np.empty(_ROWS), counts.size - 1
        bits, several = squares.view(np.int64), np.zeros((_COUNTERS, counts.size))
        for start in range(0, lengths.size, _ROWS):
            size = min(_ROWS, lengths.size - start)
            for i in range(size):
                capped = min(lengths[start + i], 1.0)
                squares[i] = capped * capped
            for i in range(size):
                bits[i] = min(max(((bits[i] - 1) >> 52) - first, 0), last)
            for i in range(size):
                several[i % _COUNTERS, bits[i]] += 1.0
        for c in range(_COUNTERS):
            for j in range(counts.size):
                counts[j] += several[c, j]

    return njit(nogil=True)(kernel)
