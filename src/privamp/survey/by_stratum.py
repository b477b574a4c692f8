"""Separate bounds for each stratum, in estimates that are made of cells.

A record of stratum h adds to its cell its value measured from the middle m_h of its own bounds, at most half_h away, so
a stratum with a narrow range needs little noise however wide others are. What the cell's total is measured from one
middle m then follows from how many answered in each stratum: cells are divided by strata, and

    total_c = (released total of z = x - m_h) + (m_h - m) (released count),

a function of released numbers. Dividing cells costs noise too: H times as many of them. Both kinds of noise are public
beforehand, and the smaller one is taken; values are clipped to the bounds of their stratum in either case.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..core.bounds import Pair
from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray, as_floats
from .frame import Frame


@dataclass(frozen=True, slots=True)
class StratumBounds:
    """The bounds of every stratum, and whether cells are divided by strata."""

    low: FloatArray  # (H,)
    high: FloatArray  # (H,)
    which: NDArray[np.intp] = field(repr=False)  # (n,) the stratum of each record
    is_divided: bool = False

    @property
    def ends(self) -> Pair:
        """Of all strata together."""
        return float(self.low.min()), float(self.high.max())

    @property
    def middle(self) -> FloatArray:
        """(H,) what values are measured from."""
        ends = self.ends
        return 0.5 * (self.low + self.high) if self.is_divided else np.full_like(self.low, 0.5 * (ends[0] + ends[1]))

    @property
    def offset(self) -> FloatArray:
        """(H,) of the middles, from that of all strata together."""
        return as_floats(self.middle - 0.5 * sum(self.ends))

    @property
    def half(self) -> FloatArray:
        """(H,) the farthest that a value is from what it is measured from."""
        return np.maximum(self.high - self.middle, self.middle - self.low)

    def centred(self, numbers: FloatArray) -> FloatArray:
        """Numbers measured from the middle of their stratum and clipped to its bounds, 0 for nan."""
        low, high, middle = (ends[self.which] for ends in (self.low, self.high, self.middle))
        return np.nan_to_num(np.clip(numbers, low, high) - middle, nan=0.0)


def bounds_by_stratum(pairs: tuple[Pair, ...], of: object, heaviest: FloatArray, theta: FloatArray, records: int,
                      may_divide: bool) -> StratumBounds:  # fmt: skip
    """The bounds of a design's strata; cells are divided where that needs less noise."""
    low, high = as_floats([pair[0] for pair in pairs]), as_floats([pair[1] for pair in pairs])
    which = of.which if isinstance(of, Frame) else np.zeros(records, dtype=np.intp)
    plain = StratumBounds(low, high, which)
    if not (np.ptp(low) or np.ptp(high)):
        return plain
    if not isinstance(of, Frame):
        raise InvalidInput("bounds by stratum need a design of strata; give one pair of bounds")
    divided = StratumBounds(low, high, which, is_divided=True)
    one, other = (float(np.max(heaviest * b.half / theta)) for b in (plain, divided))
    is_better = of.fixed and may_divide and other * np.sqrt(low.size) < one
    return divided if is_better else plain
