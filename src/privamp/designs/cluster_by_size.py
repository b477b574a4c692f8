"""One cluster, drawn with a probability proportional to its own private size: this design always degrades privacy.

The statement and its numbers are Theorem 7 in `cluster_pps.py`; proof: docs/designs/pps.md.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from ..chance.keyed import smallest
from ..chance.keys import Key
from ..core.identity import keep_in_order, keep_plain
from ..core.mechanism import Mechanism
from ..core.multiplicity import Multiplicity
from ..core.neighbors import Neighbors
from ..core.population import Population
from ..core.profile import Profile
from ..core.sample import Drawn
from ..core.theorem import Theorem
from ..core.words import Word
from ..errors import InvalidInput, NoTheorem
from ..numerics.log_domain import log_drop, log_mix
from ..validation import whole
from . import cluster_loss as loss
from . import size_transport as transport
from .clustered import Clustered, Ints, Members
from .pure_only import is_black_box, lower_profile, pure_epsilon, replaced_profile, upper_profile

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
WITHIN = replace(RO, scope="within cluster")
_LOOKED_AT = 64  # sizes of the changed cluster that an attack tries


def _added(design: "ClusterBySize", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    return upper_profile(design.added_loss(pure_epsilon(mechanism, AR), design.min_size))


def _moved(design: "ClusterBySize", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    return upper_profile(design.moved_loss(pure_epsilon(mechanism, AR)))


def _replaced(design: "ClusterBySize", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    return replaced_profile(design.replaced_loss(pure_epsilon(mechanism, AR)), mechanism)


@dataclass(frozen=True, slots=True)
class ClusterBySize(Clustered):
    """Draw one of `clusters` clusters with a probability proportional to its size and keep all its members."""

    clusters: int  # k, public
    max_size: int  # c, public cap
    min_size: int = 0  # s, public smallest size; at least 1 for any guarantee under add/remove
    labels: tuple[str, ...] | None = None

    word: ClassVar[Word | None] = Word(
        "cluster-by-size", ("clusters", "max_size"), ("min_size",), whole=("clusters", "max_size", "min_size")
    )
    natural: ClassVar[Neighbors] = AR
    unweighted: ClassVar[str] = "its probabilities are those of the private sizes of clusters"
    theorems: ClassVar[tuple[Theorem, ...]] = (
        Theorem("One cluster by size, one record more", "docs/designs/pps.md, Thm 7", AR.kind, AR.kind, False, _added),
        Theorem(
            "One cluster by size, one record replaced inside its cluster",
            "docs/designs/pps.md, Thm 7",
            AR.kind,
            RO.kind,
            False,
            _replaced,
            scope=WITHIN.scope,
        ),
        Theorem(
            "One cluster by size, one record replaced", "docs/designs/pps.md, Thm 7", AR.kind, RO.kind, False, _moved
        ),
        *transport.THEOREMS,
    )

    def __post_init__(self) -> None:
        keep_in_order(self, "labels")
        keep_plain(self)
        whole(1, max_size=self.max_size)  # one number: sizes decide the draw
        self.check_clusters()
        whole(0, self.max_size, min_size=self.min_size)

    @property
    def are_alike(self) -> bool:
        """Sizes decide, not numbers."""
        return True

    @property
    def size_floor(self) -> int:
        """No population has a smaller cluster."""
        return self.min_size

    def added_loss(self, epsilon: float, least: int) -> float:
        """Theorem 7, when every cluster of the smaller population has at least `least` members."""
        if least < 1:
            raise NoTheorem(
                "a cluster drawn in proportion to its size that may be empty has an unbounded privacy loss as the "
                "others grow; declare min_size (2 under replace-one), or draw with public probabilities by ClusterPPS"
            )
        most = least + (self.clusters - 1) * self.max_size
        grown = epsilon + math.log1p(1.0 / least) - math.log1p(1.0 / most)
        fewest = least + (self.clusters - 1) * min(self.min_size, self.max_size)
        return max(grown, math.log1p(1.0 / fewest))

    def moved_loss(self, epsilon: float) -> float:
        """Replaced inside, or from one cluster to another: one record and the ratio of two chances in each."""
        inside = self.replaced_loss(epsilon)
        if self.clusters == 1:
            return inside
        if self.min_size < 1:
            raise NoTheorem(
                "a cluster drawn in proportion to its size that may be empty after a record has moved has an "
                "unbounded privacy loss; declare min_size, or draw with public probabilities by ClusterPPS"
            )
        return max(inside, epsilon + math.log1p(1.0 / self.min_size))

    def replaced_loss(self, epsilon: float) -> float:
        """Theorem 7 inside a cluster: the sizes, and with them all probabilities, stay as they are."""
        c = self.max_size
        each = min(math.log(n) - n * epsilon if n else -math.inf for n in (self.min_size, c))
        if self.clusters == 1 or each == -math.inf:
            return 2.0 * epsilon
        return loss.replaced(epsilon, 1.0, math.log(self.clusters - 1) + each - (c - 1) * epsilon - math.log(c) - 1e-12)

    def appearances(self, records: int = 1) -> Multiplicity:
        """A person whose records fill a cluster that is drawn for certain, the worst case."""
        return Multiplicity.certain(records)

    @property
    def holds_everyone(self) -> bool:
        """Every record may be the first."""
        return True

    def drawn_clusters(self, subkey: Key) -> Ints:
        """Unknown before all sizes are: every member may be needed."""
        return np.arange(self.clusters, dtype=np.int64)

    def finish(self, part: Members, subkey: Key) -> Drawn:
        """The cluster of the record that comes first in the keyed order: a uniform record's cluster."""
        self.check_sizes(part.sizes)
        if part.positions.size == 0:
            return Drawn(part.positions, np.ones(0, dtype=np.int64), np.ones(0))
        first = part.cluster[smallest(part.high, part.low, 1)[0]]
        positions = np.sort(part.positions[part.cluster == first])
        return Drawn(positions, np.ones(positions.size, dtype=np.int64), np.ones(positions.size))

    def check_sizes(self, sizes: Ints) -> None:
        """Clusters must keep to the declared range."""
        Clustered.check_sizes(self, sizes)
        if np.any(sizes < self.min_size):
            raise InvalidInput(
                "a cluster has fewer records than the declared min_size; declare a public smallest size that is true"
            )

    def cluster_law(self, sizes: Sequence[int]) -> Iterator[tuple[tuple[int, ...], Fraction]]:
        """One cluster by its share of all records."""
        total = sum(sizes)
        if total == 0:
            yield (), Fraction(1)
        for h, size in enumerate(sizes):
            if size:
                yield (h,), Fraction(size, total)

    @classmethod
    def small_cases(cls) -> Iterator[tuple["ClusterBySize", Population]]:
        """The changed cluster one below the cap, the others at their smallest."""
        for clusters, caps in ((1, (1, 2, 3)), (2, (1, 2, 3, 4)), (3, (1, 2, 3))):
            for cap in caps:
                for least in range(cap):
                    design = cls(clusters, cap, least)
                    yield design, design.sized([cap - 1, *[least] * (clusters - 1)])

    def also_attacked(self, neighbors: Neighbors) -> Iterator[Population]:
        """A cluster of every size that a mechanism may look for, beside full ones."""
        for own in self._sizes_looked_for(neighbors) if self.clusters > 1 else ():
            yield self.sized([own, *[self.max_size] * (self.clusters - 1)])

    def attack(self, mechanism: Mechanism, neighbors: Neighbors) -> Profile | None:
        """The largest cluster changes, all others are as small as they can be: one record is looked for, or a sum."""
        if not is_black_box(mechanism, neighbors):
            return transport.noisy_sum(self, mechanism, neighbors) if neighbors.records == 1 else None
        if neighbors.kind == AR.kind and self.min_size == self.max_size:
            return None  # no cluster can have one member more or less: there are no neighbours
        epsilon = pure_epsilon(mechanism, AR)
        chance = self.max_size / (self.max_size + (self.clusters - 1) * self.min_size)
        found = float(log_mix(chance, epsilon))
        alone = found if neighbors.kind == AR.kind else found - log_drop(chance, epsilon)
        return lower_profile(max(alone, *self._whole_clusters(epsilon, neighbors)))

    def _whole_clusters(self, epsilon: float, neighbors: Neighbors) -> list[float]:
        """What a mechanism that looks for a whole cluster finds, for some sizes of it without the record."""
        return [self._looked_for(epsilon, own, neighbors) for own in self._sizes_looked_for(neighbors)] or [0.0]

    def _sizes_looked_for(self, neighbors: Neighbors) -> list[int]:
        """Of the cluster without the record; with it, it has one more."""
        least = max(self.min_size - (neighbors.kind != AR.kind), 1)
        return sorted({own for own in (*range(least, least + _LOOKED_AT), self.max_size - 1)
                       if least <= own < self.max_size})  # fmt: skip

    def _looked_for(self, epsilon: float, own: int, neighbors: Neighbors) -> float:
        """A mechanism looks for the whole cluster with the record: e^-epsilon less for every step away from it.

        `own` members beside the record, all other clusters full; nothing where the record does not fit.
        """
        if own + 1 > self.max_size or self.clusters == 1:
            return 0.0
        others = (self.clusters - 1) * self.max_size
        far = math.exp(-epsilon * (own + 1 + self.max_size))
        added = neighbors.kind == AR.kind
        before, after = own + 1, own if added else own + 1  # members of the cluster
        here = before / (before + others) + far * others / (before + others)
        there = after / (after + others) * math.exp(-epsilon * (1 if added else 2)) + far * others / (after + others)
        return math.log(here / there)
