"""Single questions about quantiles without intervals: chosen by the exponential mechanism.

A quantile's rank is off by Laplace errors where numbers lie evenly: a position that lacks r records from the target is
chosen with chance proportional to e^(-r/s), s = 2 max(p, 1 - p)/epsilon_i. In a column with ties, the room between two
of them can outweigh them by its length, by up to s log(its length) records. So the choice alone gives no interval;
questions that need one are answered from a tree of noisy counts (`quantiles.py`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..engines.stored_sample import drawn_of
from ..mechanisms.cell_counts import CellCounts
from ..mechanisms.chosen_quantiles import ChosenQuantiles
from ..mechanisms.rank_choice import STEPS
from ..numerics.log_domain import FloatArray

if TYPE_CHECKING:
    from .quantiles import Quantiles

_CELLS = 2**20


@dataclass(frozen=True, slots=True)
class Scale:
    """Public cells between the bounds: one for every whole number, or very many."""

    low: float
    high: float
    cells: int
    is_whole: bool

    @classmethod
    def of(cls, bounds: tuple[float, float], *, is_whole: bool) -> "Scale":
        """Whole numbers have cells of their own where these are not too many."""
        low, high = bounds
        first, last = math.ceil(low), math.floor(high)
        if is_whole and 0 <= last - first < _CELLS:
            return cls(float(first), float(last), last - first + 1, True)
        return cls(low, high, _CELLS, False)

    def cells_of(self, x: FloatArray) -> NDArray[np.int64]:
        """The cell of every number, -1 for NaN."""
        there = ~np.isnan(x)
        safe = np.clip(np.where(there, x, self.low), self.low, self.high)
        if self.is_whole:
            cell = np.rint(safe - self.low)
        else:
            cell = np.floor((safe - self.low) / (self.high - self.low) * self.cells)
        return np.where(there, np.clip(cell.astype(np.int64), 0, self.cells - 1), -1)

    def value(self, position: int) -> float:
        """The number at a position."""
        if self.is_whole:
            return self.low + position // STEPS
        share = (position + 0.5) / (self.cells * STEPS)
        return self.low * (1.0 - share) + self.high * share


@dataclass(frozen=True, slots=True)
class Choice:
    """One question about quantiles, and how it is answered by choosing."""

    question: "Quantiles"
    scale: Scale

    def mechanism(self, epsilon: float) -> ChosenQuantiles:
        """Of this epsilon on the sample."""
        groups = 1 if self.question.groups is None else len(self.question.groups.values)
        rising = tuple(sorted(self.question.probabilities))
        return ChosenQuantiles(epsilon, cells=self.scale.cells, groups=groups, probabilities=rising)

    def counts(self, batches: Sequence[pa.RecordBatch]) -> CellCounts:
        """How many of those drawn are in each cell of each group."""
        none = np.empty(0, dtype=np.int64)
        total, question = CellCounts(none, none), self.question
        for batch in batches:
            cell = self.scale.cells_of(question.values(batch))
            group = np.zeros(len(cell), dtype=np.int64) if question.groups is None else question.groups.places(batch)
            place = np.where((cell >= 0) & (group >= 0), group * self.scale.cells + cell, -1)
            total = total.plus(CellCounts.of(place, drawn_of(batch).counts.astype(np.int64)))
        return total

    def values(self, rows: NDArray[np.int64]) -> FloatArray:
        """The quantiles alone."""
        return np.array([self.scale.value(int(row[k])) for row in rows for k in self._order()])

    def _order(self) -> list[int]:
        rising = sorted(self.question.probabilities)
        return [rising.index(p) for p in self.question.probabilities]
