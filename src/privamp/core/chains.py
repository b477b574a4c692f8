"""Groups of records: a chain of neighbours, followed by iterating the trade-off function.

Let every two consecutive laws of a chain R_0, ..., R_J satisfy H_e^x(R_i+1 || R_i) <= delta(x) for all real x. A test
that R_0 passes with chance y is passed by R_1 with chance at most g(y) = min over x of e^x y + delta(x), and by R_J
with chance at most g(g(...g(y))). Written as lines: for any x_1, ..., x_J of either sign,

    delta_J(x_1 + ... + x_J) <= sum over i of e^(x_i+1 + ... + x_J) delta(x_i).

Every choice is sound. The best one follows a single test: x_i is the logarithm of the slope of g at the chance that the
test has reached. So one parameter, the chance at the start, gives the whole curve, and between its points chords in
alpha = e^eps bound the convex truth. Exact where a chain of laws attains the curve step by step, as discrete Laplace
noise does for a pure box. After Dong, Roth & Su 2022, Theorem 2.14. Proof: docs/persons.md, Thm 5.
"""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..numerics.convex_table import Table, tabulated
from ..numerics.log_domain import FloatArray, as_floats, log1mexp, log_diff, log_expm1
from ..numerics.roots import first_at_most
from .profile import Curve

Ints = NDArray[np.intp]

_LOWEST = -740.0  # log delta below which nothing is followed
_FARTHEST = 1e4  # of the losses of one step
_START, _LINES, _POINTS = 65, 4000, 6000  # points to begin with; lines of one step; points of the chain's curve
_FINE, _ROUGH = 1e-6, 1e-4  # relative excess of a chord that is worth another line; another point
_UP = 4e-15  # relative, of every logarithm on the way


class Lines:
    """One direction of a step: log delta at 0 = eps_0 < eps_1 < ..., as dense as its chords need it."""

    def __init__(self, curve: Curve) -> None:
        end = min(curve.largest_loss, _FARTHEST)
        if end > 0.0:
            floor = float(curve(np.asarray(end)))
            reached = first_at_most(curve, max(_LOWEST, floor + 1e-9), limit=end, rounds=30)
            end = end if math.isfinite(curve.largest_loss) and end < 1.01 * reached else reached
        self.epsilon, self.log_delta = _followed(curve, end)
        with np.errstate(invalid="ignore"):
            apart = log_diff(self.epsilon[1:], self.epsilon[:-1])
            self.up = _falling(log_diff(self.log_delta[:-1], self.log_delta[1:]) - apart)
            shrunk = self.log_delta - self.epsilon
            self.down = _falling(log_diff(shrunk[:-1], shrunk[1:]) - log_diff(-self.epsilon[:-1], -self.epsilon[1:]))

    def rising(self, log_chance: FloatArray) -> Ints:
        """The line of slope e^eps that bounds a test of this chance best: its index."""
        return np.searchsorted(-self.up, -log_chance)

    def sinking(self, log_rest: FloatArray) -> Ints:
        """The line of slope e^-eps that bounds a test best which fails with this chance: its index."""
        return np.searchsorted(-self.down, -log_rest)


@lru_cache(maxsize=32)
def _lines(curve: Curve) -> Lines:
    """The lines of a curve: a group's two directions need the same ones, and they take longest."""
    return Lines(curve)


def _falling(logs: FloatArray) -> FloatArray:
    return as_floats(np.minimum.accumulate(np.where(np.isnan(logs), -np.inf, logs)))


def _followed(curve: Curve, end: float) -> tuple[FloatArray, FloatArray]:
    """Epsilons from 0 to the end, halved where a chord is too high, and log delta there (never rising)."""
    if end <= 0.0:
        return np.zeros(1), as_floats(curve(np.zeros(1)))
    at = np.unique(np.concatenate([np.linspace(0.0, end, _START), np.geomspace(1e-6 * end, end, _START)]))
    values = as_floats(curve(at))
    for _ in range(12):
        middle = 0.5 * (at[1:] + at[:-1])
        between = as_floats(curve(middle))
        share = log_expm1(middle - at[:-1]) - log_expm1(at[1:] - at[:-1])  # of the way, in alpha
        chord = np.logaddexp(values[:-1] + log1mexp(share), values[1:] + share)
        with np.errstate(invalid="ignore"):
            wrong = chord - between > _FINE * np.maximum(1.0, np.abs(0.05 * between) ** 3)
        if not np.any(wrong) or at.size > _LINES:
            break
        order = np.argsort(np.append(at, middle[wrong]))
        at, values = np.append(at, middle[wrong])[order], np.append(values, between[wrong])[order]
    return at, np.minimum.accumulate(values)


class Chain:
    """Steps from R_0 on, each with the lines of its own direction and of the opposite one."""

    def __init__(self, steps: Sequence[tuple[Lines, Lines]]) -> None:
        self.steps = steps

    def followed(self, start: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(sum of x_i, log of the bound there), both rounded up, for tests of chance 1/(1 + e^start) at R_0."""
        log_chance, log_rest = -np.logaddexp(0.0, start), -np.logaddexp(0.0, -start)
        total, size, log_delta = np.zeros_like(start), np.zeros_like(start), np.full_like(start, -np.inf)
        for own, other in self.steps:
            slope, intercept, log_rest = _step(own, other, log_chance, log_rest)
            log_chance = np.minimum(np.logaddexp(slope + log_chance, intercept), 0.0)
            log_rest = np.where(slope >= 0.0, log1mexp(log_chance), log_rest)
            log_delta = np.logaddexp(slope + log_delta, intercept)
            total, size = total + slope, size + np.abs(slope)
        return total + _UP * size, log_delta + _UP * len(self.steps) * (1.0 + size)

    def table(self) -> Table:
        """The curve from the chance at which all slopes are steepest to where they cancel."""
        low = _reach([(other, other.down) for _, other in self.steps])
        high = _reach([(own, own.up) for own, _ in self.steps])
        start = np.unique(np.concatenate([np.linspace(-low, high, 2 * _START), np.linspace(-40.0, 40.0, 2 * _START)]))
        own = float(np.logaddexp.reduce([own.log_delta[0] for own, _ in self.steps])) + _UP * len(self.steps)

        def sampled(at: FloatArray) -> tuple[FloatArray, FloatArray]:
            total, log_delta = self.followed(at)
            return log_expm1(np.maximum(total, 0.0)), log_delta

        return tabulated(sampled, min(own, self._at_zero(start), 0.0), start, _ROUGH, _POINTS)

    def _at_zero(self, start: FloatArray) -> float:
        """log delta at alpha = 1, by the chord between two close points on both sides of it."""
        total, log_delta = self.followed(start)
        for _ in range(8):
            left, right = np.flatnonzero(total <= 0.0), np.flatnonzero(total > 0.0)
            if left.size == 0 or right.size == 0:
                return 0.0
            i, j = int(left[np.argmax(total[left])]), int(right[np.argmin(total[right])])
            chord = _chord_at_one((float(total[i]), float(log_delta[i])), (float(total[j]), float(log_delta[j])))
            start = np.linspace(start[i], start[j], 9)
            total, log_delta = self.followed(start)
        return chord


def _step(own: Lines, other: Lines, log_chance: FloatArray, log_rest: FloatArray) -> tuple[FloatArray, ...]:
    """The slope's and the intercept's logarithm of the best line, and log(1 - chance) after a sinking one."""
    up, down = own.rising(log_chance), other.sinking(log_rest)
    sinks = (up == 0) & (other.epsilon.size > 1)
    fall, lost = other.epsilon[down], other.log_delta[down]
    slope = np.where(sinks, -fall, own.epsilon[up])
    intercept = np.where(sinks, np.logaddexp(log1mexp(-fall), lost - fall), own.log_delta[up])
    return slope, intercept, np.where(log_rest > lost, log_diff(np.maximum(log_rest, lost), lost), -np.inf) - fall


def _reach(steps: Sequence[tuple[Lines, FloatArray]]) -> float:
    """How far a test's log odds may start so that every step is at its steepest."""
    known = [hand_over[np.isfinite(hand_over)] for _, hand_over in steps]
    last = min((float(one[-1]) if one.size else 0.0 for one in known), default=0.0)
    return sum(float(lines.epsilon[-1]) for lines, _ in steps) - last + 10.0


def _chord_at_one(left: tuple[float, float], right: tuple[float, float]) -> float:
    """Between (eps <= 0, log delta) and (eps > 0, log delta), at eps = 0, rounded up."""
    below, above = -math.expm1(left[0]), math.expm1(min(right[0], 700.0))
    if below == 0.0:
        return left[1] + 1e-12
    log_width = math.log(below + above)
    return float(np.logaddexp(left[1] + math.log(above) - log_width, right[1] + math.log(below) - log_width)) + 1e-12


def chain_curve(own: Curve, other: Curve, records: int) -> Curve:
    """delta_J(eps) for eps >= 0 from the curve of one step and that of its opposite; made when first asked for."""
    return steps_curve([(own, other)] * records)


def steps_curve(steps: Sequence[tuple[Curve, Curve]]) -> Curve:
    """The same for steps with curves of their own, (R_i+1 against R_i, the opposite), the first from R_0."""
    made: list[Table] = []

    def log_delta(epsilon: FloatArray) -> FloatArray:
        if not made:
            made.append(Chain([(_lines(own), _lines(other)) for own, other in steps]).table())
        return made[0].log_delta(epsilon)

    return Curve(log_delta, math.fsum(own.largest_loss for own, _ in steps))
