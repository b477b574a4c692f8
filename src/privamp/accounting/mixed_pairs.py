"""Pairs of a family that need not be followed, because a mixture of other pairs of it dominates them.

If H_alpha(c) <= sum_j w_j H_alpha(j) for all alpha >= 0, weights w adding up to 1, then E_c[V] <= sum_j w_j E_j[V] for
every convex V with V(0) = 0, at most the largest of the E_j[V]: c never decides the maximum. A linear program finds
the weights at some alpha; what it found is then checked at every point of the grid, between which all curves are
straight, and what is lacking there, v, is added to the infinite losses of all pairs: H_alpha(c) <= v + the mixture is
enough then. Proof: docs/designs/rounds.md.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..numerics.log_domain import FloatArray, as_floats
from .bridge import Ints
from .discretize import discounted
from .far_losses import Step

_LACKING = 2e-14  # so much of v is worth one pair less
_POINTS = 60  # of the linear program, on either side of alpha = 1
_MARGIN = 1e-9  # relative, at those points
_ROUNDING = 4e-16  # of a sum of curves, absolutely


def without_mixtures(steps: Sequence[Step], interval: float) -> list[Step]:
    """The family without pairs that mixtures of the rest dominate, looked at in the order given."""
    curves = _all_curves(steps, interval)
    some = _some_points(curves.shape[1])
    kept, lacking = list(range(len(steps))), 0.0
    for i in range(len(steps)):
        rest = [j for j in kept if j != i]
        weights = _weights(curves[i, some], curves[rest][:, some]) if rest else None
        if weights is None:
            continue
        gap = max(float(np.max(curves[i] - weights @ curves[rest])), 0.0) + _ROUNDING
        if gap <= _LACKING:
            kept, lacking = rest, lacking + gap  # the rest may lose pairs in turn
    return [replace(steps[j], above=steps[j].above + lacking) for j in kept]


def _all_curves(steps: Sequence[Step], interval: float) -> FloatArray:
    """H_alpha - (1 - alpha)+ at alpha = 0, all points of the grid that some pair reaches, and infinity; by pair."""
    far = max(max(abs(step.first), abs(step.first + step.mass.size)) for step in steps) + 1
    at = np.arange(-far, far + 1)
    found = np.empty((len(steps), at.size + 2))
    for row, step in zip(found, steps, strict=True):
        mass = np.zeros(at.size)
        mass[step.first + far : step.first + far + step.mass.size] = step.mass
        other = mass * np.exp(np.minimum(-at * interval, 700.0))  # of the second law
        more = float(np.sum(mass)) + step.above - 1.0  # than a probability; nearly 0
        back = _one_side(other[far::-1], interval) + 1.0 - float(np.sum(other))
        row[0], row[-1] = more, step.above
        row[1 : far + 1] = more + (back * np.exp(-np.arange(far + 1) * interval))[:0:-1]
        row[far + 1 : -1] = _one_side(mass[far:], interval) + step.above
    return found


def _one_side(mass: FloatArray, interval: float) -> FloatArray:
    """sum_{j > i} mass_j (1 - e^-(j-i)interval), by adding positive pieces from the far end."""
    pieces = np.append(discounted(mass[1:], interval), 0.0) * -np.expm1(-interval)
    return np.cumsum(pieces[::-1])[::-1]


def _some_points(count: int) -> Ints:
    """Indices of points on both sides, dense near the middle, without the middle: all pairs are nearly equal there."""
    out = np.unique(np.rint(np.geomspace(1, count // 2, _POINTS))).astype(np.int64)
    return np.concatenate([count // 2 - out[::-1], count // 2 + out])


def _weights(curve: FloatArray, others: FloatArray) -> FloatArray | None:
    """Weights of a mixture above the curve at all points given, or None."""
    from scipy.optimize import linprog

    matters = curve > _LACKING
    if not np.any(matters):
        return np.full(others.shape[0], 1.0 / others.shape[0])
    ratios = others[:, matters] / curve[matters]
    count = others.shape[0]
    found = linprog(
        np.append(np.zeros(count), -1.0),  # the largest margin
        A_ub=np.column_stack([-ratios.T, np.ones(ratios.shape[1])]),
        b_ub=np.full(ratios.shape[1], -1.0),
        A_eq=np.append(np.ones(count), 0.0)[None, :],
        b_eq=[1.0],
        bounds=[(0.0, None)] * count + [(None, None)],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10},
    )
    if found.status != 0 or -found.fun < _MARGIN:
        return None
    weights = np.maximum(found.x[:count], 0.0)
    return as_floats(weights / np.sum(weights))
