"""How wide an interval must be for a normal sampling error and the law of the noise.

Gaussian and Laplace noise have exact answers. Noise of any other kind that privamp adds has, in one coordinate, a
symmetric and log-concave law; added to a normal error it stays so, hence unimodal, and Gauss's inequality (1823) holds:
Pr[|X| > k s] is at most 4/(9 k^2) for k >= 2/sqrt(3), and at most 1 - k/sqrt(3) below, s the standard deviation.
"""

import math
from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from .log_domain import FloatArray
from .roots import bisected, halved

_SWITCH = 2.0 / 3.0  # the level at which both halves of Gauss's inequality meet
_RATIOS = np.geomspace(1e-3, 1e3, 800)  # normal error over Laplace scale: between the ends a table is used
_UP = 1.0 + 1e-5  # more than the table's error


def half_width(sampling: float, noise: float, kind: str, level: float) -> float:
    """t with Pr[|normal + noise| <= t] at least `level`, exactly that for "gaussian" and "laplace" noise."""
    if kind == "gaussian" or noise == 0.0:
        return float(ndtri(0.5 + 0.5 * level)) * math.hypot(sampling, noise)
    if kind == "laplace":
        return _with_laplace(sampling, noise / math.sqrt(2.0), level)
    k = math.sqrt(3.0) * level if level < _SWITCH else 2.0 / (3.0 * math.sqrt(1.0 - level))
    return k * math.hypot(sampling, noise)


def _with_laplace(sampling: float, b: float, level: float) -> float:
    low, high = 0.0, 4.0 * (math.hypot(sampling, math.sqrt(2.0) * b) + b) * max(1.0, -math.log1p(-level))
    return halved(lambda t: not 2.0 * _tail(t, sampling, b) > 1.0 - level, low, high)[1]


def _tail(t: float, s: float, b: float) -> float:
    """Pr[normal(s) + Laplace(b) > t]."""
    if s == 0.0:
        return 0.5 * math.exp(-t / b)
    u, r = t / s, s / b
    first = math.exp(min(0.5 * r * r - t / b + float(log_ndtr(u - r)), 0.0))
    second = math.exp(min(0.5 * r * r + t / b + float(log_ndtr(-u - r)), 0.0))
    return float(ndtr(-u)) + 0.5 * (first - second)


def half_widths(sampling: FloatArray, noise: FloatArray, kind: str, level: float) -> FloatArray:
    """`half_width` of many errors at once, for "gaussian" and "laplace" noise; no narrower, nor wider by 1e-4."""
    both = np.hypot(sampling, noise)
    if kind == "gaussian":
        return np.asarray(ndtri(0.5 + 0.5 * level) * both)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(noise > 0.0, math.sqrt(2.0) * np.asarray(sampling) / noise, np.inf)
    shares = _table(level)
    return np.asarray(np.interp(np.log(np.maximum(ratio, 1e-300)), np.log(_RATIOS), shares) * both * _UP)


@lru_cache(maxsize=32)
def _table(level: float) -> FloatArray:
    """How many standard errors wide an interval is, by their ratio; the ends are Laplace's and the normal law's."""
    high = np.full(len(_RATIOS), 6.0 * max(1.0, -math.log1p(-level))) * (1.0 + _RATIOS)
    is_enough = lambda t: ~(2.0 * tails(t, _RATIOS, 1.0) > 1.0 - level)  # noqa: E731
    shares = bisected(is_enough, np.zeros(len(_RATIOS)), high, rounds=80)[1] / np.hypot(_RATIOS, math.sqrt(2.0))
    shares[0], shares[-1] = -math.log1p(-level) / math.sqrt(2.0), ndtri(0.5 + 0.5 * level)
    return np.asarray(shares)


def tails(t: FloatArray, s: FloatArray | float, b: FloatArray | float) -> FloatArray:
    """Pr[normal(s) + Laplace(b) > t] for t >= 0, s > 0 and b > 0, entry by entry."""
    u, r = t / s, s / b
    first = np.exp(np.minimum(0.5 * r * r - t / b + log_ndtr(u - r), 0.0))
    second = np.exp(np.minimum(0.5 * r * r + t / b + log_ndtr(-u - r), 0.0))
    return np.asarray(ndtr(-u) + 0.5 * (first - second))
