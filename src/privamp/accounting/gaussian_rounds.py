"""Rounds of fresh samples with Gaussian noise under replace-one, exactly: a block for `compose`.

Somebody who holds two data sets may decide in every round, from what came out before, which of them looks like the one
with the record; composing one round's larger direction with itself gives that away every time. The recursion of
adaptive.py over the pairs of triangle_cells.py counts what can be gained and no more. Upper: a cover of all pairs.
Lower: a mixture against a plain law and the reverse, and for the diameter family the equilateral triangle.

With replacement the record may come u times, p_u = Binomial(m, 1/n). Its first copy is treated as one draw without
replacement at chance p_1/(p_0' + p_1), further copies as groups: with p_0 = p_0' + p_0'',

    H_alpha <= (p_0' + p_1) H_alpha(first draw) + sum_{u>=2} p_u delta_u(log(alpha + (alpha - 1) p_0''/p_{>=2})),

and a group is a Gaussian profile at distance u theta; the least over the splits and Theorem B is taken. Proofs:
docs/designs/rounds.md.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from ..core.claim import Claim
from ..core.multiplicity import Multiplicity
from ..core.profile import Curve, Profile
from ..designs.shared_copies import copies_table, gaussian_shift
from ..designs.simple_random import WithoutReplacement
from ..designs.with_replacement import WithReplacement
from ..mechanisms.gaussian_mixture import gaussian_mixture
from ..mechanisms.gaussian_triangles import triangle_delta
from ..numerics.log_domain import FloatArray, log_mills_gap
from .adaptive import Recursion, Window, start, steps_of
from .cell_cover import Cover
from .far_losses import nearness
from .triangle_cells import Cells, OneSide, Shape

ROUNDS = (
    "Rounds of Gaussian noise, turning from round to round, by recursion over the loss [replace-one → replace-one] "
    "(docs/designs/rounds.md, Thm 1 to 3)"
)
_WORK = 2.2e8  # points, cells and rounds of one cover, multiplied
_FIRST, _LONGER = 16, 4  # rounds of the first cover; each next one serves until so many times as many are done
_MOST_CELLS, _SOME_CELLS, _FEWEST_CELLS = 84, 40, 16
_WITH_COPIES = 40  # at most so many cells with replacement, where one cell takes longer
_QUICK_POINTS, _SLOW_POINTS = 600, 300  # of a cell's curve, without and with replacement
_POINTS, _ABOVE = 4000, 600  # of the window, below and above 0
_MOST_ROUNDS = 3125
_MANY = 150  # so many rounds are quicker on two grids
_FINER, _FINEST = 4, 12  # times as many points for a lower bound of many rounds, and of few
_LEFT = (0.0, *(0.45**k for k in range(10)))  # shares of p_0 that go to the further copies; each is sound


@dataclass(frozen=True, slots=True)
class GaussianRounds:
    """What one round looks like: the record's chance, or number of draws, and the noise; in units of sigma."""

    theta: float  # replace-one sensitivity
    shape: Shape
    draws: int
    population: int
    replaced: bool = False  # drawn with replacement

    @property
    def law(self) -> Multiplicity:
        """How often the record appears."""
        if self.replaced:
            return Multiplicity.binomial(self.draws, 1.0 / self.population)
        return Multiplicity.hypergeometric(self.population, 1, self.draws)

    @property
    def one_side(self) -> OneSide:
        """H of one round for the distances of a cell, alpha >= 1."""
        if self.replaced:
            return _with_copies(self.law, self.theta)
        chance = self.draws / self.population
        return lambda r, s, d, epsilon: triangle_delta(chance, r, s, d, epsilon)

    def attacks(self) -> list[Profile]:
        """Pairs that real data sets reach, each in both orders."""
        pair = gaussian_mixture(self.theta * (1.0 - 1e-12), self.law)
        found = [pair, Profile(pair.backward, pair.forward)]
        if self.shape == "diameter" and not self.replaced:
            found.append(_equilateral(self.draws / self.population, self.theta * (1.0 - 1e-12)))
        return found


def _equilateral(chance: float, theta: float) -> Profile:
    def log_delta(epsilon: FloatArray) -> FloatArray:
        flat = np.ravel(epsilon)
        near, error = triangle_delta(chance, theta, theta, theta, np.minimum(flat, 60.0)), 1e-15
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(near * (1.0 - 1e-4) - error, 0.0)).reshape(np.shape(epsilon))

    return Profile.symmetric(Curve(log_delta))


def _with_copies(law: Multiplicity, theta: float) -> OneSide:
    """One round with replacement: the first draw by its triangle, more copies by their own profiles; the best split."""
    p0, p1 = math.exp(law.log_none), math.exp(float(law.log_p[0]))
    more, copies = np.exp(law.log_p[1:]), law.counts[1:] * theta
    several = float(np.sum(more)) + math.exp(law.log_tail)
    whole = copies_table(law, theta)  # Theorem B, for any distances

    def groups(epsilon: FloatArray, left: float) -> FloatArray:
        """sum_{u>=2} p_u delta_u at log(alpha + (alpha - 1) left/p_{>=2})."""
        if several == 0.0:
            return np.zeros_like(epsilon)
        at = np.log(np.exp(epsilon) + np.expm1(epsilon) * left / several)[:, None]
        return np.asarray(np.exp(log_mills_gap(at / copies - 0.5 * copies, copies)) @ more) + math.exp(law.log_tail)

    def one_side(r: float, s: float, d: float, epsilon: FloatArray) -> FloatArray:
        best = np.exp(whole.log_delta(epsilon))
        for left in _LEFT:
            first = (1.0 - left) * p0 + p1
            value = first * triangle_delta(p1 / first, r, s, d, epsilon) + groups(epsilon, left * p0)
            best = np.minimum(best, value)
        return np.asarray(best * (1.0 + 1e-12))

    return one_side


class Block:
    """So many rounds of one kind, from both sides, on a window of losses up to `reach`."""

    def __init__(self, rounds: GaussianRounds, times: int, reach: float) -> None:
        self.rounds, self.times, self.reach = rounds, times, reach

    @cached_property
    def window(self) -> Window:
        """As fine as its points allow; above 0 a few will do, W is nearly a chord there."""
        return Window(self.reach / _POINTS, _POINTS, _ABOVE)

    @cached_property
    def upper(self) -> FloatArray:
        """delta at 0, interval, 2 interval, ..., from above."""
        of = self.rounds
        points = _SLOW_POINTS if of.replaced else _QUICK_POINTS
        cells = Cells(of.theta, of.shape, self.window.interval, of.one_side, points)
        cover = Cover(cells, self.window, self.times)
        values, done = start(self.window), 0
        while done < self.times:
            more = min(max((_LONGER - 1) * done, _FIRST), self.times - done)
            steps = cover.steps(values, done, more, self._cells(more))
            near = nearness(steps, self.window.points) if more >= _MANY else None
            values = Recursion(steps, self.window, upper=True, values=values, near=near).advance(more)
            done += more
        return np.asarray(values[self.window.below :: -1])

    def _cells(self, rounds: int) -> int:
        """How many cells so many rounds are worth: a few of many rounds are quick but matter little."""
        most = min(_WORK / (rounds * _POINTS), _SOME_CELLS * (1.0 + 15.0 * rounds / self.times))
        return int(min(max(most, _FEWEST_CELLS), _WITH_COPIES if self.rounds.replaced else _MOST_CELLS))

    @property
    def finer(self) -> int:
        """How much finer the grid from below is."""
        return _FINER if self.times >= _MANY else _FINEST

    @cached_property
    def lower(self) -> FloatArray:
        """The same from below, on a finer grid: it follows three pairs, not dozens of cells."""
        finer = self.finer
        window = Window(self.window.interval / finer, finer * self.window.below, finer * self.window.above)
        attacks, interval = self.rounds.attacks(), window.interval
        steps = steps_of(attacks, interval, upper=False)
        near = nearness(steps, window.points) if self.times >= _MANY else None
        steps = steps_of(attacks, interval, upper=False, near=near) if near else steps
        values = Recursion(steps, window, upper=False, near=near).advance(self.times)
        return np.asarray(values[window.below :: -1])


@lru_cache(maxsize=64)
def _block(rounds: GaussianRounds, times: int, reach: float) -> Block:
    return Block(rounds, times, reach)


def rounds_of(claim: Claim | None) -> GaussianRounds | None:
    """What the rounds of a claim look like, where this module knows them."""
    if claim is None or claim.neighbors.kind != "replace-one" or claim.neighbors.records > 1:
        return None
    mechanism, design = claim.mechanism, claim.design
    if not isinstance(design, (WithoutReplacement, WithReplacement)) or not mechanism.is_gaussian:
        return None
    shape: Shape = "ball" if mechanism.neighbors.kind == "add-remove" else "diameter"
    replaced = isinstance(design, WithReplacement)
    return GaussianRounds(gaussian_shift(mechanism), shape, design.size, design.population, replaced)


def is_feasible(times: int) -> bool:
    """Whether so many rounds are worth following one by one."""
    return 2 <= times <= _MOST_ROUNDS


def rounds_profile(rounds: GaussianRounds, times: int, reach: Callable[[], float], *, upper: bool) -> Profile:
    """Both directions of so many rounds, made when first asked for; beyond `reach` nothing is known."""

    def log_delta(epsilon: FloatArray) -> FloatArray:
        block = _block(rounds, times, reach())
        interval = block.window.interval / (1 if upper else block.finer)
        delta, place = (block.upper if upper else block.lower), epsilon / interval
        with np.errstate(divide="ignore"):
            values = np.log(_chord(delta, place, interval) if upper else delta[_index(delta, np.ceil(place))])
        return np.asarray(np.where(place <= delta.size - 1, values, 0.0 if upper else -np.inf))

    return Profile.symmetric(Curve(log_delta))


def _index(delta: FloatArray, place: FloatArray) -> NDArray[np.int64]:
    return np.asarray(np.clip(place, 0, delta.size - 1), dtype=np.int64)


def _chord(delta: FloatArray, place: FloatArray, interval: float) -> FloatArray:
    """Between grid points the chord in alpha: the truth is convex there."""
    i = _index(delta, np.floor(place))
    j = np.minimum(i + 1, delta.size - 1)
    share = np.expm1(np.clip(place - i, 0.0, 1.0) * interval) / math.expm1(interval)
    return np.asarray(delta[i] * (1.0 - share) + delta[j] * share)
