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
        uniforms = stream.uniforms((_STARTS, clusters, 2 + int(math.log(clusters))))
        starts = points[_starts(_squared(points, points), counts, uniforms)]
        found = _lloyd(points, counts, starts)
        centres = found[np.argmin(_costs(points, counts, found))]
    return centres, np.asarray(np.argmin(_squared(cells.points, centres), axis=1))


def _few(cells: Cells, clusters: int) -> FloatArray:
    """No more cells than centres: every cell is one, the fullest first, and the first stands for those left over."""
    order = np.argsort(-cells.counts, kind="stable")[:clusters]
    kept = order[cells.are_there[order]]
    chosen = np.full(clusters, order[0])
    chosen[: kept.size] = kept
    return np.asarray(cells.points[chosen])


def _starts(squared: FloatArray, counts: FloatArray, uniforms: FloatArray) -> NDArray[np.intp]:
    """Cells to start at (starts, clusters), from the squared distances between all cells.

    `uniforms` has one number for each start, each of its centres, and each cell tried for that centre.
    """
    starts, clusters, _ = uniforms.shape
    gaps, chosen = np.full((starts, len(counts)), np.inf), np.empty((starts, clusters), dtype=np.intp)
    chances, every = np.broadcast_to(counts, gaps.shape), np.arange(starts)
    for at in range(clusters):
        below = np.cumsum(chances, axis=1)
        wanted = uniforms[:, at] * below[:, -1:]
        found = np.minimum(np.sum(below[:, None] <= wanted[:, :, None], axis=2), len(counts) - 1)
        closer = np.minimum(gaps[:, None], squared[found])
        best = np.argmin(closer @ counts, axis=1)
        chosen[:, at] = found[every, best]
        gaps = closer[every, best]
        chances = counts * gaps
    return chosen


def _lloyd(points: FloatArray, counts: FloatArray, centres: FloatArray) -> FloatArray:
    """The centres (starts, clusters, d) after k-means from each start."""
    labels, numbers = np.full((len(centres), len(points)), -1), np.arange(centres.shape[1])[:, None]
    moving, centres = np.arange(len(centres)), centres.copy()
    for _ in range(_STEPS):
        found = _nearest(points, centres[moving])
        moves = np.any(found != labels[moving], axis=1)
        moving, found = moving[moves], found[moves]
        if not moving.size:
            break
        labels[moving] = found
        mine = np.where(found[:, None] == numbers, counts, 0.0)
        size = np.sum(mine, axis=2, keepdims=True)
        sums = (mine.reshape(-1, len(points)) @ points).reshape(*size.shape[:2], -1)  # one product for all starts
        centres[moving] = np.where(size > 0.0, sums / np.maximum(size, 1e-300), centres[moving])
    return centres


def _nearest(points: FloatArray, centres: FloatArray) -> NDArray[np.intp]:
    """The nearest centre of every point, from each start."""
    flat = centres.reshape(-1, points.shape[1])
    less = np.sum(flat**2, axis=1) - 2.0 * points @ flat.T
    return np.asarray(np.argmin(less.reshape(len(points), len(centres), -1), axis=2).T)


def _costs(points: FloatArray, counts: FloatArray, centres: FloatArray) -> FloatArray:
    """Of each start."""
    return np.asarray(np.sum(counts * np.min(_squared(points, centres), axis=2), axis=1))


def _squared(points: FloatArray, centres: FloatArray) -> FloatArray:
    """Squared distances (…, points, centres)."""
    inner = -2.0 * points @ np.swapaxes(centres, -1, -2) + np.sum(centres**2, axis=-1)[..., None, :]
    return np.asarray(np.maximum(inner + np.sum(points**2, axis=1)[:, None], 0.0))
