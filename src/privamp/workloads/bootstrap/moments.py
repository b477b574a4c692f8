"""Mean and variance.

Mean of m entries in [L, U]: one entry moves it by at most (U - L)/m.
Variance, s^2 = 1/(m(m-1)) sum_{i<j} (x_i - x_j)^2: one entry x -> x' moves it by
1/(m(m-1)) sum_j [(x - x_j)^2 - (x' - x_j)^2], each bracket within (U - L)^2, so by at most (U - L)^2/m; attained when
all others and x' are at one end and x at the other. Never divided by n: m entries are averaged.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...numerics.log_domain import FloatArray
from .spread import Finding
from .statistic import Series, Statistic, bounds_of, column_of


@dataclass(frozen=True, slots=True)
class Mean(Statistic):
    """The mean of values in public bounds."""

    bounds: tuple[float, float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "bounds", bounds_of(self.bounds))

    @property
    def centre(self) -> float:
        """The middle of the bounds, taken off before summing."""
        return 0.5 * (self.bounds[0] + self.bounds[1])

    def rows(self, values: Any) -> FloatArray:
        """Clipped, relative to the middle of the bounds."""
        return np.asarray(np.clip(column_of(values), *self.bounds) - self.centre)

    def sensitivity(self, size: int) -> float:
        """(U - L)/m."""
        return (self.bounds[1] - self.bounds[0]) / size

    def compute(self, rows: FloatArray, counts: FloatArray) -> FloatArray:
        """The mean of the entries."""
        return np.asarray([counts @ rows / counts.sum()])

    def conclude(self, series: Series) -> tuple[Finding, ...]:
        """The mean of the averages."""
        found = series.spread.finding("mean", series.averages[:, 0] + self.centre, series.noise)
        return (found.within(*self.bounds),)


@dataclass(frozen=True, slots=True)
class Variance(Mean):
    """The unbiased variance of values in public bounds."""

    least = 2

    def sensitivity(self, size: int) -> float:
        """(U - L)^2/m, exactly attained."""
        return (self.bounds[1] - self.bounds[0]) ** 2 / size

    def compute(self, rows: FloatArray, counts: FloatArray) -> FloatArray:
        """s^2 with the divisor m - 1."""
        size = counts.sum()
        away = rows - counts @ rows / size
        return np.asarray([counts @ away**2 / (size - 1.0)])

    def conclude(self, series: Series) -> tuple[Finding, ...]:
        """The mean of the averages, without the shrinking that resampling with replacement brings."""
        scaled = series.averages[:, 0] / series.kept
        found = series.spread.finding("variance", scaled, series.noise / series.kept)
        return (found.within(0.0, 0.25 * (self.bounds[1] - self.bounds[0]) ** 2),)
