"""Compiled passes over records, with the extra `fast` (numba). The same numbers as the NumPy versions beside their use.

Compiling takes about a second, so small tables do without.
"""

import importlib.util
from functools import cache
from typing import Any

import numpy as np

_WORTH_IT = 1 << 21  # entries of a table from which compiling pays
_ROWS = 512  # rows whose scores are in the cache at once


def is_worth_compiling(table: Any) -> bool:
    """Whether numba is installed and the table is large."""
    return table.size >= _WORTH_IT and has_numba()


@cache
def has_numba() -> bool:
    """Whether the extra `fast` is installed."""
    return importlib.util.find_spec("numba") is not None


@cache
def lloyd_pass() -> Any:
    """f(rows, weights, points, half, total): the best point of every row; its row and weight are added to `total`."""
    from numba import njit  # type: ignore[import-not-found,import-untyped,unused-ignore]

    def kernel(rows: Any, weights: Any, points: Any, half: Any, total: Any) -> None:
        n, d, k = rows.shape[0], rows.shape[1], points.shape[0]
        buffer, most = np.empty(k * _ROWS, rows.dtype), np.empty(_ROWS, rows.dtype)
        chosen = np.empty(_ROWS, np.int32)
        for start in range(0, n, _ROWS):
            size = min(_ROWS, n - start)
            scores = buffer[: k * size].reshape(k, size)
            np.dot(points, rows[start : start + size].T, scores)  # BLAS, called without going through the interpreter
            for i in range(size):
                most[i], chosen[i] = scores[0, i] - half[0], 0
            for j in range(1, k):  # point by point: a line of scores at a time, many rows at once
                line, less = scores[j], half[j]
                for i in range(size):
                    score = line[i] - less
                    better = score > most[i]
                    chosen[i] = np.int32(j) if better else chosen[i]
                    most[i] = score if better else most[i]
            for i in range(size):
                row, into, w = rows[start + i], total[chosen[i]], weights[start + i]
                for j in range(d):
                    into[j] += w * row[j]
                into[d] += w

    return njit(nogil=True)(kernel)


@cache
def gather() -> Any:
    """f(X, taken, columns, center, shrink, rows): (x - center)·shrink in some columns of the taken rows of X."""
    from numba import njit  # type: ignore[import-not-found,import-untyped,unused-ignore]

    def kernel(X: Any, taken: Any, columns: Any, center: Any, shrink: Any, rows: Any) -> None:
        for i in range(taken.size):
            row = X[taken[i]]
            for c in range(columns.size):
                rows[i, c] = (row[columns[c]] - center[columns[c]]) * shrink[i]

    return njit(nogil=True)(kernel)


@cache
def measure() -> Any:
    """f(X, center, plain, up, squared, total): up·||x - center||² per row, and column sums of the shortened squares.

    A row that is longer than 1 by that length, which is rounded up, is shortened to it, so that its squares are at
    most 1 together: plain·z²/max(1, up·||z||²), plain <= up.
    """
    from numba import njit  # type: ignore[import-not-found,import-untyped,unused-ignore]

    def kernel(X: Any, center: Any, plain: float, up: float, squared: Any, total: Any) -> None:
        for i in range(X.shape[0]):
            row, s = X[i], 0.0
            for j in range(row.size):
                z = row[j] - center[j]
                s += z * z
            s *= up
            squared[i] = s
            share = plain / s if s > 1.0 else plain
            for j in range(row.size):
                z = row[j] - center[j]
                total[j] += share * (z * z)

    return njit(nogil=True, fastmath={"reassoc", "contract"})(kernel)


@cache
def measure_single() -> Any:
    """The same about the origin for records in single precision, f(X, plain, up, squared, total).

    Squares are in single precision, a matter of each record alone; what is added up over records is in double.
    """
    from numba import njit  # type: ignore[import-not-found,import-untyped,unused-ignore]

    def kernel(X: Any, plain: float, up: float, squared: Any, total: Any) -> None:
        for i in range(X.shape[0]):
            row, raw = X[i], np.float32(0.0)
            for j in range(row.size):
                raw += row[j] * row[j]
            s = up * raw
            squared[i] = s
            share = plain / s if s > 1.0 else plain
            for j in range(row.size):
                total[j] += share * (row[j] * row[j])

    return njit(nogil=True, fastmath={"reassoc", "contract"})(kernel)


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
