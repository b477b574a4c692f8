"""One Lloyd step: every row goes to its nearest centre; weighted sums and counts per centre.

Distances are a matrix product per chunk: the nearest centre has the largest x·c - ||c||²/2. With numba the product, the
choice and the sums are one compiled pass; without it the sums are a product with a sparse table. Products are in the
precision of the rows, sums run in float64 from chunk to chunk. One chunk per thread is in memory.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...numerics.log_domain import FloatArray
from .compiled import is_worth_compiling, lloyd_pass
from .threads import Crew

_ROWS = 2048  # rows a product: more leave the cache, fewer make threads wait for the interpreter
_BLOCK = 32 * _ROWS  # rows a sum: making a sparse table takes a while
_LEAST = 8 * _ROWS  # rows a thread of a large table, for the same reason


def sums_and_counts(
    rows: NDArray[Any], weights: FloatArray, centres: FloatArray, crew: Crew, *, fast: bool | None = None
) -> tuple[FloatArray, FloatArray]:
    """Weighted sums (k, d) and counts (k,) of the rows (n, d) nearest to each centre."""
    fast = is_worth_compiling(rows) if fast is None else fast
    points = np.ascontiguousarray(centres, dtype=rows.dtype)
    half = (0.5 * np.einsum("ij,ij->i", centres, centres)).astype(rows.dtype)
    one_pass = lloyd_pass() if fast else _choose_then_add
    k, d = centres.shape

    def part(span: slice) -> FloatArray:
        total = np.zeros((k, d + 1))
        one_pass(rows[span], weights[span], points, half, total)
        return total

    spans = crew.spans(len(rows), _ROWS if fast or len(rows) < _BLOCK else _LEAST)
    total = np.sum(crew.map(part, spans), axis=0)
    return np.ascontiguousarray(total[:, :d]), total[:, d].copy()


def _choose_then_add(
    rows: NDArray[Any], weights: FloatArray, points: NDArray[Any], half: NDArray[Any], total: FloatArray
) -> None:
    """Without numba: the sums are the product with a sparse table, one weight per record in the row of its centre."""
    from scipy.sparse import csc_matrix

    k = len(half)
    buffer, halves = np.empty((_ROWS, k), dtype=rows.dtype), np.tile(half, (_ROWS, 1))
    chosen = np.empty(_BLOCK, dtype=np.intp)
    for start in range(0, len(rows), _BLOCK):
        part, w = rows[start : start + _BLOCK], weights[start : start + _BLOCK]
        for at in range(0, len(part), _ROWS):
            some = part[at : at + _ROWS]
            scores = np.matmul(some, points.T, out=buffer[: len(some)])
            scores -= halves[: len(some)]
            np.argmax(scores, axis=1, out=chosen[at : at + len(some)])
        nearest_of = chosen[: len(part)]
        table = csc_matrix((w.astype(rows.dtype), nearest_of, np.arange(len(part) + 1)), shape=(k, len(part)))
        total[:, :-1] += table @ part
        total[:, -1] += np.bincount(nearest_of, weights=w, minlength=k)


def nearest(rows: NDArray[Any], centres: FloatArray) -> NDArray[np.intp]:
    """The index of the nearest centre of every row."""
    half = 0.5 * np.einsum("ij,ij->i", centres, centres)
    return np.asarray(np.argmax(rows @ centres.T - half, axis=1))
