"""Privacy-constrained weights of linear profiles: the largest w >= 1 with log(1 + (e^(c w) - 1)/w) <= epsilon.

With s = c w the condition is (e^s - 1)/s = R, R = (e^epsilon - 1)/c: one function s(R) for all records and every
epsilon. Three ranges, each right to a few units in the last place:

    R < 1.3     s = G p(G) with a polynomial p, G = R - 1 = ((epsilon - c) + (e^epsilon - 1 - epsilon))/c, which keeps
                its digits where R does not;
    R < 2^63    a table of s(R), indexed by the leading bits of R and interpolated linearly (right to 1e-8), then one
                step of Newton's method, which squares that error;
    beyond      s - log s = log R (the rest is below e^-44), also where e^epsilon would overflow.

Lambert's function gives the same w in closed form, but loses half its digits at epsilon = 1e-4 and overflows at 1000.
"""

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ..numerics.log_domain import FloatArray

SAFETY = 1.0 - 2.0**-46  # 1.4e-14: several times the error of the solution
_CHUNK = 16384  # records a piece: every temporary stays in cache, and NumPy's overhead is small
_LARGE = 40.0  # from this epsilon on, only the last range
_NEAR = 0.3
_BITS = 12  # table entries per octave of R: 2^12
_SHIFT = 52 - _BITS
_OCTAVES = 63
_FIRST = 1023 << _BITS  # index of R = 1


def linear_weights(influences: FloatArray, epsilon: float, largest: float) -> FloatArray:
    """The largest certified weights for influences c <= epsilon: never above the exact ones, 1e-13 below at most.

    `largest` caps the weight, and is the weight of records without influence.
    """
    c = np.ravel(influences)
    out: FloatArray = np.empty(c.shape)
    solve = _Solver(epsilon, min(_CHUNK, c.size))
    with np.errstate(divide="ignore", over="ignore"):
        for at in range(0, c.size, _CHUNK):
            w = out[at : at + _CHUNK]
            solve(c[at : at + _CHUNK], w)
            w *= SAFETY
            np.clip(w, 1.0, largest, out=w)
    return out.reshape(np.shape(influences))


def excess_exponential(x: float) -> float:
    """e^x - 1 - x to the last digits: by its series below 1."""
    if x >= 1.0:
        return math.expm1(x) - x
    term, total = 0.5 * x * x, 0.0
    for k in range(3, 24):
        total, term = total + term, term * x / k
    return total


class _Solver:
    """Weights for one epsilon, with work space for one chunk."""

    def __init__(self, epsilon: float, chunk: int) -> None:
        self.epsilon = epsilon
        self.log_top = epsilon + math.log1p(-math.exp(-epsilon)) if epsilon > 1.0 else math.log(math.expm1(epsilon))
        if epsilon < _LARGE:
            self.tail = excess_exponential(epsilon)
            self.top = epsilon + self.tail  # e^epsilon - 1
            self.values, self.slopes = _table()
            self.work: FloatArray = np.empty((3, chunk))
            self.index = np.empty(chunk, np.int64)

    def __call__(self, c: FloatArray, w: FloatArray) -> None:
        if self.epsilon >= _LARGE:
            self._far(c, w)
            return
        ratio = np.divide(self.top, c, out=self.work[0, : c.size])  # R
        if ratio.max() >= 2.0**_OCTAVES:
            self._far(c, w)
            self._middle(np.minimum(ratio, 2.0**_OCTAVES), c, w, ratio < 2.0**_OCTAVES)
        else:
            self._middle(ratio, c, w)
        if self.epsilon < _NEAR:
            self._near(c, w)

    def _middle(self, ratio: FloatArray, c: FloatArray, w: FloatArray, where: NDArray[np.bool_] | bool = True) -> None:
        s, step, index = self.work[1, : c.size], self.work[2, : c.size], self.index[: c.size]
        np.right_shift(ratio.view(np.int64), _SHIFT, out=index)
        index -= _FIRST
        self.slopes.take(index, out=s, mode="clip")
        s *= ratio
        self.values.take(index, out=step, mode="clip")
        s += step
        np.multiply(ratio, s, out=step)
        e = np.exp(s, out=index.view(np.float64))  # the indices are no longer needed
        step -= e
        step += 1.0  # -F, F = e^s - 1 - R s
        e -= ratio  # F'
        step /= e
        s += step
        np.divide(s, c, out=w, where=where)

    def _near(self, c: FloatArray, w: FloatArray) -> None:
        at = np.flatnonzero(c >= self.top / (1.0 + _NEAR))
        if at.size:
            x = c[at]
            g = ((self.epsilon - x) + self.tail) / x
            first, *others = _near_coefficients()
            p = np.full_like(g, first)
            for coefficient in others:
                p *= g
                p += coefficient
            w[at] = g * p / x

    def _far(self, c: FloatArray, w: FloatArray) -> None:
        c = np.clip(c, 1e-300, None)
        level = np.log(c)
        np.subtract(self.log_top, level, out=level)
        np.clip(level, 36.0, None, out=level)
        s = level + np.log(level)
        for _ in range(2):
            step = np.log(s, out=w)
            step -= s
            step += level  # level - (s - log s)
            step /= 1.0 - 1.0 / s
            s += step
        np.divide(s, c, out=w)


@cache
def _table() -> tuple[FloatArray, FloatArray]:
    """s(R) between numbers whose mantissa has `_BITS` bits: intercepts and slopes in R."""
    indices: NDArray[np.int64] = (np.arange((_OCTAVES << _BITS) + 1, dtype=np.int64) + _FIRST) << _SHIFT
    ratio = indices.view(np.float64)
    s = _inverse(ratio - 1.0, precise=1e-11)  # Newton's step squares what is missing
    slopes = np.diff(s) / np.diff(ratio)
    return s[:-1] - slopes * ratio[:-1], slopes


@cache
def _near_coefficients() -> tuple[float, ...]:
    """p with s = G p(G) on [0, 0.3], highest power first: interpolation at Chebyshev's nodes."""
    degree = 15
    nodes = np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))
    g = 0.5 * _NEAR * (nodes + 1.0)
    fitted = np.polynomial.Chebyshev.fit(g, _inverse(g) / g, degree, domain=[0.0, _NEAR])
    return tuple(fitted.convert(kind=np.polynomial.Polynomial).coef[::-1].tolist())


def _inverse(target: FloatArray, precise: float = 4e-16) -> FloatArray:
    """g(s) = (e^s - 1)/s - 1 = target, by Newton's method on log(1 + g), convex and increasing, from above."""
    level = np.log1p(target)
    s = np.where(level < 1.0, 2.0 * target, level + np.log1p(level + np.log1p(level)) + 1.0)
    s = np.maximum(s, 1e-300)
    step = np.empty_like(s)
    for _ in range(60):
        for at in range(0, s.size, _CHUNK):
            some = slice(at, at + _CHUNK)
            _newton_step(s[some], target[some], level[some], step[some])
        np.maximum(s - step, 1e-300, out=s)
        if np.all((np.abs(step) <= precise * s) | (target == 0.0)):
            break
    return np.where(target == 0.0, 0.0, s)


def _newton_step(s: FloatArray, target: FloatArray, level: FloatArray, step: FloatArray) -> None:
    far = s > 1.0
    if far.all():  # nearly everywhere in a table
        step[:] = _far_step(s, level)
        return
    step[far] = _far_step(s[far], level[far])
    step[~far] = _near_step(s[~far], target[~far])


def _far_step(s: FloatArray, level: FloatArray) -> FloatArray:
    """Newton's step for s > 1, where level = log(1 + target)."""
    below = np.expm1(-s)
    return (s + np.log(-below / s) - level) / (-1.0 / below - 1.0 / s)


def _near_step(s: FloatArray, target: FloatArray) -> FloatArray:
    """Newton's step for s <= 1."""
    g = _series(s)
    return np.log1p((g - target) / (1.0 + target)) / ((1.0 + g - g / s) / (1.0 + g))


def _series(s: FloatArray) -> FloatArray:
    """s/2 + s²/6 + ... for s <= 1."""
    total = np.full_like(s, 1.0 / 20.0)
    for k in range(19, 1, -1):  # s/2 (1 + s/3 (1 + s/4 (...)))
        total = (1.0 + s * total) / k
    return s * total
