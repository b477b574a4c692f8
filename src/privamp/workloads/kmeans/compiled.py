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
    """f(rows, weights, points, half, total): the best centre of every row; its row and weight are added to `total`."""
    from numba import njit  # type: ignore[import-not-found,import-untyped,unused-ignore]

    def kernel(rows: Any, weights: Any, points: Any, half: Any, total: Any) -> None:
        n, d, k = rows.shape[0], rows.shape[1], points.shape[1]
        buffer, most = np.empty((_ROWS, k), rows.dtype), np.empty(_ROWS, rows.dtype)
        chosen = np.empty(_ROWS, np.int32)
        for start in range(0, n, _ROWS):
            size = min(_ROWS, n - start)
            scores = buffer[:size]
            np.dot(rows[start : start + size], points, scores)  # BLAS, called without going through the interpreter
            for i in range(size):
                most[i], chosen[i] = scores[i, 0] - half[0], 0
            for j in range(1, k):  # centre by centre: rows do not wait for one another
                for i in range(size):
                    score = scores[i, j] - half[j]
                    better = score > most[i]
                    chosen[i] = j if better else chosen[i]
                    most[i] = score if better else most[i]
            for i in range(size):
                row, into, w = rows[start + i], total[chosen[i]], weights[start + i]
                for j in range(d):
                    into[j] += w * row[j]
                into[d] += w

    return njit(nogil=True)(kernel)


@cache
def measure() -> Any:
    """f(X, center, factor, squared, total): factor·||x - center||² per row, column sums of the shortened squares."""
    from numba import njit  # type: ignore[import-not-found,import-untyped,unused-ignore]

    def kernel(X: Any, center: Any, factor: float, squared: Any, total: Any) -> None:
        for i in range(X.shape[0]):
            row, s = X[i], 0.0
            for j in range(row.size):
                z = row[j] - center[j]
                s += z * z
            s *= factor
            squared[i] = s
            share = factor if s <= 1.0 else factor / s
            for j in range(row.size):
                z = row[j] - center[j]
                total[j] += share * (z * z)

    return njit(nogil=True, fastmath={"reassoc", "contract"})(kernel)
