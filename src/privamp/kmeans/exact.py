"""Sums over records without rounding: every contribution is a whole multiple of a power of two.

A record's contribution is rounded *toward zero* to a multiple of 2^-bits, which never lengthens it. Contributions of at
most 2^36 units add up exactly in float64 over 2^16 records, in any order and with any kernel (2^36·2^16 < 2^53); such
blocks are added as integers. A sum above 2^53 units is clamped there, so that the value that gets noise is a double
without rounding. Clamping moves no two sums farther apart. So one record moves the sum by exactly what it contributes.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ..numerics.log_domain import FloatArray

BLOCK = 1 << 16  # records whose contributions are added up in float64
ROW_BITS = 24  # of a row in the unit ball: single precision holds them
_UNIT_BITS = 36  # of one contribution, in units
_SUM_BITS = 53  # of a sum, in units
_ROOM_BITS = 2  # a sum may be four times what was expected before it is cut
_LOW = 26
_MASK = (1 << _LOW) - 1


def bits_for(records: float, largest: float = 1.0) -> int:
    """How fine contributions of up to `largest` may be, given about how many records there are; both are public."""
    return min(
        _UNIT_BITS - math.ceil(math.log2(largest) + 1e-6),
        _SUM_BITS - _ROOM_BITS - math.ceil(math.log2(max(records, 1.0))),
    )


def toward_zero(values: FloatArray, bits: int) -> FloatArray:
    """Multiples of 2^-bits, each no larger than the value."""
    units = np.multiply(values, math.ldexp(1.0, bits), dtype=np.float64)
    np.trunc(units, out=units)
    units *= math.ldexp(1.0, -bits)
    return units


def blocks(span: slice) -> Iterator[slice]:
    """Pieces of a span of rows that add up exactly in float64."""
    return (slice(at, min(at + BLOCK, span.stop)) for at in range(span.start, span.stop, BLOCK))


def total(parts: Sequence[FloatArray]) -> FloatArray:
    """The sum of sums of blocks, all in units: whole numbers below 2^53; cut to 2^53."""
    return joined(halves(parts))


def halves(parts: Sequence[FloatArray]) -> NDArray[np.int64]:
    """The same sum in two whole numbers, low and high, neither of which overflows: such pairs can be added further."""
    units = np.asarray(parts).astype(np.int64)
    return np.stack([np.sum(units & _MASK, axis=0), np.sum(units >> _LOW, axis=0)])


def joined(pair: NDArray[np.int64]) -> FloatArray:
    """One number of a low and a high part; cut to 2^53."""
    low, high = pair
    whole = (high + (low >> _LOW)).astype(np.float64) * 2.0**_LOW + (low & _MASK)
    return np.asarray(np.clip(whole, -(2.0**_SUM_BITS), 2.0**_SUM_BITS))
