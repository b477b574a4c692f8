"""The sampling rule of importance-sampled SGD: who is drawn, with what weight, and the bounds that are stored.

Public: rate r, clip C, growth k >= 1, floor gL > 0. Secret: one bound b_i in (0, C] per record, at first C.

    drawn      with probability r (b_i/C): Poisson sampling at rate r, then a coin of chance b_i/C for its records
    adds       w_i = C / max(b_i, n_i) * gradient,   n_i the norm of the gradient
    rejecting  w_i = C / n_i * gradient with probability min(n_i, b_i)/b_i, else nothing
    then       b_i = min(C, k max(n_i, gL))

Theorem (add/remove). Releasing every noisy sum of T steps, sum w_i + N(0, (m C)^2), is dominated by T-fold
PoissonSampled(r, Gaussian(m)). Why: given the past and everybody else's coins, a record adds a mixture (1-p)N(0) +
pN(w) with p <= r and |w| <= C; docs/torch.md, Theorem 1. Both need b_i <= C. With b_i = C throughout this is DP-SGD.
"""

from dataclasses import dataclass

import numpy as np

from ..numerics.log_domain import FloatArray
from ..validation import in_range, positive

_LARGEST = 2.0**60  # of a coefficient: it must stay a number in single precision, times any gradient it may meet
THEOREM = "Importance-sampled steps are dominated by Poisson-sampled ones at the largest rate (docs/torch.md, Thm 1)"


@dataclass(frozen=True, slots=True)
class ImportanceRule:
    """What one step does with a record's bound and norm; arrays have one entry per record."""

    rate: float
    clip: float
    growth: float = 2.0
    floor: float = 0.01
    rejects: bool = False

    def __post_init__(self) -> None:
        in_range(0, 1, rate=self.rate)
        positive(rate=self.rate, clip=self.clip, floor=self.floor)
        in_range(1, 1e6, growth=self.growth)

    def start(self, records: int) -> FloatArray:
        """Nothing is known yet, so every record is drawn with the full rate."""
        return np.full(records, float(self.clip))

    def shares(self, bounds: FloatArray) -> FloatArray:
        """Probability that a record of the Poisson sample at `rate` stays in it: at most 1 also in floating point."""
        return bounds / self.clip

    def acceptance(self, bounds: FloatArray, norms: FloatArray) -> FloatArray:
        """Probability that a drawn record is kept by the rejecting variant; 0 for a norm that is 0 or not a number."""
        return np.minimum(_counted(norms), bounds) / bounds

    def coefficients(self, bounds: FloatArray, norms: FloatArray) -> FloatArray:
        """c_i with w_i = c_i * gradient, so that |w_i| <= clip; 0 for a norm that is (nearly) 0 or not a number."""
        sizes = _counted(norms)
        reach = sizes if self.rejects else np.maximum(bounds, sizes)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            factors = self.clip / reach
        return np.where((sizes > 0) & (factors <= _LARGEST), factors, 0.0)

    def remembered(self, norms: FloatArray) -> FloatArray:
        """The next bounds; a norm that is not a number is remembered as the largest."""
        known = np.where(np.isfinite(norms), norms, self.clip)
        return np.minimum(self.clip, self.growth * np.maximum(known, self.floor))


def _counted(norms: FloatArray) -> FloatArray:
    return np.where(np.isfinite(norms), norms, 0.0)
