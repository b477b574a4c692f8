"""Discrete Laplace and discrete Gaussian noise, drawn exactly.

The method is Canonne, Kamath & Steinke 2020 ("The discrete Gaussian for differential privacy", Algorithms 2 and 3),
vectorised. Its coins of chance e^-g are those of `exp_coins.py` instead of Algorithm 1: one word each, decided exactly.

One change to Algorithm 3: the Laplace proposal has scale sigma = a/b itself, not a whole number. The coin is then
exp(-(z/a)^2 / 2) with z = b|y| - a.

Running time depends on the draw (not constant-time): do not publish how long a single draw took.
"""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput
from ..validation import positive, whole
from .exp_coins import exp_coins, geometrics
from .stream import Stream

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

# A draw is below a (V + 1), V geometric: with a <= 2^50 it overflows only when V > 2^12, of chance e^-4096.
_TOP = 2**50  # largest numerator
_BOTTOM = 2**20  # largest denominator


def rational_scale(scale: float | Fraction) -> Fraction:
    """Return the scale that is actually drawn: a fraction never below `scale`, so never less noise.

    Fractions that fit (numerator up to 2^50, denominator up to 2^20) stay as they are; others round up to a
    multiple of 2^-20, or of a coarser power of two above 2^30. Certify this number, not the one asked for.

    >>> rational_scale(10.0), rational_scale(Fraction(1, 3)), rational_scale(0.1)
    (Fraction(10, 1), Fraction(1, 3), Fraction(52429, 524288))
    """
    positive(scale=scale)
    exact = scale if isinstance(scale, Fraction) else Fraction(float(scale))
    if exact > _TOP:
        raise InvalidInput(f"scale must be at most 2^50, got {float(scale)!r} instead; use a coarser grid")
    if exact.numerator <= _TOP and exact.denominator <= _BOTTOM:
        return exact
    bottom = _BOTTOM
    while (top := math.ceil(exact * bottom)) > _TOP:
        bottom //= 2
    return Fraction(top, bottom)


def discrete_laplace(stream: Stream, scale: float | Fraction, n: int) -> Integers:
    """Return `n` whole numbers k with chance proportional to exp(-|k| / rational_scale(scale))."""
    whole(0, n=n)
    exact = rational_scale(scale)
    a, b = exact.numerator, exact.denominator
    return _until_all(n, lambda m: _try_laplace(stream, a, b, m))


def discrete_gaussian(stream: Stream, sigma: float | Fraction, n: int) -> Integers:
    """Return `n` whole numbers k with chance proportional to exp(-k^2 / 2 rational_scale(sigma)^2)."""
    whole(0, n=n)
    exact = rational_scale(sigma)
    a, b = exact.numerator, exact.denominator
    return _until_all(n, lambda m: _try_gaussian(stream, a, b, m))


def _until_all(n: int, attempt: Callable[[int], Integers]) -> Integers:
    """Gather `n` draws from attempts that each return the accepted ones among m independent tries."""
    parts, missing = [np.empty(0, np.int64)], n
    while missing:
        # 64k tries at once stay in cache. Acceptance does not depend on a try's position, so cutting does not bias.
        part = attempt(min(max(missing, 16) + missing // 2, 65536))[:missing]
        parts.append(part)
        missing -= len(part)
    return np.concatenate(parts)


def _try_laplace(stream: Stream, a: int, b: int, m: int) -> Integers:
    """Algorithm 2 for exp(-|k| b/a): x = u + a v is geometric of ratio exp(-1/a), and |k| = floor(x / b)."""
    u = stream.below(a, m)
    u = u[exp_coins(stream, u / a, lambda i: Fraction(int(u[i]), a))]
    y: Integers = u + a * geometrics(stream, len(u))
    if b > 1:
        y //= b
    negative = _bits(stream, len(y))
    fair: Mask = ~(negative & (y == 0))  # zero must not come twice, as +0 and -0
    np.negative(y, out=y, where=negative)
    return y[fair]


def _try_gaussian(stream: Stream, a: int, b: int, m: int) -> Integers:
    """Algorithm 3: keep a discrete Laplace y with chance exp(-(|y| - sigma)^2 / 2 sigma^2), sigma = a/b."""
    y = _try_laplace(stream, a, b, m)
    away = np.abs(y) * b - a
    ratio = away / a
    return y[exp_coins(stream, 0.5 * ratio * ratio, lambda i: Fraction(int(away[i]), a) ** 2 / 2)]


def _bits(stream: Stream, n: int) -> Mask:
    """Return n fair coins."""
    words = stream.words(-(-n // 64)).astype("<u8", copy=False)
    return np.unpackbits(words.view(np.uint8))[:n].view(np.bool_)
