"""What the first look decides: which columns to use, how many steps to take, and how much noise goes where.

With T steps and d' columns the noise moves column j of a centre by tau² = var/(N/k)² in mean square, N/k the mean
cluster. Pulled back by g/(g + tau²) it costs g tau²/(g + tau²), g the variance between centres; a column left out
costs g. About half of a column's variance is between centres. Norm noise grows with the number of columns, so columns
are taken by falling variance while both costs together fall; Gaussian noise does not grow, and all are kept. The
number of steps is the largest up to `n_iter` whose cost is below a hundredth of the variance, but at least 3.

A centre is sum/count. With noise of scale b_s on a sum of d columns (norm noise: mean square d(d+1) b_s²) and b_c on a
count (Laplace: 2 b_c²), the centre c of N records moves by about [d(d+1) b_s² + 2 ||c||² b_c²]/N² in mean square.
At a fixed 1/b_s + 1/b_c that is least for

    b_c/b_s = (d(d+1)/(2 ||c||²))^(1/3),

and with Gaussian noise, d s_s² + ||c||² s_c² at a fixed 1/s_s² + 1/s_c², for s_c/s_s = (d/||c||²)^(1/4).
T equal steps divide a pure influence by T and a Gaussian one by sqrt(T).
"""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..core.influence import Influence
from ..mechanisms.gaussian import Gaussian
from ..mechanisms.laplace import Laplace
from ..mechanisms.norm_noise import NormNoise
from ..mechanisms.sum_and_count import SumAndCount
from ..numerics.log_domain import FloatArray
from .first_look import FirstLook

_BETWEEN = 0.5
_TOLERATED = 0.01
_FEWEST = 3


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


@dataclass(frozen=True, slots=True)
class FitPlan:
    """Columns (in order), their variances, and the number of steps."""

    columns: NDArray[np.intp] = field(repr=False)
    variances: FloatArray = field(repr=False)
    steps: int
    split: Split


def choose(look: FirstLook, clusters: int, n_iter: int, is_gaussian: bool, per_norm: float) -> FitPlan:
    """The scheme with the least predicted cost; `per_norm` is the influence that all columns could have."""
    order = np.argsort(-look.variances, kind="stable")
    between = _BETWEEN * look.variances[order]
    for steps in range(n_iter, 0, -1):
        costs = _costs(between, look.records / clusters, is_gaussian, per_norm, steps)
        best = int(np.argmin(costs))
        if steps <= _FEWEST or costs[best] <= _TOLERATED * float(np.sum(look.variances)):
            break
    columns = np.sort(order[: best + 1])
    variances = look.variances[columns]
    return FitPlan(columns, variances, steps, Split(is_gaussian, columns.size, float(np.sum(variances))))


def _costs(between: FloatArray, cluster: float, is_gaussian: bool, per_norm: float, steps: int) -> FloatArray:
    """Predicted cost with the first 1, 2, … columns."""
    left_out = np.sum(between) - np.cumsum(between)
    costs = np.empty(between.size)
    for d in range(1, between.size + 1):
        split = Split(is_gaussian, d, 1.0)
        noise = split.column_variance(split.scale(per_norm, steps)) / cluster**2
        kept = between[:d]
        costs[d - 1] = left_out[d - 1] + float(np.sum(kept * noise / np.maximum(kept + noise, 1e-300)))
    return costs
