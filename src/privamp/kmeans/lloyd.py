"""One Lloyd step: every row goes to its nearest centre; weighted sums and counts per centre.

Scores are a matrix product per chunk in single precision; rows that it does not decide are decided again
(nearest.py). Rows are multiples of 2^-24, what a record adds is rounded toward zero to a multiple of 2^-bits, and all
sums are exact (exact.py). So a step is the same to the last bit with numba and without, with any number of threads,
in any order of the records.
"""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..numerics.log_domain import FloatArray
from . import exact
from .compiled import is_worth_compiling, lloyd_pass
from .lanes import padded
from .nearest import decided, halves, largest_norm, nearest, room
from .threads import ThreadPool

_ROWS = 4096  # rows a product: more leave the cache, fewer make threads wait for the interpreter
_ADDED = 8192  # rows a sparse table
_LEAST = 4 * _ROWS  # rows a thread of a large table, because making a sparse table takes a while

Single = NDArray[np.float32]


def sums_and_counts(
    rows: Single, weights: FloatArray, centres: FloatArray, pool: ThreadPool, *, bits: int, fast: bool | None = None
) -> tuple[FloatArray, FloatArray]:
    """Weighted sums (k, d) and counts (k,) of the rows (n, d) nearest to each centre, in multiples of 2^-bits.

    The rows must be in the unit ball and on the grid of `exact.ROW_BITS`, and `bits` at most `exact.bits_for`.
    """
    return in_reals(exact.total(unit_totals(rows, weights, centres, pool, bits=bits, fast=fast)), bits)


def in_reals(whole: FloatArray, bits: int) -> tuple[FloatArray, FloatArray]:
    """Sums and counts of totals (k, d + 1) in units."""
    reals = whole / math.ldexp(1.0, bits)
    return np.ascontiguousarray(reals[:, :-1]), reals[:, -1].copy()


def unit_totals(
    rows: Single, weights: FloatArray, centres: FloatArray, pool: ThreadPool, *, bits: int, fast: bool | None = None
) -> list[FloatArray]:
    """Sums and counts (k, d + 1) in units of 2^-bits, block by block: whole numbers, to be added as such."""
    fast = is_worth_compiling(rows) if fast is None else fast
    k, d = centres.shape
    own = _without_twins(centres)
    points = np.ascontiguousarray(centres[own])
    step = _Compiled(points) if fast else _Plain(points)
    scale = math.ldexp(1.0, bits)

    def part(span: slice) -> tuple[list[FloatArray], list[NDArray[np.intp]]]:
        totals, left = [], []
        for block in exact.blocks(span):
            total: FloatArray = np.zeros((len(points), d + 1))
            left.append(step(rows[block], np.floor(weights[block] * scale), total) + block.start)
            totals.append(total)
        return totals, left

    spans = pool.spans(len(rows), _ROWS if fast or len(rows) < exact.BLOCK else _LEAST)
    parts = pool.map(part, spans)
    found = [np.zeros((len(points), d + 1)), *(total for totals, _ in parts for total in totals)]
    for some in _pieces([places for _, left in parts for places in left]):
        step.decide(rows[some], np.floor(weights[some] * scale), found[0])
        found.insert(0, np.zeros((len(points), d + 1)))
    every = np.zeros((len(found), k, d + 1))
    every[:, own] = found
    return list(every)


def _pieces(places: list[NDArray[np.intp]]) -> Iterator[NDArray[np.intp]]:
    """Places of rows that were left open, so many that their contributions add up exactly in float64."""
    every = np.concatenate([np.empty(0, dtype=np.intp), *places])
    return (every[at : at + exact.BLOCK] for at in range(0, len(every), exact.BLOCK))


def _without_twins(centres: FloatArray) -> NDArray[np.intp]:
    """The first of equal centres: no record is assigned to the others."""
    _, first = np.unique(centres, axis=0, return_index=True)
    return np.sort(first)


class _Plain:
    """Adds rows and whole weights to the totals of their nearest points, in units."""

    def __init__(self, points: FloatArray) -> None:
        d = points.shape[1]
        self.points, self.half = points, halves(points)
        self.room = np.float32(room(d, largest_norm(self.half, d), 1.0, np.float32))

    def __call__(self, rows: Single, weights: FloatArray, total: FloatArray) -> NDArray[np.intp]:
        """Returns the places of rows that are left open: none."""
        chosen = np.empty(len(rows), dtype=np.intp)
        single, half = self.points.astype(np.float32), self.half.astype(np.float32)[:, None]
        for at in range(0, len(rows), _ROWS):
            some = rows[at : at + _ROWS]
            scores = np.matmul(single, some.T)
            scores -= half
            best, is_sure = decided(scores, self.room)
            unsure = np.flatnonzero(~is_sure)
            best[unsure] = nearest(some[unsure], self.points, half=self.half)
            chosen[at : at + len(some)] = best
        self.add(rows, weights, chosen, total)
        return np.empty(0, dtype=np.intp)

    def decide(self, rows: Single, weights: FloatArray, total: FloatArray) -> None:
        """The same for rows that were left open."""
        self.add(rows, weights, nearest(rows, self.points, half=self.half), total)

    def add(self, rows: Single, weights: FloatArray, chosen: NDArray[np.intp], total: FloatArray) -> None:
        """The sums are the product with a sparse table, a one per record in the row of its point."""
        from scipy.sparse import csc_matrix

        k = len(self.points)
        for at in range(0, len(rows), _ADDED):
            some = slice(at, at + _ADDED)
            part, w, mine = rows[some], weights[some], chosen[some]
            units, scale = _units(part, w)
            table = csc_matrix((np.ones(len(part)), mine, np.arange(len(part) + 1)), shape=(k, len(part)))
            total[:, :-1] += (table @ units) * scale
            total[:, -1] += np.bincount(mine, weights=w, minlength=k)


def _units(rows: Single, weights: FloatArray) -> tuple[FloatArray, float]:
    """What every record adds is the first times the second; with one large power of two there is nothing to round."""
    units, first = rows.astype(np.float64), float(weights[0])
    if first >= 2.0**exact.ROW_BITS and math.frexp(first)[0] == 0.5 and np.all(weights == first):
        return units, first
    units *= weights[:, None]
    return np.trunc(units, out=units), 1.0


class _Compiled(_Plain):
    """The same in one compiled pass, which leaves some rows open."""

    def __init__(self, points: FloatArray) -> None:
        super().__init__(points)
        self.padded = padded(points, self.half)

    def __call__(self, rows: Single, weights: FloatArray, total: FloatArray) -> NDArray[np.intp]:
        unsure = np.empty(len(rows), dtype=np.intp)
        return unsure[: lloyd_pass()(rows, weights, *self.padded, self.room, total, unsure)]
