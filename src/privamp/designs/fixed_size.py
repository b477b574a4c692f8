"""Drawing a fixed number of entries by a keyed order of the records.

Every record has a keyed number; sorting by it is a secret uniform order. Fixed-size designs treat records
alike, so a sample is (1) how often each of some anonymous cells is hit, (2) which records stand behind the
cells: those first in the keyed order. Part (2) is a bottom-k, which merges exactly over batches and machines.

A part need not carry records that cannot be among the first k of all n. Keyed numbers are uniform, so of at least n
records some k + 10 sqrt(k) + 50 lie below that number over n, which is public. By Chernoff's bound fewer than k do with
a chance of at most exp(-50) < 2e-22, whatever the records are, and then the draw is refused, not changed.
"""

import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..chance.keyed import among_smallest, below, keyed_numbers, keyed_pairs, smallest
from ..chance.keys import Key
from ..chance.stream import Stream
from ..core.design import Design
from ..core.mechanism import Mechanism
from ..core.multiplicity import Multiplicity
from ..core.neighbors import Neighbors
from ..core.population import Batch, Population
from ..core.profile import Profile
from ..core.sample import Drawn
from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray

Ints = NDArray[np.int64]
RO = Neighbors.REPLACE_ONE


@dataclass(frozen=True, slots=True)
class BottomK:
    """The first records of the keyed order seen so far, in any order until merged, and how many records were seen."""

    high: NDArray[np.uint64] = field(repr=False)
    low: NDArray[np.uint64] = field(repr=False)
    positions: Ints = field(repr=False)
    seen: int = field(repr=False)


def public_cut(first: int, population: int) -> np.uint64 | None:
    """A keyed number that the `first` smallest of at least `population` lie below; None where none is of use."""
    below = Fraction(first + 10 * (math.isqrt(first) + 1) + 50, population)
    return None if below >= 1 else np.uint64(int(below * 2**64))


class FixedSize(Design):
    """A design that draws a public number of entries and treats all records alike."""

    population: int  # declared size; under add/remove a public lower bound

    @property
    @abstractmethod
    def most_distinct(self) -> int:
        """The largest possible number of different records in a sample."""

    @abstractmethod
    def hits(self, stream: Stream, population: int) -> Ints:
        """How often each of some anonymous cells is drawn, all counts at least 1."""

    @property
    @abstractmethod
    def draws(self) -> int:
        """The number of entries drawn, repeated records included."""

    @property
    def public_size(self) -> int | None:
        """The declared population."""
        return self.population

    @property
    def treats_alike(self) -> bool:
        """Any set of records is as likely as any other of its size."""
        return True

    @property
    def sample_size(self) -> int | None:
        """`draws`."""
        return self.draws

    @property
    def weight(self) -> float | None:
        """population/draws: every record has the same share of the entries."""
        return self.population / self.draws

    @property
    def spread(self) -> float | None:
        """n/(n-1) times the variance of one record's weighted count: counts are exchangeable, their sum is fixed."""
        law, n, w = self.appearances(), self.population, self.population / self.draws
        counts = law.counts
        variance = float(np.sum(counts**2 * np.exp(law.log_p))) - law.mean**2
        return w**2 * max(variance, 0.0) * n / max(n - 1, 1)

    @property
    def spread_of_size(self) -> float | None:
        """The number of entries is fixed."""
        return 0.0

    def weights(self, population: Population) -> FloatArray | None:
        """By the number of records there are."""
        return np.full(population.size, population.size / self.draws)

    @property
    def holds_everyone(self) -> bool:
        """A part is a bottom-k."""
        return False

    @property
    def most_held(self) -> int | None:
        """No more than can be drawn."""
        return self.most_distinct

    @property
    def number_bound(self) -> int | None:
        """The public cut."""
        cut = public_cut(self.most_distinct, self.population)
        return None if cut is None else int(cut)

    def counted(self, part: BottomK, records: int) -> BottomK:
        """The same first records, of so many."""
        self._check_records(records)
        return replace(part, seen=records)

    def partial(self, batch: Batch, subkey: Key) -> BottomK:
        """The batch's records that come first in the keyed order."""
        first = self._first(batch.ids, subkey)
        high, low = keyed_pairs(subkey, batch.ids[first])
        return BottomK(high, low, batch.at(first), int(batch.ids.size))

    def _first(self, ids: NDArray[Any], subkey: Key) -> NDArray[np.intp]:
        cut = public_cut(self.most_distinct, self.population)
        if cut is not None:
            return below(subkey, ids, int(cut))
        return among_smallest(keyed_numbers(subkey, ids), self.most_distinct)

    def merge(self, parts: Iterable[BottomK]) -> BottomK:
        """The first records over all batches, in their order."""
        fronts = list(parts)
        high = np.concatenate([f.high for f in fronts])
        low = np.concatenate([f.low for f in fronts])
        positions = np.concatenate([f.positions for f in fronts])
        first = smallest(high, low, min(self.most_distinct, positions.size))
        return BottomK(high[first], low[first], positions[first], sum(f.seen for f in fronts))

    def finish(self, part: BottomK, subkey: Key) -> Drawn:
        """Put the records behind the cells."""
        self._check_records(part.seen)
        counts = self.hits(Stream(subkey.subkey("cells")), part.seen)
        if part.positions.size < counts.size:
            raise InvalidInput(
                "fewer records than are to be drawn lie below the public cut, which happens where ids repeat, and "
                "else once in 10^21 draws; check that ids are unique, then draw with another round"
            )
        first = smallest(part.high, part.low, counts.size)
        return Drawn(part.positions[first], counts, np.ones(counts.size))

    def _check_records(self, records: int) -> None:
        if records < self.population:
            raise InvalidInput(
                f"the design declares a population of at least {self.population} records but fewer were given; "
                "declare a number that is true"
            )


class OneStage(FixedSize):
    """`size` entries drawn from `population` records at once, with or without putting each back."""

    size: int

    @property
    def draws(self) -> int:
        """`size`."""
        return self.size

    @property
    def most_distinct(self) -> int:
        """At most one new record per entry."""
        return self.size

    @abstractmethod
    def appearances_of_extra(self, records: int = 1) -> Multiplicity:
        """How often `records` further records of the population appear."""

    def attack(self, mechanism: Mechanism, neighbors: Neighbors) -> Profile | None:
        """A sum with all other records at one end of the range and the changed ones at the other."""
        if neighbors.kind == RO.kind:
            return mechanism.mixture(RO, self.appearances(neighbors.records))
        return mechanism.mixture(RO, self.appearances_of_extra(neighbors.records))


def occupancy(cells: Ints) -> Ints:
    """How often each occupied cell occurs."""
    return np.unique(cells, return_counts=True)[1].astype(np.int64)
