"""From a profile to a privacy-loss law on a grid, certified from above or below.

Connect-the-dots (Doroshenko, Ghazi, Kamath, Kumar & Manurangsi 2022): between grid points the curve, as a function
of alpha = e^eps, is replaced by its chords, which lie above it. The mass at a grid point is the change of slope.
dp-accounting builds the same law from second differences over the whole line, where delta is nearly 1 and 12 of 16
digits cancel; here losses above 0 come from the curve and losses below 0 from the other direction's, so every mass
keeps its digits, and the result is checked against the curve and scaled up until it dominates it.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..core.profile import Curve, Profile
from ..numerics.log_domain import FloatArray
from ..numerics.roots import first_at_most

LOG_TAIL = -85.0  # the grid ends where log delta falls below this; the rest is an infinite loss
_TOLERATED = 1e-6  # relative repair that rounding may need; more means the curve is not convex


@dataclass(frozen=True, slots=True)
class LossLaw:
    """Probability `mass[i]` of the loss (first + i) * interval, and of an infinite loss."""

    interval: float
    first: int
    mass: FloatArray
    infinite: float

    @property
    def losses(self) -> FloatArray:
        """The grid of losses."""
        return np.arange(self.first, self.first + self.mass.size, dtype=np.float64) * self.interval


def reach(profile: Profile) -> float:
    """The loss beyond which either direction's delta is negligible (or zero)."""
    return max(_top(profile.forward), _top(profile.backward))


def loss_laws(profile: Profile, interval: float, *, upper: bool = True) -> tuple[LossLaw, LossLaw]:
    """Both directions' laws: of log(P/Q) under P, and of log(Q/P) under Q. They dominate the profile's
    curves (`upper`) or are dominated by them."""
    forward = _Dots(profile.forward, interval, upper)
    if profile.is_symmetric:
        law = _join(forward, forward, interval, upper)
        return law, law
    backward = _Dots(profile.backward, interval, upper)
    return _join(forward, backward, interval, upper), _join(backward, forward, interval, upper)


def _top(curve: Curve) -> float:
    top = curve.largest_loss
    try:
        return min(top, first_at_most(curve, LOG_TAIL, limit=min(top, 1e5) if top > 0 else 1.0, rounds=3))
    except ArithmeticError:
        return min(top, 1e5)


class _Dots:
    """One direction's curve at 0, interval, 2 interval, ... and the masses that reproduce it."""

    def __init__(self, curve: Curve, interval: float, upper: bool) -> None:
        top = _top(curve)
        count = max(1, math.ceil(top / interval))
        delta = np.exp(curve(np.arange(count + 1) * interval))
        delta = np.minimum.accumulate(delta)
        self.mass, self.rebuilt = _masses(delta, interval)
        live = delta > 0
        self.excess = float(np.max(delta[live] / self.rebuilt[live], initial=0.0)) if np.any(live) else 1.0
        if upper and self.excess > 1.0 + _TOLERATED:
            delta = _lower_hull(delta, interval)
            self.mass, self.rebuilt = _masses(delta, interval)
            self.excess = float(np.max(delta[live] / self.rebuilt[live], initial=0.0))
        self.shortfall = float(np.min(delta[live] / self.rebuilt[live], initial=1.0)) if np.any(live) else 1.0
        self.infinite = float(delta[-1])
        self.at_zero = float(self.rebuilt[0])


def _masses(delta: FloatArray, interval: float) -> tuple[FloatArray, FloatArray]:
    """Masses at interval, 2 interval, ... and the curve they give back at 0, interval, ..."""
    drop = delta[:-1] - delta[1:]
    mass = drop * (math.exp(interval) / math.expm1(interval))
    mass[:-1] -= drop[1:] / math.expm1(interval)
    mass = np.maximum(mass, 0.0)
    # delta_i = infinite + sum_{j>i} mass_j (1 - e^(eps_i - eps_j)), by adding positive pieces from the far end
    grid = np.arange(1, delta.size) * interval
    beyond = np.cumsum((mass * np.exp(-grid))[::-1])[::-1]  # Q-mass of losses from grid[i] on
    pieces = beyond * np.exp(grid) * -math.expm1(-interval)
    rebuilt = np.concatenate([np.cumsum(pieces[::-1])[::-1], [0.0]]) + delta[-1]
    return mass, rebuilt


def _join(own: _Dots, other: _Dots, interval: float, upper: bool) -> LossLaw:
    """Losses above zero from the curve itself, below zero from the other direction's."""
    if own.at_zero == 0.0 or other.at_zero == 0.0:
        return LossLaw(interval, 0, np.ones(1), 0.0)
    if upper:  # both sides must give one total variation distance, at least the true one
        level = max(own.at_zero * max(own.excess, 1.0), other.at_zero * max(other.excess, 1.0)) * (1.0 + 1e-14)
    else:
        level = min(own.at_zero * min(own.shortfall, 1.0), other.at_zero * min(other.shortfall, 1.0)) * (1.0 - 1e-14)
    above = own.mass * (level / own.at_zero)
    steps = np.arange(1, other.mass.size + 1)
    below = other.mass * np.exp(-steps * interval) * (level / other.at_zero)
    infinite = own.infinite * (level / own.at_zero)
    zero = max(1.0 - float(np.sum(above)) - float(np.sum(below)) - infinite, 0.0)
    mass = np.concatenate([below[::-1], [zero], above])
    first = -other.mass.size
    if upper:
        return LossLaw(interval, first, mass, infinite)
    # Every piece of mass sits on an end of the interval its loss lies in: one step down is below the truth.
    return LossLaw(interval, first - 1, mass, 0.0)


def _lower_hull(delta: FloatArray, interval: float) -> FloatArray:
    """The largest convex function of alpha below the points; still above the (convex) truth."""
    alpha = np.exp(np.arange(delta.size) * interval)
    kept: list[int] = []
    for i in range(delta.size):
        while len(kept) >= 2:
            a, b = kept[-2], kept[-1]
            if (delta[b] - delta[a]) * (alpha[i] - alpha[b]) < (delta[i] - delta[b]) * (alpha[b] - alpha[a]):
                break
            kept.pop()
        kept.append(i)
    return np.asarray(np.interp(alpha, alpha[kept], delta[kept]))
