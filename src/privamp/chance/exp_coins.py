"""Coins with probability e^-g and geometric numbers with ratio e^-1, decided exactly.

A coin is "u < e^-g" for a uniform real u, of which 64 bits are drawn. A double decides it: e^-g from `np.exp` is
within a share of 2^-45 of the truth, and where u lies further than `_MARGIN` = 2^-38 from it, both on the same side,
the decision is certain. Otherwise (about one coin in 2^37) more bits of u are drawn and compared with e^-g to as many
digits as it takes (`decimal`, whose exp is correctly rounded). No decision depends on rounding, and the probability
is exactly e^-g: the floats only say which cases are clear.
"""

from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from .stream import Stream

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_MARGIN = 2.0**-38  # far above the errors of exp and log, of g as a double and of a word as a double
_FEW = 2.0**40  # below this a word has too few digits to know its logarithm to the margin


def exp_coins(stream: Stream, g: Floats, exact: Callable[[int], Fraction]) -> Mask:
    """Return coins with probability e^-g_i; `g` is within a share of 2^-50 of `exact(i)`, which is at least 0."""
    words = stream.words(len(g))
    drawn = words.astype(np.float64)
    chance = np.exp(-g) * 2.0**64
    up: Mask = drawn + 1.0 < chance * (1.0 - _MARGIN)
    unclear = ~up & (drawn <= chance * (1.0 + _MARGIN))
    for i in np.flatnonzero(unclear).tolist():
        up[i] = _Uniform(stream, int(words[i])).is_below_exp(exact(i))
    return up


def geometrics(stream: Stream, n: int) -> Integers:
    """Return how many coins with probability e^-1 succeed before the first failure: v or more with probability e^-v."""
    words = stream.words(n)
    drawn = words.astype(np.float64)
    logs = 64.0 * np.log(2.0) - np.log(np.maximum(drawn, 1.0))
    count = np.floor(logs + _MARGIN)
    for i in np.flatnonzero((np.floor(logs - _MARGIN) != count) | (drawn < _FEW)).tolist():
        uniform, v = _Uniform(stream, int(words[i])), 0
        while uniform.is_below_exp(Fraction(v + 1)):
            v += 1
        count[i] = v
    return np.asarray(count, dtype=np.int64)


class _Uniform:
    """A uniform number between 0 and 1 whose bits are drawn on demand."""

    __slots__ = ("_drawn", "_stream", "_words")

    def __init__(self, stream: Stream, first: int) -> None:
        self._stream, self._drawn, self._words = stream, first, 1

    def is_below_exp(self, g: Fraction) -> bool:
        """Whether it is less than e^-g."""
        if g == 0:
            return True
        while True:
            low, high = scaled_exp(g, 64 * self._words)
            if self._drawn + 1 <= low:
                return True
            if self._drawn >= high:
                return False
            self._drawn, self._words = self._drawn << 64 | int(self._stream.words(1)[0]), self._words + 1


def scaled_exp(g: Fraction, bits: int) -> tuple[int, int]:
    """Whole numbers around 2^bits e^-g, both within a few digits' rounding of it."""
    digits = 20 + int(bits * 0.31) + len(str(g.numerator // g.denominator))
    # nothing from the caller's contexts, which may trap a rounding or cut exponents
    context = Context(prec=digits, rounding=ROUND_HALF_EVEN, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
    ratio = context.divide(context.create_decimal(-g.numerator), context.create_decimal(g.denominator))
    value = context.multiply(context.exp(ratio), context.create_decimal(1 << bits))
    whole = int(value)  # relative errors of exp(ratio): g 10^(1 - digits) and two roundings
    small = context.scaleb(value, 12 - digits)
    margin = 1 + int(context.multiply(small, context.create_decimal(2 + g.numerator // g.denominator)))
    return whole - margin, whole + 1 + margin
