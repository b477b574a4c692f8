"""Laws of counts: binomial, hypergeometric and Poisson. scipy.stats has them too, but its import takes 0.3 seconds.

Binomial chances by Loader's saddle-point expansion (C. Loader, Fast and accurate computation of binomial
probabilities, 2000): log n! is replaced by Stirling's formula and its error, so that no large logarithms cancel.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, betaincc, gammaln, xlog1py, xlogy

from .log_domain import FloatArray, as_floats

_SERIES = 16  # from here on Stirling's series gives the last digit
_NEAR, _TERMS = 0.1, 10  # |x - m|/(x + m) below which the deviance is a series, and how long it is


def binomial_chance(count: ArrayLike, draws: ArrayLike, rate: ArrayLike) -> FloatArray:
    """Pr[Binomial(draws, rate) = count]; 0 outside of 0, ..., draws."""
    return as_floats(np.exp(binomial_log_chance(count, draws, rate)))


def binomial_log_chance(count: ArrayLike, draws: ArrayLike, rate: ArrayLike) -> FloatArray:
    """log Pr[Binomial(draws, rate) = count]; -inf outside of 0, ..., draws."""
    k, n, p = as_floats(count), as_floats(draws), as_floats(rate)
    inside = (k > 0) & (k < n) & (p > 0.0) & (p < 1.0)
    here, both = np.where((k > 0) & (k < n), k, 1.0), np.where(n > 1, n, 2.0)
    rest = np.where(here < both, both - here, 1.0)
    gap = _stirling_error(both) - _stirling_error(here) - _stirling_error(rest)
    gap = gap + 0.5 * np.log(both / (2.0 * np.pi * here * rest))
    safe = np.where((p > 0.0) & (p < 1.0), p, 0.5)
    found = gap - (_deviance(here, both * safe) + _deviance(rest, both * (1.0 - safe)))
    ends = (k == 0) | (k == n)
    certain = np.where(ends, xlogy(np.where(ends, k, 0.0), p) + xlog1py(np.where(ends, n - k, 0.0), -p), -np.inf)
    return as_floats(np.where(inside, found, certain))


def binomial_at_most(count: ArrayLike, draws: ArrayLike, rate: ArrayLike) -> FloatArray:
    """Pr[Binomial(draws, rate) <= count]."""
    return binomial_tails(count, draws, rate)[0]


def binomial_above(count: ArrayLike, draws: ArrayLike, rate: ArrayLike) -> FloatArray:
    """Pr[Binomial(draws, rate) > count]."""
    return binomial_tails(count, draws, rate)[1]


def binomial_tails(count: ArrayLike, draws: ArrayLike, rate: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Both, the larger as 1 minus the smaller: of very many draws `betainc` knows 8 digits only where it is large.

    The smaller is usually the one beyond the mean: the other is computed only where that is wrong.
    """
    k, n, p = np.broadcast_arrays(as_floats(count), as_floats(draws), as_floats(rate))
    inside = (k >= 0) & (k < n)
    a, b = np.where(inside, k, 0.0) + 1.0, np.where(inside, n - k, 1.0)
    is_upper = a > n * p  # the smaller is above
    smaller = np.where(is_upper, 0.0, 1.0)
    for upper, tail in ((True, betainc), (False, betaincc)):
        here = is_upper == upper
        smaller[here] = tail(a[here], b[here], p[here])
    wrong = inside & (smaller > 0.5)
    is_upper = is_upper ^ wrong
    for upper, tail in ((True, betainc), (False, betaincc)):
        here = wrong & (is_upper == upper)
        smaller[here] = tail(a[here], b[here], p[here])
    below, above = np.where(is_upper, 1.0 - smaller, smaller), np.where(is_upper, smaller, 1.0 - smaller)
    outside = np.where(k < 0, 0.0, 1.0)
    return as_floats(np.where(inside, below, outside)), as_floats(np.where(inside, above, 1.0 - outside))


def hypergeometric_log_chance(
    count: ArrayLike, population: ArrayLike, specials: ArrayLike, draws: ArrayLike
) -> FloatArray:
    """log Pr[so many of the specials are among the units drawn]; -inf where that cannot be.

    The specials and the others by one coin each, given how many heads there are in all: any rate will do.
    """
    k, total, good, n = (as_floats(x) for x in (count, population, specials, draws))
    rate = np.where(n < total, n / total, 0.5)
    ways = binomial_log_chance(k, good, rate) + binomial_log_chance(n - k, total - good, rate)
    return as_floats(ways - binomial_log_chance(n, total, rate))


def poisson_chance(count: ArrayLike, mean: ArrayLike) -> FloatArray:
    """Pr[Poisson(mean) = count] for counts from 0 on."""
    k, mean = as_floats(count), as_floats(mean)
    return as_floats(np.exp(xlogy(k, mean) - gammaln(k + 1.0) - mean))


def _stirling_error(n: FloatArray) -> FloatArray:
    """log n! - log(sqrt(2 pi n) (n/e)^n) for n >= 1."""
    large = np.maximum(n, _SERIES)
    s = 1.0 / (large * large)
    series = (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s * (1 / 1188))))) / large
    return np.where(n >= _SERIES, series, _FEW[np.minimum(n, _SERIES).astype(np.int64)])


def _few() -> FloatArray:
    """Its values at 0 (not used) to 16, downwards: each step adds (n + 1/2) log(1 + 1/n) - 1."""
    values = np.zeros(_SERIES + 1)
    n = float(_SERIES)
    values[-1] = 1 / (12 * n) - 1 / (360 * n**3) + 1 / (1260 * n**5) - 1 / (1680 * n**7) + 1 / (1188 * n**9)
    for n in range(_SERIES - 1, 0, -1):
        values[n] = values[n + 1] + ((n + 0.5) * np.log1p(1.0 / n) - 1.0)
    return values


_FEW = _few()


def _deviance(x: FloatArray, mean: FloatArray) -> FloatArray:
    """x log(x/mean) + mean - x for positive numbers, without cancellation where they are close."""
    x, mean = np.broadcast_arrays(x, mean)
    total = np.asarray(x * np.log(x / mean) + (mean - x))
    v = (x - mean) / (x + mean)
    near = np.abs(v) < _NEAR
    if np.any(near):
        v, there = v[near], x[near]
        part, term = (there - mean[near]) * v, 2.0 * there * v
        for j in range(1, _TERMS):
            term = term * (v * v)
            part = part + term / (2 * j + 1)
        total[near] = part
    return total
