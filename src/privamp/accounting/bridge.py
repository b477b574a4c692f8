"""Two upper bounds, one per direction, as one convex curve: its lower hull over all alpha, across alpha = 1.

With f(alpha) = H_alpha(P||Q) for alpha >= 1 and 1 - alpha + alpha H_{1/alpha}(Q||P) below, the truth is convex over
alpha > 0. Bounds of the two directions that were found apart need not meet at 1, or may be so steep on both sides of
it that no two probabilities have them: their composition would be worthless. The lower convex hull of all points is a
bound, too. A chord is a sum of positive terms whose weights come from differences of grid indices, so it is right to a
few units in its own last place, however far apart its two ends are, and is rounded up by more than that.
"""

import numpy as np
from numpy.typing import NDArray

from ..numerics.log_domain import FloatArray, as_floats

Ints = NDArray[np.int64]
Points = tuple[Ints, FloatArray]  # grid indices from 0 on, and delta there, never rising
_SPAN = 30.0  # losses beyond it stay as they are
_UP = 2.0**-46  # relative, of a chord


def bridged(own: Points, other: Points, interval: float) -> tuple[Points, Points]:
    """Both directions' values, lowered to the hull where that is below them."""
    near, back = (points[0] * interval <= _SPAN for points in (own, other))
    left = np.exp(-other[0][back] * interval)
    mirrored = (1.0 - left + left * other[1][back]) * (1.0 + _UP)
    at = np.concatenate([-other[0][back][:0:-1], own[0][near]])
    values = np.concatenate([mirrored[:0:-1], own[1][near]])
    values[left.size - 1] = min(own[1][0], other[1][0])
    hull = lower_hull(at, values, interval)
    after = own[1].copy()
    after[near] = np.minimum(after[near], hull[left.size - 1 :])
    before = other[1].copy()
    lowered = (hull[: left.size][::-1] - (1.0 - left)) / left + 4e-16 / left
    before[back] = np.minimum(before[back], np.maximum(lowered, 0.0))
    return (own[0], np.minimum.accumulate(after)), (other[0], np.minimum.accumulate(before))


def lower_hull(at: Ints, values: FloatArray, interval: float) -> FloatArray:
    """The largest convex function of alpha = e^(at interval) below the points, at the points, rounded up.

    Above the (convex) truth if the points are: so is every chord, whichever points it connects.
    """
    alpha, kept = np.exp(at * interval), np.arange(values.size)
    while kept.size > 2:  # a point on or above the chord of any two others is no corner of the hull
        run, rise = np.diff(alpha[kept]), np.diff(values[kept])
        is_corner = np.concatenate([[True], rise[:-1] * run[1:] < rise[1:] * run[:-1], [True]])
        if np.all(is_corner):
            break
        kept = kept[is_corner]
    return _chords(at, values, kept, interval)


def _chords(at: Ints, values: FloatArray, kept: Ints, interval: float) -> FloatArray:
    """The chords between the points that were kept, each rounded up; those points as they are."""
    if kept.size < 2:
        return values.copy()
    after = np.clip(np.searchsorted(kept, np.arange(at.size)), 1, kept.size - 1)
    first, last = kept[after - 1], kept[after]
    whole, done, left = (as_floats(d * interval) for d in (at[last] - at[first], at - at[first], at[last] - at))
    share_of_first = np.expm1(-left) / np.expm1(-whole)  # (alpha_last - alpha)/(alpha_last - alpha_first)
    share_of_last = np.exp(-left) * (np.expm1(-done) / np.expm1(-whole))
    chord = (values[first] * share_of_first + values[last] * share_of_last) * (1.0 + _UP)
    chord[kept] = values[kept]
    return as_floats(chord)
