"""Rounds with Gaussian noise under replace-one: all pairs of one round, covered by finitely many dominating ones.

In one round the record is drawn with chance q, and the outputs are centred at 0 without it, at a or b with one of the
two records; r = |a|, s = |b|, d = |a - b| (mechanisms/gaussian_triangles.py), in units of sigma. With theta the
replace-one sensitivity:

    ball      0, a and b lie in a ball of diameter theta (an add/remove sensitivity of theta/2 is declared)
    diameter  r, s and d are at most theta (only the replace-one sensitivity is declared)

Only r + s >= theta and the largest d of every (r, s) matter, and a rectangle [r0, r1] x [s0, s1] is dominated by
H(r1, max(s0, d - r1), d) for alpha >= 1 and by the same with r and s exchanged for alpha < 1, d the largest one in the
rectangle. Any cover is sound; where a rectangle matters, it is halved. Proof: docs/designs/rounds.md, Thm 2 and 3.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np

from ..numerics.log_domain import FloatArray, as_floats
from .adaptive import without_ends
from .bridge import Points
from .discretize import law_of_points
from .far_losses import Step

Shape = Literal["ball", "diameter"]
OneSide = Callable[[float, float, float, FloatArray], FloatArray]  # (r, s, d, epsilons) → H, rounded up

_NOTHING, _LITTLE = 1e-14, 1e-8  # where a curve ends, and where a few points of it are enough
_FARTHEST = 60.0
_ENDS = as_floats(0.1 * 1.3 ** np.arange(25))  # where a curve may end
_SLACK = 1.0 + 1e-12  # on the largest distance


@dataclass(frozen=True, slots=True)
class Cell:
    """A rectangle of (r, s), in units of theta."""

    r0: float
    r1: float
    s0: float
    s1: float

    @property
    def matters(self) -> bool:
        """Whether some (r, s) of it has r + s > 1: the others are dominated by those on that line."""
        return self.r1 + self.s1 > 1.0

    def distance(self, shape: Shape) -> float:
        """The largest d in it."""
        if shape == "diameter" or self.r0**2 + self.s0**2 <= 1.0:
            return 1.0
        return min(math.sin(min(math.asin(self.r0) + math.asin(self.s0), math.pi)) * _SLACK + 1e-15, 1.0)

    def halves(self) -> list[list["Cell"]]:
        """Cut along r and along s, each where the circle r^2 + s^2 = 1 crosses it, or in the middle."""
        r = _between(self.r0, math.sqrt(max(1.0 - self.s0**2, 0.0)), self.r1)
        s = _between(self.s0, math.sqrt(max(1.0 - self.r0**2, 0.0)), self.s1)
        along_r = [Cell(self.r0, r, self.s0, self.s1), Cell(r, self.r1, self.s0, self.s1)]
        along_s = [Cell(self.r0, self.r1, self.s0, s), Cell(self.r0, self.r1, s, self.s1)]
        return [[piece for piece in pieces if piece.matters] for pieces in (along_r, along_s)]


def _between(low: float, wanted: float, high: float) -> float:
    return wanted if low + 0.1 * (high - low) < wanted < high - 0.1 * (high - low) else 0.5 * (low + high)


@dataclass(frozen=True)
class Cells:
    """Laws of cells on a grid; `one_side` is H of a round, for alpha >= 1."""

    theta: float
    shape: Shape
    interval: float
    one_side: OneSide
    points: int  # epsilons at which one direction is evaluated, as far as they differ on the grid; then chords

    @cached_property
    def _known(self) -> dict[tuple[float, float, float], Points]:
        return {}

    def step(self, cell: Cell) -> Step | None:
        """A law that dominates every pair of the cell; None where a and b are one point."""
        d = cell.distance(self.shape)
        if d < 1e-9:
            return None
        own = self._side(cell.r1, max(cell.s0, d - cell.r1), d)
        other = self._side(cell.s1, max(cell.r0, d - cell.s1), d)
        return without_ends(law_of_points(own, other, self.interval), upper=True)

    def _side(self, r: float, s: float, d: float) -> Points:
        """One direction at grid points; s may be taken smaller, which makes it larger."""
        s = min(s, math.hypot(r, d) * (1.0 - 1e-6))
        if (r, s, d) not in self._known:
            self._known[r, s, d] = self._points(r * self.theta, s * self.theta, d * self.theta)
        return self._known[r, s, d]

    def _points(self, r: float, s: float, d: float) -> Points:
        ends = self.one_side(r, s, d, _ENDS)
        knee, last = (self._first_below(ends, level) for level in (_LITTLE, _NOTHING))
        dense, sparse = np.geomspace(1.0, knee, self.points), np.geomspace(knee, last, self.points // 8)
        at = np.unique(np.rint(np.concatenate([[0.0], dense, sparse]))).astype(np.int64)
        return at, np.minimum.accumulate(self.one_side(r, s, d, as_floats(at * self.interval)))

    def _first_below(self, ends: FloatArray, level: float) -> int:
        """Where on the grid a curve is at most so large."""
        ended = np.flatnonzero(ends <= level)
        return max(math.ceil((float(_ENDS[ended[0]]) if ended.size else _FARTHEST) / self.interval), 2)


def corners() -> list[Cell]:
    """The two pairs that matter most: a mixture against a plain law, and the reverse."""
    return [Cell(1.0, 1.0, 0.0, 0.0), Cell(0.0, 0.0, 1.0, 1.0)]


def first_cells() -> list[Cell]:
    """Four by four, at equal angles, without those that do not matter."""
    ends = [0.0, *(math.sin(math.pi * k / 8.0) for k in (1, 2, 3)), 1.0]
    sides = list(pairwise(ends))
    return [cell for r in sides for s in sides if (cell := Cell(*r, *s)).matters]
