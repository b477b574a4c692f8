"""The direct interval of a mean: one release from all the data, without resampling.

With z = (x - c)/h in [-1, 1], c the middle and h half the width of the bounds, the averages of z and of w z² over n
records are released together. A replaced record moves them by t²(1 + w²s²)/n² in square, t = z - z', s = z + z', |t| +
|s| <= 2. With u = 2 - |t| >= |s| that is at most (2 - u)²(1 + w²u²)/n², and

    4 - (2 - u)²(1 + w²u²) = u [4 - u - w² u (2 - u)²] >= 0  on [0, 2]  for w² <= 2.77

(the bracket's least value is 0.02 at w = 1.66, near u = 0.76). So the l2 sensitivity is 2/n: **the squares cost
nothing** beside the mean. From both follows the variance s² of the records, with noise of known size, and the mean
misses the truth by noise² + s²/n. One standard error of its noise is added to s², because an s² that is too small
covers too rarely.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.special import ndtri

from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray
from .lattice import UNIT, products, real, total
from .moments import Mean
from .spread import Finding
from .statistic import Series, Statistic

WEIGHT = 1.66  # of the squares


@dataclass(frozen=True, slots=True)
class DirectMean(Mean):
    """The mean of values in public bounds, with the mean of their squares beside it."""

    records: int = 2

    def compute(self, rows: FloatArray, counts: FloatArray) -> FloatArray:
        """The averages of z and w z², times half the width of the bounds."""
        size = int(counts.sum())
        mean = real(Fraction(total(rows, counts), int(size * UNIT)))
        square = real(Fraction(int(products(rows, rows, counts)), int(size * UNIT**2)))
        return np.asarray([self.half * mean, self.half * WEIGHT * square])

    def conclude(self, series: Series) -> tuple[Finding, ...]:
        """The mean, and an interval that accounts for sampling and noise."""
        h, n = self.half, self.records
        mean, square = float(series.averages[0, 0]) / h, float(series.averages[0, 1]) / (WEIGHT * h)
        noise = series.noise / h
        variance = min(max(square - mean**2 + noise**2, 0.0), 1.0)
        allowance = noise * math.hypot(1.0 / WEIGHT, 2.0 * min(abs(mean), 1.0))
        sampling = math.sqrt(min(variance + allowance, 1.0) / (n - 1))
        error = h * math.hypot(sampling, noise)
        reach, value = float(ndtri(0.5 + 0.5 * series.spread.level)) * error, h * mean + self.centre
        found = Finding("mean", value, error, (value - reach, value + reach), h * sampling, h * noise)
        return (found.within(*self.bounds),)


def direct(statistic: Statistic, records: int) -> DirectMean:
    """The statistic that is released without resampling."""
    if type(statistic) is not Mean:
        raise InvalidInput('method="direct" is for a mean; other statistics need resamples, such as "subsampling"')
    return DirectMean(statistic.bounds, records)
