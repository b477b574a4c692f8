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

_WORTH_IT = 1 << 21  # entries of a table from which compiling saves time
_ROWS = 512  # rows whose scores are in the cache at once
_FAR = 2.0**500  # as in ball.py


def is_worth_compiling(table: Any) -> bool:
    """Whether numba is installed and the table is large."""
    return table.size >= _WORTH_IT and has_numba()


@cache
def has_numba() -> bool:
    """Whether the extra `fast` is installed."""
    return importlib.util.find_spec("numba") is not None


@cache
def lloyd_pass() -> Any:
    """f(rows, weights, points, half, room, total, unsure): how many rows are unsure; the others are added to `total`.

    The best point of a row has the largest score. A row whose second score is within `room` of it is unsure; the
    places of such rows are listed in `unsure`.
    """
    from numba import njit  # type: ignore[import-not-found,import-untyped,unused-ignore]

    def kernel(rows: Any, weights: Any, points: Any, half: Any, room: Any, total: Any, unsure: Any) -> int:
        n, d, k = rows.shape[0], rows.shape[1], points.shape[0]
        buffer, most = np.empty(k * _ROWS, rows.dtype), np.empty(_ROWS, rows.dtype)
        second = np.empty(_ROWS, rows.dtype)
        chosen = np.empty(_ROWS, np.int32)
        found = 0
        for start in range(0, n, _ROWS):
            size = min(_ROWS, n - start)
            scores = buffer[: k * size].reshape(k, size)
            np.dot(points, rows[start : start + size].T, scores)  # BLAS, called without going through the interpreter
            for i in range(size):
                most[i], second[i], chosen[i] = scores[0, i] - half[0], -np.inf, 0
            for j in range(1, k):  # point by point: a line of scores at a time, many rows at once
                line, less = scores[j], half[j]
                for i in range(size):
                    score = line[i] - less
                    better = score > most[i]
                    chosen[i] = np.int32(j) if better else chosen[i]
                    next_best = most[i] if better else score
                    second[i] = next_best if next_best > second[i] else second[i]
                    most[i] = score if better else most[i]
            for i in range(size):
                if most[i] - second[i] > room:
                    row, into, w = rows[start + i], total[chosen[i]], weights[start + i]
                    for j in range(d):
                        into[j] += np.trunc(w * np.float64(row[j]))
                    into[d] += w
                else:
                    unsure[found] = start + i
                    found += 1
        return found

    return njit(nogil=True)(kernel)


@cache
def gather() -> Any:
    """f(X, taken, columns, center, inverse, shrink, units, rows): some columns of the taken rows, as in `Ball.unit`.

    They are multiplied with `shrink` and rounded toward zero to multiples of 1/units, a power of two.
    """
    from numba import njit  # type: ignore[import-not-found,import-untyped,unused-ignore]

    def kernel(
        X: Any, taken: Any, columns: Any, center: Any, inverse: float, shrink: Any, units: float, rows: Any
    ) -> None:
        grid = 1.0 / units
        for i in range(taken.size):
            row = X[taken[i]]
            for c in range(columns.size):
                v = (row[columns[c]] - center[columns[c]]) * inverse
                v = min(max(v, -_FAR), _FAR) if v == v else 0.0
                rows[i, c] = np.trunc(v * shrink[i] * units) * grid

    return njit(nogil=True)(kernel)


@cache
def sum_squares() -> Any:
    """f(X, center, squared): ||x - center||² per row, added in eight lanes."""
    from numba import njit  # type: ignore[import-not-found,import-untyped,unused-ignore]

    def kernel(X: Any, center: Any, squared: Any) -> None:
        columns = X.shape[1]
        whole = columns - columns % 8
        for i in range(X.shape[0]):
            row = X[i]
            a = b = c = d = e = f = g = h = 0.0
            for j in range(0, whole, 8):
                at, to = row[j : j + 8], center[j : j + 8]
                a += (at[0] - to[0]) ** 2
                b += (at[1] - to[1]) ** 2
                c += (at[2] - to[2]) ** 2
                d += (at[3] - to[3]) ** 2
                e += (at[4] - to[4]) ** 2
                f += (at[5] - to[5]) ** 2
                g += (at[6] - to[6]) ** 2
                h += (at[7] - to[7]) ** 2
            for j in range(whole, columns):
                a += (row[j] - center[j]) ** 2
            squared[i] = ((a + b) + (c + d)) + ((e + f) + (g + h))

    return njit(nogil=True, fastmath={"contract"})(kernel)


@cache
def add_squares() -> Any:
    """f(X, center, inverse, share, total): adds share·v² per column, rounded down, v as in `Ball.unit`."""
    from numba import njit  # type: ignore[import-not-found,import-untyped,unused-ignore]

    def kernel(X: Any, center: Any, inverse: float, share: Any, total: Any) -> None:
        for i in range(X.shape[0]):
            row, s = X[i], share[i]
            for j in range(row.size):
                v = (row[j] - center[j]) * inverse
                v = min(max(v, -_FAR), _FAR) if v == v else 0.0
                total[j] += np.trunc((v * v) * s)

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
