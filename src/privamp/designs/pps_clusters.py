"""Several clusters, drawn with probabilities proportional to public sizes, and a fixed take in each: self-weighting.

Cluster h has exactly M_h records in every data set, M in all; `chosen` = l clusters are drawn by Sampford's design,
whose inclusion probabilities are exactly pi_h = l M_h/M < 1, and `take` = m members of each, all subsets equally
likely. Every record is drawn with the chance q = l m/M.

Theorem 8 (a record replaced inside its cluster). Samples without the record are 2 steps away (its cluster is drawn, and
another member stands in its place: pi_h - q) or 2m steps (another cluster stands in its cluster's place: 1 - pi_h).
For a pure mechanism under add/remove, a = e^eps, exactly

    log(1 + q (a^2 - 1)/(pi_h + (1 - pi_h) a^-(2m-2))), at the h where that is largest.

Sampford's design is strongly Rayleigh: given that h is drawn, or not, the other clusters can be drawn together so that
they differ by one cluster. Sizes that are private, or a record that changes its cluster, change all probabilities:
refused. Sampford, On sampling without replacement with unequal probabilities, 1967. Proof: docs/designs/pps.md.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from ..chance.keyed import keep, keyed_numbers
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
from ..numerics.log_domain import FloatArray
from ..validation import whole
from .clustered import Clustered, Ints
from .conditional_poisson import odds_shift
from .one_in_several import Kind, merged, theorems, worst_loss
from .pure_only import is_black_box, lower_profile, pure_epsilon

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
WITHIN = replace(RO, scope="within cluster")
PAGE = "docs/designs/pps.md, Thm 8"
_FEWEST = 20  # records: the exact verifier, which asks for sums in smaller cases, does not know distances


def _kinds(design: "PPSClusters") -> list[Kind]:
    return [kind for kind, _ in design.kinds()]


@dataclass(frozen=True, slots=True)
class PPSClusters(Clustered):
    """Draw `chosen` clusters with probabilities proportional to their public `sizes`, and `take` members of each.

    `sizes` are the numbers of records of the clusters, public and the same in every data set; `take` is at most the
    smallest of them. `labels` are the clusters' public names in that order, 0, 1, ... when None. The population's
    column `cluster` says who is where. A record's value is protected, not its place.

    >>> from privamp import PureDP, amplify
    >>> design = PPSClusters(sizes=(30, 20, 25, 25), chosen=2, take=1)
    >>> design.weight, round(amplify(PureDP(1.0), design).epsilon(), 6)
    (50.0, 0.120252)
    """

    sizes: tuple[int, ...]  # M_h, public
    chosen: int  # l
    take: int  # m
    labels: tuple[str, ...] | None = None

    natural: ClassVar[Neighbors] = WITHIN
    theorems: ClassVar[tuple[Theorem, ...]] = theorems(
        "Clusters by public size, then a fixed take", PAGE, _kinds, added=False, exact=True
    )

    def __post_init__(self) -> None:
        keep_in_order(self, "sizes", "labels")
        keep_plain(self)
        if not isinstance(self.sizes, tuple) or not self.sizes:
            raise InvalidInput(f"sizes must be one whole number per cluster, got {self.sizes!r} instead")
        for size in self.sizes:
            whole(1, sizes=size)
        whole(1, 2**63 - 1, **{"the sum of sizes": self.records})
        self.check_clusters()
        whole(1, self.clusters, chosen=self.chosen)
        whole(1, min(self.sizes), take=self.take)
        if self.chosen * max(self.sizes) >= self.records and self.clusters > 1:
            raise InvalidInput(
                f"a cluster of {max(self.sizes)} of {self.records} records would always be drawn among "
                f"{self.chosen}; split it into smaller clusters, or draw fewer clusters"
            )

    @property
    def spec(self) -> str | None:
        """What the words of a spec can say: clusters without labels."""
        if self.labels is not None:
            return None
        return f"pps-clusters:sizes={'+'.join(map(str, self.sizes))},chosen={self.chosen},take={self.take}"

    @property
    def clusters(self) -> int:  # type: ignore[override]
        """k, public."""
        return len(self.sizes)

    @property
    def max_size(self) -> tuple[int, ...]:  # type: ignore[override]
        """The sizes are public and exact."""
        return self.sizes

    @property
    def records(self) -> int:
        """M."""
        return sum(self.sizes)

    @property
    def public_size(self) -> int | None:
        """M."""
        return self.records

    @property
    def most_kept(self) -> tuple[int, ...] | None:
        """The take."""
        return (self.take,) * self.clusters

    @property
    def size_floor(self) -> int:
        """No record leaves its cluster."""
        return max(self.sizes)

    @property
    def weight(self) -> float | None:
        """M/(l m), for every record."""
        return self.records / (self.chosen * self.take) if self.clusters > 1 else self.records / self.take

    def weighting(self, records: int, known: float | None, columns: Mapping[str, Any]) -> Weighting | None:
        """As if clusters were drawn with replacement, which is never below (Gabler 1981): with y_c the weighted total
        of a drawn cluster, V = l/(l-1) (sum y_c^2 - T^2/l); at most (M B)^2/l.
        """
        w, drawn = float(self.weight or 0.0), self.chosen
        numbers, nothing = self.numbers_of(np.asarray(columns["cluster"])), np.zeros(records)
        refusal = "" if drawn > 1 else "one drawn cluster does not show how clusters differ; draw at least two"
        return Weighting(
            np.full(records, w), w, 1.0 / w, drawn / max(drawn - 1, 1), nothing, 0.0, 1.0 / max(drawn - 1, 1),
            self.records**2 / drawn, cluster=numbers, cap=self.take, refusal=refusal,
        )  # fmt: skip

    def kinds(self) -> list[tuple[Kind, float]]:
        """Records of clusters of one size are alike; with each its cluster's chance."""
        found = []
        for size in sorted(set(self.sizes)):
            pi = self.chosen * size / self.records if self.clusters > 1 else 1.0
            q = pi * self.take / size
            others = merged(((max(pi - q, 0.0), 2), (max(1.0 - pi, 0.0), 2 * self.take)))
            found.append((Kind(q, others), pi))
        return found

    def check_sizes(self, sizes: Ints) -> None:
        """Clusters have exactly their public sizes."""
        if np.any(sizes != np.asarray(self.sizes)):
            raise InvalidInput("a cluster has a different number of records than its public size; give the true sizes")

    def appearances(self, records: int = 1) -> Multiplicity:
        """Once, with the chance l m/M."""
        if records > 1:
            raise NoTheorem("how many records of a person are drawn depends on their clusters; state it for one record")
        return Multiplicity.binomial(1, min(1.0 / float(self.weight or 1.0), 1.0))

    def expected_size(self, population: int) -> float:
        """Always l m."""
        return float(min(self.chosen, self.clusters) * self.take)

    expected_distinct = expected_size

    def drawn_clusters(self, subkey: Key) -> Ints:
        """Coins of odds p/(1 - l p) until l clusters show heads, kept with a chance in proportion to 1 - sum p."""
        if self.clusters == 1:
            return np.zeros(1, dtype=np.int64)
        sizes, own = np.asarray(self.sizes, dtype=np.int64), subkey.subkey("clusters")
        chances = _coins(self.sizes, self.chosen)
        most = self.records - int(np.sort(sizes)[: self.chosen].sum())
        names, attempt = np.arange(self.clusters + 1, dtype=np.uint64), 0
        while True:
            numbers = keyed_numbers(own, names, stage=attempt)
            kept = np.flatnonzero(keep(numbers[:-1], chances))
            attempt += 1
            if kept.size == self.chosen:
                left = self.records - int(sizes[kept].sum())
                if keep(numbers[-1:], Fraction(left, most))[0]:
                    return kept.astype(np.int64)

    def cluster_law(self, sizes: Sequence[int]) -> Iterator[tuple[tuple[int, ...], Fraction]]:
        """Sampford: a set's chance is proportional to the product of its odds times 1 - sum p."""
        if self.clusters == 1:
            yield (0,), Fraction(1)
            return
        weights = {drawn: self._sampford(drawn) for drawn in combinations(range(self.clusters), self.chosen)}
        total = sum(weights.values(), Fraction(0))
        yield from ((drawn, weight / total) for drawn, weight in weights.items())

    def _sampford(self, drawn: tuple[int, ...]) -> Fraction:
        each = (Fraction(self.sizes[h], self.records - self.chosen * self.sizes[h]) for h in drawn)
        return math.prod(each, start=Fraction(1)) * (self.records - sum(self.sizes[h] for h in drawn))

    @classmethod
    def small_cases(cls) -> Iterator[tuple["PPSClusters", Population]]:
        """Up to four clusters, five records in all."""
        cases = (
            ((2,), 1, 1), ((3,), 1, 1), ((3,), 1, 2), ((4,), 1, 3), ((1, 1), 1, 1), ((2, 2), 1, 1), ((2, 2), 1, 2),
            ((3, 2), 1, 1), ((3, 2), 1, 2), ((2, 1), 1, 1), ((3, 1), 1, 1), ((4, 1), 1, 1), ((1, 1, 1), 1, 1),
            ((1, 1, 1), 2, 1), ((2, 1, 1), 1, 1), ((2, 2, 1), 1, 1), ((2, 2, 1), 2, 1), ((3, 1, 1), 1, 1),
            ((1, 1, 1, 1), 1, 1), ((1, 1, 1, 1), 2, 1), ((1, 1, 1, 1), 3, 1), ((2, 1, 1, 1), 2, 1),
        )  # fmt: skip
        for sizes, chosen, take in cases:
            design = cls(sizes, chosen, take)
            yield design, design.sized(sizes)

    def attacks(self, mechanism: Mechanism, neighbors: Neighbors) -> dict[Any, Profile]:
        """The worst event of a black box; or a sum in which the record stands out from its cluster, or with it."""
        if neighbors.kind != RO.kind or neighbors.records > 1:
            return {}
        if is_black_box(mechanism, neighbors):
            return {None: lower_profile(worst_loss(_kinds(self), pure_epsilon(mechanism, AR), 2))}
        found = {}
        for kind, pi in self.kinds():
            q, m = kind.chance, float(self.take)
            alone = mechanism.on_a_line({2.0: q, 0.0: 1.0 - q}, {0.0: 1.0}) if q < 1.0 else None
            out = (-m, 1.0 - pi)
            with_it = mechanism.on_a_line(_places((m, pi), out), _places((m - 2.0, q), (m, pi - q), out))
            far = (2.0 - 2.0 * m, 1.0 - pi)  # two less the distance to the samples with the record
            near = mechanism.on_a_line(_places((2.0, q), (0.0, pi - q), far), _places((0.0, pi), far))
            near = near if self.records >= _FEWEST else None
            tried = (
                (f"alone at {pi:.6g}", alone),
                (f"with its cluster at {pi:.6g}", with_it),
                (f"near {pi:.6g}", near),
            )
            for label, attack in tried:
                if attack is not None:
                    found[label] = attack
        return found

    def attack(self, mechanism: Mechanism, neighbors: Neighbors) -> Profile | None:
        """The best of them."""
        found = self.attacks(mechanism, neighbors)
        return Profile.maximum(found.values()) if found else None


def _places(*pairs: tuple[float, float]) -> dict[float, float]:
    """Chances of one place taken together."""
    found: dict[float, float] = {}
    for at, chance in pairs:
        if chance > 0.0:
            found[at] = found.get(at, 0.0) + chance
    return found


@lru_cache(maxsize=64)
def _coins(sizes: tuple[int, ...], chosen: int) -> FloatArray:
    """The chance of each cluster's coin, the same for every draw: about `chosen` heads are expected."""
    each = np.asarray(sizes, dtype=np.int64)
    log_odds = np.log(each) - np.log(sum(sizes) - chosen * each)
    return np.asarray(expit(log_odds + odds_shift(np.sort(log_odds), chosen)))
