"""Quantiles that are asked alone: chosen by the exponential mechanism, with intervals whose ends are chosen too.

A quantile's rank is off by Laplace errors: where numbers lie evenly, a position that lacks r records from the target is
chosen with chance proportional to e^(-r/s), s = 2 max(p, 1 - p)/epsilon_i. Those of the quantiles that it was chosen
between are passed on in part. The end of an interval lies `away` records from the quantile, with a Laplace error of its
own, of scale 2/epsilon_i. `away` is such that the end lies on the wrong side of the true quantile with the chance that
is left for it: by the law of the sum of these errors, and of the number of those drawn that lie below it.

That numbers lie evenly is needed only among the few records that these errors pass; `benchmarks/query_coverage.py`
shows what the intervals of uneven columns hold. In a range with too few records the end is "beyond": that of the next
quantile, or the bound itself. An interval of another level than 95% is the same one, longer or shorter.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import ndtri

from ..engines.stored_sample import drawn_of
from ..mechanisms.cell_counts import CellCounts
from ..mechanisms.chosen_quantiles import ChosenQuantiles, Shares, levels_of, share_between
from ..mechanisms.rank_choice import STEPS
from ..numerics.laplace_sums import SumOfErrors
from ..numerics.log_domain import FloatArray
from .answers import Answer
from .drawn_numbers import NORMAL, panjer
from .told import Told

if TYPE_CHECKING:
    from .quantiles import Quantiles
    from .questions import Asking

LEVEL = 0.95  # of the intervals whose ends are chosen
MOST = 3  # quantiles at once: of more, a tree tells more
INNER = (0.2, 0.8)  # and of those farther out, where numbers lie less evenly
_CELLS = 2**20
_HALF = 0.5  # a quantile is a record, and ranks that are chosen lie between two of them


@dataclass(frozen=True, slots=True)
class Errors:
    """The errors of ranks, in records of the sample, for every quantile; `size` is the number drawn if it is public."""

    probabilities: tuple[float, ...]
    shares: Shares
    epsilon: float
    spread: float  # of the design
    weight: float
    size: float | None

    def __call__(self, count: float) -> tuple[tuple[float, float], ...]:
        """How many records away the ends are, to the left and to the right."""
        return self.away(count, LEVEL)

    def away(self, count: float, level: float) -> tuple[tuple[float, float], ...]:
        """For this level."""
        if self.size is not None:
            return _away(self, self.size, level)
        digits = 10.0 ** (math.floor(math.log10(max(count, 1.0))) - 1)  # two are enough, and are looked up again
        return _away(self, math.ceil(max(count, 1.0) / digits) * digits, level)

    def scales(self) -> list[list[float]]:
        """Of the Laplace errors that each quantile's rank has."""
        parts: dict[int, dict[int, float]] = {-1: {}, len(self.probabilities): {}}
        for level in levels_of(len(self.probabilities)):
            for node in level:
                k, low, high = node
                p = share_between(node, self.probabilities)
                own = {k: 2.0 * max(p, 1.0 - p) / (self.shares.level * self.epsilon)}
                passed = {n: (1.0 - p) * parts[low].get(n, 0.0) + p * parts[high].get(n, 0.0) for n in
                          {*parts[low], *parts[high]}}  # fmt: skip
                parts[k] = {**passed, **own}
        return [list(parts[k].values()) for k in range(len(self.probabilities))]

    def sampling(self, p: float, drawn: float) -> float:
        """The variance of how many of those drawn lie below the true quantile."""
        return self.spread / self.weight * drawn * p * (1.0 - p)

    def noise(self, k: int) -> float:
        """The standard error of a quantile's rank."""
        return math.sqrt(2.0 * math.fsum(s * s for s in self.scales()[k]))


@lru_cache(maxsize=1024)
def _away(errors: Errors, drawn: float, level: float) -> tuple[tuple[float, float], ...]:
    end = 2.0 / (errors.shares.ends * errors.epsilon)
    found = []
    for p, scales in zip(errors.probabilities, errors.scales(), strict=True):
        variance = errors.sampling(p, drawn)
        if variance == 0.0 or variance > NORMAL:
            one = SumOfErrors([*scales, end], math.sqrt(variance)).quantile(0.5 - 0.5 * level)
            found.append((one, one))
            continue
        rare = min(p, 1.0 - p) * drawn
        numbers, chances = panjer(rare, variance)
        sides = [SumOfErrors([*scales, end], 0.0, sign * (numbers - rare), chances) for sign in (-1.0, 1.0)]
        left, right = (side.quantile(0.5 - 0.5 * level) for side in (sides if p <= 0.5 else sides[::-1]))
        found.append((left, right))
    return tuple((max(left, 0.0) + _HALF, max(right, 0.0) + _HALF) for left, right in found)


@dataclass(frozen=True, slots=True)
class Scale:
    """Public cells between the bounds: one for every whole number, or very many."""

    low: float
    high: float
    cells: int
    is_whole: bool

    @classmethod
    def of(cls, bounds: tuple[float, float], *, is_whole: bool) -> "Scale":
        """Whole numbers have cells of their own where these are not too many."""
        low, high = bounds
        first, last = math.ceil(low), math.floor(high)
        if is_whole and 0 <= last - first < _CELLS:
            return cls(float(first), float(last), last - first + 1, True)
        return cls(low, high, _CELLS, False)

    def cells_of(self, x: FloatArray) -> NDArray[np.int64]:
        """The cell of every number, -1 for NaN."""
        there = ~np.isnan(x)
        safe = np.clip(np.where(there, x, self.low), self.low, self.high)
        if self.is_whole:
            cell = np.rint(safe - self.low)
        else:
            cell = np.floor((safe - self.low) / (self.high - self.low) * self.cells)
        return np.where(there, np.clip(cell.astype(np.int64), 0, self.cells - 1), -1)

    def value(self, position: int) -> float:
        """The number at a position."""
        if self.is_whole:
            return self.low + position // STEPS
        share = (position + 0.5) / (self.cells * STEPS)
        return self.low * (1.0 - share) + self.high * share


@dataclass(frozen=True, slots=True)
class Chosen:
    """The law of one quantile with an interval."""

    middle: float
    low: float  # ends at LEVEL
    high: float
    errors: Errors
    drawn: float
    place: int
    bounds: tuple[float, float]
    is_whole: bool = False

    def interval(self, level: float) -> tuple[float, float]:
        """The chosen ends, nearer or farther by as many records as the level says; the bounds stay ends."""
        left, right = self._shares(level)
        low = self.low if self.low <= self.bounds[0] else self.middle - (self.middle - self.low) * left
        high = self.high if self.high >= self.bounds[1] else self.middle + (self.high - self.middle) * right
        if self.is_whole:
            low, high = float(math.floor(low)), float(math.ceil(high))
        return max(low, self.bounds[0]), min(high, self.bounds[1])

    def _shares(self, level: float) -> tuple[float, float]:
        if level == LEVEL:
            return 1.0, 1.0
        now, then = (self.errors.away(self.drawn, at)[self.place] for at in (level, LEVEL))
        return tuple(a / b if b else 1.0 for a, b in zip(now, then, strict=True))  # type: ignore[return-value]

    def standard_error(self) -> float:
        """Half the interval, as that of a normal error; all of it where nothing is known."""
        half = 0.5 * self.high - 0.5 * self.low
        return half if (self.low, self.high) == self.bounds else half / float(ndtri(0.5 + 0.5 * LEVEL))

    @property
    def answer(self) -> Answer:
        """The errors have the proportions that they have in ranks."""
        noise = self.errors.noise(self.place)
        sampling = math.sqrt(self.errors.sampling(self.errors.probabilities[self.place], max(self.drawn, 0.0)))
        each = self.standard_error() / (math.hypot(noise, sampling) or 1.0)
        return Answer(self.middle, noise * each, sampling * each, self)


def is_chosen(probabilities: Sequence[float]) -> bool:
    """Whether quantiles that are asked alone are chosen: a few, none of them far out."""
    return len(probabilities) <= MOST and all(INNER[0] <= p <= INNER[1] for p in probabilities)


@dataclass(frozen=True, slots=True)
class Choice:
    """One question about quantiles, and how it is answered by choosing."""

    question: "Quantiles"
    asking: "Asking"
    told: Told
    scale: Scale

    def mechanism(self, epsilon: float) -> ChosenQuantiles:
        """Of this epsilon on the sample."""
        rising = tuple(sorted(self.question.probabilities))
        known = self.asking.is_fixed and self.question.groups is None and self.question.missing is not None
        ends = self.question.interval
        shares = Shares.of(len(rising), count=ends and not known, ends=ends)
        size = float(self.told.size or 0) / self.told.weight if known else None
        errors = Errors(rising, shares, epsilon, self.told.spread, self.told.weight, size)
        groups = 1 if self.question.groups is None else len(self.question.groups.values)
        return ChosenQuantiles(
            epsilon, cells=self.scale.cells, groups=groups, probabilities=rising, shares=shares, away=errors
        )

    def counts(self, batches: Sequence[pa.RecordBatch]) -> CellCounts:
        """How many of those drawn are in each cell of each group."""
        none = np.empty(0, dtype=np.int64)
        total, question = CellCounts(none, none), self.question
        for batch in batches:
            cell = self.scale.cells_of(question.values(batch))
            group = np.zeros(len(cell), dtype=np.int64) if question.groups is None else question.groups.places(batch)
            place = np.where((cell >= 0) & (group >= 0), group * self.scale.cells + cell, -1)
            total = total.plus(CellCounts.of(place, drawn_of(batch).counts.astype(np.int64)))
        return total

    def answers(self, rows: NDArray[np.int64], mechanism: ChosenQuantiles) -> list[Answer]:
        """For each group, in the order in which the probabilities were asked."""
        order = self._order()
        return [self._answers(row, mechanism)[k] for row in rows for k in order]

    def values(self, rows: NDArray[np.int64]) -> FloatArray:
        """The quantiles alone."""
        return np.array([self.scale.value(int(row[1 + k])) for row in rows for k in self._order()])

    def _order(self) -> list[int]:
        rising = sorted(self.question.probabilities)
        return [rising.index(p) for p in self.question.probabilities]

    def _answers(self, row: NDArray[np.int64], mechanism: ChosenQuantiles) -> list[Answer]:
        errors, bounds, k = mechanism.away, self.question.bounds, len(mechanism.probabilities)
        assert isinstance(errors, Errors)
        drawn = float(row[0]) if errors.size is None else errors.size
        if errors.size is None and drawn < 2.0 / (errors.shares.count * errors.epsilon):  # perhaps of nobody
            middle = 0.5 * bounds[0] + 0.5 * bounds[1]
            middle = float(math.floor(middle)) if self.scale.is_whole else middle
            return [Chosen(middle, *bounds, errors, drawn, place, bounds).answer for place in range(k)]
        values, lows, highs = (row[1 + s * k : 1 + (s + 1) * k].tolist() for s in range(3))
        found, low, high = [], bounds[0], bounds[1]
        lower = [low := self.scale.value(p) if p >= 0 else low for p in lows]
        upper = [high := self.scale.value(p) if p >= 0 else high for p in reversed(highs)][::-1]
        for place in range(k):
            middle = self.scale.value(values[place])
            ends = lower[place], upper[place]
            found.append(Chosen(middle, *ends, errors, drawn, place, bounds, self.scale.is_whole).answer)
        return found
