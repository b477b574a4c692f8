"""An interval clipped to the possible values of the statistic, which is free because bounds are public."""

import math
from dataclasses import dataclass

from scipy.special import ndtri, stdtrit

from ..numerics.half_width import half_width


@dataclass(frozen=True, slots=True)
class WithinBounds:
    """A normal sampling error plus noise around a value that lies between two public numbers."""

    value: float
    sampling: float
    noise: float
    kind: str  # "laplace" or "gaussian"
    low: float
    high: float
    df: float = math.inf  # degrees of freedom of the sampling error

    def interval(self, level: float) -> tuple[float, float]:
        """The part of the interval that is within the bounds; the nearer end where none is."""
        at = 0.5 + 0.5 * level
        more = float(stdtrit(self.df, at) / ndtri(at)) if math.isfinite(self.df) else 1.0
        half = half_width(self.sampling * more, self.noise, self.kind, level)
        ends = self.value - half, self.value + half
        return min(max(ends[0], self.low), self.high), max(min(ends[1], self.high), self.low)

    def standard_error(self) -> float:
        """Sampling and noise together."""
        return math.hypot(self.sampling, self.noise)
