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
from ..numerics.roots import NumericalFailure, first_at_most

LOG_TAIL = -85.0  # the grid ends where log delta falls below this; the rest is an infinite loss
_FARTHEST = 1e5  # losses beyond this count as infinite
_SPAN = 700.0  # of losses whose exponentials are doubles
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
    """Where the curve has ended, or has come down to the delta that is lost whatever epsilon is."""
    end = min(curve.largest_loss, _FARTHEST)
    if end <= 0.0:
        return 0.0
    floor = float(curve(np.asarray(end)))
    return first_at_most(curve, max(LOG_TAIL, floor + 1e-12), limit=end, rounds=3)


class _Dots:
    """One direction's curve at 0, interval, 2 interval, ... and the masses that reproduce it."""

    def __init__(self, curve: Curve, interval: float, upper: bool) -> None:
        count = max(1, math.ceil(_top(curve) / interval))
        delta = np.minimum.accumulate(np.exp(curve(np.arange(count + 1) * interval)))
        if not upper:
            delta = _below(delta, interval)
        self.mass, rebuilt = _masses(delta, interval)
        if np.max(np.abs(_ratio(delta, rebuilt) - 1.0)) > _TOLERATED:
            hopeless = not upper and count * interval > _SPAN  # a lower bound may always be nothing
            delta = np.zeros_like(delta) if hopeless else _lower_hull(delta, interval)
            self.mass, rebuilt = _masses(delta, interval)
        self.excess = float(np.max(_ratio(delta, rebuilt)))
        self.shortfall = float(np.min(_ratio(delta, rebuilt)))
        self.infinite = float(delta[-1])
        self.at_zero = float(rebuilt[0])


def _ratio(wanted: FloatArray, found: FloatArray) -> FloatArray:
    return np.divide(wanted, found, out=np.ones_like(wanted), where=found > 0)


def _below(delta: FloatArray, interval: float) -> FloatArray:
    """Values whose chords lie below the convex curve through `delta`.

    A chord exceeds the curve by at most h a b/(a + b), with h the width in alpha and a, b the changes of slope to the
    chords beside it (both extended are below the curve). Lowering every point by that of its two chords is enough,
    and loses only the square of the interval. What is left at the last point above zero is taken off everywhere.
    """
    slope = np.append((delta[:-1] - delta[1:]) / math.expm1(interval), 0.0)  # times alpha_i, so that nothing overflows
    after = np.maximum(slope[:-1] - slope[1:] * math.exp(-interval), 0.0)
    before = np.append(after[0], np.maximum(slope[:-2] * math.exp(interval) - slope[1:-1], 0.0))
    gap = np.divide(before * after, before + after, out=np.zeros_like(after), where=before + after > 0)
    gap[0], gap[-1] = after[0], before[-1]
    gap *= math.expm1(interval)
    lowered = delta - np.maximum(np.append(gap, gap[-1]), np.append(gap[0], gap)) * (1.0 + 1e-9)
    ended = np.flatnonzero(lowered <= 0.0)
    last = max(int(ended[0]) - 1, 0) if ended.size else delta.size - 1  # the last point above zero
    return np.minimum.accumulate(
        np.append(np.maximum(lowered[:last] - lowered[last], 0.0), np.zeros(delta.size - last))
    )


def _masses(delta: FloatArray, interval: float) -> tuple[FloatArray, FloatArray]:
    """Masses at interval, 2 interval, ... and the curve they give back at 0, interval, ..."""
    drop = delta[:-1] - delta[1:]
    mass = drop * (math.exp(interval) / math.expm1(interval))
    mass[:-1] -= drop[1:] / math.expm1(interval)
    mass = np.maximum(mass, 0.0)
    # delta_i = infinite + sum_{j>i} mass_j (1 - e^(eps_i - eps_j)), by adding positive pieces from the far end
    pieces = discounted(mass, interval) * -math.expm1(-interval)
    rebuilt = np.concatenate([np.cumsum(pieces[::-1])[::-1], [0.0]]) + delta[-1]
    return mass, rebuilt


def discounted(mass: FloatArray, interval: float) -> FloatArray:
    """sum_{j >= i} mass_j e^-(j-i)interval, in blocks so that no exponential overflows."""
    block = max(1, int(300.0 / interval))
    out, carried = np.empty_like(mass), 0.0
    for start in range((mass.size - 1) // block * block, -1, -block):
        part = mass[start : start + block]
        decay = np.exp(-np.arange(part.size) * interval)
        sums = np.cumsum((part * decay)[::-1])[::-1] / decay + carried * math.exp(-interval) * decay[::-1]
        out[start : start + block], carried = sums, float(sums[0])
    return out


def _join(own: _Dots, other: _Dots, interval: float, upper: bool) -> LossLaw:
    """Losses above zero from the curve itself, below zero from the other direction's."""
    if own.at_zero == 0.0 or other.at_zero == 0.0:
        return LossLaw(interval, 0, np.ones(1), 0.0)
    steps = np.arange(1, other.mass.size + 1)
    above, below = own.mass / own.at_zero, other.mass * np.exp(-steps * interval) / other.at_zero
    if upper:  # both sides must give one total variation distance, at least the true one
        level = max(own.at_zero * max(own.excess, 1.0), other.at_zero * max(other.excess, 1.0)) * (1.0 + 1e-14)
    else:  # at most the true one, and no more mass than there is
        level = min(own.at_zero * min(own.shortfall, 1.0), other.at_zero * min(other.shortfall, 1.0))
        level = min(level, 1.0 / float(np.sum(above) + np.sum(below))) * (1.0 - 1e-14)
    infinite = own.infinite / own.at_zero * level
    zero = max(1.0 - level * float(np.sum(above) + np.sum(below)) - infinite, 0.0)
    mass = np.concatenate([level * below[::-1], [zero], level * above])
    return LossLaw(interval, -other.mass.size, mass, infinite)


def _lower_hull(delta: FloatArray, interval: float) -> FloatArray:
    """The largest convex function of alpha below the points: still above the (convex) truth if they are."""
    if (delta.size - 1) * interval > _SPAN:
        raise NumericalFailure(
            "the losses to compose span more than 700, and their bound is not convex; add noise or ask for one step"
        )
    alpha = np.exp(np.arange(delta.size) * interval)
    points, kept = list(zip(alpha.tolist(), delta.tolist(), strict=True)), [0]
    for i in range(1, delta.size):
        while len(kept) >= 2:
            (xa, ya), (xb, yb), (xi, yi) = points[kept[-2]], points[kept[-1]], points[i]
            if (yb - ya) * (xi - xb) < (yi - yb) * (xb - xa):
                break
            kept.pop()
        kept.append(i)
    return np.asarray(np.interp(alpha, alpha[kept], delta[kept]))
