"""From noisy sums and counts to centres: all of it post-processing, at no privacy cost.

A cell's noisy mean y = sum/count has noise of variance tau² = var/count² in every column. It is pulled toward the
overall mean m, column by column, by g/(g + tau²), g the variance of the cells' true means about m, itself estimated
from what was released (empirical Bayes; Efron and Morris 1973):

    g = [sum of count² ((y - m)² - tau²) / sum of count²]+

The overall mean is released by itself, pulled toward the ball's centre as a whole by the factor of James and Stein
(1961; three columns or more), and joined with the sum of all cells of every later step, each weighted by one over the
variance of its noise. A cell whose count is below its noise is treated as empty.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..numerics.log_domain import FloatArray
from .starts import into_ball

_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class NoiseOfStep:
    """What is known about the noise of one step."""

    column_variance: float  # in one column of a sum
    count_error: float  # standard deviation in a count


@dataclass(frozen=True, slots=True)
class OverallMean:
    """An estimate of the mean of all records in the unit ball, and the variance of the noise in each column."""

    point: FloatArray = field(repr=False)  # (d,)
    variance: float

    @classmethod
    def of(cls, total: FloatArray, count: float, column_variance: float) -> "OverallMean":
        """From the noisy sum and count of all records, pulled toward the ball's centre."""
        size = max(float(count), 1.0)
        mean, variance = total / size, column_variance / size**2
        square = float(np.sum(mean**2))
        kept = max(1.0 - max(mean.size - 2, 0) * variance / max(square, _TINY), 0.0)
        return cls(into_ball(kept * mean[None])[0], variance)

    def of_columns(self, columns: NDArray[np.intp]) -> "OverallMean":
        """The same for some columns."""
        return OverallMean(self.point[columns], self.variance)

    def joined(self, sums: FloatArray, counts: FloatArray, noise: NoiseOfStep) -> "OverallMean":
        """Joined with the sum of all cells of a step."""
        size = max(float(np.sum(counts)), 1.0)
        variance = len(sums) * noise.column_variance / size**2
        mine, theirs = 1.0 / max(self.variance, _TINY), 1.0 / max(variance, _TINY)
        point = (mine * self.point + theirs * np.sum(sums, axis=0) / size) / (mine + theirs)
        return OverallMean(into_ball(point[None])[0], 1.0 / (mine + theirs))


@dataclass(frozen=True, slots=True)
class Cells:
    """Where the records of each cell lie on average, and about how many there are: 0 for cells treated as empty."""

    points: FloatArray = field(repr=False)  # (cells, d), in the unit ball
    counts: FloatArray = field(repr=False)  # (cells,)

    @property
    def are_there(self) -> NDArray[np.bool_]:
        """Cells not treated as empty."""
        return np.asarray(self.counts > 0.0)


def cells_of(sums: FloatArray, counts: FloatArray, mean: OverallMean, noise: NoiseOfStep) -> Cells:
    """The cells of a step, pulled toward the overall mean."""
    error = max(noise.count_error, 1.0)
    size = np.maximum(counts, error)[:, None]
    tau = noise.column_variance / size**2
    away, weights = sums / size - mean.point, size**2
    between = np.maximum(np.sum(weights * (away**2 - tau), axis=0) / np.sum(weights), 0.0)
    points = into_ball(mean.point + away * between / np.maximum(between + tau, _TINY))
    return Cells(points, np.where(counts > error, counts, 0.0))
