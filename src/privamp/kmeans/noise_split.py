"""How much noise goes where: sums against counts, and step after step.

A centre is sum/count. With noise of scale b_s on a sum of d columns (norm noise: mean square d(d+1) b_s²) and b_c on a
count (Laplace: 2 b_c²), the centre c of N records moves by about [d(d+1) b_s² + 2 ||c||² b_c²]/N² in mean square.
At a fixed 1/b_s + 1/b_c that is least for

    b_c/b_s = (d(d+1)/(2 ||c||²))^(1/3),

and with Gaussian noise, d s_s² + ||c||² s_c² at a fixed 1/s_s² + 1/s_c², for s_c/s_s = (d/||c||²)^(1/4).
T equal steps divide a pure influence by T and a Gaussian one by sqrt(T).
"""

import math
from dataclasses import dataclass

from ..core.influence import Influence
from ..mechanisms.gaussian import Gaussian
from ..mechanisms.laplace import Laplace
from ..mechanisms.norm_noise import NormNoise
from ..mechanisms.sum_and_count import SumAndCount


@dataclass(frozen=True, slots=True)
class Split:
    """The shape of the noise for `dimension` columns and centres of mean square norm `spread`."""

    is_gaussian: bool
    dimension: int
    spread: float

    @property
    def count_to_sum(self) -> float:
        """Scale of the counts' noise over that of the sums'."""
        d, square = self.dimension, min(max(self.spread, 1e-6), 1.0)
        if self.is_gaussian:
            return float((d / square) ** 0.25)
        return float((d * (d + 1) / (2.0 * square)) ** (1.0 / 3.0))

    def influence(self, per_norm: float) -> Influence:
        """All steps together, when the sums' part is `per_norm`."""
        return Influence("gaussian" if self.is_gaussian else "pure", per_norm / self.count_to_sum, per_norm)

    def scale(self, per_norm: float, steps: int) -> float:
        """Noise scale of the sums in each of `steps` equal steps."""
        return (math.sqrt(steps) if self.is_gaussian else steps) / per_norm

    def step(self, per_norm: float, steps: int) -> SumAndCount:
        """The mechanism of each step."""
        scale = self.scale(per_norm, steps)
        if self.is_gaussian:
            return SumAndCount(Gaussian(scale), Gaussian(scale * self.count_to_sum))
        return SumAndCount(NormNoise(scale, self.dimension), Laplace(scale * self.count_to_sum))

    def column_variance(self, scale: float) -> float:
        """Variance of the noise in one column of a sum."""
        return scale**2 * (1.0 if self.is_gaussian else self.dimension + 1.0)

    def count_error(self, scale: float) -> float:
        """Standard deviation of the noise of a count."""
        return scale * self.count_to_sum * (1.0 if self.is_gaussian else math.sqrt(2.0))
