"""Counts of records in many public cells, most of them empty."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class CellCounts:
    """Secret: the cells that hold records, in increasing order, and how many each holds.

    A record is in one cell, so adding one changes the counts by 1 in the sum of absolute differences.
    """

    cells: Whole = field(repr=False)
    counts: Whole = field(repr=False)

    @classmethod
    def of(cls, cells: Whole, counts: Whole) -> "CellCounts":
        """From the cell of every record and how often it counts; negative cells are ignored."""
        inside = cells >= 0
        found, where = np.unique(cells[inside], return_inverse=True)
        total = np.zeros(len(found), dtype=np.int64)
        np.add.at(total, where, counts[inside])
        return cls(found, total)

    def plus(self, other: "CellCounts") -> "CellCounts":
        """Both together."""
        return CellCounts.of(
            np.concatenate([self.cells, other.cells]), np.concatenate([self.counts, other.counts])
        )  # fmt: skip

    def between(self, first: int, end: int) -> "CellCounts":
        """The cells from `first` to before `end`, numbered from 0."""
        a, b = np.searchsorted(self.cells, [first, end])
        return CellCounts(self.cells[a:b] - first, self.counts[a:b])

    def distance(self, other: "CellCounts") -> int:
        """The sum of absolute differences."""
        cells = np.concatenate([self.cells, other.cells])
        both = CellCounts.of(cells, np.concatenate([self.counts, -other.counts]))
        return int(np.sum(np.abs(both.counts)))
