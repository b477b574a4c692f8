"""A private ball, paid from the budget: a radius from a noisy histogram of norms, a centre from a noisy mean of clipped
rows.

The norms are counted on a public geometric grid from 2^-64 to 2^64, a factor sqrt 2 apart; a record adds 1 to one bin.
Bins count that are above what noise alone reaches once in forty fits and lie near the fullest one, or above what it
reaches once in two million. The radius is the grid point below which 97.5 % of their count lies. Rows outside are
clipped, never dropped.
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
_GAP = 4  # bins: a factor of 4
_BITS = 20  # of a row about the origin: the sum of 2^33 rows is exact


def private_radius(bill: PrivacySpend, X: NDArray[Any], center: FloatArray, epsilon: float, pool: ThreadPool) -> float:
    """A radius about `center`, at `epsilon`."""
    lengths = measured(Ball(center, 1.0), X, pool)
    counts = np.bincount(np.searchsorted(_GRID[:-1], lengths), minlength=_GRID.size).astype(np.float64)
    noise = Laplace(scale=1.0 / epsilon)
    return radius_of(np.asarray(bill.release("private radius", noise, counts)), noise.scale)


def radius_of(noisy: FloatArray, scale: float) -> float:
    """The radius from noisy counts with this scale of noise; 1 if there are too few records."""
    likely = noisy >= scale * math.log(20.0 * _GRID.size)
    certain = noisy >= scale * math.log(1e6 * _GRID.size)
    counts = np.where(certain | (likely & _beside(likely, int(np.argmax(noisy)))), noisy, 0.0)
    if not np.any(counts):
        return 1.0
    below = np.cumsum(counts)
    return float(_GRID[np.searchsorted(below, _COVERED * below[-1])])


def _beside(likely: NDArray[np.bool_], fullest: int) -> NDArray[np.bool_]:
    """Bins reached from the fullest over gaps of at most `_GAP` bins.

    In one of forty fits an empty bin looks full by its noise alone. Far above the records it would make the ball huge.
    """
    found = np.zeros(likely.size, dtype=np.bool_)
    for step in (1, -1):
        at = last = fullest
        while 0 <= at < likely.size and abs(at - last) <= _GAP:
            if likely[at]:
                found[at], last = True, at
            at += step
    return found


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
