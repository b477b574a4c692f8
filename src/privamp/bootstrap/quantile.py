"""Quantiles through a histogram of the resample, inverted afterwards (Woodruff 1952).

The range is divided into K public bins. A resample's shares of the bins move by at most sqrt(2)/m (l2) when one entry
is replaced: one share falls by 1/m, another rises by 1/m. Noise goes onto the shares; forcing them to add up to 1 and
adding them up is post-processing, and gives the distribution function F at the edges with noise of variance tau^2 k (K
- k)/K. Each F(edge) is a mean, so it has an interval of its own. The interval for the quantile is the hull of the bins
that are not ruled out: bin (t, t'] is ruled out when F(t) lies above p or F(t') below p for certain. The bin that holds
the true quantile is ruled out with at most the chance of two one-sided errors, whatever the distribution inside the
bins, so the interval covers at least at its level; it ends at edges, so it is conservative.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray
from ..validation import in_range, whole
from .lattice import rounded
from .spread import Finding
from .statistic import Series, Statistic, at_least_two, numbers, range_of


@dataclass(frozen=True, slots=True)
class Quantile(Statistic):
    """The value that a share `probability` of the records lies below."""

    bounds: tuple[float, float]
    probability: float = 0.5
    bins: int = 32

    def __post_init__(self) -> None:
        object.__setattr__(self, "bounds", range_of(self.bounds))
        in_range(0, 1, open_ends=True, probability=self.probability)
        whole(2, 4096, bins=self.bins)

    @property
    def edges(self) -> FloatArray:
        """K + 1 public edges."""
        return np.linspace(*self.bounds, self.bins + 1)

    def rows(self, values: Any) -> FloatArray:
        """The bin of every record; an edge belongs to the bin below it, and an entry that is not a number is in the
        middle."""
        clipped = at_least_two(numbers(values, self.bounds))
        return np.asarray(np.clip(np.searchsorted(self.edges, clipped, side="left") - 1, 0, self.bins - 1))

    def sensitivity(self, size: int) -> float:
        """sqrt(2)/m, and the last rounding."""
        return rounded(float(np.sqrt(2.0) * (1.0 + 1e-15)) / size, size)

    def compute(self, rows: FloatArray, counts: FloatArray) -> FloatArray:
        """The share of the sample's entries in each bin."""
        return np.asarray(np.bincount(rows.astype(np.intp), counts, minlength=self.bins) / counts.sum())

    def conclude(self, series: Series) -> tuple[Finding, ...]:
        """Invert the distribution function at its edges."""
        if series.averages.shape[1] != self.bins:
            raise InvalidInput("the series does not belong to this histogram")
        shares = series.averages + ((1.0 - series.averages.sum(axis=1)) / self.bins)[:, None]
        below = np.cumsum(shares, axis=1)[:, :-1]  # F at the inner edges, (B, K - 1)
        k = np.arange(1, self.bins)
        noise = series.noise * np.sqrt(k * (self.bins - k) / self.bins)
        at = [series.spread.finding("F", column, float(tau)) for column, tau in zip(below.T, noise, strict=True)]
        p, edges = self.probability, self.edges
        surely_above = np.array([False, *(f.interval[0] > p for f in at), True])  # quantile <= this edge
        surely_below = np.array([True, *(f.interval[1] < p for f in at), False])  # quantile > this edge
        possible = ~surely_above[:-1] & ~surely_below[1:]
        value = self._crossing(np.array([f.value for f in at]))
        inside = np.flatnonzero(possible)  # never empty: from below to above, somewhere an edge is not below any more
        low, high = float(edges[inside[0]]), float(edges[inside[-1] + 1])
        nearest = at[int(np.argmin(np.abs(edges[1:-1] - value)))]
        error = (high - low) / (2.0 * float(ndtri(0.5 + 0.5 * series.spread.level)))
        parts = [
            error * e / nearest.standard_error for e in (nearest.standard_error_sampling, nearest.standard_error_noise)
        ]
        return (Finding(f"quantile {p:g}", value, error, (low, high), parts[0], parts[1]),)

    def _crossing(self, below: FloatArray) -> float:
        """Where the monotone distribution function passes p, straight lines between the edges."""
        rising = _rising(np.concatenate([[0.0], np.clip(below, 0.0, 1.0), [1.0]]))
        rising[0], rising[-1] = 0.0, 1.0
        at = int(np.clip(np.searchsorted(rising, self.probability, side="left"), 1, self.bins))
        step = rising[at] - rising[at - 1]
        share = (self.probability - rising[at - 1]) / step if step > 0 else 0.5
        return float(self.edges[at - 1] + share * (self.edges[at] - self.edges[at - 1]))


def _rising(values: FloatArray) -> FloatArray:
    """Between the running maximum from the left and the running minimum from the right."""
    up = np.maximum.accumulate(values)
    down = np.minimum.accumulate(values[::-1])[::-1]
    return np.asarray(0.5 * (up + down))
