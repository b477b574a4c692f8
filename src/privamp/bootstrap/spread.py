"""From released group averages to a standard error and an interval that accounts for all three errors.

Given the data, the B group averages are independent with variance v + tau^2: v from resampling, tau^2 the noise, which
is known. Their mean misses the truth by variance W = (v + tau^2)/B + k v/B, where k v/B = v/(n factor) is the sampling
variance of the statistic of the data. With S^2 the sample variance of the averages, (S^2 - tau^2)+ estimates v, and the
interval is mean +- c t sqrt(V/B),

    V = S^2 + k E (1 + a h/(h + e)),   E = (S^2 - tau^2)+,  e = E/tau^2,  h = sqrt(2/(B - 1)),

t the Student quantile with B - 1 degrees of freedom. Without the middle bracket (a = 0, c = 1) the interval covers too
rarely where v is about as large as the error of S^2: E is often 0 there. The correction a is the least one for which a
normal model covers at the given level for EVERY v >= 0; where no moderate a does, c is raised too. Both depend on B, k
and the level alone, which are public.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.special import gammaincinv, ndtr, stdtrit

from ..numerics.log_domain import FloatArray
from ..numerics.roots import halved

_MOST_BOOST = 8.0
_RATIOS = np.concatenate([[0.0], np.geomspace(0.004, 1000.0, 60)])  # v/tau^2
_NORMAL = np.linspace(-8.2, 8.2, 821)  # an even grid integrates a normal variable to the last digits, tails included
_WEIGHTS = np.exp(-0.5 * _NORMAL**2) / np.sum(np.exp(-0.5 * _NORMAL**2))


@dataclass(frozen=True, slots=True)
class Finding:
    """One released number with its errors."""

    name: str
    value: float
    standard_error: float  # of everything together
    interval: tuple[float, float]
    standard_error_sampling: float  # the data as a sample of the truth
    standard_error_noise: float  # the noise added for privacy

    def within(self, low: float, high: float) -> "Finding":
        """Clip to the public range of the number."""
        value, first, last = (min(max(x, low), high) for x in (self.value, *self.interval))
        return replace(self, value=value, interval=(first, last))


@dataclass(frozen=True, slots=True)
class Spread:
    """How a series of group averages becomes a finding."""

    groups: int
    ratio: float  # k
    level: float

    def finding(self, name: str, series: FloatArray, noise: float) -> Finding:
        """The mean of the series (shape (B,)), whose every entry has noise of standard deviation `noise`."""
        value, square = float(np.mean(series)), float(np.var(series, ddof=1))
        excess = max(square - noise**2, 0.0)
        half = self.half_width(square, noise)
        return Finding(
            name,
            value,
            math.sqrt((max(square, noise**2) + self.ratio * excess) / self.groups),  # never below its known part
            (value - half, value + half),
            math.sqrt(self.ratio * excess / self.groups),
            noise / math.sqrt(self.groups),
        )

    def half_width(self, square: float, noise: float) -> float:
        """c t sqrt(V/B) for the observed variance of the series."""
        boost, stretch = correction(self.groups, self.ratio, self.level)
        estimate = float(_variance(np.asarray(square / noise**2), self.groups, self.ratio, boost))
        return stretch * _student(self.groups, self.level) * noise * math.sqrt(estimate / self.groups)


def _student(groups: int, level: float) -> float:
    return float(stdtrit(groups - 1, 0.5 + 0.5 * level))


def _variance(x: FloatArray, groups: int, ratio: float, boost: float) -> FloatArray:
    """V/tau^2 at x = S^2/tau^2."""
    e, h = np.maximum(x - 1.0, 0.0), math.sqrt(2.0 / (groups - 1))
    return np.asarray(x + ratio * e * (1.0 + boost * h / (h + e)))


def misses(groups: int, ratio: float, level: float, boost: float, stretch: float) -> FloatArray:
    """How often the interval misses when v/tau^2 is each of a range of numbers, in the normal model."""
    chi = 2.0 * gammaincinv(0.5 * (groups - 1), ndtr(_NORMAL)) / (groups - 1)
    x = (1.0 + _RATIOS)[:, None] * chi
    width = stretch * _student(groups, level) * np.sqrt(_variance(x, groups, ratio, boost))
    true = np.sqrt(1.0 + (1.0 + ratio) * _RATIOS)[:, None]
    return np.asarray(2.0 * ndtr(-width / true) @ _WEIGHTS)


def coverage(groups: int, ratio: float, level: float, boost: float, stretch: float) -> FloatArray:
    """How often the interval covers, for the same range."""
    return np.asarray(1.0 - misses(groups, ratio, level, boost, stretch))


@lru_cache(maxsize=256)
def correction(groups: int, ratio: float, level: float) -> tuple[float, float]:
    """(a, c) that cover at the level for every v."""
    allowed = 1.0 - level + min(0.02 * (1.0 - level), 1e-3)  # misses; at most a fiftieth more than asked, at any level

    def covers(boost: float, stretch: float) -> bool:
        return bool(np.max(misses(groups, ratio, level, boost, stretch)) <= allowed)

    if covers(_MOST_BOOST, 1.0):
        return _least(lambda boost: covers(boost, 1.0), 0.0, _MOST_BOOST), 1.0
    high = 2.0
    while not covers(_MOST_BOOST, high):
        high *= 2.0
    return _MOST_BOOST, _least(lambda stretch: covers(_MOST_BOOST, stretch), 1.0, high)


def _least(passes: Callable[[float], bool], low: float, high: float) -> float:
    """The least number that passes, from above."""
    return halved(passes, low, high, rounds=14)[1]
