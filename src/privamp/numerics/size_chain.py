"""The exact program for designs whose law depends only on the size of the sample.

Given the size, all subsets are equally likely, so an event of an epsilon-DP mechanism (add/remove) may be
averaged over the records both populations share. What is left is h_j > 0, its chance when j shared records and
nobody else are drawn, with h_{j+1}/h_j between 1/a and a, a = e^epsilon; the changed record multiplies it by a
where it helps and by 1/a where it hurts. The tight epsilon' is log(1 + mu), mu the largest value of sum gain_j
h_j / sum base_j h_j.

Dinkelbach: mu is too small exactly when some h has sum (gain_j - mu base_j) h_j > 0. The best sum from j on, with
h_j = 1, is V_j = c_j + (a V_{j+1} if V_{j+1} > 0 else V_{j+1}/a): one pass of n steps, and the h it finds has a
better mu (bisection helps where that is slow). The last two passes certify: every c_j and every step is moved
outward by more than a float can be wrong, so V_0 <= 0 proves that mu is not exceeded and V_0 >= 0 that it is
reached.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .log_domain import FloatArray, as_floats
from .roots import NumericalFailure

LARGEST_STEP = 130.0  # epsilon: beyond it a step leaves the range of the scaled sums below
_ETA = 2.0**-47  # relative slack of a coefficient: many roundings
_STEP = 2.0**-49  # relative slack of a step
_LIFT = 2.0**500  # the smallest float times this is a normal number, so coefficients keep all their digits
_BIG, _SMALL, _SHIFT = 2.0**200, 2.0**-200, 200
_FLOOR = -(2.0**-900)  # a lower pass never loses a negative sum by underflow
_ROUNDS = 200


@dataclass(frozen=True, slots=True)
class ChainValue:
    """The tight epsilon' from both sides: lower <= truth <= upper."""

    lower: float
    upper: float


def replaced(sizes: FloatArray, epsilon: float) -> ChainValue:
    """Replace-one: `sizes[m]` is the chance (up to a common factor) of drawing m of n = len(sizes) - 1 records.

    >>> found = replaced(np.array([0.0, 0.0, 0.5, 0.5]), 1.0)
    >>> round(found.lower, 7), round(found.upper, 7)
    (1.7633825, 1.7633825)
    """
    return _replaced(as_floats(sizes).tobytes(), float(epsilon))


@lru_cache(maxsize=64)
def _replaced(sizes: bytes, epsilon: float) -> ChainValue:
    _check(epsilon)
    t = np.frombuffer(sizes) * _LIFT
    n = t.size - 1
    if n == 0 or epsilon == 0.0:
        return ChainValue(0.0, 0.0)
    drawn = t[1:] * np.arange(1, n + 1) / n  # node j: j shared records and the changed one
    alone = t[:-1] * (np.arange(n, 0, -1) / n)  # node j: j shared records
    gain = drawn * (2.0 * math.sinh(epsilon))
    return _solve(gain, _ETA * gain, alone + drawn * math.exp(-epsilon), epsilon, about=0.0)


def added(smaller: FloatArray, larger: FloatArray, epsilon: float) -> ChainValue:
    """Add/remove: size laws of n and of n + 1 records, lengths n + 1 and n + 2, both orders of the two.

    >>> found = added(np.array([0.5, 0.5]), np.array([0.0, 1.0, 0.0]), 1.0)
    >>> found.lower <= found.upper < found.lower + 1e-12
    True
    """
    _check(epsilon)
    t, s = as_floats(smaller) * _LIFT, as_floats(larger) * _LIFT
    if s.size != t.size + 1:
        raise ValueError("the larger population has one record more")
    n, a = t.size - 1, math.exp(epsilon)
    j = np.arange(n + 1)
    alone, drawn = s[:-1] * ((n + 1 - j) / (n + 1)), s[1:] * ((j + 1) / (n + 1))
    more, less = alone + a * drawn, alone + drawn / a
    first = _solve(more - t, _ETA * (more + t), t, epsilon, about=1.0)
    second = _solve(t - less, _ETA * (less + t), less, epsilon, about=1.0)
    return ChainValue(max(first.lower, second.lower), max(first.upper, second.upper))


def largest_of(p_in: FloatArray, p_out: FloatArray, q_in: FloatArray, q_out: FloatArray, epsilon: float) -> ChainValue:
    """The largest value over several pairs of data sets, shape (pairs, sizes), and both orders: the record in and out.

    Column j: j shared records are drawn, with the changed record of P (of Q) or without it.
    """
    _check(epsilon)
    lower = upper = 0.0
    for first, second in (((p_in, p_out), (q_in, q_out)), ((q_in, q_out), (p_in, p_out))):
        more = (first[1] + math.exp(epsilon) * first[0]) * _LIFT
        less = (second[1] + math.exp(-epsilon) * second[0]) * _LIFT
        found = _largest(more - less, _ETA * (more + less), less, epsilon)
        lower, upper = max(lower, found.lower), max(upper, found.upper)
    return ChainValue(lower, upper)


def _largest(gain: FloatArray, slack: FloatArray, base: FloatArray, epsilon: float) -> ChainValue:
    """Rows are solved until one pass over each of the others shows that it is not above the largest found."""
    lower, upper, a = 0.0, -1.0, math.exp(epsilon) * (1.0 + _STEP)
    for row in _from_the_middle(gain.shape[0]):
        if upper >= 0.0:
            high = math.expm1(upper) * (1.0 - 1e-12)
            if _best_sum(gain[row] + slack[row] - high * (base[row] * (1.0 - _ETA)), a, 0.0) <= 0.0:
                continue
        found = _solve(gain[row], slack[row], base[row], epsilon, about=1.0)
        lower, upper = max(lower, found.lower), max(upper, found.upper)
    return ChainValue(lower, upper)


def _from_the_middle(rows: int) -> list[int]:
    """Try the ends and the middle first: one of them is often the largest."""
    first = [0, rows - 1, rows // 2]
    return list(dict.fromkeys([*first, *range(rows)]))


def _check(epsilon: float) -> None:
    if not 0.0 <= epsilon <= LARGEST_STEP:
        raise NumericalFailure(f"the chain program needs an epsilon of at most {LARGEST_STEP:g}")


def _solve(gain: FloatArray, slack: FloatArray, base: FloatArray, epsilon: float, about: float) -> ChainValue:
    """Certified largest log(1 + sum gain h / sum base h).

    `slack` bounds the error of `gain`; `about` is 0 when that is relative and 1 when it is relative to base.
    """
    live = np.flatnonzero((gain != 0.0) | (base != 0.0))
    part = slice(int(live[0]), int(live[-1]) + 1)
    gain, slack, base = gain[part], slack[part], base[part]
    a = math.exp(epsilon)
    mu = _optimum(gain, base, a)
    width = 1e-13
    while width < 1e-5:
        high, low = mu + width * (mu + about) + 1e-300, max(mu - width * (mu + about), 0.0)
        above = _best_sum(gain + slack - high * (base * (1.0 - _ETA)), a * (1.0 + _STEP), 0.0) <= 0.0
        below = low == 0.0 or _best_sum(gain - slack - low * (base * (1.0 + _ETA)), a * (1.0 - _STEP), _FLOOR) >= 0.0
        if above and below:
            return ChainValue(math.log1p(low) * (1.0 - 4e-16), math.log1p(high) * (1.0 + 4e-16))
        width *= 4.0
    raise NumericalFailure("the chain program was not certified")


def _optimum(gain: FloatArray, base: FloatArray, a: float) -> float:
    """The largest mu up to rounding: Dinkelbach's steps from below, bisection where they are slow."""
    low, weights = max(float(np.sum(gain)) / float(np.sum(base)), 0.0), base[::-1].tolist()
    high = max(4.0 * low, 1.0)
    while (step := _step(gain - high * base, weights, a)) > 0.0:
        low, high = high + step, 16.0 * (high + step)
        if high > 1e300:
            raise NumericalFailure("the chain program has no finite value")
    for _ in range(_ROUNDS):
        step = _step(gain - low * base, weights, a)
        if not step > 1e-15 * low:
            break
        low += step
        middle = math.sqrt(low) * math.sqrt(high) if high > 4.0 * low else 0.5 * (low + high)
        if (step := _step(gain - middle * base, weights, a)) > 0.0:
            low = middle + step
        else:
            high = middle
    return low


def _step(coefficients: FloatArray, weights: list[float], a: float) -> float:
    """The best sum divided by the sum of base h over the h that reaches it; both sums share one scale."""
    x = y = 0.0
    shift, scale = 0, 1.0
    for c, w in zip(coefficients[::-1].tolist(), weights, strict=True):
        if x > 0.0:
            x, y = x * a, y * a
        else:
            x, y = x / a, y / a
        x += c * scale
        y += w * scale
        if y > _BIG or y < _SMALL:
            x, y, shift = _rescaled(x, y, shift)
            scale = math.ldexp(1.0, -shift)
    return x / y


def _rescaled(x: float, y: float, shift: int) -> tuple[float, float, int]:
    if y > _BIG:
        return x * _SMALL, y * _SMALL, shift + _SHIFT
    while y < _SMALL and shift > -_SHIFT:
        x, y, shift = x * _BIG, y * _BIG, shift - _SHIFT
    return x, y, shift


def _best_sum(coefficients: FloatArray, a: float, floor: float) -> float:
    """V_0 up to a positive factor; a negative sum is kept at or below `floor`."""
    x, shift, scale = 0.0, 0, 1.0
    for c in coefficients[::-1].tolist():
        x = x * a if x > 0.0 else min(x / a, floor) if x < 0.0 else 0.0
        x += c * scale
        if not _SMALL < abs(x) < _BIG:
            while abs(x) >= _BIG:
                x, shift = x * _SMALL, shift + _SHIFT
            while abs(x) <= _SMALL and shift > -_SHIFT:
                x, shift = x * _BIG, shift - _SHIFT
            scale = math.ldexp(1.0, -shift)
    return x
