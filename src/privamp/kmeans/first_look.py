"""The first look: how many records there are, at which norms, and along which columns they vary. With noise.

Two Laplace releases on all the data, in the unit ball:

- a histogram of norms on a public geometric grid; a record adds 1 to one bin,
- the sum of squares of every column; a record adds x², whose l1 norm is ||x||² <= 1, so that all columns together cost
as much as one count, in any dimension.

From the histogram follow the noise and the probabilities for a target sample size, from both how many steps and cells
are worth their noise, from the squares the columns that are and how wide the first cells are spread.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..mechanisms.laplace import Laplace
from ..numerics.log_domain import FloatArray
from .ball import Ball, scan
from .compiled import count_octaves, is_worth_compiling
from .privacy_spend import PrivacySpend
from .threads import ThreadPool

EDGES = np.concatenate([[0.0], np.exp2(np.arange(-12, 1) / 2.0)])  # up to the radius, a factor sqrt 2 apart
_SMALLEST = 1023 - 13  # exponent field of the squares in the first bin
MIDDLES = np.sqrt(np.maximum(EDGES[:-1], EDGES[1] / 2.0) * EDGES[1:])
_LEAST = 0.01  # of the mean column


@dataclass(frozen=True, slots=True)
class FirstLook:
    """Noisy answers; post-processing of them is free."""

    histogram: FloatArray = field(repr=False)  # (bins,) records per norm, at least 0
    squares: FloatArray = field(repr=False)  # (d,) mean squares of the columns, above 0, at most 1 together
    error: float = 0.0  # standard deviation of the noise in the number of records

    @property
    def records(self) -> float:
        """About how many records there are, at least 1."""
        return max(float(np.sum(self.histogram)), 1.0)

    @property
    def records_at_least(self) -> float:
        """One standard error of the noise below that, at least 1: what to plan for."""
        return max(self.records - self.error, 1.0)

    @property
    def mean_square(self) -> float:
        """About the mean squared norm."""
        return float(np.sum(self.histogram * MIDDLES**2) / self.records)


def look(
    bill: PrivacySpend, ball: Ball, X: NDArray[Any], epsilon: float, pool: ThreadPool
) -> tuple[FirstLook, FloatArray]:
    """The noisy answers, at `epsilon`, and the secret lengths of all rows."""
    lengths, sums = scan(ball, X, pool, partial(norm_counts, fast=is_worth_compiling(X)))
    squares, counts = sums[: X.shape[1]], sums[X.shape[1] :]
    return priced(bill, counts, squares, epsilon), lengths


def norm_counts(lengths: FloatArray, *, fast: bool = False) -> FloatArray:
    """How many rows have their length in each bin."""
    if fast:
        counts = np.zeros(MIDDLES.size)
        count_octaves()(lengths, _SMALLEST, counts)
        return counts
    squares = np.square(np.minimum(lengths, 1.0))
    power = squares.view(np.int64)  # their exponent, rounded up, says the bin
    power -= 1
    power >>= 52
    bins = np.clip(power, _SMALLEST, _SMALLEST + MIDDLES.size - 1, out=power)
    bins -= _SMALLEST
    return np.bincount(bins, minlength=MIDDLES.size).astype(np.float64)


def priced(bill: PrivacySpend, counts: FloatArray, squares: FloatArray, epsilon: float) -> FirstLook:
    """The noisy answers from the exact ones, at `epsilon`."""
    noise = Laplace(scale=2.0 / epsilon)
    noisy_counts = bill.release("noisy histogram of norms", noise, counts)
    noisy_squares = bill.release("noisy sums of squares of the columns", noise, squares)
    return _answers(noisy_counts, noisy_squares, noise.scale)


def _answers(counts: FloatArray, squares: FloatArray, scale: float) -> FirstLook:
    """Bins below 0 count as empty; the columns' squares are pulled toward their mean, which the histogram gives more
    precisely.

    The factor is that of James and Stein: one less the noise's share of what the columns differ by. No column is
    taken to be less wide than a hundredth of the mean column, however its noise fell.
    """
    histogram = np.maximum(counts, 0.0)
    records = max(float(np.sum(counts)), 1.0)
    histogram *= records / max(float(np.sum(histogram)), 1.0)
    level = max(float(np.sum(histogram * MIDDLES**2)), 1e-6 * records) / squares.size
    away = squares - level
    noise = 2.0 * scale**2 * squares.size
    pulled = max(1.0 - noise / max(float(np.sum(away**2)), 1e-300), 0.0) if squares.size > 2 else 1.0
    means = np.maximum(level + pulled * away, _LEAST * level) / records
    error = scale * float(np.sqrt(2.0 * counts.size))
    return FirstLook(histogram, means / max(float(np.sum(means)), 1.0), error)
