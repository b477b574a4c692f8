"""Mean and variance.

Mean of m entries in [L, U]: one entry moves it by at most (U - L)/m.
Variance, s^2 = 1/(m(m-1)) sum_{i<j} (x_i - x_j)^2: one entry x -> x' moves it by
1/(m(m-1)) sum_j [(x - x_j)^2 - (x' - x_j)^2], each bracket within (U - L)^2, so by at most (U - L)^2/m; attained when
all others and x' are at one end and x at the other. Never divided by n: m entries are averaged. Both are computed from
whole numbers (`lattice`), without rounding until the end.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ..numerics.log_domain import FloatArray
from .lattice import UNIT, products, real, rounded, total, whole
from .spread import Finding
from .statistic import Series, Statistic, at_least_two, range_of


@dataclass(frozen=True, slots=True)
class Mean(Statistic):
    """The mean of values in public bounds."""

    bounds: tuple[float, float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "bounds", range_of(self.bounds))

    @property
    def centre(self) -> float:
        """The middle of the bounds, taken off before summing."""
        return 0.5 * self.bounds[0] + 0.5 * self.bounds[1]

    @property
    def half(self) -> float:
        """Half the width of the bounds."""
        return 0.5 * self.bounds[1] - 0.5 * self.bounds[0]

    def rows(self, values: Any) -> FloatArray:
        """Clipped, relative to the middle of the bounds, in whole numbers of a small unit."""
        return at_least_two(whole(values, self.bounds))

    def sensitivity(self, size: int) -> float:
        """(U - L)/m, and the last rounding."""
        return rounded(2.0 * self.half / size, size)

    def compute(self, rows: FloatArray, counts: FloatArray) -> FloatArray:
        """The mean of the entries."""
        return np.asarray([self.half * real(Fraction(total(rows, counts), int(counts.sum() * UNIT)))])

    def conclude(self, series: Series) -> tuple[Finding, ...]:
        """The mean of the released averages, in the units of the records."""
        found = series.spread.finding("mean", series.averages[:, 0] + self.centre, series.noise)
        return (found.within(*self.bounds),)


@dataclass(frozen=True, slots=True)
class Variance(Mean):
    """The unbiased variance of values in public bounds."""

    least = 2

    def sensitivity(self, size: int) -> float:
        """(U - L)^2/m, exactly attained, and the last rounding."""
        return rounded((2.0 * self.half) ** 2 / size, size)

    def compute(self, rows: FloatArray, counts: FloatArray) -> FloatArray:
        """s^2 with the divisor m - 1."""
        size = int(counts.sum())
        squares = size * int(products(rows, rows, counts)) - total(rows, counts) ** 2
        return np.asarray([self.half**2 * real(Fraction(squares, size * (size - 1) * int(UNIT**2)))])

    def conclude(self, series: Series) -> tuple[Finding, ...]:
        """The mean of the averages, corrected for the shrinkage of resampling with replacement."""
        scaled = series.averages[:, 0] / series.kept
        found = series.spread.finding("variance", scaled, series.noise / series.kept)
        return (found.within(0.0, self.half**2),)
