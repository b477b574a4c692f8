"""Two upper bounds, one per direction, as one convex curve: its lower hull over all alpha, across alpha = 1.

With f(alpha) = H_alpha(P||Q) for alpha >= 1 and 1 - alpha + alpha H_{1/alpha}(Q||P) below, the truth is convex over
alpha > 0. Bounds of the two directions that were found apart need not meet at 1, or may be so steep on both sides of
it that no two probabilities have them: their composition would be worthless. The lower convex hull of all points is a
bound, too.
"""

import numpy as np
from numpy.typing import NDArray

from ..numerics.log_domain import FloatArray, as_floats

Ints = NDArray[np.int64]
Points = tuple[Ints, FloatArray]  # grid indices from 0 on, and delta there, never rising
_SPAN = 30.0  # losses beyond it stay as they are
_UP = 1e-13  # relative, of a chord


def bridged(own: Points, other: Points, interval: float) -> tuple[Points, Points]:
    """Both directions' values, lowered to the hull where that is below them."""
    near, back = (points[0] * interval <= _SPAN for points in (own, other))
    right, left = np.exp(own[0][near] * interval), np.exp(-other[0][back] * interval)
    mirrored = 1.0 - left + left * other[1][back]
    alpha = np.concatenate([left[:0:-1], right])
    values = np.concatenate([mirrored[:0:-1], own[1][near]])
    values[left.size - 1] = min(own[1][0], other[1][0])
    hull = lower_hull(alpha, values) * (1.0 + _UP)
    after = own[1].copy()
    after[near] = np.minimum(after[near], hull[left.size - 1 :])
    before = other[1].copy()
    lowered = (hull[: left.size][::-1] - (1.0 - left)) / left + 4e-16 / left
    before[back] = np.minimum(before[back], np.maximum(lowered, 0.0))
    return (own[0], np.minimum.accumulate(after)), (other[0], np.minimum.accumulate(before))


def lower_hull(alpha: FloatArray, values: FloatArray) -> FloatArray:
    """The largest convex function below the points, at the points: above the (convex) truth if they are."""
    points, kept = list(zip(alpha.tolist(), values.tolist(), strict=True)), [0]
    for i in range(1, values.size):
        while len(kept) >= 2:
            (xa, ya), (xb, yb), (xi, yi) = points[kept[-2]], points[kept[-1]], points[i]
            if (yb - ya) * (xi - xb) < (yi - yb) * (xb - xa):
                break
            kept.pop()
        kept.append(i)
    return as_floats(np.interp(alpha, alpha[kept], values[kept]))
