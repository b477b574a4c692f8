"""Tables of curves that are expensive to evaluate, for calls that need many numbers at once, such as composition.

delta is a convex function of alpha = e^eps for every pair of laws, so between two points of a bound the chord is a
bound as well (numerics/convex_table.py). Fewer numbers than `many` are computed without the table.
"""

from functools import cache

import numpy as np

from ..numerics.convex_table import Table, tabulated
from ..numerics.log_domain import FloatArray, log_expm1
from .profile import Curve, Profile

MANY = 257  # with at least this many numbers at once the table is used
_POINTS = np.concatenate([np.geomspace(1e-4, 0.1, 12), np.linspace(0.15, 4.0, 78), np.geomspace(4.2, 80.0, 40)])
_OFF, _MOST = 2e-4, 3000  # relative, between points; points in all


def tabled_curve(curve: Curve, many: int = MANY) -> Curve:
    """The same bound, very slightly larger between the points of its table."""

    def sampled(epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        return log_expm1(epsilon), curve(epsilon)

    @cache
    def table() -> Table:
        return tabulated(sampled, float(curve(np.zeros(1))[0]), _POINTS, _OFF, _MOST)

    def log_delta(epsilon: FloatArray) -> FloatArray:
        if np.size(epsilon) < many:
            return curve.log_delta(epsilon)
        return table().log_delta(epsilon)

    return Curve(log_delta, curve.largest_loss, curve.is_end_certain)


def tabled(profile: Profile, many: int = MANY) -> Profile:
    """Both directions."""
    forward = tabled_curve(profile.forward, many)
    return Profile(forward, forward if profile.is_symmetric else tabled_curve(profile.backward, many))
