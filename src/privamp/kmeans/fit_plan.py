"""What the first look decides: which columns to use, how many steps and cells, and how much noise goes where.

The sample answers a plan: first the sum and count of all records (the overall mean), then T Lloyd steps. Let V be the
mean square of all columns, N the noisy number of records less its standard error, and k the number of clusters. With a
share s of the influence, the noise in the overall mean of d columns costs, relative to V, m(s) = d var_d(s)/N², and
the noise in a centre of a mean-sized cluster, with the d' columns in use, x(s) = d' var_d'(s)/(N/k)². About half of
the variance, B = 1/2, can lie between centres; pulled toward the mean by B/(B + x) they gain B²/(B + x). So a share a
for the mean and 1 - a for one step leave

    m(a) + 1 - B²/(B + x(1 - a)),

and a is the best of a few; where the mean alone, 1 + m(1), is better still, no step is taken and all centres are at
the mean. More steps find better cells but divide the influence. What a step can still gain is about the variance
inside clusters, k^(-2/D) of V for records of effective dimension D = (sum v)²/sum v² (v the columns' squares), so
T grows as x(1) falls below parts of it. The first step has more cells than centres, by x(1) too (merging.py).

Norm noise grows with the number of columns: by falling squares, columns are taken while what the noise costs, g tau²/
(g + tau²) with g = v/2, and what is left out, g, fall together. Gaussian noise does not grow, and all are kept.

A centre is sum/count. With noise of scale b_s on a sum of d columns (norm noise: mean square d(d+1) b_s²) and b_c on a
count (Laplace: 2 b_c²), the centre c of N records moves by about [d(d+1) b_s² + 2 ||c||² b_c²]/N² in mean square.
At a fixed 1/b_s + 1/b_c that is least for

    b_c/b_s = (d(d+1)/(2 ||c||²))^(1/3),

and with Gaussian noise, d s_s² + ||c||² s_c² at a fixed 1/s_s² + 1/s_c², for s_c/s_s = (d/||c||²)^(1/4).
A share s of the influence multiplies a pure scale by 1/s and a Gaussian one by 1/sqrt(s).
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
_MEANS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7)  # shares of the overall mean that are tried
_STEPS = ((8, 2e-6), (5, 2e-5), (3, 1e-3), (2, 0.015))  # so many, below this noise over the variance inside clusters
_MORE = 3.0  # times that with Gaussian noise, which more steps cost less
_CELLS = ((16, 3e-4), (8, 0.003), (4, 0.1), (2, 0.5))  # a centre, below this noise over all variance
_MOST_CELLS = 1024


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

    def scale(self, per_norm: float, share: float) -> float:
        """Noise scale of sums that take this share of the influence."""
        return 1.0 / (per_norm * (math.sqrt(share) if self.is_gaussian else share))

    def step(self, per_norm: float, share: float, dimension: int | None = None) -> SumAndCount:
        """The mechanism of a step, or of the overall mean when it has another dimension."""
        scale = self.scale(per_norm, share)
        if self.is_gaussian:
            return SumAndCount(Gaussian(scale), Gaussian(scale * self.count_to_sum))
        return SumAndCount(NormNoise(scale, dimension or self.dimension), Laplace(scale * self.count_to_sum))

    def column_variance(self, scale: float, dimension: int | None = None) -> float:
        """Variance of the noise in one column of a sum."""
        return scale**2 * (1.0 if self.is_gaussian else (dimension or self.dimension) + 1.0)

    def count_error(self, scale: float) -> float:
        """Standard deviation of the noise of a count."""
        return scale * self.count_to_sum * (1.0 if self.is_gaussian else math.sqrt(2.0))


@dataclass(frozen=True, slots=True)
class FitPlan:
    """Columns (in order), their squares, the share of the overall mean, and steps that share the rest."""

    columns: NDArray[np.intp] = field(repr=False)
    squares: FloatArray = field(repr=False)
    mean_share: float
    steps: int  # 0: all centres at the overall mean
    cells: int  # of the first step
    split: Split

    @property
    def step_share(self) -> float:
        """Of every step."""
        return (1.0 - self.mean_share) / max(self.steps, 1)

    def mechanisms(self, per_norm: float, dimension: int) -> list[SumAndCount]:
        """The overall mean of all `dimension` columns, then the steps."""
        mean = self.split.step(per_norm, self.mean_share, dimension)
        return [mean, *(self.split.step(per_norm, self.step_share) for _ in range(self.steps))]


def choose(look: FirstLook, clusters: int, n_iter: int, is_gaussian: bool, per_norm: float) -> FitPlan:
    """The plan with the least predicted cost; `per_norm` is the influence that all columns could have."""
    noise = _Noise(look, clusters, is_gaussian, per_norm)
    columns = noise.columns(1.0)
    mean_share, steps = noise.mean_share(columns), 0
    if mean_share < 1.0:
        steps = min(noise.steps(columns), n_iter)
        columns = noise.columns((1.0 - mean_share) / steps)
    cells = noise.cells(columns)
    squares = look.squares[columns]
    return FitPlan(columns, squares, mean_share, steps, cells, Split(is_gaussian, columns.size, float(np.sum(squares))))


@dataclass(frozen=True, slots=True)
class _Noise:
    """What noise costs, predicted from the first look."""

    look: FirstLook
    clusters: int
    is_gaussian: bool
    per_norm: float

    def of_mean(self, share: float) -> float:
        """m(share)."""
        return self._of(self.look.squares.size, share)

    def of_centres(self, columns: NDArray[np.intp], share: float) -> float:
        """x(share)."""
        return self._of(columns.size, share) * self.clusters**2

    def columns(self, share: float) -> NDArray[np.intp]:
        """Those worth their noise, in order."""
        order = np.argsort(-self.look.squares, kind="stable")
        if self.is_gaussian:
            return np.sort(order)
        between = _BETWEEN * self.look.squares[order]
        left_out, costs = np.sum(between) - np.cumsum(between), np.empty(between.size)
        for d in range(1, between.size + 1):
            tau = self._column(d, share) * self.clusters**2
            costs[d - 1] = left_out[d - 1] + float(np.sum(between[:d] * tau / (between[:d] + tau)))
        return np.sort(order[: int(np.argmin(costs)) + 1])

    def mean_share(self, columns: NDArray[np.intp]) -> float:
        """a, or 1 where no step is worth its noise."""
        kept = float(np.sum(self.look.squares[columns]) / np.sum(self.look.squares))
        between = _BETWEEN * kept * (1.0 - 1.0 / self.clusters)
        costs = {1.0: self.of_mean(1.0) + 1.0}
        for a in _MEANS:
            gain = between**2 / (between + self.of_centres(columns, 1.0 - a)) if between else 0.0
            costs[a] = self.of_mean(a) + 1.0 - gain
        return min(costs, key=lambda a: costs[a])

    def steps(self, columns: NDArray[np.intp]) -> int:
        """T, at least 1."""
        squares = self.look.squares
        effective = max(float(np.sum(squares) ** 2 / np.sum(squares**2)), 1.0)
        noise = self.of_centres(columns, 1.0) * self.clusters ** (2.0 / effective)
        return next((steps for steps, most in _STEPS if noise < most * (_MORE if self.is_gaussian else 1.0)), 1)

    def cells(self, columns: NDArray[np.intp]) -> int:
        """Of the first step."""
        noise = self.of_centres(columns, 1.0)
        wanted = self.clusters * next((cells for cells, most in _CELLS if noise < most), 1)
        return max(min(wanted, _MOST_CELLS), self.clusters)

    def _of(self, dimension: int, share: float) -> float:
        return dimension * self._column(dimension, share) / float(np.sum(self.look.squares))

    def _column(self, dimension: int, share: float) -> float:
        """Variance of the noise in one column of the overall mean."""
        split = Split(self.is_gaussian, dimension, 1.0)
        return split.column_variance(split.scale(self.per_norm, share)) / self.look.records_at_least**2
