"""One cluster, drawn with unequal probabilities, all its members kept.

M is pure eps-DP under add/remove, a = e^eps; c_h a public cap on the size of cluster h.

Theorem 6 (public probabilities pi, add/remove). Between given sizes exactly
log(1 + pi_i(a-1)/(pi_i + sum_{h != i} pi_h a^-(n_i + n_h))), n_i counted in the smaller population; the supremum
over all populations within the caps has n_i = c_i - 1 and n_h = c_h. Replaced inside its cluster:
log(1 + pi_i(a^2-1)/(pi_i + sum pi_h a^-(n_i + n_h - 2))), n = c. Replace-one: no more than that.

Theorem 7 (probability proportional to size). Under add/remove an empty cluster makes the loss unbounded, so
this is refused unless every cluster is publicly non-empty; then at most
max{eps + log((1 + 1/s)/(1 + 1/N)), log(1 + 1/(ks))}, s = min_size and N the largest population with a cluster
of that size; a record that moves to another cluster eps + log(1 + 1/s). It always exceeds eps. Replaced inside its
cluster, exactly log(1 + (a^2-1)/(1 + w)), w = (k-1) min(s a^-s, c a^-c) a^(2-c)/c. Proofs: docs/designs/pps.md.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from ..chance.keyed import keyed_numbers
from ..chance.keys import Key
from ..core.identity import keep_in_order, keep_plain
from ..core.line_attack import Places
from ..core.mechanism import Mechanism
from ..core.multiplicity import Multiplicity
from ..core.neighbors import Neighbors
from ..core.population import Population
from ..core.profile import Profile
from ..core.theorem import Theorem
from ..core.weighting import Weighting
from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray
from ..validation import in_range, whole
from . import cluster_gaussian as gaussian
from . import cluster_loss as loss
from . import cluster_transport as transport
from .cluster_by_size import ClusterBySize
from .clustered import Clustered, Ints
from .pure_only import is_black_box, lower_profile, pure_epsilon, replaced_profile, upper_profile

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
WITHIN = replace(RO, scope="within cluster")


def _added(design: "ClusterPPS", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    return upper_profile(design.worst(pure_epsilon(mechanism, AR), AR))


def _replaced(design: "ClusterPPS", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    return replaced_profile(design.worst(pure_epsilon(mechanism, AR), WITHIN), mechanism)


def _moved(design: "ClusterPPS", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    return upper_profile(design.worst(pure_epsilon(mechanism, AR), WITHIN))


def _in_each(design: "ClusterPPS", mechanism: Mechanism, one: Callable[..., Profile]) -> Profile:
    theta, caps, pi = gaussian.add_remove_shift(mechanism), design.caps, design.probabilities
    profiles = [
        one(theta, p, [(pi[h], float(caps[i] - 1 + caps[h])) for h in range(len(pi)) if h != i and pi[h] > 0.0])
        for i, p in enumerate(pi)
        if p > 0.0
    ]
    return Profile.maximum(profiles)


@dataclass(frozen=True, slots=True)
class ClusterPPS(Clustered):
    """Draw one cluster: cluster h with the public probability `probabilities[h]`.

    They add up to 1. `max_size` is a public bound on every cluster's size, or one per cluster; `labels` are the
    clusters' public names in that order, 0, 1, ... when None. The population's column `cluster` says who is where. The
    guarantee for one record more is exact.

    >>> from privamp import PureDP, amplify
    >>> round(amplify(PureDP(1.0), ClusterPPS((0.5, 0.5), max_size=1)).epsilon(), 6)
    0.813666
    """

    probabilities: tuple[float, ...]  # pi, public, adding up to 1
    max_size: int | tuple[int, ...]  # c, one public cap or one per cluster
    labels: tuple[str, ...] | None = None

    natural: ClassVar[Neighbors] = AR
    theorems: ClassVar[tuple[Theorem, ...]] = (
        Theorem("One cluster, one record more", "docs/designs/pps.md, Thm 6", AR.kind, AR.kind, True, _added),
        Theorem(
            "One cluster, one record replaced inside its cluster",
            "docs/designs/pps.md, Thm 6",
            AR.kind,
            RO.kind,
            True,
            _replaced,
            scope=WITHIN.scope,
        ),
        Theorem("One cluster, one record replaced", "docs/designs/pps.md, Thm 6", AR.kind, RO.kind, False, _moved),
        *gaussian.theorems("One cluster", _in_each),
        *transport.ONE_CLUSTER,
    )

    def __post_init__(self) -> None:
        keep_in_order(self, "probabilities", "max_size", "labels")
        keep_plain(self)
        if not isinstance(self.probabilities, tuple):
            raise InvalidInput(f"probabilities must be one number per cluster, got {self.probabilities!r} instead")
        for p in self.probabilities:
            in_range(0, 1, probabilities=p)
        if abs(math.fsum(self.probabilities) - 1.0) > 1e-9:
            raise InvalidInput(f"probabilities must add up to 1, got {math.fsum(self.probabilities)!r} instead")
        self.check_clusters()

    @staticmethod
    def proportional_to_size(clusters: int, max_size: int, min_size: int = 0) -> ClusterBySize:
        """One of `clusters` clusters, each with a chance proportional to its own, private, size."""
        return ClusterBySize(clusters, max_size, min_size)

    @property
    def spec(self) -> str | None:
        """What the words of a spec can say: clusters without labels."""
        if self.labels is not None:
            return None
        caps = "+".join(map(str, self.max_size)) if isinstance(self.max_size, tuple) else ""
        sizes = f"caps={caps}" if caps else f"max_size={self.max_size}"
        return f"cluster-pps:probabilities={'+'.join(map(repr, self.probabilities))},{sizes}"

    @property
    def clusters(self) -> int:  # type: ignore[override]
        """k, public; clusters may be empty."""
        return len(self.probabilities)

    def weights(self, population: Population) -> FloatArray | None:
        """One over the probability of a record's cluster; 0 for one that is never drawn."""
        if min(self.probabilities) <= 0.0:
            return None
        return np.append(1.0 / np.asarray(self.probabilities), 0.0)[self.numbers_of(population.columns["cluster"])]

    def weighting(self, records: int, known: float | None, columns: Mapping[str, Any]) -> Weighting | None:
        """One over the probability of a record's cluster; one cluster does not show how clusters differ."""
        pi = np.asarray(self.probabilities)
        if np.min(pi) <= 0.0:
            raise InvalidInput(
                "a cluster of probability 0 cannot be estimated; give every cluster a probability above 0"
            )
        numbers = self.numbers_of(np.asarray(columns["cluster"]))
        weight, nothing = np.append(1.0 / pi, 0.0)[numbers], np.zeros(records)
        most = float(np.sum(np.asarray(self.caps) ** 2 / pi)) if pi.size > 1 else 0.0
        refusal = "" if pi.size == 1 else "one drawn cluster does not show how clusters differ; draw several"
        return Weighting(
            weight, float(1.0 / np.min(pi)), 1.0, 0.0, nothing, 0.0, 0.0, most, cap=max(self.caps), refusal=refusal
        )

    def worst(self, epsilon: float, neighbors: Neighbors) -> float:
        """The largest loss over all populations within the caps."""
        caps = self.caps
        return max(self._loss(epsilon, caps, i, neighbors) for i in range(self.clusters) if self.probabilities[i] > 0.0)

    def _loss(self, epsilon: float, sizes: Sequence[int], changed: int, neighbors: Neighbors) -> float:
        """`sizes` of the larger population (of both, when replaced)."""
        others = [(p, n) for h, (p, n) in enumerate(zip(self.probabilities, sizes, strict=True)) if h != changed]
        log_w = loss.log_rest_chances(epsilon, sizes[changed] - 1, self.probabilities[changed], others)
        return (loss.added if neighbors.kind == AR.kind else loss.replaced)(epsilon, 1.0, log_w)

    def pair_loss(
        self, epsilon: float, sizes: Sequence[int], changed: int, neighbors: Neighbors = Neighbors.ADD_REMOVE
    ) -> float:
        """The exact loss between two given populations; a fact about that pair, not a guarantee (sizes are private).

        `sizes` are those of the smaller population (of both, when a record is replaced inside `changed`).
        """
        self.check_pair(sizes, changed)
        larger = list(sizes)
        if neighbors.kind == AR.kind:
            larger[changed] += 1
        whole(1, size_of_the_changed_cluster=larger[changed])
        return self._loss(epsilon, larger, changed, neighbors) if self.probabilities[changed] > 0.0 else 0.0

    def appearances(self, records: int = 1) -> Multiplicity:
        """A person whose records all are in the likeliest cluster, the worst case."""
        p = max(self.probabilities)
        log_p = np.full(records, -np.inf)
        log_p[-1] = math.log(p)
        return Multiplicity(math.log1p(-p) if p < 1.0 else -math.inf, log_p)

    def drawn_clusters(self, subkey: Key) -> Ints:
        """The cluster in whose share of 0 to 2^64 the draw's keyed number falls."""
        ends = np.cumsum([Fraction(p) for p in self.probabilities])
        number = int(keyed_numbers(subkey.subkey("clusters"), np.zeros(1, dtype=np.uint64))[0])
        drawn = next(h for h, end in enumerate(ends) if number * ends[-1] < end * 2**64)
        return np.array([drawn], dtype=np.int64)

    def cluster_law(self, sizes: Sequence[int]) -> Iterator[tuple[tuple[int, ...], Fraction]]:
        """One cluster by its public probability."""
        chances = [Fraction(p) for p in self.probabilities]
        for h, p in enumerate(chances):
            yield (h,), p / sum(chances)

    @classmethod
    def small_cases(cls) -> Iterator[tuple["ClusterPPS", Population]]:
        """Populations one record below their caps, in the cluster where that is worst."""
        for pi in ((1.0,), (0.5, 0.5), (0.75, 0.25), (0.5, 0.25, 0.25), (0.6, 0.3, 0.1), (0.9, 0.1)):
            for cap in (1, 2, 3, 4) if len(pi) < 3 else (1, 2):
                design = cls(pi, cap)
                yield design, design.sized([cap - 1, *[cap] * (len(pi) - 1)])
        for pi, caps in (((0.5, 0.5), (3, 1)), ((0.75, 0.25), (2, 1)), ((0.5, 0.25, 0.25), (3, 1, 2))):
            design = cls(pi, caps)
            yield design, design.sized([caps[0] - 1, *caps[1:]])

    def attack(self, mechanism: Mechanism, neighbors: Neighbors) -> Profile | None:
        """The worst event of a black box, or Gaussian sums at the caps: the exact supremum."""
        if mechanism.is_gaussian and neighbors.records == 1:
            return _in_each(self, mechanism, gaussian.added if neighbors.kind == AR.kind else gaussian.replaced)
        if not is_black_box(mechanism, neighbors):
            return mechanism.on_a_line(*self._full(neighbors)) if neighbors.records == 1 else None
        return lower_profile(self.worst(pure_epsilon(mechanism, AR), AR if neighbors.kind == AR.kind else WITHIN))

    def _full(self, neighbors: Neighbors) -> tuple[Places, Places]:
        """Full clusters, the likeliest one changed."""
        pairs = list(zip(self.probabilities, self.caps, strict=True))
        (p, cap), *others = sorted(pairs, reverse=True)
        return transport.full_clusters(neighbors, p, cap, others)
