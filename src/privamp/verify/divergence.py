"""The largest integral of [sum_k w[k] density(t - centres[k])]+ over many rows w of weights.

With w = p - e^eps q it is the hockey-stick divergence at eps between two mixtures of shifted noise.

Discrete noise is summed point by point. Continuous noise is integrated over cells by its distribution function:
grouping outcomes into cells is post-processing, so the sum over cells of [integral]+ never exceeds the truth. A cell in
which the sign changes is open: it is split, as long as its row may still be the largest. Centres are edges of cells, so
each density is monotone inside one, and its larger and smaller end bound what an open cell may hold: the largest row is
never discarded. After three splits what is lost is below 1e-11.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..numerics.log_domain import FloatArray, as_floats
from .noise import Noise

_CELLS = 512
_SPLITS = 3
_PIECES = 32
_ROWS = 2048  # of the tables that are integrated at once
_NOISE = 1e-13  # a relative difference of densities that may be rounding


def largest_divergences(noise: Noise, centres: FloatArray, tables: Iterable[FloatArray]) -> FloatArray:
    """The largest integral over the rows of each table of weights (rows, K)."""
    found = _summed(noise, centres, tables) if noise.is_discrete else _integrated(noise, centres, tables)
    return as_floats(found)


def _summed(noise: Noise, centres: FloatArray, tables: Iterable[FloatArray]) -> list[float]:
    points = np.arange(math.floor(centres[0] - noise.reach), math.ceil(centres[-1] + noise.reach) + 1)
    masses = noise.density(points[None, :] - centres[:, None])
    return [float(np.maximum(rows @ masses, 0.0).sum(axis=1).max()) for rows in tables]


def _integrated(noise: Noise, centres: FloatArray, tables: Iterable[FloatArray]) -> list[float]:
    edges = np.union1d(np.linspace(centres[0] - noise.reach, centres[-1] + noise.reach, _CELLS + 1), centres)
    tails, densities = _tails(noise, centres, edges), noise.density(edges - centres[:, None])
    masses = np.concatenate([tails[:1], np.abs(np.diff(tails, axis=0)), tails[-1:]]).T
    found: list[float] = []
    for some in _together(tables):
        rows, starts = np.concatenate(some), np.cumsum([0, *map(len, some[:-1])])
        parts = np.maximum(rows @ masses, 0.0)
        row, cell = np.nonzero(_changes(rows, densities))
        ends = densities.T[cell], densities.T[cell + 1]
        opened = _Open(row, rows[row], edges[cell], edges[cell + 1], parts[row, cell + 1], *ends)
        parts[row, cell + 1] = 0.0  # the first cell has no left end
        found += _largest(noise, centres, parts.sum(axis=1), opened, starts).tolist()
    return found


def _together(tables: Iterable[FloatArray]) -> Iterator[list[FloatArray]]:
    """Tables that are integrated at once: for small ones each step takes longer to call than to compute."""
    some: list[FloatArray] = []
    for rows in tables:
        if some and sum(map(len, some)) + len(rows) > _ROWS:
            yield some
            some = []
        some.append(rows)
    if some:
        yield some


@dataclass(slots=True)
class _Open:
    """Cells in which the sign changes: their rows, weights, ends, integrals (never below 0), and densities there."""

    row: NDArray[np.intp]
    weights: FloatArray
    left: FloatArray
    right: FloatArray
    low: FloatArray
    at_left: FloatArray
    at_right: FloatArray

    def high(self) -> FloatArray:
        """No less than the integral of the positive part over each cell."""
        falls = (self.at_left > self.at_right) == (self.weights > 0.0)
        most = np.sum(self.weights * np.where(falls, self.at_left, self.at_right), axis=1)
        return as_floats(np.maximum((self.right - self.left) * most, self.low))

    def only(self, kept: NDArray[np.bool_]) -> "_Open":
        """Some of the cells."""
        fields = (self.weights, self.left, self.right, self.low, self.at_left, self.at_right)
        return _Open(self.row[kept], *(field[kept] for field in fields))


def _largest(
    noise: Noise, centres: FloatArray, settled: FloatArray, opened: _Open, starts: NDArray[np.intp]
) -> FloatArray:
    """The largest row of each table (they begin at `starts`), its open cells split as long as it may be the largest;
    `settled` is changed."""
    table = np.repeat(np.arange(starts.size), np.diff(starts, append=settled.size))
    for split in range(_SPLITS + 1):
        lower = settled + np.bincount(opened.row, opened.low, settled.size)
        best = np.maximum.reduceat(lower, starts)
        upper = settled + np.bincount(opened.row, opened.high(), settled.size)
        may_be = upper >= best[table]
        opened = opened.only(may_be[opened.row])
        if split == _SPLITS or opened.row.size == 0:
            return as_floats(best)
        settled[~may_be] = 0.0
        opened = _split(noise, centres, settled, opened)
    raise AssertionError("the last split returns")


def _split(noise: Noise, centres: FloatArray, settled: FloatArray, opened: _Open) -> _Open:
    """Each cell in pieces: those without a change of sign are added to `settled`, the others are open."""
    edges = np.linspace(opened.left, opened.right, _PIECES + 1, axis=1)
    masses = np.abs(np.diff(_tails(noise, centres, edges), axis=1))
    parts = np.maximum(np.einsum("cpk,ck->cp", masses, opened.weights), 0.0)
    densities = noise.density(edges[:, :, None] - centres)
    cell, piece = np.nonzero(_changes(opened.weights[:, None], densities.transpose(0, 2, 1))[:, 0])
    pieces = _Open(
        opened.row[cell],
        opened.weights[cell],
        edges[cell, piece],
        edges[cell, piece + 1],
        parts[cell, piece],
        densities[cell, piece],
        densities[cell, piece + 1],
    )
    parts[cell, piece] = 0.0
    settled += np.bincount(opened.row, parts.sum(axis=1), settled.size)
    return pieces


def _changes(weights: FloatArray, densities: FloatArray) -> NDArray[np.bool_]:
    """Between which edges the weighted sum of densities (…, K, edges) is positive at one end and not at the other."""
    positive = weights @ densities > _NOISE * (np.abs(weights) @ densities)
    return np.not_equal(positive[..., 1:], positive[..., :-1])


def _tails(noise: Noise, centres: FloatArray, edges: FloatArray) -> FloatArray:
    """Mass of the noise around each centre beyond each edge, away from the centre: shape (…, edges, K).

    A cell lies on one side of every centre and the noise is symmetric, so its mass is a difference of two tails, which
    keeps its digits far out.
    """
    return noise.below(-np.abs(edges[..., None] - centres))
