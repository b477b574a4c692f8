"""One Lloyd step: every row goes to its nearest centre; weighted sums and counts per centre.

Distances are a matrix product per chunk: the nearest centre has the largest x·c - ||c||²/2. With numba the choice and
the sums are one pass over the product; without it the sums are a product with a sparse table. Products are in the
precision of the rows, sums run in float64 from chunk to chunk. One chunk per thread is in memory.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...numerics.log_domain import FloatArray
from .compiled import choose_and_add, is_worth_compiling
from .threads import Crew

_ROWS = 1024  # rows a chunk: rows and products stay in the cache
_BLOCK = 16 * _ROWS  # rows summed at once without numba


def sums_and_counts(
    rows: NDArray[Any], weights: FloatArray, centres: FloatArray, crew: Crew, *, fast: bool | None = None
) -> tuple[FloatArray, FloatArray]:
    """Weighted sums (k, d) and counts (k,) of the rows (n, d) nearest to each centre."""
    fast = is_worth_compiling(rows) if fast is None else fast
    points = np.ascontiguousarray(centres.T, dtype=rows.dtype)  # (d, k)
    half = (0.5 * np.einsum("ij,ij->i", centres, centres)).astype(rows.dtype)
    one_pass = _fused if fast else _choose_then_add
    k, d = centres.shape

    def part(span: slice) -> FloatArray:
        total = np.zeros((k, d + 1))
        one_pass(rows[span], weights[span], points, half, total)
        return total

    total = np.sum(crew.map(part, crew.spans(len(rows), _BLOCK)), axis=0)
    return np.ascontiguousarray(total[:, :d]), total[:, d].copy()


def _products(rows: NDArray[Any], points: NDArray[Any]) -> Iterator[tuple[slice, NDArray[Any]]]:
    """x·c for chunks of rows, in one buffer."""
    buffer = np.empty((_ROWS, points.shape[1]), dtype=rows.dtype)
    for at in range(0, len(rows), _ROWS):
        chunk = slice(at, min(at + _ROWS, len(rows)))
        yield chunk, np.matmul(rows[chunk], points, out=buffer[: chunk.stop - at])


def _fused(
    rows: NDArray[Any], weights: FloatArray, points: NDArray[Any], half: NDArray[Any], total: FloatArray
) -> None:
    """With numba: choose and add in one pass."""
    for chunk, scores in _products(rows, points):
        choose_and_add()(scores, half, rows[chunk], weights[chunk], total)


def _choose_then_add(
    rows: NDArray[Any], weights: FloatArray, points: NDArray[Any], half: NDArray[Any], total: FloatArray
) -> None:
    """Without numba: the sums are the product with a sparse table, one weight per record in the row of its centre."""
    from scipy.sparse import csc_matrix

    chosen = np.empty(len(rows), dtype=np.intp)
    for chunk, scores in _products(rows, points):
        scores -= half
        np.argmax(scores, axis=1, out=chosen[chunk])
    for at in range(0, len(rows), _BLOCK):
        part, n = slice(at, at + _BLOCK), min(_BLOCK, len(rows) - at)
        table = csc_matrix((weights[part].astype(rows.dtype), chosen[part], np.arange(n + 1)), shape=(len(total), n))
        total[:, :-1] += table @ rows[part]
    total[:, -1] += np.bincount(chosen, weights=weights, minlength=len(total))


def nearest(rows: NDArray[Any], centres: FloatArray) -> NDArray[np.intp]:
    """The index of the nearest centre of every row."""
    half = 0.5 * np.einsum("ij,ij->i", centres, centres)
    return np.asarray(np.argmax(rows @ centres.T - half, axis=1))
