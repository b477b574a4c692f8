"""The composed curve, falling in epsilon by construction, each epsilon by the tilt that suits it.

Every table of `tilted.py` gives a curve that falls. The tilt changes at finitely many epsilons (`tilts.py`), and there
another table, with another error, might answer with more than was answered just before. An upper bound at a smaller
epsilon is one at a larger epsilon, so the answer is the smallest of its own table's and of all earlier pieces' last
answers; a lower bound is the largest of its own and of all later pieces' first ones. Earlier pieces can only matter
when the answer lies within the error of the piece's left end; elsewhere their tables are not made. Which tables are
made does not change any answer, so nothing depends on what was asked before.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..numerics.log_domain import FloatArray, as_floats
from ..numerics.roots import halved
from .discretize import LossLaw
from .tilted import Losses, Table, table, window
from .tilts import LADDER, Rung, Tilts

_UNIT = 1.2e-16
_SPARE = 14.0  # a tilt is tried first when its Chernoff bound is within e^14 of the best
_GAIN = 0.25  # the best one is tried next where its Chernoff bound is smaller by e^.25
_DEEP, _NEGLIGIBLE = -1e4, -37.0  # log delta that nobody asks digits of; in units of what is lost whatever epsilon is
_GOOD_ENOUGH = 1e-5  # relative error at which the best tilt is not sought
WIDEST, _WORTH = 2**22, 2**21  # points of a window that fit into memory; that a further tilt may cost anyhow


@dataclass(frozen=True, slots=True)
class Piece:
    """The epsilons in [left, right), and the tilts whose tables serve them."""

    left: float
    right: float
    tilts: tuple[float, ...]


class Composed:
    """Several loss laws, each taken `steps` times, on one grid."""

    def __init__(self, laws: Sequence[tuple[LossLaw, int]], upper: bool) -> None:
        self.laws, self.upper = tuple(laws), upper
        self.losses = [Losses.of(law, steps) for law, steps in laws]
        self._tables: dict[float, Table] = {}
        self._moments: dict[float, tuple[float, float]] = {}
        self._points: dict[float, int] = {}
        self._turns: dict[Rung, float] = {}
        self._beside: dict[float, float] = {}
        self._tilts = Tilts(self.log_moment, self._fits)

    @cached_property
    def log_infinite(self) -> float:
        """log of the probability that some step has an infinite loss."""
        log_none = sum(steps * math.log1p(-min(law.infinite, 1.0 - _UNIT)) for law, steps in self.laws)
        return math.log(-math.expm1(log_none)) if log_none < 0.0 else -math.inf

    @cached_property
    def _has_losses(self) -> bool:
        return all(part.mass.size > 0 for part in self.losses)

    @cached_property
    def _deep(self) -> float:
        """Where Chernoff's bound is below this, it will do."""
        return max(_DEEP, self.log_infinite + _NEGLIGIBLE)

    @cached_property
    def _end(self) -> float:
        """No finite loss is larger."""
        total = sum(part.steps * max(int(part.index[-1]), 0) for part in self.losses)
        return total * self.losses[0].interval * (1.0 + 8.0 * _UNIT)

    def log_delta(self, epsilon: FloatArray) -> FloatArray:
        """log delta, above the truth (below it for a lower bound), never rising."""
        epsilon = as_floats(epsilon)
        if not self._has_losses:
            return np.zeros_like(epsilon)  # some step's loss is infinite for sure
        flat = epsilon.ravel()
        chernoff = np.where(flat < self._end, self._chernoff(flat), -np.inf)
        worth = chernoff > self._deep
        if self.upper:
            best = np.logaddexp(chernoff, self.log_infinite)
            least = float(np.logaddexp(self._deep, self.log_infinite))  # what follows where no table is made
        else:
            least = self.log_infinite + math.log1p(-1e-9)
            best = np.full_like(flat, least)
        if np.any(worth):
            found = self._by_tables(flat[worth])
            best[worth] = np.maximum(np.minimum(best[worth], found) if self.upper else found, least)
        return np.asarray(best.reshape(epsilon.shape))

    def ceiling(self, epsilon: FloatArray) -> FloatArray:
        """log of a quick upper bound, by Chernoff and by the table without a tilt."""
        epsilon = as_floats(epsilon)
        if not self._has_losses:
            return np.zeros_like(epsilon)
        chernoff = np.logaddexp(self._chernoff(epsilon), self.log_infinite)
        return np.minimum(chernoff, self.table(0.0).above(epsilon, self.log_infinite))

    def _chernoff(self, epsilon: FloatArray) -> FloatArray:
        """The least K(tilt) - tilt epsilon over the ladder, up to where all have begun to rise."""
        best = previous = np.zeros_like(epsilon)
        for tilt in LADDER[1:]:
            value = sum(self.moments(tilt)) - tilt * epsilon * (1.0 - 4.0 * _UNIT)
            if np.all(value > previous):  # K is convex: it only gets worse
                break
            best, previous = np.minimum(best, value), value
        return np.asarray(best)

    def _by_tables(self, epsilon: FloatArray) -> FloatArray:
        """Piece by piece."""
        found, is_left = np.empty_like(epsilon), np.ones(epsilon.shape, dtype=np.bool_)
        while np.any(is_left):
            piece = self._piece(float(np.min(epsilon[is_left])))
            here = is_left & (epsilon < piece.right)
            found[here] = self._on(piece, epsilon[here])
            is_left &= ~here
        return found

    def _on(self, piece: Piece, epsilon: FloatArray) -> FloatArray:
        """The answers in one piece, and in those beside it where they may matter."""
        tables, lost = [self.table(tilt) for tilt in piece.tilts], self.log_infinite
        if self.upper:
            found = np.minimum.reduce([t.above(epsilon, lost) for t in tables])
            if piece.left > 0.0:
                start = np.asarray([piece.left])
                if float(np.max(found)) > max(float(t.below(start, lost)[0]) for t in tables):
                    found = np.minimum(found, self._before(piece.left))
            return as_floats(found)
        found = np.maximum.reduce([t.below_falling(epsilon, lost) for t in tables])
        if piece.right < math.inf:
            end = np.asarray([piece.right])
            least = min(float(self._chernoff(end)[0]), *(float(t.above(end, -math.inf)[0]) for t in tables))
            if float(np.min(found)) < float(np.logaddexp(least, lost)):
                found = np.maximum(found, self._after(piece.right))
        return as_floats(found)

    def _before(self, left: float) -> float:
        """The smallest answer to the left of a piece."""
        if left not in self._beside:
            last = math.nextafter(left, -math.inf)
            self._beside[left] = float(self._on(self._piece(last), np.asarray([last]))[0])
        return self._beside[left]

    def _after(self, right: float) -> float:
        """The largest answer to the right of a piece."""
        if right not in self._beside:
            self._beside[right] = float(self.log_delta(np.asarray([right]))[0])
        return self._beside[right]

    def _piece(self, epsilon: float) -> Piece:
        """By a tilt that is likely to do, and where it does not, by the best one as well, if that is any better."""
        rung = self._tilts.at(epsilon, _SPARE)
        turn = self._turn(rung)
        if epsilon < turn:
            return Piece(rung.left, turn, (rung.tilt,))
        best = self._tilts.at(epsilon, 0.0)
        left, right = max(turn, best.left), min(rung.right, best.right)
        if best.tilt <= rung.tilt:
            return Piece(left, right, (rung.tilt,))
        better = (self.log_moment(best.tilt) - self.log_moment(rung.tilt) + _GAIN) / (best.tilt - rung.tilt)
        if epsilon < better:
            return Piece(left, min(right, better), (rung.tilt,))
        return Piece(max(left, better), right, (rung.tilt, best.tilt))

    def _turn(self, rung: Rung) -> float:
        """Where its table's error stops being small."""
        if rung not in self._turns:
            made, lost = self.table(rung.tilt), self.log_infinite if self.upper else -math.inf
            low, high = max(rung.left, 0.0), min(rung.right, made.end)

            def is_loose(epsilon: float) -> bool:
                return made.is_loose(epsilon, lost, _GOOD_ENOUGH)

            if not low < high or is_loose(low):
                self._turns[rung] = rung.left
            elif not is_loose(high):
                self._turns[rung] = rung.right
            else:
                self._turns[rung] = halved(is_loose, low, high)[1]
        return self._turns[rung]

    def table(self, tilt: float) -> Table:
        """The composed law at one tilt, made once."""
        if tilt not in self._tables:
            self._tables[tilt] = table(self.losses, tilt, self.moments(tilt))
        return self._tables[tilt]

    def _fits(self, tilt: float) -> bool:
        return self.points(tilt) <= max(_WORTH, 2 * self.points(0.0))

    def points(self, tilt: float) -> int:
        """How many grid points the composed law needs at this tilt."""
        if not self._has_losses:
            return 1
        if tilt not in self._points:
            first, last = window([part.tilted(tilt) for part in self.losses])
            self._points[tilt] = last - first + 1
        return self._points[tilt]

    def log_moment(self, tilt: float) -> float:
        """K(tilt) = log E e^(tilt loss) over the finite losses."""
        return self.moments(tilt)[0]

    def moments(self, tilt: float) -> tuple[float, float]:
        """K(tilt) and a bound on its error."""
        if tilt not in self._moments:
            found = [(part.steps, *part.moment(tilt)) for part in self.losses]
            value, error = (sum(row[0] * row[i] for row in found) for i in (1, 2))
            self._moments[tilt] = value, error + 1e-15 * abs(value)
        return self._moments[tilt]
