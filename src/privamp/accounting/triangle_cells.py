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
from .adaptive import Step, without_ends
from .bridge import Points
from .discretize import law_of_points

Shape = Literal["ball", "diameter"]
OneSide = Callable[[float, float, float, FloatArray], FloatArray]  # (r, s, d, epsilons) → H, rounded up

_POINTS = 450  # epsilons at which one direction is evaluated; between them chords
_NOTHING = 3e-17
_FARTHEST = 60.0
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

    def quarters(self) -> list["Cell"]:
        """Cut where the circle r^2 + s^2 = 1 crosses it, or in the middle."""
        r = 0.5 * (self.r0 + self.r1)
        s = math.sqrt(max(1.0 - r * r, 0.0))
        if not self.s0 < s < self.s1:
            s = 0.5 * (self.s0 + self.s1)
        pieces = [Cell(a, b, c, d) for a, b in ((self.r0, r), (r, self.r1)) for c, d in ((self.s0, s), (s, self.s1))]
        return [piece for piece in pieces if piece.matters]


@dataclass(frozen=True)
class Cells:
    """Laws of cells on a grid; `one_side` is H of a round, for alpha >= 1."""

    theta: float
    shape: Shape
    interval: float
    one_side: OneSide

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
        end = 0.25
        while end < _FARTHEST and float(self.one_side(r, s, d, np.array([end]))[0]) > _NOTHING:
            end *= 1.3
        last = max(math.ceil(end / self.interval), 2)
        at = np.unique(np.append(0, np.rint(np.geomspace(1.0, last, _POINTS)))).astype(np.int64)
        return at, np.minimum.accumulate(self.one_side(r, s, d, as_floats(at * self.interval)))


def first_cells() -> list[Cell]:
    """Four by four, at equal angles, without those that do not matter."""
    ends = [0.0, *(math.sin(math.pi * k / 8.0) for k in (1, 2, 3)), 1.0]
    sides = list(pairwise(ends))
    return [cell for r in sides for s in sides if (cell := Cell(*r, *s)).matters]
