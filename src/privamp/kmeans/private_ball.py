"""A private ball, charged to the budget: a radius from a noisy histogram of norms and a centre from a noisy mean of
clipped rows.

The norms are counted on a public geometric grid from 2^-64 to 2^64, a factor sqrt 2 apart; a record adds 1 to one bin.
The fullest bin must be above what noise alone reaches once in two thousand fits. Another bin is used if it is near the
fullest one and above what noise alone reaches once in forty fits, or above what noise alone reaches once in two
million. The radius is the grid point below which 97.5 % of their count lies. If no bin stands out, the median of the
norms is chosen by the exponential mechanism, which needs a fifth as many records, and the radius is the grid point
above it. Rows outside are clipped, never dropped.

A centre is released only if, by the noisy number of records, its noise is below half the radius.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..mechanisms.cell_counts import CellCounts
from ..mechanisms.chosen_quantiles import ChosenQuantiles
from ..mechanisms.laplace import Laplace
from ..mechanisms.norm_noise import NormNoise
from ..mechanisms.rank_choice import STEPS
from ..numerics.log_domain import FloatArray
from . import exact
from .ball import Ball, chunks, measured, shrunk
from .centres import OverallMean
from .privacy_spend import PrivacySpend
from .threads import ThreadPool

_GRID = np.exp2(np.arange(-128, 129) / 2.0)
_COVERED = 0.975
SHARE = 0.05  # shares of epsilon for a private radius and for a private centre
_GAP = 4  # bins: a factor of 4
_CLEAR = 0.5  # of the radius: the largest noise of a centre worth its cost
_LAST = 0.12  # share of epsilon for the median of the norms, if no bin of the histogram is used
MEDIAN = "private radius, median"  # as it is listed in the spending
_BITS = 20  # of a row around the origin: the sum of 2^33 rows is exact


def most_for_ball(radius: bool, center: bool) -> float:
    """The largest share of epsilon for a ball whose radius or centre, or both, are private."""
    return SHARE * (radius + center) + _LAST * radius


def private_ball(bill: PrivacySpend, X: NDArray[Any], pool: ThreadPool) -> Ball:
    """Radius and centre; the origin if a centre is not worth its noise."""
    d = X.shape[1]
    around = private_radius(bill, X, np.zeros(d), SHARE / 2, pool)
    if around.records * _CLEAR < 1.5 * d / (SHARE * bill.epsilon):
        return Ball(np.zeros(d), around.length)
    center = private_center(bill, X, around.length, SHARE, pool)
    return Ball(center, private_radius(bill, X, center, SHARE / 2, pool).length)


class Radius(NamedTuple):
    """A length, and the approximate number of records behind it: 0 if there were too few to count."""

    length: float
    records: float


def private_radius(bill: PrivacySpend, X: NDArray[Any], center: FloatArray, share: float, pool: ThreadPool) -> Radius:
    """A radius around `center`, at `share` of epsilon; at `_LAST` more if that finds no records."""
    bins = np.searchsorted(_GRID[:-1], measured(Ball(center, 1.0), X, pool))
    noise = Laplace(scale=1.0 / (share * bill.epsilon))
    counts = np.bincount(bins, minlength=_GRID.size).astype(np.float64)
    found = radius_of(np.asarray(bill.release("private radius", noise, counts)), noise.scale)
    if found is not None:
        return found
    median = ChosenQuantiles(_LAST * bill.epsilon, cells=_GRID.size)
    held = CellCounts.of(bins, np.ones(bins.size, dtype=np.int64))
    at = int(bill.release(MEDIAN, median, held)[0, 0]) // STEPS
    return Radius(float(_GRID[at]), 0.0)


def radius_of(noisy: FloatArray, scale: float) -> Radius | None:
    """The radius that noisy counts with this noise scale suggest; None if no bin stands out."""
    if np.max(noisy) < scale * math.log(1000.0 * _GRID.size):
        return None
    likely = noisy >= scale * math.log(20.0 * _GRID.size)
    certain = noisy >= scale * math.log(1e6 * _GRID.size)
    counts = np.where(certain | (likely & _beside(likely, int(np.argmax(noisy)))), noisy, 0.0)
    below = np.cumsum(counts)
    return Radius(float(_GRID[np.searchsorted(below, _COVERED * below[-1])]), float(below[-1]))


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


def private_center(bill: PrivacySpend, X: NDArray[Any], radius: float, share: float, pool: ThreadPool) -> FloatArray:
    """The mean of the rows, each clipped to `radius` around the origin, at `share` of epsilon: two thirds for the sum.

    It is shrunk toward the origin by the James-Stein factor, which costs no privacy.
    """
    d, epsilon = X.shape[1], share * bill.epsilon
    ball = Ball(np.zeros(d), radius)
    lengths = measured(ball, X, pool)

    def part(span: slice) -> list[FloatArray]:
        return [_units(ball.unit(X[rows]) * shrunk(lengths[rows])[:, None]) for rows in chunks(span, d)]

    sums = pool.map(part, pool.spans(len(X)))
    total = exact.total([np.zeros(d), *(one for several in sums for one in several)]) * 2.0**-_BITS
    noise = NormNoise(scale=1.5 / epsilon, dimension=d)
    noisy = bill.release("private centre, sum", noise, total)
    count = bill.release("private centre, count", Laplace(scale=3.0 / epsilon), float(len(X)))
    return radius * OverallMean.of(noisy, float(count), (d + 1.0) * noise.scale**2).point


def _units(rows: FloatArray) -> FloatArray:
    """The sum of at most 2^16 rows in the unit ball, each rounded toward zero, in units."""
    rows *= 2.0**_BITS
    return np.asarray(np.sum(np.trunc(rows, out=rows), axis=0))
