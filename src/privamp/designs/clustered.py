"""Drawing whole clusters: which clusters are drawn depends only on the key, never on the records.

Every cluster has a keyed number of its own, so each batch keeps the members of drawn clusters and counts the
others; members are ordered by their own keyed numbers when only some of them may stay. Every record's label is read by
itself: one that is missing, or that the design does not name, puts its record in no cluster, and it is never drawn.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..chance.keyed import keep, keyed_numbers, keyed_pairs
from ..chance.keys import Key
from ..core.design import Design, Units
from ..core.neighbors import Neighbors
from ..core.population import Batch, Population
from ..core.reads import Labels, Read
from ..core.sample import Drawn
from ..errors import InvalidInput
from ..validation import whole
from .strata import places

Ints = NDArray[np.int64]
NEVER_DRAWN = "a record in a cluster that the design does not name is never drawn, and counts in no answer"


@dataclass(frozen=True, slots=True)
class Members:
    """Members of drawn clusters seen so far, and how many records every cluster has had."""

    positions: Ints = field(repr=False)
    cluster: Ints = field(repr=False)
    high: NDArray[np.uint64] = field(repr=False)
    low: NDArray[np.uint64] = field(repr=False)
    kept: NDArray[np.bool_] = field(repr=False)  # by the second stage's coin
    sizes: Ints = field(repr=False)  # shape (clusters,)


class Clustered(Design):
    """A design whose records carry a column `cluster`: 0 to clusters - 1, or one of the public labels."""

    clusters: int
    max_size: int | tuple[int, ...]
    labels: tuple[str, ...] | None

    assumes: ClassVar[tuple[str, ...]] = (*Design.assumes, NEVER_DRAWN)

    @property
    def caps(self) -> tuple[int, ...]:
        """The largest size each cluster may have, in every population."""
        return self.max_size if isinstance(self.max_size, tuple) else (self.max_size,) * self.clusters

    @property
    def reads(self) -> Mapping[str, Read]:
        """The column `cluster`, one of the public labels."""
        names = range(self.clusters) if self.labels is None else self.labels
        return {"cluster": Labels(names, as_text=self.labels is not None, are_alike=self.are_alike)}

    @property
    def are_alike(self) -> bool:
        """Whether the law of the sample stays the same when clusters change their numbers."""
        return False

    @property
    def holds_everyone(self) -> bool:
        """A part holds the members of drawn clusters."""
        return False

    @property
    def most_on_driver(self) -> int | None:
        """The members of the largest clusters, of as many as are drawn."""
        drawn: int = getattr(self, "chosen", 1)
        return None if self.holds_everyone else sum(sorted(self.caps)[-drawn:])

    @property
    def rate(self) -> float:
        """The chance that a member of a drawn cluster stays, by a coin of its own."""
        return 1.0

    @property
    def most_kept(self) -> tuple[int, ...] | None:
        """How many members of each cluster may stay, when some must go."""
        return None

    @abstractmethod
    def drawn_clusters(self, subkey: Key) -> Ints:
        """The numbers of the drawn clusters."""

    @abstractmethod
    def cluster_law(self, sizes: Sequence[int]) -> Iterator[tuple[tuple[int, ...], Fraction]]:
        """Every possible set of drawn clusters with its probability."""

    def check_clusters(self) -> None:
        """What every clustered design's fields must satisfy."""
        whole(1, clusters=self.clusters)
        if isinstance(self.max_size, tuple):
            if len(self.max_size) != self.clusters:
                raise InvalidInput(
                    f"max_size must be one number or one per cluster ({self.clusters}), "
                    f"got {len(self.max_size)} instead"
                )
            for cap in self.max_size:
                whole(1, max_size=cap)
        else:
            whole(1, max_size=self.max_size)
        if self.labels is not None:  # whole numbers are meant as their text, as in the column
            object.__setattr__(self, "labels", tuple(_text(label) or "" for label in self.labels))
        if self.labels is not None and len({*self.labels} - {""}) != self.clusters:
            raise InvalidInput(
                f"labels must name each of the {self.clusters} clusters once, "
                f"got {len(set(self.labels))} different names instead"
            )

    def numbers_of(self, column: NDArray[Any]) -> Ints:
        """The number of each record's cluster; `clusters` for a record in none that the design names."""
        if self.labels is not None:
            return places(_texts(column), self.labels).astype(np.int64)
        if column.dtype.kind in "iu":
            return np.where((column >= 0) & (column < self.clusters), column, self.clusters).astype(np.int64)
        return places(_texts(column), tuple(map(str, range(self.clusters)))).astype(np.int64)

    def sizes_of(self, numbers: Ints) -> Ints:
        """How many records each cluster has."""
        return np.bincount(numbers, minlength=self.clusters + 1)[:-1].astype(np.int64)

    def partial(self, batch: Batch, subkey: Key) -> Members:
        """The batch's members of drawn clusters."""
        numbers = self.numbers_of(batch.column("cluster"))
        is_drawn = np.zeros(self.clusters + 1, dtype=np.bool_)  # the last: in no cluster
        is_drawn[self.drawn_clusters(subkey)] = True
        mine = is_drawn[numbers]
        ids = batch.ids[mine]
        high, low = keyed_pairs(subkey.subkey("order"), ids)
        kept = self._coins(ids, subkey)
        return Members(batch.positions[mine], numbers[mine], high, low, kept, self.sizes_of(numbers))

    def _coins(self, ids: NDArray[Any], subkey: Key) -> NDArray[np.bool_]:
        """Who stays by a coin of its own."""
        if self.rate == 1.0:
            return np.ones(len(ids), dtype=np.bool_)
        return keep(keyed_numbers(subkey.subkey("second stage"), ids), self.rate)

    def merge(self, parts: Iterable[Members]) -> Members:
        """Members and counts of all batches."""
        found = list(parts)
        return Members(
            np.concatenate([part.positions for part in found]),
            np.concatenate([part.cluster for part in found]),
            np.concatenate([part.high for part in found]),
            np.concatenate([part.low for part in found]),
            np.concatenate([part.kept for part in found]),
            np.sum([part.sizes for part in found], axis=0),
        )

    def finish(self, part: Members, subkey: Key) -> Drawn:
        """The kept members in the order of the population, after the sizes were checked."""
        self.check_sizes(part.sizes)
        stays, limits = part.kept, self.most_kept
        if limits is not None:
            stays = stays & (_rank_in_cluster(part) < np.asarray(limits, dtype=np.int64)[part.cluster])
        positions = np.sort(part.positions[stays])
        return Drawn(positions, np.ones(positions.size, dtype=np.int64), np.ones(positions.size))

    def check_sizes(self, sizes: Ints) -> None:
        """Clusters must not be larger than declared."""
        if np.any(sizes > np.asarray(self.caps)):
            raise InvalidInput(
                "a cluster has more records than the declared max_size; declare a public cap that is true"
            )

    def members(self, population: Population) -> list[Units]:
        """The ids of each cluster of a tiny population."""
        numbers = self.numbers_of(population.columns["cluster"])
        return [tuple(int(i) for i in population.ids[numbers == c]) for c in range(self.clusters)]

    def check_pair(self, sizes: Sequence[int], changed: int) -> None:
        """Sizes of a given population and the number of the cluster that changes."""
        if len(sizes) != self.clusters:
            raise InvalidInput(f"sizes must have one entry per cluster ({self.clusters}), got {len(sizes)} instead")
        for size in sizes:
            whole(0, sizes=size)
        whole(0, self.clusters - 1, changed=changed)

    def law(self, population: Population) -> Iterator[tuple[Units, Fraction]]:
        """Drawn clusters, then what each of them keeps."""
        members = self.members(population)
        within = [list(self.member_law(units, c)) for c, units in enumerate(members)]
        for drawn, chance in self.cluster_law([len(units) for units in members]):
            kept: list[tuple[Units, Fraction]] = [((), chance)]
            for c in drawn:
                kept = [(one + other, p * q) for one, p in kept for other, q in within[c]]
            for units, p in kept:
                yield tuple(sorted(units)), p

    def member_law(self, units: Units, cluster: int) -> Iterator[tuple[Units, Fraction]]:
        """What is kept of one drawn cluster: first the order, then the coins."""
        limits = self.most_kept
        size = len(units) if limits is None else min(limits[cluster], len(units))
        subsets, r = list(combinations(units, size)), Fraction(self.rate)
        for subset in subsets:
            for kept in range(size + 1):
                p = r**kept * (1 - r) ** (size - kept) / len(subsets)
                yield from ((some, p) for some in combinations(subset, kept) if p)

    def sized(self, sizes: Sequence[int], first_id: int = 0) -> Population:
        """A tiny population with clusters of these sizes."""
        return self._population(
            [(first_id + i, c) for i, c in enumerate(np.repeat(np.arange(len(sizes)), sizes).tolist())],
            label=f"clusters of {', '.join(map(str, sizes))}",
        )

    def _population(self, records: Iterable[tuple[int, int]], label: str = "population") -> Population:
        pairs = list(records)
        cluster: Any = np.array([c for _, c in pairs], dtype=np.int64)
        if self.labels is not None:
            cluster = np.array([self.labels[c] for c in cluster], dtype=np.str_)
        return Population(np.array([i for i, _ in pairs], dtype=np.uint64), label=label, cluster=cluster)

    def neighboring(
        self, population: int | Population, neighbors: Neighbors
    ) -> Iterator[tuple[Population, Population]]:
        """A newcomer in every cluster with room; replaced inside each cluster; moved to every other with room.

        Under add/remove `population` is the smaller one; records of a cluster are alike.
        """
        population = Population.of(population)
        numbers = self.numbers_of(population.columns["cluster"]).tolist()
        records = [(int(i), c) for i, c in zip(population.ids, numbers, strict=True)]
        new = 1 + max((i for i, _ in records), default=-1)
        room = [c for c in range(self.clusters) if numbers.count(c) < self.size_limit(c)]
        if neighbors.kind == "add-remove":
            for c in room:
                yield self._population([*records, (new, c)]), self._population(records)
            return
        for c in room:
            yield self._population([*records, (new, c)]), self._population([*records, (new + 1, c)])
        for c in set(numbers):
            gone = next(record for record in records if record[1] == c)
            left = [record for record in records if record != gone]
            may_leave = neighbors.scope == "anywhere" and numbers.count(c) > self.size_floor
            for to in {c, *room} if may_leave else {c}:
                yield self._population(records), self._population([*left, (new, to)])

    @property
    def size_floor(self) -> int:
        """The declared smallest size of a cluster."""
        return 0

    def size_limit(self, cluster: int) -> int:
        """How large a cluster of a neighbouring population may be."""
        return self.caps[cluster]


def _texts(column: NDArray[Any]) -> NDArray[Any]:
    """Names of clusters: a whole number is meant as its text, and what is neither is no name."""
    if column.dtype.kind == "U":
        return column
    if column.dtype.kind in "iu":
        return column.astype(np.str_)
    found = np.empty(column.size, dtype=object)
    found[:] = [_text(label) for label in column.tolist()]
    return found


def _text(label: Any) -> str | None:
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, bool) or not isinstance(label, (str, int, float)):
        return None
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def _rank_in_cluster(part: Members) -> Ints:
    """Place of each member in the keyed order of its cluster, from 0."""
    order = np.lexsort((part.low, part.high, part.cluster))
    ranks = np.empty(order.size, dtype=np.int64)
    sorted_clusters = part.cluster[order]
    ranks[order] = np.arange(order.size) - np.searchsorted(sorted_clusters, sorted_clusters)
    return ranks
