"""Where the cells of the first step start: never at records.

`spread`: points of a Sobol sequence turned into normal numbers, about the released overall mean and as wide along each
column as the released squares say, inside the ball. `ball`: the same directions at half the radius, about the ball's
centre. An array, one row per centre, is used unchanged (it must be public).
"""

from functools import cache
from inspect import signature

import numpy as np
from numpy.typing import NDArray

from ..numerics.log_domain import FloatArray


def start(kind: str, cells: int, mean: FloatArray, variances: FloatArray, seed: int) -> FloatArray:
    """Points of the unit ball, shape (cells, columns); the best coordinates go to the widest columns."""
    rank = np.argsort(np.argsort(-variances, kind="stable"))
    points = _normal_points(cells, variances.size, seed)[:, rank]
    if kind == "spread":
        return into_ball(mean + points * np.sqrt(variances))
    return np.asarray(0.5 * points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-300))


def into_ball(points: FloatArray) -> FloatArray:
    """The nearest points of the unit ball."""
    return np.asarray(points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1.0))


def _normal_points(cells: int, columns: int, seed: int) -> FloatArray:
    from scipy.special import ndtri
    from scipy.stats import qmc

    sobol = qmc.Sobol(min(columns, 21_201), scramble=True, **{_random_argument(): np.random.default_rng(seed)})
    cube: NDArray[np.float64] = sobol.random_base2(max(cells - 1, 1).bit_length())[:cells]
    points = np.zeros((cells, columns))
    points[:, : cube.shape[1]] = ndtri(np.clip(cube, 1e-9, 1.0 - 1e-9))
    return points


@cache
def _random_argument() -> str:
    from scipy.stats import qmc

    return "rng" if "rng" in signature(qmc.Sobol).parameters else "seed"  # its name before SciPy 1.15
