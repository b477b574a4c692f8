"""What the first look decides: which columns to use, and how many steps to take.

With T steps and d' columns the noise moves column j of a centre by tau² = var/(N/k)² in mean square, N/k the mean
cluster. Pulled back by g/(g + tau²) it costs g tau²/(g + tau²), g the variance between centres; a column left out
costs g. About half of a column's variance is between centres. Norm noise grows with the number of columns, so columns
are taken by falling variance while both costs together fall; Gaussian noise does not grow, and all are kept. The
number of steps is the largest up to `n_iter` whose cost is below a hundredth of the variance, but at least 3.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..numerics.log_domain import FloatArray
from .first_look import FirstLook
from .noise_split import Split

_BETWEEN = 0.5
_TOLERATED = 0.01
_FEWEST = 3


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
