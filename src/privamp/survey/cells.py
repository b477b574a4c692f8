"""Noisy totals by public cells: how many answered and their totals, from which adjustments are computed.

A drawn record with an answer adds its weight to the count of its cell, its weight times its answer (measured from the
middle of the bounds) to the cell's total and, for a ratio, the same of the denominator. Where the number of people in a
class is secret, every drawn record also adds its weight to the cell's number of people. A cell is a class of the frame
or a combination of margins, times a domain; no one is in two cells.

One record moves all cells together by at most w |(a, b h)|, |z| <= h, a and b the multipliers of count and total, w its
weight, | | the l1 norm for Laplace and the l2 norm for Gaussian noise; a replaced record by two of that. (Replaced
within its cell it moves them by max(|(0, 2 b h)|, |(a, b h)|), which is less, but the noise states what one record
adds, and certificates of other relations are made of that statement.)
"""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..core.sample import Drawn
from ..mechanisms.fixed_point import Whole
from ..numerics.log_domain import FloatArray
from .basis import Basis
from .exact import ExactRelease, release_moving, summed

_COUNT = 0.6  # of a count beside a total, where both are paid for: least error of a mean 0.4 h off the middle


@dataclass(frozen=True, slots=True)
class Cells:
    """The cell and the answer of every record; arrays over records (n,)."""

    cell: NDArray[np.intp] = field(repr=False)  # C for a record in none
    domain: NDArray[np.intp] = field(repr=False)  # D - 1 for the rest, where there are several
    cells: int  # C
    domains: int  # D, with the rest
    answered: NDArray[np.bool_] = field(repr=False)
    value: FloatArray = field(repr=False)  # within -half and half; 0 without an answer
    half: float
    over: FloatArray | None = field(default=None, repr=False)  # of a denominator
    over_half: float = 0.0
    counts_everybody: bool = False
    halves: FloatArray | None = None  # (H,) of the value by stratum, where they differ; `half` weighs them then
    offset: FloatArray | None = None  # (C,) what a cell's values are measured from, from the middle of all bounds

    def release(self, basis: Basis, noise: str, share: float) -> ExactRelease:
        """The noise for all cells at once."""
        totals = [self.half] + ([self.over_half] if self.over is not None else [])
        count = _COUNT * self.half
        ratios = [self.half / h for h in totals] + [count] * (1 + self.counts_everybody)
        others = [self.half] * (len(totals) - 1) + [count] * (1 + self.counts_everybody)
        halves = np.full_like(basis.heaviest, self.half) if self.halves is None else self.halves
        moved = np.array([self._moved([float(half), *others], noise) for half in halves])
        reach = basis.heaviest * moved * (2.0 if basis.is_replaced else 1.0)
        return release_moving(noise, tuple(ratios), reach, basis.share(share, noise), basis.records)

    def _moved(self, each: list[float], noise: str) -> float:
        """By one record of weight 1."""
        return sum(each) if noise == "laplace" else math.sqrt(sum(part * part for part in each))

    def totals(self, release: ExactRelease, basis: Basis, drawn: Drawn) -> Whole:
        """All cells of all statistics, in units of the grid."""
        at = np.repeat(drawn.positions, drawn.counts)
        w, place = basis.weight[at], self.domain[at] * (self.cells + 1) + self.cell[at]
        answered = self.answered[at]
        rows = [self.value[at]] + ([self.over[at]] if self.over is not None else [])
        rows = [np.where(answered, row, 0.0) for row in rows] + [answered.astype(np.float64)]
        rows += [np.ones(at.size)] * self.counts_everybody
        size = self.domains * (self.cells + 1)
        found = [summed(place, release.shares(k, row, w), size) for k, row in enumerate(rows)]
        inside = np.arange(size) % (self.cells + 1) < self.cells
        return np.concatenate([part[inside] for part in found])

    def answers(self, release: ExactRelease, noisy: FloatArray) -> "Answers":
        """The released numbers, (D, C) each."""
        parts = [part.reshape(self.domains, self.cells) for part in release.answers(noisy)]
        over = parts[1] if self.over is not None else None
        count = parts[2 if over is not None else 1]
        everybody = parts[-1].sum(axis=0) if self.counts_everybody else None
        unit = math.sqrt(2.0 if release.kind == "laplace" else 1.0)
        scales = [unit * release.scale_of(k) for k in range(len(parts))]
        offset = np.zeros(self.cells) if self.offset is None else self.offset
        total = parts[0] + offset * count
        which = 2 if over is not None else 1
        return Answers(total, count, over, everybody, scales[0], scales[which], scales[1], offset)


@dataclass(frozen=True, slots=True)
class Answers:
    """Noisy cells, with the standard deviations of their noise."""

    total: FloatArray  # (D, C), from the middle of the bounds
    count: FloatArray  # (D, C)
    over: FloatArray | None  # (D, C)
    everybody: FloatArray | None  # (C,)
    total_noise: float
    count_noise: float
    over_noise: float  # meant where there is a denominator
    offset: FloatArray  # (C,) how often a count is in its cell's total
