"""From a profile to a privacy-loss law on a grid, certified from above or below.

Connect-the-dots (Doroshenko, Ghazi, Kamath, Kumar & Manurangsi 2022): between grid points the curve, as a function
of alpha = e^eps, is replaced by its chords, which lie above it. The mass at a grid point is the change of slope.
dp-accounting builds the same law from second differences over the whole line, where delta is nearly 1 and 12 of 16
digits cancel; here losses above 0 come from the curve and losses below 0 from the other direction's, so every mass
keeps its digits, and the result is checked against the curve and scaled up until it dominates it.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..core.profile import Curve, Profile
from ..numerics.log_domain import FloatArray, as_floats
from ..numerics.roots import NumericalFailure, first_at_most
from .bridge import Ints, Points, bridged, lower_hull

LOG_TAIL = -85.0  # the grid ends where log delta falls below this; the rest is an infinite loss
_FARTHEST = 1e5  # losses beyond this count as infinite
_NOWHERE = 1e300  # no finite loss is this large
_BLOCK = 300.0  # of losses that are summed at once
_SPAN = 700.0  # of losses whose exponentials are doubles
_START, _CHORD = 257, 2e-6  # points to begin with; relative excess of a chord that is worth another point
_TOLERATED = 1e-6  # relative repair that rounding may need; more means the curve is not convex


@dataclass(frozen=True)
class LossLaw:
    """Probability `weights[i]` of the loss index[i] * interval, indices rising, and of an infinite loss."""

    interval: float
    index: Ints
    weights: FloatArray
    infinite: float

    @property
    def first(self) -> int:
        """The grid index of the smallest loss."""
        return int(self.index[0])

    @cached_property
    def mass(self) -> FloatArray:
        """Probabilities at all points of the grid, from `first` on."""
        dense = np.zeros(int(self.index[-1]) - self.first + 1)
        dense[self.index - self.first] = self.weights
        return dense

    @property
    def losses(self) -> FloatArray:
        """The losses at all points of the grid, from `first` on."""
        return np.arange(self.first, int(self.index[-1]) + 1, dtype=np.float64) * self.interval


def reach(profile: Profile) -> float:
    """The loss beyond which either direction's delta is negligible (or zero)."""
    return max(_top(profile.forward), _top(profile.backward))


def loss_laws(profile: Profile, interval: float, *, upper: bool = True) -> tuple[LossLaw, LossLaw]:
    """Both directions' laws: of log(P/Q) under P, and of log(Q/P) under Q. They dominate the profile's
    curves (`upper`) or are dominated by them."""
    forward = _dots(profile.forward, interval, upper)
    backward = forward if profile.is_symmetric else _dots(profile.backward, interval, upper)
    if upper and _too_much(forward, backward, interval):
        there, back = bridged(forward.points, backward.points, interval)
        forward = _Dots(*there, interval, upper=True)
        backward = forward if profile.is_symmetric else _Dots(*back, interval, upper=True)
    law = _join(forward, backward, interval, upper)
    return law, law if profile.is_symmetric else _join(backward, forward, interval, upper)


def _too_much(own: "_Dots", other: "_Dots", interval: float) -> bool:
    """Whether two upper bounds are no pair of probabilities: they disagree at 0, or have more mass than 1 around it."""
    if own.at_zero == 0.0 or other.at_zero == 0.0:
        return False
    if abs(own.at_zero / other.at_zero - 1.0) > _TOLERATED:
        return True
    discount = np.exp(-interval * other.at)
    return float(np.sum(own.mass)) + float(np.sum(other.mass * discount)) + own.infinite > 1.0 + _TOLERATED


def _top(curve: Curve) -> float:
    """Where the curve has ended, or has come down to the delta that is lost whatever epsilon is."""
    end = min(curve.largest_loss, _FARTHEST)
    if end <= 0.0:
        return 0.0
    floor = float(curve(np.asarray(end)))
    return first_at_most(curve, max(LOG_TAIL, floor + 1e-12), limit=end, rounds=30)


def law_of_points(own: Points, other: Points, interval: float) -> LossLaw:
    """The law of log(P/Q) under P that dominates both directions, each known at some grid points from 0 on."""
    first, second = (_Dots(at, delta, interval, upper=True) for at, delta in (own, other))
    return _join(first, second, interval, upper=True)


class _Dots:
    """One direction's curve at some of 0, interval, 2 interval, ... and the masses that reproduce it."""

    def __init__(self, at: Ints, delta: FloatArray, interval: float, *, upper: bool, lost: float = 0.0) -> None:
        self.points, self.at = (at, delta), at[1:]
        widths, losses = np.diff(at) * interval, as_floats(at[1:] * interval)
        if not upper:
            delta = lost + _below(np.maximum(delta - lost, 0.0), widths)
        mass, rebuilt = _masses(delta, widths, losses)
        if np.max(np.abs(_ratio(delta, rebuilt) - 1.0)) > _TOLERATED:
            hopeless = not upper and float(at[-1]) * interval > _SPAN  # a lower bound may always be nothing
            hull = np.zeros_like(delta) if hopeless else _lower_hull(delta, at, interval)
            delta = hull if upper else np.minimum(delta, hull)  # the hull is rounded up
            mass, rebuilt = _masses(delta, widths, losses)
        self.mass = mass
        self.excess = float(np.max(_ratio(delta, rebuilt)))
        self.shortfall = float(np.min(_ratio(delta, rebuilt)))
        self.infinite = float(delta[-1])
        self.at_zero = float(rebuilt[0])


def _dots(curve: Curve, interval: float, upper: bool) -> _Dots:
    count = max(1, math.ceil(_top(curve) / interval))
    at, delta = _sampled(curve, count, interval)
    lost = 0.0 if upper else float(np.exp(curve(np.asarray(_NOWHERE))))  # delta never falls below: infinite losses
    return _Dots(at, delta, interval, upper=upper, lost=lost)


def _sampled(curve: Curve, count: int, interval: float) -> tuple[Ints, FloatArray]:
    """Grid indices from 0 to count, as dense as the curve's chords need it, and delta there (never rising)."""

    def values(at: Ints) -> FloatArray:
        return np.exp(curve(at * interval))

    at = np.unique(np.rint(np.append(np.linspace(0, count, _START), np.geomspace(1, count, _START)))).astype(np.int64)
    delta = values(at)
    while True:
        least = np.minimum.accumulate(delta)
        allowed = _CHORD * least[1:] * (1.0 - 0.05 * np.log(np.maximum(least[1:], 1e-300))) ** 3  # far out less will do
        wide = np.flatnonzero((_chord_gaps(least, np.diff(at) * interval) > allowed) & (np.diff(at) > 1))
        if wide.size == 0:
            return at, least
        between = (at[wide] + at[wide + 1]) // 2
        order = np.argsort(np.append(at, between))
        at, delta = np.append(at, between)[order], np.append(delta, values(between))[order]


def _ratio(wanted: FloatArray, found: FloatArray) -> FloatArray:
    return np.divide(wanted, found, out=np.ones_like(wanted), where=found > 0)


def _chord_gaps(delta: FloatArray, widths: FloatArray) -> FloatArray:
    """How far each chord may lie above the convex curve through the points.

    At most h a b/(a + b), with h the width in alpha and a, b the changes of slope to the chords beside it (both
    extended are below the curve); at either end the one neighbour decides.
    """
    grow = np.exp(widths)
    slope = np.append((delta[:-1] - delta[1:]) / np.expm1(widths), 0.0)  # times alpha_i, so that nothing overflows
    after = np.maximum(slope[:-1] - slope[1:] / grow, 0.0)
    before = np.append(after[0], np.maximum(slope[:-2] * grow[:-1] - slope[1:-1], 0.0))
    gap = np.divide(before * after, before + after, out=np.zeros_like(after), where=before + after > 0)
    gap[0], gap[-1] = after[0], before[-1]
    return np.asarray(gap * np.expm1(widths))


def _below(delta: FloatArray, widths: FloatArray) -> FloatArray:
    """Values whose chords lie below the convex curve through `delta`.

    Lowering every point by what its two chords may be too high is enough, and loses only the square of the widths.
    What is left at the last point above zero is taken off everywhere.
    """
    gap = _chord_gaps(delta, widths)
    lowered = delta - np.maximum(np.append(gap, gap[-1]), np.append(gap[0], gap)) * (1.0 + 1e-9)
    ended = np.flatnonzero(lowered <= 0.0)
    last = max(int(ended[0]) - 1, 0) if ended.size else delta.size - 1  # the last point above zero
    return np.minimum.accumulate(
        np.append(np.maximum(lowered[:last] - lowered[last], 0.0), np.zeros(delta.size - last))
    )


def _masses(delta: FloatArray, widths: FloatArray, losses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Masses at all points but the first, and the curve they give back at the points."""
    drop = delta[:-1] - delta[1:]
    change = drop / -np.expm1(-widths)
    change[:-1] -= drop[1:] / np.expm1(widths[1:])
    mass = np.maximum(change, 0.0)
    # delta_i = infinite + sum_{j>i} mass_j (1 - e^(eps_i - eps_j)), by adding positive pieces from the far end
    pieces = _discounted_at(mass, losses) * -np.expm1(-widths)
    return mass, np.append(np.cumsum(pieces[::-1])[::-1], 0.0) + delta[-1]


def _discounted_at(mass: FloatArray, losses: FloatArray) -> FloatArray:
    """sum_{j >= i} mass_j e^(loss_i - loss_j), in blocks so that no exponential overflows."""
    starts = np.unique(np.searchsorted(losses, np.arange(0.0, losses[-1], _BLOCK)))
    out, carried, after = np.empty_like(mass), 0.0, float(losses[-1])
    for start, end in zip(starts[::-1].tolist(), [mass.size, *starts[:0:-1].tolist()], strict=True):
        place = losses[start:end]
        decay = np.exp(place[0] - place)
        sums = np.cumsum((mass[start:end] * decay)[::-1])[::-1] / decay + carried * np.exp(place - after)
        out[start:end], carried, after = sums, float(sums[0]), float(place[0])
    return out


def discounted(mass: FloatArray, interval: float) -> FloatArray:
    """sum_{j >= i} mass_j e^-(j-i)interval, in blocks so that no exponential overflows."""
    block = max(1, int(min(_BLOCK / interval, float(mass.size))))
    decay, out, carried = np.exp(np.arange(block) * -interval), np.empty_like(mass), 0.0
    for start in range((mass.size - 1) // block * block, -1, -block):
        part = mass[start : start + block]
        down, sums = decay[: part.size], out[start : start + block]
        np.cumsum((part * down)[::-1], out=sums[::-1])
        sums /= down
        if carried:
            sums += (carried * math.exp(-interval)) * down[::-1]
        carried = float(sums[0])
    return out


def _join(own: _Dots, other: _Dots, interval: float, upper: bool) -> LossLaw:
    """Losses above zero from the curve itself, below zero from the other direction's."""
    if own.at_zero == 0.0 or other.at_zero == 0.0:
        return LossLaw(interval, np.zeros(1, dtype=np.int64), np.ones(1), 0.0)
    if upper:  # both sides must give one total variation distance, at least the true one
        level = max(own.at_zero * max(own.excess, 1.0), other.at_zero * max(other.excess, 1.0)) * (1.0 + 1e-14)
    else:  # at most the true one
        level = min(own.at_zero * min(own.shortfall, 1.0), other.at_zero * min(other.shortfall, 1.0)) * (1.0 - 1e-14)
    above = own.mass * (level / own.at_zero)
    below = other.mass * np.exp(-other.at * interval) * (level / other.at_zero)
    infinite = level / own.at_zero * own.infinite
    total = float(np.sum(above) + np.sum(below))
    if not upper and total > 1.0 - 1e-14:  # and no more mass than there is
        share = (1.0 - 1e-14) / total
        above, below, infinite, total = above * share, below * share, infinite * share, 1.0 - 1e-14
    zero = max(1.0 - total - infinite, 0.0)
    index = np.concatenate([-other.at[::-1], [0], own.at])
    return LossLaw(interval, index, np.concatenate([below[::-1], [zero], above]), infinite)


def _lower_hull(delta: FloatArray, at: Ints, interval: float) -> FloatArray:
    """The largest convex function of alpha below the points: still above the (convex) truth if they are."""
    if float(at[-1]) * interval > _SPAN:
        raise NumericalFailure(
            "the losses to compose span more than 700, and their bound is not convex; add noise or ask for one step"
        )
    return lower_hull(at, delta, interval)
