"""Covers of all pairs of a round by cells, chosen anew as the rounds go by.

Any cover by the cells of triangle_cells.py is sound in any round, so a cover may fit the rounds it is used in: near the
last round W has a kink and many pairs matter a little; many rounds earlier only those near the two corners do. A cell
that stands out above the corners, where the losses that matter are, is cut in two, along r or along s, whichever leaves
less of it.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..numerics.log_domain import FloatArray
from .adaptive import Recursion, Window
from .far_losses import Step, nearness
from .mixed_pairs import without_mixtures
from .triangle_cells import Cell, Cells, corners, first_cells

_SPREAD = 0.3  # of the losses that matter around half the window, many rounds before the end; in units of the window
_NARROWEST = 0.02
_LOOKS, _LITTLE = 100, 0.01  # points of the window at which a cell is weighed, and where they end
_WORTH_FEWER = 1000  # so many rounds are worth looking for pairs that need not be followed
_WORTH_TWO_GRIDS = 300
_GOOD_ENOUGH = 5e-4  # relative, of delta, for all rounds of one cover


@dataclass(frozen=True)
class Cover:
    """Cells for `times` rounds on a window."""

    cells: Cells
    window: Window
    times: int

    @cached_property
    def _laws(self) -> dict[Cell, Step | None]:
        return {}

    def steps(self, values: FloatArray, done: int, rounds: int, most: int) -> list[Step]:
        """The laws of a cover for so many more rounds, of at most so many cells; `values` is W after those done."""
        scales = _Scales(self, values, done, rounds)
        known = {cell: row for cell in first_cells() if (row := scales.row(cell)) is not None}
        for _ in range(most):
            names = list(known)
            rows = np.stack([known[name] for name in names])
            scores = np.bincount(np.argmax(rows, axis=0), np.maximum(np.max(rows, axis=0), 0.0), len(names))
            if len(known) >= most or float(np.sum(scores)) <= _GOOD_ENOUGH:
                break
            worst = names[int(np.argmax(scores))]
            del known[worst]
            known |= scales.best_cut(worst)
        weakest_first = sorted(known, key=lambda cell: float(np.max(known[cell])))
        laws = [law for cell in weakest_first if (law := self.law(cell))]
        return laws if rounds < _WORTH_FEWER else without_mixtures(laws, self.window.interval)

    def law(self, cell: Cell) -> Step | None:
        """The law of a cell, made once."""
        if cell not in self._laws:
            self._laws[cell] = self.cells.step(cell)
        return self._laws[cell]


class _Scales:
    """How far a cell stands out above the corners, relative to W, in all rounds of a cover together."""

    def __init__(self, cover: Cover, values: FloatArray, done: int, rounds: int) -> None:
        self.cover = cover
        window = cover.window
        laws = [law for cell in corners() if (law := cover.law(cell))]
        near = nearness(laws, window.points) if rounds >= _WORTH_TWO_GRIDS else None
        ends = Recursion(laws, window, upper=True, values=values, near=near)
        self.values = ends.advance((rounds + 1) // 2)
        share = (done + 0.5 * rounds) / cover.times
        place = window.losses / (window.below * window.interval) + 0.5 * share  # where the losses are by then
        weight = np.exp(-0.5 * (place / max(_SPREAD * math.sqrt(share), _NARROWEST)) ** 2)
        matters = np.flatnonzero(weight > _LITTLE)
        at = matters[np.unique(np.rint(np.linspace(0, matters.size - 1, _LOOKS)).astype(np.int64))]
        self.weight = rounds * weight[at] / np.sum(weight[at]) / np.maximum(self.values[at], 1e-12)
        self.least = ends.best(self.values)[at]
        self.reach = self.values.size
        above = 1.0 - np.exp(-np.arange(1, self.reach + 1) * window.interval) * (1.0 - self.values[-1])
        padded = np.concatenate([np.full(self.reach, self.values[0]), self.values, above])
        around = np.lib.stride_tricks.sliding_window_view(padded, 2 * self.reach + 1)
        self._table = np.ascontiguousarray(around[at])  # W from `reach` points below to as many above

    def row(self, cell: Cell) -> FloatArray | None:
        """The excess of one cell, weighed, at some of the window's points; None for a cell without a law."""
        law = self.cover.law(cell)
        if law is None:
            return None
        return np.asarray((self._sums(law) - self.least) * self.weight)

    def _sums(self, law: Step) -> FloatArray:
        """E[W(u + loss)] at the points that are looked at, by adding up."""
        low, high = -self.reach, self.reach + 1
        start, end = max(law.first, low), min(law.first + law.mass.size, high)
        inside = law.mass[start - law.first : end - law.first]
        lost = float(np.sum(law.mass[: start - law.first]))
        beyond = float(np.sum(law.mass[end - law.first :])) + law.above
        return np.asarray(self._table[:, start - low : end - low] @ inside + lost * self.values[0] + beyond)

    def best_cut(self, cell: Cell) -> dict[Cell, FloatArray]:
        """Its two parts, along r or along s."""
        cuts = [{part: row for part in parts if (row := self.row(part)) is not None} for parts in cell.halves()]
        return min(cuts, key=lambda cut: sum(float(np.sum(np.maximum(row, 0.0))) for row in cut.values()))
