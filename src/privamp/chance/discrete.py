"""Discrete Laplace and discrete Gaussian noise, drawn exactly with whole numbers only.

The method is Canonne, Kamath & Steinke 2020 ("The discrete Gaussian for differential privacy", Algorithms
1-3), vectorised: every entry that is still undecided takes part in the next round. The only decision is
"a uniform whole number below q is less than p", so a coin of chance p/q is exact and no float is compared.

One change to Algorithm 3: the Laplace proposal has scale sigma = a/b itself, not a whole number. The coin is
then exp(-(z/a)^2 / 2) with z = |b|y| - a|; writing z = m a + r splits it into coins exp(-1/2) (m^2 of them),
exp(-r/a) (m of them) and exp(-(r/a)^2 / 2). No square is ever formed, so 64 bits are enough at every scale.

Running time depends on the draw (not constant-time): do not show the time of one draw to the public.
"""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput
from ..validation import positive, whole
from .stream import Stream

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

# A draw is below a (V + 1), V geometric: with a <= 2^50 it overflows only when V > 2^12, of chance e^-4096.
_TOP = 2**50  # largest numerator
_BOTTOM = 2**20  # largest denominator


def rational_scale(scale: float | Fraction) -> Fraction:
    """Return the scale that is really drawn: a fraction never below `scale`, so never less noise.

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
        # 64k tries at once stay in cache. Acceptance does not look at a try's place, so cutting is fair.
        part = attempt(min(max(missing, 16) + missing // 2, 65536))[:missing]
        parts.append(part)
        missing -= len(part)
    return np.concatenate(parts)


def _try_laplace(stream: Stream, a: int, b: int, m: int) -> Integers:
    """Algorithm 2 for exp(-|k| b/a): x = u + a v is geometric of ratio exp(-1/a), and |k| = floor(x / b)."""
    u = stream.below(a, m)
    u = u[_exp_coins(stream, len(u), lambda i: stream.below(a, len(i)) < u[i])]
    y: Integers = (u + a * _geometric(stream, len(u))) // b
    negative = stream.below(2, len(y)) == 1
    fair: Mask = ~(negative & (y == 0))  # zero must not come twice, as +0 and -0
    signed: Integers = np.where(negative, -y, y)
    return signed[fair]


def _try_gaussian(stream: Stream, a: int, b: int, m: int) -> Integers:
    """Algorithm 3: keep a discrete Laplace y with chance exp(-(|y| - sigma)^2 / 2 sigma^2), sigma = a/b."""
    y = _try_laplace(stream, a, b, m)
    times, r = np.divmod(np.abs(np.abs(y) * b - a), a)

    def ratio(i: Integers) -> Mask:  # chance r/a
        return np.asarray(stream.below(a, len(i)) < r[i])

    def half(i: Integers) -> Mask:
        return np.asarray(stream.below(2, len(i)) == 0)

    def half_square(i: Integers) -> Mask:  # chance (r/a)^2 / 2
        return _both(i, half, lambda j: _both(j, ratio, ratio))

    kept = np.flatnonzero(_exp_coins(stream, len(y), half_square))
    kept = _repeat(kept, times**2, lambda i: _exp_coins(stream, len(i), lambda j: half(i[j])))
    kept = _repeat(kept, times, lambda i: _exp_coins(stream, len(i), lambda j: ratio(i[j])))
    return y[kept]


def _geometric(stream: Stream, n: int) -> Integers:
    """Return how many coins of chance e^-1 come up before the first that does not."""
    count = np.zeros(n, np.int64)
    running = np.arange(n)
    while running.size:
        running = running[_exp_coins(stream, len(running), lambda i: np.ones(len(i), np.bool_))]
        count[running] += 1
    return count


def _exp_coins(stream: Stream, n: int, coin: Callable[[Integers], Mask]) -> Mask:
    """Return n coins of chance e^-g, where coin(indices) is of chance g, from 0 to 1 (Algorithm 1).

    Toss g/1, g/2, g/3, … until one fails: the failing toss is odd with chance 1 - g + g^2/2 - … = e^-g.
    """
    odd = np.zeros(n, np.bool_)
    running, toss = np.arange(n), 1
    while running.size:
        goes_on = coin(running)
        if toss > 1:
            goes_on &= stream.below(toss, len(running)) == 0
        odd[running[~goes_on]] = toss % 2 == 1
        running, toss = running[goes_on], toss + 1
    return odd


def _both(i: Integers, first: Callable[[Integers], Mask], second: Callable[[Integers], Mask]) -> Mask:
    """Toss both coins; the second only where the first came up."""
    up = first(i)
    up[up] = second(i[up])
    return up


def _repeat(kept: Integers, times: Integers, coins: Callable[[Integers], Mask]) -> Integers:
    """Keep an index when `times` coins in a row come up for it."""
    done = 0
    while (more := times[kept] > done).any():
        up = np.ones(len(kept), np.bool_)
        up[more] = coins(kept[more])
        kept, done = kept[up], done + 1
    return kept
