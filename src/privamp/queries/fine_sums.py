"""Sums of rows that are rounded once, as a whole: what rounding costs does not grow with the number of records.

Rounded one by one to the grid g of the noise, n records lose up to n g, all to one side. So sums are kept in whole
numbers of g and of the fine unit g/2^30, added up exactly, in any order, and rounded to the nearest multiple of g at
the end. Records lose at most g/2^30 each (up to 2^32 of them 4 g together), and g is at most 1/64 of the noise.

Theorem. If a record's row has at most k entries and a norm (l1 or l2) of at most r - k g, the rounded sum with it is
at most r away from that without it, and with m records of such rows more or fewer, at most m r.

Proof. Two numbers that are d apart are less than d + g apart after both are rounded to multiples of g. So an entry j
of a row x moves by at most |x_j| + g, entries that no row has do not move, and the norm of the move is at most
||x|| + ||(g, …, g)|| <= ||x|| + k g. For m rows an entry moves by at most the sum of |x_j| over the rows that have it,
plus one g: less than the sum of their own moves. A record that is drawn c times counts as c records.

A record with a weight other than 1 is rounded toward zero to multiples of g by itself: it moves every rounded entry by
exactly what it adds, so its norm stays at most its weight times r.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.sample import Drawn
from ..errors import InvalidInput
from ..mechanisms.fixed_point import GridUnits, in_grid_units
from ..numerics.log_domain import FloatArray
from ..numerics.row_norms import clipped
from ..numerics.whole_sums import Whole, toward_zero

_BITS = 30  # of the fine units: sums of 2^32 of them, and one of them drawn so often, fit 64 bits
_OFTEN = 2**32  # no record counts more often
_MOST = 0.25  # of a row's norm that rounding may take


def norm_left(sensitivity: float, entries: int, grid: float) -> float:
    """What a row of so many entries may have as its norm, rounded down."""
    if entries * grid > _MOST * sensitivity:
        raise InvalidInput(
            f"the grid of {grid:g} is too coarse for the {entries} numbers that a record adds; ask fewer questions "
            "at once, declare another number of rows=, or use another epsilon"
        )
    return math.nextafter(sensitivity - entries * grid, 0.0)


@dataclass(slots=True)
class FineSums:
    """Sums in units of the grid, and what is beyond them in fine units (from 0 to 2^30 - 1)."""

    grid: float
    units: Whole
    beyond: Whole

    @classmethod
    def of(cls, size: int, grid: float) -> "FineSums":
        """Sums of no records."""
        return cls(grid, np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64))

    def add(self, rows: FloatArray, places: NDArray[np.int64], drawn: Drawn, radius: float, p: float) -> None:
        """Clip each row to the norm, and add each of its entries to the sum at its place."""
        short = clipped(rows, radius, p)
        units = toward_zero(short, self.grid, drawn.weights)
        exact = (drawn.weights == 1.0)[:, None]
        fine = np.where(exact, (short / self.grid - units) * 2.0**_BITS, 0.0).astype(np.int64)  # toward zero
        if np.any(drawn.counts != 1):
            often = np.minimum(drawn.counts, _OFTEN)[:, None]
            units, fine = units * often, fine * often
        np.add.at(self.units, places, units + (fine >> _BITS))
        np.add.at(self.beyond, places, fine & (2**_BITS - 1))
        self.units += self.beyond >> _BITS
        self.beyond &= 2**_BITS - 1

    def rounded(self) -> GridUnits:
        """To the nearest multiple of the grid."""
        nearest: Any = self.units + (self.beyond + (1 << (_BITS - 1)) >> _BITS)
        return in_grid_units(nearest)
