"""Sums, differences and Gaussian tails of numbers held as their logarithms.

Everything is vectorised over NumPy arrays, `-inf` stands for zero, and nothing warns.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfcx, log_ndtr

FloatArray = NDArray[np.float64]

_LOG_SQRT_2PI = 0.9189385332046727
_SQRT_HALF = 0.7071067811865476
_SQRT_HALF_PI = 1.2533141373155003
_LOG_2 = 0.6931471805599453


def as_floats(values: ArrayLike) -> FloatArray:
    """A float64 array, scalars as shape ()."""
    return np.asarray(values, dtype=np.float64)


def log1mexp(x: ArrayLike) -> FloatArray:
    """log(1 - e^x) for x <= 0."""
    x = as_floats(x)
    with np.errstate(divide="ignore"):
        x = np.minimum(x, 0.0)
        return np.where(x > -_LOG_2, np.log(-np.expm1(x)), np.log1p(-np.exp(x)))


def log_expm1(x: ArrayLike) -> FloatArray:
    """log(e^x - 1) for x >= 0, without overflow."""
    x = as_floats(x)
    far = x > 36.0
    with np.errstate(divide="ignore"):
        found = np.asarray(np.log(np.expm1(np.minimum(x, 36.0))))
        if far.any():
            found = np.where(far, x + np.log1p(-np.exp(-np.maximum(x, 36.0))), found)
        return found


def log_diff(a: ArrayLike, b: ArrayLike) -> FloatArray:
    """log(e^a - e^b) for a >= b; -inf where they are equal."""
    a, b = as_floats(a), as_floats(b)
    with np.errstate(invalid="ignore"):
        gap = np.where(a == b, 0.0, b - a)
    return np.where(np.isneginf(b), a, a + log1mexp(np.minimum(gap, 0.0)))


def log_sum(terms: ArrayLike, axis: int = 0) -> FloatArray:
    """log of the sum of e^terms along an axis."""
    terms = as_floats(terms)
    top = np.maximum.reduce(terms, axis=axis, keepdims=True, initial=-np.inf)
    top[~np.isfinite(top)] = 0.0
    scaled = terms - top
    np.exp(scaled, out=scaled)  # in place: a second large array takes longer to get than to fill
    with np.errstate(divide="ignore"):
        return np.asarray(top.squeeze(axis) + np.log(np.add.reduce(scaled, axis=axis)))


def log_mix(weight: float, a: ArrayLike) -> FloatArray:
    """log(1 + weight (e^a - 1)) for a >= 0 and 0 <= weight <= 1: the amplified epsilon of a rate."""
    a = as_floats(a)
    if weight == 0.0:
        return np.zeros_like(a)
    if weight == 1.0:
        return a + 0.0
    small = np.log1p(weight * np.expm1(np.minimum(a, 700.0)))  # a + log(weight) would cancel for tiny weights
    with np.errstate(over="ignore"):
        far = weight * np.exp(700.0) * np.exp(np.clip(a - 700.0, 0.0, 700.0))  # the same, where it is a double
        rest = np.exp(-np.maximum(a, 700.0)) / weight * (1.0 - weight)
        large = np.where((a < 1400.0) & (far < 1e300), np.log1p(far), a + np.log(weight) + np.log1p(rest))
    return np.where(a < 700.0, small, large)


def log_drop(weight: float, a: float) -> float:
    """log(1 - weight (1 - e^-a)) for a >= 0 and 0 <= weight <= 1: how far a kept record may lower an event's
    probability.

    At full precision when the drop is tiny, and finite for weight 1, where it is -a.
    """
    drop = -weight * math.expm1(-a)
    if drop < 0.5:
        return math.log1p(-drop)
    return -a if weight == 1.0 else float(np.logaddexp(math.log1p(-weight), math.log(weight) - a))


def log_unmix(weight: float, a: ArrayLike) -> FloatArray:
    """log(1 + (e^a - 1)/weight) for a >= 0 and 0 < weight <= 1: the base epsilon behind an amplified one."""
    a = as_floats(a)
    with np.errstate(over="ignore"):
        small = np.log1p(np.expm1(np.minimum(a, 30.0)) / weight)
    large = np.logaddexp(0.0, log_expm1(a) - np.log(weight))
    return np.where((a < 30.0) & np.isfinite(small), small, large)


def log_normal_tail(x: ArrayLike) -> FloatArray:
    """log Pr[N(0,1) > x], accurate far into both tails."""
    return np.asarray(log_ndtr(-as_floats(x)))


def log_normal_density(x: ArrayLike) -> FloatArray:
    """log of the standard normal density."""
    x = as_floats(x)
    return -0.5 * x * x - _LOG_SQRT_2PI


def mills(x: ArrayLike) -> FloatArray:
    """Pr[N > x] / density(x), the Mills ratio (inf below about -37)."""
    return np.asarray(_SQRT_HALF_PI * erfcx(as_floats(x) * _SQRT_HALF))


# Gauss-Legendre rules on [0, 1], for gaps too small to difference; (nodes, weights).
def _rule(points: int) -> tuple[FloatArray, FloatArray]:
    nodes, weights = np.polynomial.legendre.leggauss(points)
    return 0.5 * (nodes + 1.0), 0.5 * weights


_FEW, _MANY = _rule(8), _rule(16)
_LEFT = -1.0  # left of here tails are near one, and differences of their logarithms are accurate
_FAR_RIGHT = 12.0  # right of here 1 - t M(t) cancels and the continued fraction is short


def log_mills_gap(x: ArrayLike, shift: ArrayLike) -> FloatArray:
    """log of density(x) * [M(x) - M(x + shift)], shift >= 0, M the Mills ratio.

    This is Pr[N > x] - (density(x)/density(x+shift)) Pr[N > x+shift]: the Gaussian privacy profile and
    every term of a Gaussian mixture's. Differencing two logarithms of tails would lose every digit, so
    short shifts integrate -M', long ones difference M, and only left of zero tails are differenced.
    """
    x, shift = np.broadcast_arrays(as_floats(x), as_floats(shift))
    out: FloatArray = np.full(x.shape, -np.inf)
    live = shift > 0
    small = live & (shift < 0.25 * np.maximum(x, 1.0)) & (x >= -12.0)
    left = live & ~small & (x < _LEFT)
    wide = live & ~small & ~left
    near, beyond = small & (x >= _LEFT), small & (x < _LEFT)
    for mask, part in ((near, _short_gap), (beyond, _short_left_gap), (wide, _long_gap), (left, _left_gap)):
        if np.any(mask):
            with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                out[mask] = part(x[mask], shift[mask])
    out[np.isnan(x) | np.isnan(shift)] = np.nan  # never a silent zero
    return out


def _short_gap(x: FloatArray, shift: FloatArray, rule: tuple[FloatArray, FloatArray] = _FEW) -> FloatArray:
    nodes, weights = rule
    mean_slope = _mills_slope(x[:, None] + shift[:, None] * nodes) @ weights
    return log_normal_density(x) + np.log(shift) + np.log(mean_slope)


def _short_left_gap(x: FloatArray, shift: FloatArray) -> FloatArray:
    return _short_gap(x, shift, _MANY)


def _long_gap(x: FloatArray, shift: FloatArray) -> FloatArray:
    return log_normal_density(x) + np.log(mills(x) - mills(x + shift))


def _left_gap(x: FloatArray, shift: FloatArray) -> FloatArray:
    end = x + shift
    by_tails = log_ndtr(-end) + shift * (x + 0.5 * shift)
    by_mills = log_normal_density(x) + np.log(mills(np.maximum(end, _LEFT)))
    here = log_ndtr(-x)
    return log_diff(here, np.minimum(np.where(end < _LEFT, by_tails, by_mills), here))


def _mills_slope(t: FloatArray) -> FloatArray:
    """-M'(t) = 1 - t M(t), by its continued fraction where the subtraction would cancel."""
    far = t > _FAR_RIGHT
    near = np.where(far, 0.0, t)
    slope = 1.0 - near * mills(near)
    if np.any(far):
        slope[far] = _far_slope(t[far])
    return slope


def _far_slope(t: FloatArray) -> FloatArray:
    """1 - t M(t) for t > 12: M = 1/(t + 1/c) with c = t + 2/(t + 3/(t + ...)), so 1 - t M = 1/(1 + t c)."""
    c = t
    for k in range(24, 1, -1):
        c = t + k / c
    return 1.0 / (1.0 + t * c)
