"""From a profile to a privacy-loss law on a grid, certified from above or below.

Connect-the-dots (Doroshenko, Ghazi, Kamath, Kumar & Manurangsi 2022): between grid points the curve, as a function
of alpha = e^eps, is replaced by its chords, which lie above it. The mass at a grid point is the change of slope.
dp-accounting builds the same law from second differences over the whole line, where delta is nearly 1 and 12 of 16
digits cancel; here losses above 0 come from the curve and losses below 0 from the other direction's, so every mass
keeps its digits, and the result is checked against the curve and scaled up until it dominates it.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

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
_INSIDE, _WORTH = 4, 2e-5  # parts of a cell in which a lower bound looks at the curve; relative gap of such a cell
_DIGITS = 1e-14  # rounding of those values
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


def loss_laws(
    profile: Profile, interval: float, *, upper: bool = True, far: tuple[int, int] | None = None
) -> tuple[LossLaw, LossLaw]:
    """Both directions' laws: of log(P/Q) under P, and of log(Q/P) under Q. They dominate the profile's
    curves (`upper`) or are dominated by them. `far` = (near, stride): beyond `near`, a multiple of the stride, only
    its multiples are used."""
    forward = _dots(profile.forward, interval, upper, far)
    backward = forward if profile.is_symmetric else _dots(profile.backward, interval, upper, far)
    if upper and _too_much(forward, backward, interval):
        there, back = bridged(forward.points, backward.points, interval)
        forward = _Dots(*there, interval)
        backward = forward if profile.is_symmetric else _Dots(*back, interval)
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


@lru_cache(maxsize=8)  # both directions of both bounds; few, for a curve may hold large tables
def _top(curve: Curve) -> float:
    """Where the curve has ended, or has come down to the delta that is lost whatever epsilon is."""
    end = min(curve.largest_loss, _FARTHEST)
    if end <= 0.0:
        return 0.0
    floor = float(curve(np.asarray(end)))
    return first_at_most(curve, max(LOG_TAIL, floor + 1e-12), limit=end, rounds=30)


def law_of_points(own: Points, other: Points, interval: float) -> LossLaw:
    """The law of log(P/Q) under P that dominates both directions, each known at some grid points from 0 on."""
    first, second = (_Dots(at, delta, interval) for at, delta in (own, other))
    return _join(first, second, interval, upper=True)


class _Dots:
    """One direction's curve at some of 0, interval, 2 interval, ... and the masses that reproduce it."""

    def __init__(
        self, at: Ints, delta: FloatArray, interval: float, *, gaps: FloatArray | None = None, lost: float = 0.0
    ) -> None:
        """`gaps`: how far each chord may lie above the curve, for a lower bound."""
        upper = gaps is None
        self.points, self.at = (at, delta), at[1:]
        widths, losses = np.diff(at) * interval, as_floats(at[1:] * interval)
        if gaps is not None:
            delta = lost + _below(np.maximum(delta - lost, 0.0), gaps)
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

    def without_small_losses(self, level: float, interval: float) -> tuple[FloatArray, float]:
        """Masses whose curve begins at this level, and the infinite one; the smallest losses go first.

        Any part of the masses has a curve below the whole one. Beyond the last loss that is touched nothing is lost.
        """
        share = min(self.shortfall, 1.0)
        mass, infinite = self.mass * share, self.infinite * share
        gains = mass * -np.expm1(-self.at * interval)
        later = np.append(np.cumsum(gains[::-1])[::-1][1:], 0.0) + infinite  # what larger losses give at 0
        kept = np.clip(np.divide(level - later, gains, out=np.ones_like(gains), where=gains > 0.0), 0.0, 1.0)
        left = mass * kept
        found = float(np.sum(left * -np.expm1(-self.at * interval))) + infinite
        return left * min(level / found, 1.0), infinite * min(level / found, 1.0)


def _dots(curve: Curve, interval: float, upper: bool, far: tuple[int, int] | None) -> _Dots:
    near, stride = far or (0, 1)
    count = stride * max(1, math.ceil(_top(curve) / interval / stride))
    at, delta = _sampled(curve, count, interval, near, stride)
    if upper:
        return _Dots(at, delta, interval)
    lost = float(np.exp(curve(np.asarray(_NOWHERE))))  # delta never falls below: infinite losses
    return _Dots(at, delta, interval, gaps=_gaps(curve, at, delta, interval), lost=lost)


def _sampled(curve: Curve, count: int, interval: float, near: int, stride: int) -> tuple[Ints, FloatArray]:
    """Grid indices from 0 to count, as dense as the curve's chords need it, and delta there (never rising)."""

    def allowed_at(at: Ints) -> Ints:
        return np.where(at < near, at, at // stride * stride)

    def values(at: Ints) -> FloatArray:
        return np.exp(curve(at * interval))

    first = np.rint(np.append(np.linspace(0, count, _START), np.geomspace(1, count, _START)))
    at = np.unique(allowed_at(first.astype(np.int64)))
    delta = values(at)
    while True:
        least = np.minimum.accumulate(delta)
        allowed = _CHORD * least[1:] * (1.0 - 0.05 * np.log(np.maximum(least[1:], 1e-300))) ** 3  # far out less will do
        can_be_cut = np.diff(at) > np.where(at[:-1] < near, 1, stride)
        wide = np.flatnonzero((_chord_gaps(least, np.diff(at) * interval) > allowed) & can_be_cut)
        if wide.size == 0:
            return at, least
        between = allowed_at((at[wide] + at[wide + 1]) // 2)
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
    slope = (delta[..., :-1] - delta[..., 1:]) / np.expm1(widths)  # times alpha_i, so that nothing overflows
    change = np.maximum(slope[..., :-1] - slope[..., 1:] / grow[..., :-1], 0.0)
    after = np.concatenate([change, np.maximum(slope[..., -1:], 0.0)], axis=-1)
    before = np.concatenate([after[..., :1], change * grow[..., :-1]], axis=-1)
    gap = np.divide(before * after, before + after, out=np.zeros_like(after), where=before + after > 0)
    gap[..., 0], gap[..., -1] = after[..., 0], before[..., -1]
    return np.asarray(gap * np.expm1(widths))


def _gaps(curve: Curve, at: Ints, delta: FloatArray, interval: float) -> FloatArray:
    """How far each chord may lie above the curve: where that matters, by the curve's values inside the cell.

    Between two of these values the curve is above their chord less its own gap, and the outer chord less the inner one
    is largest at one of the two.
    """
    widths = as_floats(np.diff(at) * interval)
    gaps = _chord_gaps(delta, widths)
    wide = np.flatnonzero(gaps > _WORTH * delta[1:])
    if wide.size == 0:
        return gaps
    share = np.arange(1, _INSIDE) / _INSIDE
    inside = np.exp(curve((at[wide, None] + share * np.diff(at)[wide, None]) * interval))
    ends = np.stack([delta[wide], delta[wide + 1]])
    values = np.column_stack([ends[0], np.clip(inside, ends[1, :, None], ends[0, :, None]), ends[1]])
    parts = np.repeat(widths[wide, None] / _INSIDE, _INSIDE, axis=1)
    own = _chord_gaps(values, parts)
    lower = np.expm1(share * widths[wide, None]) / np.expm1(widths[wide, None])
    chord = np.column_stack([ends[0], ends[0, :, None] * (1.0 - lower) + ends[1, :, None] * lower, ends[1]])
    excess = np.maximum(chord - values, 0.0)
    found = np.max(np.maximum(excess[:, 1:], excess[:, :-1]) + own, axis=1) + _DIGITS * ends[0]
    gaps[wide] = np.minimum(gaps[wide], found)
    return gaps


def _below(delta: FloatArray, gap: FloatArray) -> FloatArray:
    """Values whose chords lie below the convex curve through `delta`; chords through it lie above it by `gap`.

    Lowering every point by what its two chords may be too high is enough, and loses only the square of the widths.
    What is left at the last point above zero is taken off everywhere.
    """
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
        above, infinite = own.mass * (level / own.at_zero), level / own.at_zero * own.infinite
        beyond = other.mass * (level / other.at_zero)
    else:  # at most the true one
        level = min(own.at_zero * min(own.shortfall, 1.0), other.at_zero * min(other.shortfall, 1.0)) * (1.0 - 1e-14)
        above, infinite = own.without_small_losses(level, interval)
        beyond, _ = other.without_small_losses(level, interval)
    below = beyond * np.exp(-other.at * interval)
    total = float(np.sum(above) + np.sum(below)) + infinite
    if not upper and total > 1.0 - 1e-14:  # and no more mass than there is
        share = (1.0 - 1e-14) / total
        above, below, infinite, total = above * share, below * share, infinite * share, 1.0 - 1e-14
    zero = max(1.0 - total, 0.0)
    index = np.concatenate([-other.at[::-1], [0], own.at])
    return LossLaw(interval, index, np.concatenate([below[::-1], [zero], above]), infinite)


def _lower_hull(delta: FloatArray, at: Ints, interval: float) -> FloatArray:
    """The largest convex function of alpha below the points: still above the (convex) truth if they are."""
    if float(at[-1]) * interval > _SPAN:
        raise NumericalFailure(
            "the losses to compose span more than 700, and their bound is not convex; add noise or use one step"
        )
    return lower_hull(at, delta, interval)
