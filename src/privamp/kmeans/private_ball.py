"""A ball out of the budget: a radius from a noisy histogram of norms, a centre from a noisy mean of clipped rows.

The norms are counted on a public geometric grid from 2^-64 to 2^64, a factor sqrt 2 apart; a record adds 1 to one
bin. The radius is the grid point below which 97.5 % of the noisy count lies. Rows outside are shortened, never dropped.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..mechanisms.laplace import Laplace
from ..mechanisms.norm_noise import NormNoise
from ..numerics.log_domain import FloatArray
from . import exact
from .ball import Ball, chunks, measured, shrunk
from .privacy_spend import PrivacySpend
from .threads import ThreadPool

_GRID = np.exp2(np.arange(-128, 129) / 2.0)
_COVERED = 0.975
_BITS = 20  # of a row about the origin: the sum of 2^33 rows is exact


def private_radius(bill: PrivacySpend, X: NDArray[Any], center: FloatArray, epsilon: float, pool: ThreadPool) -> float:
    """A radius about `center`, at `epsilon`."""
    lengths = measured(Ball(center, 1.0), X, pool)
    counts = np.bincount(np.searchsorted(_GRID[:-1], lengths), minlength=_GRID.size).astype(np.float64)
    noise = Laplace(scale=1.0 / epsilon)
    noisy = bill.release("private radius", noise, counts)
    noisy[noisy < noise.scale * math.log(20.0 * _GRID.size)] = 0.0  # bins that are most likely empty
    if not np.any(noisy):
        return 1.0  # too few records to tell
    below = np.cumsum(noisy)
    return float(_GRID[np.searchsorted(below, _COVERED * below[-1])])


def private_center(bill: PrivacySpend, X: NDArray[Any], radius: float, epsilon: float, pool: ThreadPool) -> FloatArray:
    """The mean of the rows, each shortened to `radius` about the origin, at `epsilon`: two thirds for the sum."""
    d = X.shape[1]
    ball = Ball(np.zeros(d), radius)
    lengths = measured(ball, X, pool)

    def part(span: slice) -> list[FloatArray]:
        return [_units(ball.unit(X[rows]) * shrunk(lengths[rows])[:, None]) for rows in chunks(span, d)]

    sums = pool.map(part, pool.spans(len(X)))
    total = exact.total([np.zeros(d), *(one for several in sums for one in several)]) * 2.0**-_BITS
    noisy = bill.release("private centre, sum", NormNoise(scale=1.5 / epsilon, dimension=d), total)
    count = max(float(bill.release("private centre, count", Laplace(scale=3.0 / epsilon), float(len(X)))), 1.0)
    mean: FloatArray = noisy / count
    return radius * mean / max(float(np.linalg.norm(mean)), 1.0)


def _units(rows: FloatArray) -> FloatArray:
    """The sum of at most 2^16 rows in the unit ball, each rounded toward zero, in units."""
    rows *= 2.0**_BITS
    return np.asarray(np.sum(np.trunc(rows, out=rows), axis=0))
