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
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..core.profile import Profile
from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray, as_floats
from ..validation import positive, whole
from .discretize import LossLaw, loss_laws

_UNIT = 1.2e-16
_AT_ONCE = 8  # pairs whose transforms are made together
_CUT = 1e-13  # mass at the upper end of a law that is moved or dropped
_CUT_BELOW = 1e-10  # at the lower end, which makes a relative difference of so much in W


@dataclass(frozen=True, slots=True)
class Window:
    """The accumulated losses, less epsilon, that are followed."""

    interval: float
    below: int  # points below 0
    above: int  # points above 0

    @property
    def losses(self) -> FloatArray:
        """The losses at the grid's points."""
        return as_floats(np.arange(-self.below, self.above + 1) * self.interval)


@dataclass(frozen=True, slots=True)
class Step:
    """One pair's law on the grid: mass[i] at loss first + i; what is beyond it, infinite losses included, above."""

    first: int
    mass: FloatArray
    above: float


def steps_of(profiles: Sequence[Profile], interval: float, *, upper: bool) -> list[Step]:
    """The laws of log P/Q under P of all pairs, certified from above or below, without their ends."""
    return [without_ends(loss_laws(profile, interval, upper=upper)[0], upper=upper) for profile in profiles]


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


class Recursion:
    """W_k on a window for one family, all pairs in one batch of transforms."""

    def __init__(self, steps: Sequence[Step], window: Window, *, upper: bool, values: FloatArray | None = None) -> None:
        from scipy import fft

        self.upper, self.points = upper, window.below + window.above + 1
        left = max(max(-step.first for step in steps), 0)
        right = max(max(step.first + step.mass.size - 1 for step in steps), 0)
        self.left, self.right = min(left, self.points), min(right, self.points)  # a longer jump ends outside anyhow
        self.size = int(fft.next_fast_len(self.points + self.left + self.right, real=True))
        self.above = np.array([[step.above] for step in steps])
        kernels = np.zeros((len(steps), self.size))
        for row, beyond, step in zip(kernels, self.above, steps, strict=True):
            at = np.arange(step.first, step.first + step.mass.size)
            is_far = at > self.right
            beyond += float(np.sum(step.mass[is_far]))
            np.add.at(row, np.maximum(at[~is_far], -self.left) % self.size, step.mass[~is_far])
        self.kernels = np.conj(fft.rfft(kernels, axis=1))
        self.kernel_norm = float(np.max(np.sqrt(np.sum(kernels * kernels, axis=1))))
        out = np.arange(1, self.size - self.left - self.points + 1) * window.interval
        self._decay = np.exp(-out)
        self._least = -np.expm1(-(window.above * window.interval + out)) * (1.0 - 1e-15)
        self.values: FloatArray = start(window) if values is None else values

    def _padded(self, values: FloatArray) -> FloatArray:
        """W at the places of the transforms, with what is known about it outside the window."""
        if self.upper:
            beyond = 1.0 - self._decay * (1.0 - 1e-15) * (1.0 - values[-1])
            return np.concatenate([np.full(self.left, values[0]), values, beyond])
        return np.concatenate([np.zeros(self.left), values, np.maximum(self._least, values[-1])])

    def best(self, values: FloatArray) -> FloatArray:
        """The largest E[W(u + loss)] over all pairs, without rounding errors; some pairs at a time, to fit a cache."""
        from scipy import fft

        transformed, beyond = fft.rfft(self._padded(values)), 1.0 if self.upper else float(values[-1])
        found = np.full(self.points, -np.inf)
        for i in range(0, len(self.kernels), _AT_ONCE):
            products = self.kernels[i : i + _AT_ONCE] * transformed
            sums = fft.irfft(products, self.size, axis=1, overwrite_x=True)[:, self.left : self.left + self.points]
            sums += self.above[i : i + _AT_ONCE] * beyond
            np.maximum(found, np.max(sums, axis=0), out=found)
        return found

    def error(self, values: FloatArray) -> float:
        """What rounding may do to `best`."""
        outside = self.left * float(values[0]) ** 2 + (self.size - self.left - self.points)
        size = math.sqrt(float(values @ values) + outside) + 1.0
        return 4.0 * _UNIT * (math.log2(self.size) + 4.0) * self.kernel_norm * size

    def advance(self, rounds: int) -> FloatArray:
        """W after so many more rounds."""
        for _ in range(rounds):
            self._round()
        return self.values

    def _round(self) -> None:
        new, error = self.best(self.values), self.error(self.values)
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
