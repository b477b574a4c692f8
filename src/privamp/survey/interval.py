"""An estimate with the two errors that it has, and an interval that covers."""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from scipy.special import log_ndtr, ndtr, ndtri

from ..core.guarantee import Guarantee
from ..core.neighbors import Neighbors
from ..errors import InvalidInput
from ..validation import in_range

if TYPE_CHECKING:
    from ..core.sample import Sample


@dataclass(frozen=True)
class Estimate:
    """A released number, its standard errors from sampling and from noise, and what it cost."""

    value: float
    standard_error_sampling: float
    standard_error_noise: float
    noise: str  # "laplace" or "gaussian"
    variance_source: str  # where the sampling error comes from: "public sd", "range", "private"
    relation: Neighbors
    assumes: tuple[str, ...] = ()
    sample: "Sample | None" = field(default=None, repr=False, compare=False)

    @property
    def standard_error(self) -> float:
        """Sampling and noise together."""
        return math.hypot(self.standard_error_sampling, self.standard_error_noise)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """A two-sided confidence interval: normal sampling error plus the noise's own law."""
        in_range(0, 1, open_ends=True, level=level)
        half = half_width(self.standard_error_sampling, self.standard_error_noise, self.noise, level)
        return self.value - half, self.value + half

    @cached_property
    def guarantee(self) -> Guarantee:
        """Everything asked of the sample so far, composed inside it and amplified once."""
        if self.sample is None:
            raise InvalidInput("this estimate was made without a sample, so nothing certifies it")
        found = self.sample.guarantee(self.relation)
        return replace(found, assumes=(*found.assumes, *self.assumes))


def half_width(sampling: float, noise: float, kind: str, level: float) -> float:
    """t with Pr[|normal + noise| <= t] = level."""
    if kind == "gaussian" or noise == 0.0:
        return float(ndtri(0.5 + 0.5 * level)) * math.hypot(sampling, noise)
    b = noise / math.sqrt(2.0)
    low, high = 0.0, 4.0 * (math.hypot(sampling, noise) + b) * max(1.0, -math.log1p(-level))
    for _ in range(200):
        middle = 0.5 * (low + high)
        if 2.0 * _tail(middle, sampling, b) > 1.0 - level:
            low = middle
        else:
            high = middle
    return high


def _tail(t: float, s: float, b: float) -> float:
    """Pr[normal(s) + Laplace(b) > t]."""
    if s == 0.0:
        return 0.5 * math.exp(-t / b)
    u, r = t / s, s / b
    first = math.exp(min(0.5 * r * r - t / b + float(log_ndtr(u - r)), 0.0))
    second = math.exp(min(0.5 * r * r + t / b + float(log_ndtr(-u - r)), 0.0))
    return float(ndtr(-u)) + 0.5 * (first - second)
