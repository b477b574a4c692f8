"""Many rounds against an adversary who chooses every round's pair anew: a recursion over the accumulated loss.

A family is a finite set of pairs (P, Q); in every round somebody picks one of them, knowing all earlier outputs. With
W_0(u) = (1 - e^-u)+ and

    W_k(u) = max over the family of E_P[W_k-1(u + log P/Q)],

the largest delta after k rounds at eps is W_k(-eps): the past matters through its loss alone. Pairs that dominate, or
are dominated by, those of the family give an upper or a lower bound. Here they are loss laws on a grid
(connect-the-dots), so that the recursion stays on the grid and needs no interpolation; one run gives all eps at once.
Proof: docs/designs/rounds.md, Thm 1.

Errors, all on the safe side. Above the window W_k is bounded by its chord: P(E) - e^-u Q(E) is linear in e^-u, so W_k
is convex in it and at most 1 at 0; from below by 1 - e^-u. Below the window its first value counts, or nothing. The
ends of a law that weigh less than 1e-13 (gains) or 1e-10 (losses) are moved upward or dropped. The transforms' rounding
is added or taken off in every round.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from ..core.profile import Profile
from ..errors import InvalidInput
from ..numerics.cores import cores
from ..numerics.log_domain import FloatArray, as_floats
from ..validation import positive, whole
from .discretize import LossLaw, loss_laws
from .far_losses import STRIDE, FarLosses, Step
from .shifted_sums import ShiftedSums

Threads = Callable[[Callable[[slice], FloatArray], Iterable[slice]], Iterable[FloatArray]]

_AT_ONCE = 8  # pairs whose transforms are made together
_MOST_THREADS, _WORTH_THREADS = (
    4,
    50_000,
)  # threads of a round, and sums of a round for which they are worth their start
_CUT = 1e-13  # mass at the upper end of a law that is moved or dropped
_CUT_BELOW = 1e-10  # at the lower end, which makes a relative difference of so much in W


@dataclass(frozen=True, slots=True)
class Window:
    """The accumulated losses, less epsilon, that are followed."""

    interval: float
    below: int  # points below 0
    above: int  # points above 0

    @property
    def points(self) -> int:
        """How many losses that are."""
        return self.below + self.above + 1

    @property
    def losses(self) -> FloatArray:
        """The losses at the grid's points."""
        return as_floats(np.arange(-self.below, self.above + 1) * self.interval)


def steps_of(profiles: Sequence[Profile], interval: float, *, upper: bool, near: int | None = None) -> list[Step]:
    """The laws of log P/Q under P of all pairs, certified from above or below, without their ends.

    `near`: losses beyond so many points of the grid lie on the coarse one (far_losses.py).
    """
    grid = (near, STRIDE) if near else None
    return [without_ends(loss_laws(profile, interval, upper=upper, far=grid)[0], upper=upper) for profile in profiles]


def without_ends(law: LossLaw, *, upper: bool) -> Step:
    """A law without its negligible ends, moved to the safe side."""
    sums = np.cumsum(law.mass)
    low = int(np.searchsorted(sums, _CUT_BELOW))
    high = law.mass.size - int(np.searchsorted(np.cumsum(law.mass[::-1]), _CUT))
    high = max(high, low + 1)
    mass, above = law.mass[low:high].copy(), law.infinite
    if upper:  # low losses are raised to the first one kept; high ones count as infinite
        mass[0] += float(np.sum(law.mass[:low]))
        above += float(np.sum(law.mass[high:]))
    return Step(law.first + low, mass, above)


def start(window: Window) -> FloatArray:
    """W_0."""
    return np.maximum(-np.expm1(-window.losses), 0.0)


def _close(step: Step, near: int | None) -> tuple[int, FloatArray]:
    """The losses of a law that are followed on the fine grid."""
    if near is None:
        return step.first, step.mass
    first, end = max(step.first, -near), min(step.first + step.mass.size, near + 1)
    return (first, step.mass[first - step.first : end - step.first]) if first < end else (0, np.zeros(1))


class _Outside:
    """What is known about W at `count` places above a window, `stride` points apart."""

    def __init__(self, window: Window, count: int, stride: int) -> None:
        top, out = window.above * window.interval, np.arange(1, count + 1) * (stride * window.interval)
        self._decay = np.exp(-out) * (1.0 - 1e-15)
        self.least = -np.expm1(-(top + out)) * (1.0 - 1e-15)
        self.last = -math.expm1(-top) * (1.0 - 1e-15)

    def most(self, last: float) -> FloatArray:
        """By the chord from the window's last value."""
        return as_floats(1.0 - self._decay * (1.0 - last))


class Recursion:
    """W_k on a window for one family, all pairs in one batch of transforms.

    `near`: losses beyond so many points are followed on a coarser grid (far_losses.py); the window's two sides are then
    multiples of its stride.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        window: Window,
        *,
        upper: bool,
        values: FloatArray | None = None,
        near: int | None = None,
    ) -> None:
        self.upper, self.points, self.count = upper, window.points, len(steps)
        self.far = FarLosses(steps, near, self.points, window.interval, upper) if near else None
        self.near = ShiftedSums([_close(step, near) for step in steps], self.points)
        self.above = np.array([[step.above] for step in steps]) + self.near.beyond
        if self.far:
            self.above = self.above + self.far.sums.beyond
        self._outside = _Outside(window, self.near.right, 1)
        self._far_outside = _Outside(window, self.far.sums.right, STRIDE) if self.far else None
        self.values: FloatArray = start(window) if values is None else values

    def _padded(self, values: FloatArray) -> FloatArray:
        """W at the places of the transforms, with what is known about it outside the window."""
        if self.upper:
            return np.concatenate([np.full(self.near.left, values[0]), values, self._outside.most(values[-1])])
        beyond = np.maximum(self._outside.least, values[-1])
        return np.concatenate([np.zeros(self.near.left), values, beyond])

    def _far_padded(self, values: FloatArray) -> FloatArray:
        if self.far is None or self._far_outside is None:
            return np.zeros(0)
        outside = self._far_outside
        return self.far.padded(values, outside.last, outside.most(values[-1]) if self.upper else outside.least)

    def best(self, values: FloatArray) -> FloatArray:
        """The largest E[W(u + loss)] over all pairs, without rounding errors."""
        return self._best(self._padded(values), self._far_padded(values), 1.0 if self.upper else float(values[-1]))

    def _best(self, padded: FloatArray, far_padded: FloatArray, beyond: float, threads: Threads = map) -> FloatArray:
        """The pairs are shared out among the threads; whoever computes a pair, the largest value is the same."""
        near = self.near.transformed(padded)
        far = self.far.sums.transformed(far_padded) if self.far else near

        def largest(some: slice) -> FloatArray:
            sums, infinite = self.near.of(some, near), self.above[some] * beyond
            if self.far:
                self.far.add(sums, self.far.sums.of(some, far) + infinite)
            else:
                sums += infinite
            return np.asarray(np.max(sums, axis=0))

        return np.asarray(reduce(np.maximum, threads(largest, self._shares)))

    @cached_property
    def _shares(self) -> list[slice]:
        """Some pairs at a time, to fit a cache, and something for every thread; the same on any machine."""
        size = min(_AT_ONCE, math.ceil(self.count / _MOST_THREADS))
        return [slice(i, i + size) for i in range(0, self.count, size)]

    def _error(self, padded: FloatArray, far_padded: FloatArray) -> float:
        """What rounding may do to `best`."""
        near = self.near.error(padded)
        return near + self.far.sums.error(far_padded) + 1e-15 if self.far else near

    def advance(self, rounds: int) -> FloatArray:
        """W after so many more rounds."""
        if self._threads == 1:
            return self._advance(rounds, map)
        with ThreadPoolExecutor(self._threads) as pool:
            return self._advance(rounds, pool.map)

    @cached_property
    def _threads(self) -> int:
        return min(cores(), _MOST_THREADS) if self.count * self.points >= _WORTH_THREADS else 1

    def _advance(self, rounds: int, threads: Threads) -> FloatArray:
        for _ in range(rounds):
            self._round(threads)
        return self.values

    def _round(self, threads: Threads) -> None:
        padded, far = self._padded(self.values), self._far_padded(self.values)
        new = self._best(padded, far, 1.0 if self.upper else float(self.values[-1]), threads)
        error = self._error(padded, far)
        self.values = np.minimum(new + error, 1.0) if self.upper else np.clip(new - error, 0.0, 1.0)


def adaptive_delta(
    profiles: Sequence[Profile], rounds: int, *, interval: float, reach: float, upper: bool = True
) -> tuple[FloatArray, FloatArray]:
    """(epsilons, delta): the largest delta over all adaptive choices from a family, from above or from below.

    >>> from privamp import Gaussian, Neighbors
    >>> one = Gaussian(5.0).profile(Neighbors.ADD_REMOVE)
    >>> epsilons, delta = adaptive_delta([one], 25, interval=0.01, reach=8.0)
    >>> f"{delta[100]:.4f}"  # at epsilon 1; one step with sigma 1 has .1269
    '0.1270'
    """
    return adaptive_deltas([(profiles, rounds)], interval=interval, reach=reach, upper=upper)


def adaptive_deltas(
    rounds: Sequence[tuple[Sequence[Profile], int]], *, interval: float, reach: float, upper: bool = True
) -> tuple[FloatArray, FloatArray]:
    """The same for rounds of several kinds, (family, how many rounds) in the order in which they are released.

    The bound holds for that order alone: another one may gain more (docs/designs/rounds.md).

    >>> from privamp import Gaussian, Neighbors
    >>> weak, strong = ([Gaussian(sigma).profile(Neighbors.ADD_REMOVE)] for sigma in (10.0, 5.0))
    >>> epsilons, delta = adaptive_deltas([(weak, 36), (strong, 16)], interval=0.01, reach=8.0)
    >>> f"{delta[100]:.4f}"  # at epsilon 1; squared shifts add up to 1
    '0.1271'
    """
    positive(interval=interval, reach=reach)
    if not rounds or any(not profiles for profiles, _ in rounds):
        raise InvalidInput("a family needs at least one pair, got none instead")
    far = math.ceil(reach / interval)
    window = Window(interval, far, far)
    values = start(window)
    for profiles, times in reversed(rounds):
        whole(1, rounds=times)
        steps = steps_of(profiles, interval, upper=upper)
        values = Recursion(steps, window, upper=upper, values=values).advance(times)
    return -window.losses[far::-1], values[far::-1]
