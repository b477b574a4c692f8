"""How wide an interval must be for a normal sampling error and the law of the noise.

Gaussian and Laplace noise have exact answers. Noise of any other kind that privamp adds has, in one coordinate, a
symmetric and log-concave law; added to a normal error it stays so, hence unimodal, and Gauss's inequality (1823) holds:
Pr[|X| > k s] is at most 4/(9 k^2) for k >= 2/sqrt(3), and at most 1 - k/sqrt(3) below, s the standard deviation.
"""

import math

from scipy.special import log_ndtr, ndtr, ndtri

from .roots import halved

_SWITCH = 2.0 / 3.0  # the level at which both halves of Gauss's inequality meet


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
