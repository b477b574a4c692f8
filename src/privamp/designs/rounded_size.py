"""The loss of drawing a fixed share r of an unknown number of records, by the way the size is rounded.

Here a = e^eps, M is eps-DP under add/remove, and the supremum is over every number n of records up to a public
bound (or over all n). Writing k for the whole part of rn and p for the rest:

    random    one record more: log(1 + r(a-1) + r(1-r)(a^2-1)), one replaced: log(1 + r(a^2-1))
    floor, half-up, ceil
              one record more: max(eps, log(1 + q(a^2-1))), q = sup of m/(n+1) where n and n+1 give the same size m
              one replaced: log(1 + q(a^2-1)), q = sup of m/n

For floor q is r, r. For half-up the second q is 1/ceil(1/2r), the first is at most 2r/(1+2r) for r <= 1/2 and r
above. For ceil they are 1 - 1/ceil(1/(1-r)) (one half however small r is) and 1. Proofs:
docs/designs/proportional.md.
"""

import math
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Literal

import numpy as np

from ..numerics.log_domain import log_mix
from ..numerics.size_chain import LARGEST_STEP, ChainValue
from ..numerics.size_chain import added as chain_added
from ..numerics.size_chain import replaced as chain_replaced

Rounding = Literal["random", "floor", "half-up", "ceil"]
ROUNDINGS = ("random", "floor", "half-up", "ceil")
_SCANNED = 10_000  # sizes looked at one by one
_FEW = 2_000  # populations up to here are worth a chain program each


def whole_size(rate: Fraction, population: int, rounding: str) -> int:
    """The rounded size; under "random" the smaller of the two."""
    share, whole = rate.numerator * int(population), rate.denominator
    if rounding == "half-up":
        return (2 * share + whole) // (2 * whole)
    return -(-share // whole) if rounding == "ceil" else share // whole


def size_weights(rate: Fraction, population: int, rounding: str) -> dict[int, int]:
    """The sizes that may occur with whole-number weights."""
    size = whole_size(rate, population, rounding)
    rest = rate.numerator * int(population) - size * rate.denominator  # of this denominator
    if rounding != "random" or rest == 0:
        return {size: 1}
    common = math.gcd(rest, rate.denominator)
    return {size: (rate.denominator - rest) // common, size + 1: rest // common}


def random_added(rate: Fraction, epsilon: float) -> float:
    """log(1 + r(a-1) + r(1-r)(a^2-1)): the supremum over all n, approached as n grows."""
    r = float(rate)
    if epsilon > 300.0:  # as a mixture of a^0, a^1 and a^2, in logarithms
        with np.errstate(divide="ignore"):
            terms = [2 * math.log1p(-r) if r < 1 else -math.inf, math.log(r) + epsilon]
            terms.append(math.log(r) + float(np.log1p(-r)) + 2 * epsilon)
        return float(np.logaddexp.reduce(terms))
    return math.log1p(r * math.expm1(epsilon) + r * float(1 - rate) * math.expm1(2 * epsilon))


def random_added_at_most(rate: Fraction, epsilon: float) -> float:
    """The largest of that over all rates up to `rate`: it falls again beyond 1/2 + 1/(2(1 + a))."""
    top = Fraction(0.5 + 0.5 / (1.0 + math.exp(min(epsilon, 700.0))))
    return random_added(min(rate, top), epsilon)


def deterministic_added(q: float, epsilon: float) -> float:
    """max(eps, log(1 + q(a^2 - 1)))."""
    return max(epsilon, float(log_mix(q, 2.0 * epsilon)))


def share_replaced(rate: Fraction, rounding: str) -> Fraction:
    """The supremum over n of the chance that a given record is drawn."""
    if rounding == "half-up":
        return Fraction(1, math.ceil(1 / (2 * rate)))
    return Fraction(1) if rounding == "ceil" else rate


def share_kept(rate: Fraction, rounding: str) -> tuple[Fraction, Fraction]:
    """(at least, at most) the supremum of m/(n+1) over n for which n and n + 1 records both give m."""
    if rate == 1:
        return Fraction(0), Fraction(0)  # every newcomer is drawn too
    if rounding == "floor":
        return rate, rate
    if rounding == "ceil":
        found = 1 - Fraction(1, math.ceil(1 / (1 - rate)))
        return found, found
    if rate > Fraction(1, 2):
        return rate, rate
    return _half_up_kept(rate)


def share_kept_at_most(rate: Fraction, rounding: str) -> Fraction:
    """Not below that supremum at any rate up to `rate`, nor when n + 1 records are drawn at a smaller rate than n."""
    half = Fraction(1, 2)
    if rounding == "ceil":
        return 1 - Fraction(1, math.ceil(1 / (1 - rate))) if rate < 1 else rate
    return rate / (half + rate) if rounding == "half-up" and rate <= half else rate


@lru_cache(maxsize=256)
def _half_up_kept(rate: Fraction) -> tuple[Fraction, Fraction]:
    """For each size m the first n that gives it is worst; the pattern repeats after rate.numerator sizes."""
    half = Fraction(1, 2)
    last = min(rate.numerator, _SCANNED)
    found = max(rate, *(Fraction(m, math.ceil((m - half) / rate) + 1) for m in range(1, last + 1)))
    if last == rate.numerator:
        return found, found
    beyond = last + 1
    return found, max(found, rate * beyond / (beyond - half + rate))


def added_at(rate: Fraction, rounding: str, epsilon: float, population: int) -> ChainValue:
    """The exact loss between `population` records and one more."""
    return chain_added(_law(rate, population, rounding), _law(rate, population + 1, rounding), epsilon)


@lru_cache(maxsize=256)
def added_up_to(rate: Fraction, rounding: str, epsilon: float, at_most: int) -> ChainValue | None:
    """The exact supremum over populations of up to `at_most` records (the larger one counts), or None: too many."""
    if at_most > _FEW or epsilon > LARGEST_STEP:
        return None
    laws = [_law(rate, n, rounding) for n in range(at_most + 1)]
    return _largest([chain_added(few, more, epsilon) for few, more in pairwise(laws)])


@lru_cache(maxsize=256)
def replaced_up_to(rate: Fraction, rounding: str, epsilon: float, at_most: int) -> ChainValue | None:
    """The same when one record is replaced."""
    if at_most > _FEW or epsilon > LARGEST_STEP:
        return None
    return _largest([chain_replaced(_law(rate, n, rounding), epsilon) for n in range(1, at_most + 1)])


def _law(rate: Fraction, population: int, rounding: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    law = np.zeros(population + 1)
    weights = size_weights(rate, population, rounding)
    for size, weight in weights.items():
        law[size] = Fraction(weight, sum(weights.values()))
    return law


def _largest(values: list[ChainValue]) -> ChainValue:
    return ChainValue(max((v.lower for v in values), default=0.0), max((v.upper for v in values), default=0.0))
