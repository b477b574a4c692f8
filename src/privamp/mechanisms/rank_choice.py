"""The exponential mechanism over positions by rank, drawn exactly.

Cells are divided into `STEPS` positions each. The records of a cell count as spread evenly over it, so that the number
of records below a position, X, is a whole multiple of 1/(2 STEPS): ties are spread like all other records, and a
quantile inside a tie is found there. A position c between two others is chosen with chance proportional to

    exp(-rate |factor X(c) - target|)

(McSherry & Talwar 2007). Where one record moves the number after the bars by s at most, that is (2 rate s)-DP.

The draw is exact: a proposal from whole numbers Q(c) that are not below 2^32 e^(-rate u), u what c lacks from the best,
is taken with chance 2^32 e^(-rate u) / Q(c), decided with as many digits as it needs. Its running time depends on the
draw, as everywhere in privamp.
"""

from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction

import numpy as np

from ..chance.stream import Stream
from .cell_counts import CellCounts, Whole

STEPS = 32  # positions in a cell
PARTS = 2 * STEPS  # a record counts in so many parts
_TOP = 32  # bits of the largest proposal; 2^25 positions and more fit 63 bits
_WORD = 64
_FAR = 23.0  # e^-23 2^32 is below 1
_FEW = 256  # up to this many held cells, all are evaluated


@dataclass(frozen=True, slots=True)
class Ranks:
    """The records of one group by their cell: how many parts of records lie below a position."""

    held: CellCounts
    before: Whole  # parts of records before each held cell, and all of them

    @classmethod
    def of(cls, held: CellCounts) -> "Ranks":
        """Of these cells."""
        return cls(held, np.concatenate([[0], np.cumsum(held.counts)]) * PARTS)

    def below(self, positions: Whole) -> Whole:
        """X in parts: all of the cells before, and the share of the cell itself up to the middle of the position."""
        cell, inside = np.divmod(positions, STEPS)
        place = np.searchsorted(self.held.cells, cell)
        here = np.minimum(place, len(self.held.cells) - 1)
        is_held = (place < len(self.held.cells)) & (self.held.cells[here] == cell) if len(self.held.cells) else False
        count = np.where(is_held, self.held.counts[here] if len(self.held.cells) else 0, 0)
        return np.asarray(self.before[place] + count * (2 * inside + 1))


@dataclass(frozen=True, slots=True)
class Aim:
    """The target: positions from `first` to `last` where factor X is near it."""

    first: int
    last: int
    factor: int
    target: int
    rate: float

    def lacks(self, ranks: Ranks, positions: Whole) -> Whole:
        """How far these positions are from the target."""
        return np.abs(self.factor * ranks.below(positions) - self.target)


def choose(ranks: Ranks, aim: Aim, stream: Stream) -> int:
    """Draw a position."""
    starts, lengths, lacks, far = _runs(ranks, aim)
    least = int(np.min(lacks))
    proposals = np.where(far == 1, 2, _proposals(lacks - least, aim.rate))
    ends = np.cumsum(proposals * lengths)
    while True:
        drawn = int(stream.below(int(ends[-1]), 1)[0])
        run = int(np.searchsorted(ends, drawn, side="right"))
        inside = (drawn - (int(ends[run - 1]) if run else 0)) // int(proposals[run])
        position = int(starts[run]) + inside
        lack = int(aim.lacks(ranks, np.array([position]))[0]) if far[run] else int(lacks[run])
        if _is_taken(lack - least, int(proposals[run]), aim.rate, stream):
            return position


def _runs(ranks: Ranks, aim: Aim) -> tuple[Whole, Whole, Whole, Whole]:
    """Runs of positions in order: their starts, lengths, what their first one lacks, and whether all of a run do.

    Held cells are runs of single positions, and what lies between two of them is one run. Cells so far from the target
    that their proposals are 2 are not looked at one by one.
    """
    near, is_cut = _near(ranks, aim)
    inside = (near[:, None] * STEPS + np.arange(STEPS + 1)).ravel()  # the last one starts what is between
    starts = np.clip(np.concatenate([[aim.first], inside, [aim.last + 1]]), aim.first, aim.last + 1)  # rising
    starts = starts[:-1][starts[1:] > starts[:-1]]
    lengths = np.diff(np.append(starts, aim.last + 1))
    far = np.zeros(len(starts), dtype=np.int64)
    far[0], far[-1] = is_cut[0], is_cut[1]
    return starts, lengths, aim.lacks(ranks, starts), far


def _near(ranks: Ranks, aim: Aim) -> tuple[Whole, tuple[bool, bool]]:
    """The held cells near the target, one more to each side, and whether there are others before and after."""
    cells = ranks.held.cells
    a, b = (int(k) for k in np.searchsorted(cells, [aim.first // STEPS, aim.last // STEPS + 1]))
    if b - a <= _FEW:
        return cells[a:b], (False, False)
    low, high = aim.factor * ranks.before[a:b], aim.factor * ranks.before[a + 1 : b + 1]
    lacks = np.maximum(np.maximum(low - aim.target, aim.target - high), 0)  # none of the cell's positions lacks less
    best = int(np.argmin(lacks)) + a
    some = cells[max(best - 1, a) : min(best + 2, b)]
    tried = np.append((some[:, None] * STEPS + np.arange(-1, STEPS + 1)).ravel(), [aim.first, aim.last])
    least = int(np.min(aim.lacks(ranks, tried[(tried >= aim.first) & (tried <= aim.last)])))
    close = np.flatnonzero(lacks - least <= _FAR / aim.rate)
    first, last = max(int(close[0]) - 1, 0), min(int(close[-1]) + 2, b - a)
    return cells[a + first : a + last], (first > 0, last < b - a)


def _proposals(lacks: Whole, rate: float) -> Whole:
    """Whole numbers not below 2^32 e^(-rate lack); doubles err by less than what is added."""
    heights = np.exp(-rate * lacks.astype(np.float64)) * 2.0**_TOP
    return np.asarray(np.ceil(heights * (1.0 + 1e-9)).astype(np.int64) + 1)


def _is_taken(lack: int, proposal: int, rate: float, stream: Stream) -> bool:
    """A coin of chance 2^32 e^(-rate lack) / proposal: a uniform number, word by word until the comparison is
    decided."""
    drawn, bits = 0, 0
    exponent = Fraction(rate) * lack
    while True:
        drawn, bits = (drawn << _WORD) | int(stream.words(1)[0]), bits + _WORD
        below = _scaled(exponent, proposal, bits)
        if drawn < below - 1:
            return True
        if drawn > below + 1:
            return False


def _scaled(exponent: Fraction, proposal: int, bits: int) -> int:
    """2^bits times the chance, off by less than 1."""
    with localcontext(Context(prec=bits // 3 + 40, Emin=MIN_EMIN, Emax=MAX_EMAX)):
        height = (-Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()
        return int(height * Decimal(2 ** (bits + _TOP)) / Decimal(proposal))
