"""Cluster sampling: `chosen` of `clusters` clusters are drawn, and their members kept.

M is pure eps-DP under add/remove, a = e^eps, q = chosen/clusters, c = max_size a public cap on the clusters of
every population. Members of drawn clusters are all kept (r = 1) or kept by coins of chance r. With
b = 1 + r(a-1), d = 1 - r(1 - 1/a):

Theorem 1 (add/remove). log(1 + qr(a-1)/(q + (1-q) b^-(c-1) d^c)); for r = 1, a^-(2c-1).
Theorem 2 (replaced inside a cluster). log[(qb + (1-q)w)/(qd + (1-q)w)], w = b^-(c-1) d^c; for r = 1,
log(1 + (a^2-1)q/(q + (1-q) a^-(2c-2))). Both are exactly the supremum over all populations within the cap, also
when every cluster has a cap of its own; between given sizes `pair_loss` is exact.
Theorem 3 (replace-one). Moving from one cluster to another costs no more than Theorem 2.
Theorem 4 (`second_stage` members of each drawn cluster, without replacement). Valid, not tight, may degrade.
Theorem 8 (Gaussian noise, all members kept). Exact, cluster_gaussian.py.
Theorem 10 (Gaussian noise, members kept by coins). cluster_coins.py; along a chain, cluster_chain.py.
Theorem 9 (transport; (eps, delta) and Gaussian noise with second stages, trimming and moves). cluster_transport.py.
Theorem 5 (`trim`). Cutting large clusters down lets a newcomer displace a member: Theorem 2 under add/remove.

Controlling privacy loss in sampling schemes (SD), section 5, corrected; proofs: docs/designs/cluster.md.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, product
from math import comb
from typing import Any, ClassVar

import numpy as np

from ..chance.keyed import keyed_pairs, smallest
from ..chance.keys import Key
from ..core.identity import keep_in_order, keep_plain
from ..core.mechanism import Mechanism
from ..core.multiplicity import Multiplicity
from ..core.neighbors import Neighbors
from ..core.population import Population
from ..core.profile import Profile
from ..core.theorem import Theorem
from ..core.weighting import Weighting
from ..errors import InvalidInput, NoTheorem
from ..numerics.log_domain import log_drop, log_mix
from ..validation import whole
from . import cluster_chain as chain
from . import cluster_coins as coins
from . import cluster_gaussian as gaussian
from . import cluster_loss as loss
from . import cluster_transport as transport
from .clustered import Clustered, Ints
from .poisson import Poisson
from .pure_only import is_black_box, lower_profile, pure_epsilon, replaced_profile, upper_profile

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
WITHIN = replace(RO, scope="within cluster")
_FEWEST = 20  # records: the exact verifier, which asks for sums in smaller cases, does not know distances


def _added(design: "ClusterSampling", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    if design.trim or design.second_size:
        raise NoTheorem("members of one cluster displace each other here")
    return upper_profile(design.added_loss(pure_epsilon(mechanism, AR)))


def _replaced(design: "ClusterSampling", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    if design.second_size:
        raise NoTheorem("members of one cluster displace each other here")
    return replaced_profile(design.replaced_loss(pure_epsilon(mechanism, AR)), mechanism)


def _trimmed(design: "ClusterSampling", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    if not design.trim:
        raise NoTheorem("nothing is trimmed")
    return upper_profile(design.replaced_loss(pure_epsilon(mechanism, AR)))


def _some_members(design: "ClusterSampling", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    if not design.second_size:
        raise NoTheorem("there is no second stage without replacement")
    # up to second_size members all are kept; one record more loses most just above
    size = max(design.min_size, design.second_size) + 1 if neighbors.kind == AR.kind else design.min_size
    return upper_profile(design.some_members_loss(pure_epsilon(mechanism, AR), size))


def _moved(design: "ClusterSampling", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    epsilon = pure_epsilon(mechanism, AR)
    if design.second_size:  # the population in between may have one cluster below min_size
        size = max(design.min_size, design.second_size + 1)
        return upper_profile(2.0 * design.some_members_loss(epsilon, size))
    # out, then in: log[(b+w)/(1+w)] + log[(1+w)/(d+w)], which is what a record replaced in its place loses
    return upper_profile((2.0 if design.trim else 1.0) * design.replaced_loss(epsilon))


def _in_each(design: "ClusterSampling", mechanism: Mechanism, one: Callable[..., Profile]) -> Profile:
    return one(gaussian.add_remove_shift(mechanism), design.share, design.farthest())


@dataclass(frozen=True, slots=True)
class ClusterSampling(Clustered):
    """Draw `chosen` of `clusters` clusters, all sets equally likely, and keep their members.

    `clusters` is public, and so is `max_size`, a bound on every cluster's size or one per cluster; the population's
    column `cluster` says who is where, by the public `labels` (0 to clusters - 1 when None). `second_stage` keeps some
    members of a drawn cluster: coins (`Poisson(rate)`) or a whole number of them, for which `min_size`, a public lower
    bound on the sizes, helps. `trim` cuts larger clusters down to the cap. The larger clusters may be, the less
    sampling protects.

    >>> from privamp import PureDP, amplify
    >>> round(amplify(PureDP(1.0), ClusterSampling(chosen=1, clusters=2, max_size=1)).epsilon(), 6)
    0.813666
    """

    chosen: int  # l
    clusters: int  # k, public; clusters may be empty
    max_size: int | tuple[int, ...]  # c, one public cap or one per cluster
    second_stage: Poisson | int | None = None  # coins for members, or how many members of each drawn cluster
    min_size: int = 0  # public smallest size of a cluster; used by a second stage without replacement
    trim: bool = False  # cut larger clusters down to their cap by the keyed order of the members
    labels: tuple[str, ...] | None = None  # names of the clusters, public; 0 to clusters - 1 when None

    natural: ClassVar[Neighbors] = AR
    theorems: ClassVar[tuple[Theorem, ...]] = (
        Theorem("Clusters, one record more", "docs/designs/cluster.md, Thm 1", AR.kind, AR.kind, True, _added),
        Theorem(
            "Clusters, one record replaced inside its cluster",
            "docs/designs/cluster.md, Thm 2",
            AR.kind,
            RO.kind,
            True,
            _replaced,
            scope=WITHIN.scope,
        ),
        Theorem("Clusters, one record replaced", "docs/designs/cluster.md, Thm 3", AR.kind, RO.kind, False, _moved),
        Theorem(
            "Clusters, then some members, one record more",
            "docs/designs/cluster.md, Thm 4",
            AR.kind,
            AR.kind,
            False,
            _some_members,
        ),
        Theorem(
            "Clusters, then some members, one record replaced inside its cluster",
            "docs/designs/cluster.md, Thm 4",
            AR.kind,
            RO.kind,
            False,
            _some_members,
            scope=WITHIN.scope,
        ),
        Theorem(
            "Trimmed clusters, one record more", "docs/designs/cluster.md, Thm 5", AR.kind, AR.kind, False, _trimmed
        ),
        *gaussian.theorems("Clusters", _in_each),
        *coins.theorems("Clusters, members by coins"),
        *chain.THEOREMS,
        *transport.THEOREMS,
    )

    def __post_init__(self) -> None:
        keep_in_order(self, "max_size", "labels")
        keep_plain(self)
        self.check_clusters()
        whole(1, self.clusters, chosen=self.chosen)
        whole(0, min(self.caps), min_size=self.min_size)
        if self.second_stage is not None and not isinstance(self.second_stage, Poisson):
            whole(1, second_stage=self.second_stage)
            if self.trim:
                raise InvalidInput("a second stage without replacement already limits every cluster; leave trim=False")

    @property
    def are_alike(self) -> bool:
        """All sets of clusters are equally likely; only caps of their own tell clusters apart."""
        return len(set(self.caps)) == 1

    @property
    def share(self) -> float:
        """q: the chance that a cluster is drawn."""
        return self.chosen / self.clusters

    @property
    def rate(self) -> float:
        """r of a Poisson second stage, 1 without one."""
        return self.second_stage.rate if isinstance(self.second_stage, Poisson) else 1.0

    @property
    def second_size(self) -> int:
        """m_2 of a second stage without replacement, 0 without one."""
        return 0 if self.second_stage is None or isinstance(self.second_stage, Poisson) else self.second_stage

    @property
    def most_kept(self) -> tuple[int, ...] | None:
        """The second stage's size or, when trimming, the caps."""
        if self.second_size:
            return (self.second_size,) * self.clusters
        return self.caps if self.trim else None

    @property
    def size_floor(self) -> int:
        """No population has a smaller cluster."""
        return self.min_size

    def size_limit(self, cluster: int) -> int:
        """Trimmed clusters may be larger than their cap."""
        return self.caps[cluster] + 1 if self.trim else self.caps[cluster]

    def check_sizes(self, sizes: Ints) -> None:
        """Clusters must keep to the declared sizes, from above unless they are trimmed."""
        if not self.trim:
            Clustered.check_sizes(self, sizes)
        if np.any(sizes < self.min_size):
            raise InvalidInput(
                "a cluster has fewer records than the declared min_size; declare a public smallest size that is true"
            )

    @property
    def spec(self) -> str | None:
        """What the words of a spec can say: one cap for all clusters, no labels, nothing trimmed."""
        if isinstance(self.max_size, tuple) or self.labels is not None or self.trim:
            return None
        second = f",second_size={self.second_size}" if self.second_size else ""
        second = f",second_rate={self.rate!r}" if isinstance(self.second_stage, Poisson) else second
        least = f",min_size={self.min_size}" if self.min_size else ""
        return f"cluster:chosen={self.chosen},clusters={self.clusters},max_size={self.max_size}{second}{least}"

    @property
    def weight(self) -> float | None:
        """k/(l r), unless a cluster gives a number of members that depends on its secret size."""
        return 1.0 / (self.share * self.rate) if self.most_kept is None and self.rate > 0 else None

    def weighting(self, records: int, known: float | None, columns: Mapping[str, Any]) -> Weighting | None:
        """The textbook's two stages, l of k clusters and coins of chance r inside: w = k/(l r),
        first = (k/l)^2 (1-l/k) l/(l-1), second = (k/l) (1-r)/r^2, shrink = (1-l/k)/(l-1).
        """
        if self.most_kept is not None:
            raise NoTheorem(
                "clusters that are trimmed, or give a fixed number of members, have weights that depend on their "
                "secret sizes; use a second stage Poisson(rate), or none, and no trim"
            )
        numbers = self.numbers_of(np.asarray(columns["cluster"]))
        self.check_sizes(self.sizes_of(numbers))
        r, k, m, cap = self.rate, self.clusters, self.chosen, max(self.caps)
        if r <= 0:
            raise InvalidInput("a second stage of rate 0 cannot be estimated from; give a rate above 0")
        w, missing = k / m, 1.0 - m / k
        second, n = w * (1.0 - r) / r**2, numbers.size
        most = w * k * missing * cap**2 * k / max(k - 1, 1) + w * k * cap * (1.0 - r) / r
        refusal = "" if m > 1 or k == 1 else "one drawn cluster does not show how clusters differ; draw at least two"
        return Weighting(
            np.full(n, w / r), w / r, r, w**2 * missing * m / max(m - 1, 1), np.full(n, second), second,
            missing / max(m - 1, 1), most, cluster=numbers, cap=cap, refusal=refusal,
        )  # fmt: skip

    def farthest(self) -> list[tuple[float, float]]:
        """The chance that other clusters are drawn, and how many records those and the changed one hold besides it."""
        if self.trim or self.second_stage is not None:
            raise NoTheorem("for Gaussian noise whole clusters are covered, without a second stage or trimming")
        largest = sorted(self.caps, reverse=True)
        beside = largest[1] if len(largest) > 1 else 0
        return [] if self.share == 1.0 else [(1.0 - self.share, float(largest[0] - 1 + beside))]

    def added_loss(self, epsilon: float) -> float:
        """Theorem 1: the largest loss of one record more, over all populations within the caps."""
        return loss.added(epsilon, self.rate, self._log_rest(epsilon))

    def replaced_loss(self, epsilon: float) -> float:
        """Theorem 2: the largest loss of one record replaced inside its cluster."""
        return loss.replaced(epsilon, self.rate, self._log_rest(epsilon))

    def _log_rest(self, epsilon: float) -> float:
        """log w at its smallest: all clusters at their caps, the changed record one of the largest cluster's."""
        if not isinstance(self.max_size, tuple):
            return loss.log_rest_equal(epsilon, self.rate, self.max_size - 1, self.max_size, self.share)
        *others, largest = sorted(self.max_size)
        return loss.log_rest(epsilon, self.rate, largest - 1, others, self.chosen)

    def pair_loss(
        self, epsilon: float, sizes: Sequence[int], changed: int, neighbors: Neighbors = Neighbors.ADD_REMOVE
    ) -> float:
        """The exact loss between two given populations; a fact about that pair, not a guarantee (sizes are private).

        `sizes` are those of the smaller population (of both, when a record is replaced inside `changed`).
        """
        if self.trim or self.second_size:
            raise NoTheorem("the exact loss of a pair is known when members do not displace each other")
        self.check_pair(sizes, changed)
        is_added = neighbors.kind == AR.kind
        members, others = sizes[changed] - (0 if is_added else 1), [*sizes[:changed], *sizes[changed + 1 :]]
        whole(0, other_members_of_the_changed_cluster=members)
        log_w = loss.log_rest(epsilon, self.rate, members, others, self.chosen)
        return (loss.added if is_added else loss.replaced)(epsilon, self.rate, log_w)

    def some_members_loss(self, epsilon: float, size: int) -> float:
        """Theorem 4: the loss inside a changed cluster of this size (the larger of two), mixed with the others."""
        inner = float(log_mix(min(1.0, self.second_size / max(size, 1)), 2.0 * epsilon))
        kept = min(self.second_size, max(self.caps))
        log_w = loss.log_rest_equal(2.0 * epsilon, 1.0, 0, kept, self.share)
        return float(log_mix(float(np.exp(-np.logaddexp(0.0, log_w))), inner))

    def appearances(self, records: int = 1) -> Multiplicity:
        """A person whose records all are in one cluster, the worst case: all at once or not at all."""
        q, inside = self.share, Multiplicity.binomial(records, self.rate)
        if self.second_size:
            size = max(self.min_size, records, 1)
            inside = Multiplicity.hypergeometric(size, records, min(self.second_size, size))
        none = float(np.logaddexp(math.log1p(-q) if q < 1.0 else -math.inf, math.log(q) + inside.log_none))
        return Multiplicity(none, inside.log_p + math.log(q), inside.log_tail)

    def expected_size(self, population: int) -> float:
        """Of a second stage without replacement, at most: clusters may have fewer members."""
        kept = self.chosen * self.second_size if self.second_size else math.inf
        return min(kept, population * self.share * self.rate)

    def expected_distinct(self, population: int) -> float:
        """No record is drawn twice."""
        return self.expected_size(population)

    def drawn_clusters(self, subkey: Key) -> Ints:
        """The clusters that come first in the keyed order."""
        names = np.arange(self.clusters, dtype=np.uint64) if self.labels is None else np.asarray(self.labels)
        return smallest(*keyed_pairs(subkey.subkey("clusters"), names), self.chosen)

    def cluster_law(self, sizes: Sequence[int]) -> Iterator[tuple[tuple[int, ...], Fraction]]:
        """All sets of clusters are equally likely."""
        for drawn in combinations(range(self.clusters), self.chosen):
            yield drawn, Fraction(1, comb(self.clusters, self.chosen))

    @classmethod
    def small_cases(cls) -> Iterator[tuple["ClusterSampling", Population]]:
        """Populations one record below their caps (the worst there are), then second stages and trimming."""
        for clusters, cap in ((1, 1), (1, 3), (2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (4, 1)):
            for chosen in range(1, clusters + 1):
                for stage in (None, Poisson(0.3), Poisson(0.75)):
                    if clusters * cap <= 4 or stage is None:
                        design = cls(chosen, clusters, cap, stage)
                        yield design, design.sized([cap - 1, *[cap] * (clusters - 1)])
        for caps, chosen in (((3, 1), 1), ((3, 2, 1), 1), ((3, 2, 1), 2), ((2, 1, 1, 1), 2), ((2, 1, 1), 2)):
            design = cls(chosen, len(caps), caps)
            yield design, design.sized([caps[0] - 1, *caps[1:]])
        for sizes, least in (((2, 2), 2), ((1, 2, 2), 1), ((0, 2), 0), ((2, 3), 2), ((1, 1, 1), 1), ((3, 3), 3)):
            for chosen, kept in product(range(1, len(sizes)), (1, 2)):
                design = cls(chosen, len(sizes), 4, kept, min_size=least)
                yield design, design.sized(sizes)
        for cap, sizes in ((1, (0, 1)), (1, (0, 2)), (2, (1, 2)), (2, (1, 3)), (1, (0, 1, 1))):
            for chosen, stage in product(range(1, len(sizes)), (None, Poisson(0.5))):
                design = cls(chosen, len(sizes), cap, stage, trim=True)
                yield design, design.sized(sizes)

    def attacks(self, mechanism: Mechanism, neighbors: Neighbors) -> dict[Any, Profile]:
        """Some members: a sum in which the record stands with its cluster, against it, or alone; or how near it is."""
        if self.second_stage is None or self.trim or neighbors.records > 1 or is_black_box(mechanism, neighbors):
            return Clustered.attacks(self, mechanism, neighbors)
        lines, cap, seen = {}, max(self.caps), {}
        if not self.second_size:
            lines, seen = coins.lines(neighbors, self.share, self.rate, cap - 1), chain.seen(self, mechanism, neighbors)
        elif self.clusters * cap >= _FEWEST and self.are_alike:
            lines = transport.taken(neighbors, self.share, self.second_size, cap, self.min_size)
        found = {name: mechanism.on_a_line(*places) for name, places in lines.items()}
        return {name: attack for name, attack in found.items() if attack is not None} | seen

    def attack(self, mechanism: Mechanism, neighbors: Neighbors) -> Profile | None:
        """The worst event of a black box, or Gaussian sums at equal caps: the supremum; else one record looked for."""
        plain = self.second_stage is None and not self.trim and len(set(self.caps)) == 1
        if mechanism.is_gaussian and neighbors.records == 1 and plain:
            return _in_each(self, mechanism, gaussian.added if neighbors.kind == AR.kind else gaussian.replaced)
        if self.second_stage is not None and not is_black_box(mechanism, neighbors):
            found = self.attacks(mechanism, neighbors) if not self.trim and neighbors.records == 1 else {}
            return Profile.maximum(found.values()) if found else None
        if not is_black_box(mechanism, neighbors):
            full = transport.full_clusters(neighbors, self.share, max(self.caps), [(1.0 - self.share, max(self.caps))])
            return mechanism.on_a_line(*full) if plain and neighbors.records == 1 else None
        epsilon = pure_epsilon(mechanism, AR)
        if not self.second_size:
            return lower_profile((self.added_loss if neighbors.kind == AR.kind else self.replaced_loss)(epsilon))
        newcomers = 1 if neighbors.kind == AR.kind else 0
        chance = self.share * min(1.0, self.second_size / max(self.min_size + newcomers, 1))
        if newcomers:
            return lower_profile(float(log_mix(chance, epsilon)))
        return lower_profile(float(log_mix(chance, epsilon)) - log_drop(chance, epsilon))
