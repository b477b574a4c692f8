"""What a record adds to each question: a few bounded numbers, in a public cell.

Everything a record adds to an answer depends on the record alone, so one record moves one cell of each level by at most
the question's `reach`, in the norm of the noise. Numbers are shifted to the middle of their bounds, so that they lie
between -1 and 1; a record that has no number adds nothing, or the number that is declared for missing ones.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..core.bounds import Pair, pair_of
from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray
from ..validation import in_range, whole
from . import answers
from .answers import Answer
from .groups import Groups
from .names import told_apart
from .public_facts import PublicFacts
from .values import numbers_of

if TYPE_CHECKING:
    from ..core.release import Release
    from .table import Table

COUNT_SHARE = 0.5  # of the count's entry beside a number of at most 1; near the best for means off the middle by 0.3
SQUARE_SHARES = {1.0: 0.125, 2.0: 0.35}  # of the squares' entry, by the norm of the noise
_MOST = 1e100  # of a bound, so that sums of squares are finite

Level = tuple[FloatArray, NDArray[np.int64]]  # numbers, one row per record, and the cell of each record (-1: none)


@dataclass(frozen=True, slots=True)
class Asking:
    """Public facts: the norm of the noise, and what is known about the sample."""

    p: float
    is_sampled: bool
    size: int | None = None  # public number of records
    is_fixed: bool = False  # whether a public number of them is drawn

    @property
    def squares(self) -> float:
        """The share of squares, from which the sampling error is estimated."""
        return SQUARE_SHARES[self.p] if self.is_sampled else 0.0

    def norm(self, *entries: float) -> float:
        """Of one record's numbers."""
        return math.fsum(entries) if self.p == 1.0 else math.hypot(*entries)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(ABC):
    """A question about a table. `run(epsilon=…)` answers it alone; `Table.plan` answers several from one sample."""

    table: "Table" = field(repr=False, compare=False)
    column: str | None = None
    groups: Groups | None = None
    weight: float = 1.0  # how much its error matters beside that of other questions

    what: ClassVar[str]

    def by(self, column: str, values: Iterable[Any]) -> Self:
        """One answer for each of these public values of a column."""
        if self.groups is not None:
            raise InvalidInput(f"this question is already split by {self.groups.column!r}; split it by one column only")
        return replace(self, groups=Groups.of(column, values, self.table.kind_of(column)))

    def weighing(self, weight: float) -> Self:
        """The same question, whose squared error counts `weight` times in a plan."""
        in_range(1e-9, 1e9, weight=weight)
        return replace(self, weight=float(weight))

    def run(self, *, epsilon: float, delta: float = 0.0) -> "Release":
        """Answer it, for this epsilon (and delta, with Gaussian noise)."""
        return self.table.plan([self]).run(epsilon=epsilon, delta=delta)[0]

    @property
    def name(self) -> str:
        """For people."""
        own = self.what if self.column is None else f"{self.what} of {self.about}"
        return own if self.groups is None else f"{own} by {self.groups.column}"

    @property
    def about(self) -> str:
        """The subject of the question."""
        return str(self.column)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        return tuple(c for c in (self.column, None if self.groups is None else self.groups.column) if c is not None)

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the numbers in one group's answer; none for a single one."""
        return ()

    @abstractmethod
    def cells(self, asking: Asking) -> tuple[tuple[int, int], ...]:
        """(cells, numbers in a cell) of every level, for one group."""

    @abstractmethod
    def reach(self, asking: Asking) -> float:
        """The largest norm of what one record adds."""

    @abstractmethod
    def need(self, asking: Asking) -> float:
        """The error of the answer per error of one entry, in records."""

    @abstractmethod
    def levels(self, batch: pa.RecordBatch, asking: Asking) -> Iterator[Level]:
        """What every record adds, level by level."""

    @abstractmethod
    def answer(self, totals: Sequence[FloatArray], told: PublicFacts, asking: Asking) -> list[Answer]:
        """One group's answers from its totals, one array (cells, numbers) per level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Count(Question):
    """How many records there are."""

    what: ClassVar[str] = "count"

    def cells(self, asking: Asking) -> tuple[tuple[int, int], ...]:
        """One cell of this many numbers."""
        return ((1, 1),)

    def reach(self, asking: Asking) -> float:
        """The largest norm of a row."""
        return 1.0

    def need(self, asking: Asking) -> float:
        """In records."""
        return 1.0

    def levels(self, batch: pa.RecordBatch, asking: Asking) -> Iterator[Level]:
        """A row for every record."""
        yield np.ones((batch.num_rows, 1)), np.zeros(batch.num_rows, dtype=np.int64)

    def answer(self, totals: Sequence[FloatArray], told: PublicFacts, asking: Asking) -> list[Answer]:
        """One answer for the group."""
        return [answers.count_of(float(totals[0][0, 0]), told)]


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutNumbers(Question):
    """A question about numbers that lie between public bounds."""

    bounds: Pair
    missing: float | None = None  # what a record without a number counts as; None: it is left out

    @property
    def middle(self) -> float:
        """Of the bounds."""
        return 0.5 * self.bounds[0] + 0.5 * self.bounds[1]

    @property
    def half(self) -> float:
        """Half the width of the bounds."""
        return 0.5 * self.bounds[1] - 0.5 * self.bounds[0]

    def values(self, batch: pa.RecordBatch) -> FloatArray:
        """The numbers of the column within the bounds; NaN where there is none."""
        assert self.column is not None
        x = numbers_of(batch.column(self.column))
        if self.missing is not None:
            x = np.where(np.isnan(x), self.missing, x)
        return np.clip(x, *self.bounds)

    def around_middle(self, batch: pa.RecordBatch) -> tuple[FloatArray, NDArray[np.int64]]:
        """Numbers from -1 to 1, and the cell of each: 0, or -1 without a number."""
        x = self.values(batch)
        there = ~np.isnan(x)
        t = np.clip((np.where(there, x, self.middle) - self.middle) / self.half, -1.0, 1.0)
        return t, np.where(there, 0, -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum(AboutNumbers):
    """The sum of a column."""

    what: ClassVar[str] = "sum"

    @property
    def most(self) -> float:
        """The largest absolute value."""
        return max(abs(self.bounds[0]), abs(self.bounds[1]))

    def cells(self, asking: Asking) -> tuple[tuple[int, int], ...]:
        """One cell of this many numbers."""
        return ((1, 2 if asking.is_sampled else 1),)

    def reach(self, asking: Asking) -> float:
        """The largest norm of a row."""
        return asking.norm(1.0, asking.squares)

    def need(self, asking: Asking) -> float:
        """In records."""
        return 1.0

    def levels(self, batch: pa.RecordBatch, asking: Asking) -> Iterator[Level]:
        """A row for every record."""
        x = self.values(batch)
        there = ~np.isnan(x)
        t = np.clip(np.where(there, x, 0.0) / self.most, -1.0, 1.0)
        entries = [t, asking.squares * t * t] if asking.is_sampled else [t]
        yield np.column_stack(entries), np.where(there, 0, -1)

    def answer(self, totals: Sequence[FloatArray], told: PublicFacts, asking: Asking) -> list[Answer]:
        """One answer for the group."""
        cell, part = totals[0][0], asking.squares
        squares, blur = (float(cell[1]) / part, told.noise / part) if part else (0.0, 0.0)
        return [answers.Summed(float(cell[0]), squares, self.most, self._ends(asking), told, blur).answer]

    def _ends(self, asking: Asking) -> tuple[float, float]:
        """Between which the sum must lie, in units of `most`, where they are public."""
        low, high = (end / self.most for end in self.bounds)
        if asking.size is None:
            return 0.0 if low >= 0.0 else -math.inf, 0.0 if high <= 0.0 else math.inf
        if self.groups is None and self.missing is not None:
            return asking.size * low, asking.size * high
        return asking.size * min(low, 0.0), asking.size * max(high, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean(AboutNumbers):
    """The mean of a column."""

    what: ClassVar[str] = "mean"

    def counts(self, asking: Asking) -> float:
        """The share of the count's entry; none is needed where the number of records is public."""
        return 0.0 if self._is_known(asking) else COUNT_SHARE

    def _is_known(self, asking: Asking) -> bool:
        """Whether the number is public and fixed: if the number drawn varies, it must be released too."""
        return asking.is_fixed and self.groups is None and self.missing is not None

    def squares(self, asking: Asking) -> float:
        """The share of the squares' entry."""
        return asking.squares

    def entries(self, t: FloatArray, asking: Asking) -> FloatArray:
        """One row per record: the number, its square, the count."""
        parts = [t]
        if self.squares(asking):
            parts.append(self.squares(asking) * t * t)
        if self.counts(asking):
            parts.append(np.full(len(t), COUNT_SHARE))
        return np.column_stack(parts)

    def cells(self, asking: Asking) -> tuple[tuple[int, int], ...]:
        """One cell of this many numbers."""
        return ((1, 1 + bool(self.squares(asking)) + bool(self.counts(asking))),)

    def reach(self, asking: Asking) -> float:
        """The largest norm of a row."""
        return asking.norm(1.0, self.squares(asking), self.counts(asking))

    def need(self, asking: Asking) -> float:
        """Where the mean is 0.3 of half the width off the middle."""
        return math.hypot(1.0, 0.3 / COUNT_SHARE) if self.counts(asking) else 1.0

    def levels(self, batch: pa.RecordBatch, asking: Asking) -> Iterator[Level]:
        """A row for every record."""
        t, cell = self.around_middle(batch)
        yield self.entries(t, asking), cell

    def ratio(self, cell: FloatArray, told: PublicFacts, asking: Asking) -> answers.Ratio:
        """The mean of one group."""
        share = self.counts(asking)
        records = float(cell[-1]) / share if share else float(asking.size or 0)
        part = self.squares(asking)
        squares, blur = (float(cell[1]) / part, told.noise / part) if part else (0.0, 0.0)
        return answers.Ratio(float(cell[0]), records, squares, share, self.middle, self.half, told, blur)

    def answer(self, totals: Sequence[FloatArray], told: PublicFacts, asking: Asking) -> list[Answer]:
        """One answer for the group."""
        return [self.ratio(totals[0][0], told, asking).answer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proportion(Mean):
    """The share of records whose column has one of these values, or, without values, a yes."""

    what: ClassVar[str] = "proportion"
    of: Groups | None = None

    @property
    def about(self) -> str:
        """The column and the values."""
        return f"{self.column}" if self.of is None else f"{self.column} = {' or '.join(self.of.names)}"

    def squares(self, asking: Asking) -> float:
        """None: a record is at one end of the bounds or at the other."""
        return 0.0

    def ratio(self, cell: FloatArray, told: PublicFacts, asking: Asking) -> answers.Ratio:
        """The share of one group."""
        share = self.counts(asking)
        records = float(cell[-1]) / share if share else float(asking.size or 0)
        return answers.Share(float(cell[0]), records, max(records, 0.0), share, self.middle, self.half, told)

    def values(self, batch: pa.RecordBatch) -> FloatArray:
        """1 for a record that has one of the values, 0 for another."""
        if self.of is None:
            return AboutNumbers.values(self, batch)
        found = np.asarray(self.of.places(batch) >= 0, dtype=np.float64)
        if None in self.of.values:
            return found
        gone = np.asarray(self.of.read(batch).is_null().to_numpy(zero_copy_only=False))
        return np.where(gone, np.nan if self.missing is None else self.missing, found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram(Question):
    """How many records lie between each two neighbouring public edges; the outer bins take what lies beyond."""

    what: ClassVar[str] = "histogram"
    edges: tuple[float, ...]
    with_missing: bool = False

    @property
    def about(self) -> str:
        """The column and the number of bins."""
        return f"{self.column} in {len(self.edges) - 1} bins"

    @property
    def parts(self) -> tuple[str, ...]:
        """The bins."""
        named = tuple(f"{low} to {high}" for low, high in pairwise(told_apart(self.edges)))
        return (*named, "(missing)") if self.with_missing else named

    def cells(self, asking: Asking) -> tuple[tuple[int, int], ...]:
        """A cell per bin."""
        return ((len(self.parts), 1),)

    def reach(self, asking: Asking) -> float:
        """The largest norm of a row."""
        return 1.0

    def need(self, asking: Asking) -> float:
        """In records."""
        return 1.0

    def levels(self, batch: pa.RecordBatch, asking: Asking) -> Iterator[Level]:
        """Every record counts once, in its bin."""
        assert self.column is not None
        x, bins = numbers_of(batch.column(self.column)), len(self.edges) - 1
        cell = np.clip(np.searchsorted(np.array(self.edges), x, side="right") - 1, 0, bins - 1)
        yield np.ones((len(x), 1)), np.where(np.isnan(x), bins if self.with_missing else -1, cell)

    def answer(self, totals: Sequence[FloatArray], told: PublicFacts, asking: Asking) -> list[Answer]:
        """One answer for each bin."""
        return [answers.count_of(float(total), told) for total in totals[0][:, 0]]


def checked_bounds(bounds: Any) -> Pair:
    """Public bounds between which sums of squares are finite."""
    low, high = pair_of(bounds)
    if max(abs(low), abs(high)) > _MOST or high - low < 1.0 / _MOST:
        raise InvalidInput(
            f"bounds must lie between -{_MOST:g} and {_MOST:g}, at least {1.0 / _MOST:g} apart, got {low:g} and "
            f"{high:g} instead; use another unit"
        )
    return low, high


def checked_edges(bins: Any, bounds: Any) -> tuple[float, ...]:
    """Public edges: as given, or `bins` equal steps between the bounds."""
    if isinstance(bins, (int, np.integer)) and not isinstance(bins, bool):
        whole(1, 10**6, bins=bins)
        edges = tuple(np.linspace(*checked_bounds(bounds), int(bins) + 1).tolist())
    else:
        try:
            edges = tuple(float(edge) for edge in bins)
        except (TypeError, ValueError):
            raise InvalidInput(f"bins must be a number of bins or a list of edges, got {bins!r} instead") from None
    if len(edges) < 2 or not all(map(math.isfinite, edges)) or any(a >= b for a, b in pairwise(edges)):
        raise InvalidInput("edges must be at least two finite numbers in increasing order")
    return edges
