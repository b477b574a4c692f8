"""Compiled passes over records, with the extra `fast` (numba). The same numbers as the NumPy versions beside their use.

Compiling takes about a second, so small tables do without.
"""

import importlib.util
from functools import cache
from typing import Any

_WORTH_IT = 1 << 21  # entries of a table from which compiling pays


def is_worth_compiling(table: Any) -> bool:
    """Whether numba is installed and the table is large."""
    return table.size >= _WORTH_IT and has_numba()


@cache
def has_numba() -> bool:
    """Whether the extra `fast` is installed."""
    return importlib.util.find_spec("numba") is not None


@cache
def choose_and_add() -> Any:
    """f(scores, half, rows, weights, total): the best centre of every row; its row and weight are added to `total`."""
    from numba import njit  # type: ignore[import-not-found,import-untyped,unused-ignore]

    def kernel(scores: Any, half: Any, rows: Any, weights: Any, total: Any) -> None:
        k, d = scores.shape[1], rows.shape[1]
        for i in range(scores.shape[0]):
            best, chosen = scores[i, 0] - half[0], 0
            for j in range(1, k):
                score = scores[i, j] - half[j]
                if score > best:
                    best, chosen = score, j
            w = weights[i]
            for j in range(d):
                total[chosen, j] += w * rows[i, j]
            total[chosen, d] += w

    return njit(nogil=True)(kernel)


@cache
def measure() -> Any:
    """f(X, center, factor, squared, total): factor·||x - center||² per row, column sums of the shortened squares."""
    from numba import njit  # type: ignore[import-not-found,import-untyped,unused-ignore]

    def kernel(X: Any, center: Any, factor: float, squared: Any, total: Any) -> None:
        d = X.shape[1]
        for i in range(X.shape[0]):
            s = 0.0
            for j in range(d):
                z = X[i, j] - center[j]
                s += z * z
            s *= factor
            squared[i] = s
            share = factor if s <= 1.0 else factor / s
            for j in range(d):
                z = X[i, j] - center[j]
                total[j] += share * z * z

    return njit(nogil=True, fastmath={"reassoc", "contract"})(kernel)
