"""Many noisy cells become few centres: weighted k-means of released points, which is post-processing and free.

Centres start by the rule of Arthur and Vassilvitskii (2007): the next one at a cell, with probability in proportion to
its count times its squared distance to the centres so far; of 2 + log k such cells the one that lowers the cost most,
as in scikit-learn. Of several starts the one with the least cost is kept.
"""

import math

import numpy as np
from numpy.typing import NDArray

from ..chance.stream import Stream
from ..numerics.log_domain import FloatArray
from .centres import Cells

_STARTS = 10
_STEPS = 50


def merged(cells: Cells, clusters: int, stream: Stream) -> tuple[FloatArray, NDArray[np.intp]]:
    """Centres (clusters, d), and the centre of every cell; cells that are empty belong to the nearest as well."""
    there = cells.are_there
    points, counts = cells.points[there], cells.counts[there]
    if len(points) <= clusters:
        centres = _few(cells, clusters)
    else:
        squared = _squared(points, points)
        starts = [points[_start(squared, counts, clusters, stream)] for _ in range(_STARTS)]
        found = [_lloyd(points, counts, start) for start in starts]
        centres = min(found, key=lambda one: _cost(points, counts, one))
    return centres, np.asarray(np.argmin(_squared(cells.points, centres), axis=1))


def _few(cells: Cells, clusters: int) -> FloatArray:
    """No more cells than centres: every cell is one, the fullest first, and the first stands for those left over."""
    order = np.argsort(-cells.counts, kind="stable")[:clusters]
    kept = order[cells.are_there[order]]
    chosen = np.full(clusters, order[0])
    chosen[: kept.size] = kept
    return np.asarray(cells.points[chosen])


def _start(squared: FloatArray, counts: FloatArray, clusters: int, stream: Stream) -> list[int]:
    """Cells to start at, from the squared distances between all of them."""
    tried = 2 + int(math.log(clusters))
    chances, gaps, chosen = counts, np.full(len(counts), np.inf), list[int]()
    for uniforms in stream.uniforms((clusters, tried)):
        below = np.cumsum(chances)
        found = np.minimum(np.searchsorted(below, uniforms * below[-1], side="right"), len(counts) - 1)
        closer = np.minimum(gaps, squared[found])
        best = int(np.argmin(closer @ counts))
        chosen.append(int(found[best]))
        gaps = closer[best]
        chances = counts * gaps
    return chosen


def _lloyd(points: FloatArray, counts: FloatArray, centres: FloatArray) -> FloatArray:
    labels, numbers = np.full(len(points), -1), np.arange(len(centres))[:, None]
    for _ in range(_STEPS):
        before, labels = labels, np.argmin(_squared(points, centres), axis=1)
        if np.array_equal(before, labels):
            break
        mine = (labels[None] == numbers) * counts
        size = np.sum(mine, axis=1, keepdims=True)
        centres = np.where(size > 0.0, (mine @ points) / np.maximum(size, 1e-300), centres)
    return centres


def _cost(points: FloatArray, counts: FloatArray, centres: FloatArray) -> float:
    return float(np.sum(counts * np.min(_squared(points, centres), axis=1)))


def _squared(points: FloatArray, centres: FloatArray) -> FloatArray:
    """Squared distances (points, centres)."""
    inner = -2.0 * points @ centres.T + np.sum(centres**2, axis=1)
    return np.asarray(np.maximum(inner + np.sum(points**2, axis=1)[:, None], 0.0))
