"""Poisson sampling with probabilities proportional to size: q_i = m r_i / (sum of r), cut at 1 recursively.

Records whose share would exceed 1 are kept for certain and the rest shares what is left of m, until no share
exceeds 1: q_i = min(1, z r_i) with z such that the q_i add up to m (all 1 when there are at most m records).
The sizes r_i lie in a public range and every population has at least `at_least` records.

Theorem 3. For pure M, the larger of log(1 + q(a-1)) + qc/(1 - Qc), c = 1 - 1/a, and -log(1 - qc) + q(a-1), with q =
min(1, m high/(high + at_least low)) the largest probability any record can have in the larger population, Q that of
the smaller one: one record lowers the others' probabilities by at most its own. It can exceed eps. Replace-one: the
same with q = Q, for the others' probabilities differ by the two records' own at most. Without public facts only
eps + a - 1 is left, and that is approached. Cutting only once, min(1, m r_i / sum of r), is refused: one large
newcomer can lower any number of probabilities from 1 to nearly 0, and the loss has no bound.
Proofs: docs/designs/pps.md.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ..chance.keyed import keep, keyed_numbers
from ..chance.keys import Key
from ..core.design import Design, Units
from ..core.identity import keep_plain
from ..core.mechanism import Mechanism
from ..core.multiplicity import Multiplicity
from ..core.neighbors import Neighbors
from ..core.population import Batch, Population
from ..core.profile import Profile
from ..core.reads import Numbers, Read
from ..core.sample import Drawn
from ..core.theorem import Theorem
from ..core.transport import has_noise
from ..core.words import Word
from ..errors import InvalidInput, NoTheorem
from ..numerics.log_domain import FloatArray, as_floats, log_drop, log_mix
from ..validation import in_range, one_of, positive, whole
from . import kept_sizes, poisson_sizes
from .coins import coin_law
from .flips import Flips, exchanged, exchanged_or_gone, one_more
from .poisson_pps import changed_records, size_measures
from .pure_only import is_black_box, lower_profile, pure_epsilon, upper_profile

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
TRANSPORT = "docs/transport.md, Thm 5"


def _added(design: "ProportionalPPS", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    return upper_profile(design.added_loss(pure_epsilon(mechanism, AR), design.at_least))


def _replaced(design: "ProportionalPPS", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    return upper_profile(design.added_loss(pure_epsilon(mechanism, AR), max(design.at_least - 1, 0)))


def _added_transport(design: "ProportionalPPS", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    q = design.largest_probability(design.at_least)
    return one_more({0: 1.0 - q, 1: q}, Flips.of(q), mechanism)


def _replaced_transport(design: "ProportionalPPS", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    q = design.largest_probability(max(design.at_least - 1, 0))
    flips = Flips.of(q)
    return Profile.minimum([exchanged(q, flips, mechanism), exchanged_or_gone(q, flips, mechanism)])


@dataclass(frozen=True, slots=True)
class Sized:
    """Keyed numbers and sizes of the records seen so far."""

    positions: NDArray[np.int64] = field(repr=False)
    keyed: NDArray[np.uint64] = field(repr=False)
    sizes: FloatArray = field(repr=False)


@dataclass(frozen=True, slots=True)
class ProportionalPPS(Design):
    """Keep records independently, with probabilities proportional to their column `size`; `size` are expected.

    >>> from privamp import PureDP, amplify
    >>> round(amplify(PureDP(1.0), ProportionalPPS(size=10, low=1, high=5, at_least=1000)).epsilon(), 6)
    0.117441
    """

    size: float  # m
    low: float  # public range of the column `size`
    high: float
    at_least: int  # public lower bound on the number of records
    capping: Literal["recursive", "once"] = "recursive"

    word: ClassVar[Word | None] = Word(
        "proportional-pps", ("size", "low", "high", "at_least"), ("capping",), ("at_least",), ("capping",)
    )
    natural: ClassVar[Neighbors] = AR
    unweighted: ClassVar[str] = "its probabilities are proportional to private sizes"
    theorems: ClassVar[tuple[Theorem, ...]] = (
        Theorem("Poisson proportional to size", "docs/designs/pps.md, Thm 3", AR.kind, AR.kind, False, _added),
        Theorem(
            "Poisson proportional to size, one record replaced",
            "docs/designs/pps.md, Thm 3",
            AR.kind,
            RO.kind,
            False,
            _replaced,
        ),
        Theorem(
            "Poisson proportional to size, transport", TRANSPORT, AR.kind, AR.kind, False, _added_transport, has_noise
        ),
        Theorem(
            "Poisson proportional to size, one record replaced, transport",
            TRANSPORT,
            AR.kind,
            RO.kind,
            False,
            _replaced_transport,
            has_noise,
        ),
        *poisson_sizes.THEOREMS,
    )

    def __post_init__(self) -> None:
        keep_plain(self)
        positive(size=self.size, low=self.low, high=self.high)
        in_range(0, self.high, low=self.low)
        whole(0, at_least=self.at_least)
        one_of(("recursive", "once"), capping=self.capping)
        if self.capping == "once":
            raise NoTheorem(
                "probabilities cut at 1 only once have no bound on the loss: one large record lowers all others; "
                'use capping="recursive", or public probabilities with PoissonPPS(high=…)'
            )

    @property
    def reads(self) -> Mapping[str, Read]:
        """The column `size`, within the public range."""
        return {"size": Numbers(self.low, self.high)}

    def largest_probability(self, others: int) -> float:
        """Of any record beside at least this many others."""
        return min(1.0, self.size * self.high / (self.high + others * self.low))

    def added_loss(self, epsilon: float, others: int) -> float:
        """The larger of log(1 + q(a-1)) + qc/(1 - Qc), c = 1 - 1/a, and -log(1 - qc) + q(a-1)."""
        if epsilon >= 700.0:
            return math.inf
        q, before = self.largest_probability(others), self.largest_probability(max(self.at_least - 1, 0))
        c = -math.expm1(-epsilon)
        gone = float(log_mix(q, epsilon)) + q * c / ((1.0 - before) + before * math.exp(-epsilon))
        return max(gone, q * math.expm1(epsilon) - log_drop(q, epsilon)) * (1.0 + 1e-14)

    def appearances(self, records: int = 1) -> Multiplicity:
        """Binomial at the largest probability: the worst case for a person."""
        return Multiplicity.binomial(records, self.largest_probability(max(self.at_least - 1, 0)))

    def expected_size(self, population: int) -> float:
        """The probabilities add up to `size` when there are enough records."""
        return min(float(self.size), float(population))

    def expected_distinct(self, population: int) -> float:
        """No record is drawn twice."""
        return self.expected_size(population)

    def partial(self, batch: Batch, subkey: Key) -> Sized:
        """Everything needed once the sum of all sizes is known."""
        sizes = size_measures(batch, self.low, self.high)
        return Sized(batch.positions, keyed_numbers(subkey, batch.ids), sizes)

    def merge(self, parts: Iterable[Sized]) -> Sized:
        """All records, in the order of the population."""
        found = list(parts)
        positions = np.concatenate([part.positions for part in found])
        order = np.argsort(positions)
        keyed, sizes = (np.concatenate([getattr(part, name) for part in found])[order] for name in ("keyed", "sizes"))
        return Sized(positions[order], keyed, sizes)

    def finish(self, part: Sized, subkey: Key) -> Drawn:
        """Compare keyed numbers with the capped probabilities."""
        if part.sizes.size < self.at_least:
            raise InvalidInput(
                f"the design declares a population of at least {self.at_least} records but fewer were given; declare "
                "a number that is true"
            )
        kept = part.positions[keep(part.keyed, capped(part.sizes, self.size))]
        return Drawn(kept, np.ones(kept.size, dtype=np.int64), np.ones(kept.size))

    def law(self, population: Population) -> Iterator[tuple[Units, Fraction]]:
        """Coins with the capped probabilities."""
        yield from coin_law(population, capped_exactly(population.columns["size"].tolist(), self.size))

    def neighboring(
        self, population: int | Population, neighbors: Neighbors
    ) -> Iterator[tuple[Population, Population]]:
        """One record of the least or the largest size, more, less or instead of another."""
        ends = sorted({self.low, self.high})
        yield from changed_records(Population.of(population), "size", ends, neighbors, self.at_least)

    @classmethod
    def small_cases(cls) -> Iterator[tuple["ProportionalPPS", Population]]:
        """The fewest records allowed, and one more; the smallest sizes and mixed ones."""
        for low, high, m in ((1.0, 2.0, 1), (1.0, 4.0, 2), (2.0, 2.0, 1), (1.0, 1.5, 3), (1.0, 8.0, 0.5)):
            for n in (1, 2, 3):
                for r in ([low] * n, [high, *[low] * n]):
                    yield cls(m, low, high, n), Population(len(r), f"sizes {r}", size=r)

    def attack(self, mechanism: Mechanism, neighbors: Neighbors) -> Profile | None:
        """The largest of several attacks."""
        found = self.attacks(mechanism, neighbors)
        return Profile.maximum(found.values()) if found else None

    def attacks(self, mechanism: Mechanism, neighbors: Neighbors) -> dict[Any, Profile]:
        """In the smallest population: the changed record alone, or with the number of others, all of the least size."""
        if neighbors.records > 1:
            return {}
        q = self.largest_probability(self.at_least)
        found = kept_sizes.seen_with_others(self._coins(), mechanism) if neighbors.kind == AR.kind else {}
        if not is_black_box(mechanism, neighbors):
            alone = _looked_for(q, mechanism, neighbors)
            return found if alone is None else found | {"alone": alone}
        epsilon = pure_epsilon(mechanism, AR)
        loss = float(log_mix(q, epsilon))
        return found | {"alone": lower_profile(loss if neighbors.kind == AR.kind else loss - log_drop(q, epsilon))}

    def _coins(self) -> tuple[int, float, float, float]:
        """Others of the least size, their probability after and before a record of the largest comes, and its own."""
        n, m = self.at_least, self.size
        own = min(1.0, m * self.high / (self.high + n * self.low))
        after = (m - 1.0) / max(n, 1) if own == 1.0 else own * self.low / self.high
        return n, min(max(after, 0.0), 1.0), min(1.0, m / max(n, 1)), own


def _looked_for(chance: float, mechanism: Mechanism, neighbors: Neighbors) -> Profile | None:
    """A sum in which only the changed record is not zero."""
    if neighbors.kind == AR.kind:
        return mechanism.mixture(AR, Multiplicity.binomial(1, chance))
    return mechanism.opposite_mixture(chance)


def capped(sizes: FloatArray, total: float) -> FloatArray:
    """min(1, z r) with z such that the sum is `total`; all ones when there are not more records."""
    if sizes.size <= total:
        return np.ones(sizes.size)
    ordered = np.sort(sizes)[::-1]
    left = np.cumsum(ordered[::-1])[::-1]  # sum of this and all smaller sizes
    shares = (total - np.arange(sizes.size)) * ordered / left  # the largest of the rest, after `i` were set aside
    certain = int(np.argmax(shares < 1.0)) if np.any(shares < 1.0) else sizes.size
    if certain == sizes.size:
        return np.ones(sizes.size)
    z = (total - certain) / left[certain]
    return as_floats(np.minimum(1.0, z * sizes))


def capped_exactly(sizes: list[Any], total: float) -> list[Fraction]:
    """The same in fractions, by setting records aside one round after another."""
    r, m = [Fraction(x) for x in sizes], Fraction(total)
    certain: set[int] = set()
    while True:
        rest = [i for i in range(len(r)) if i not in certain]
        scale = (m - len(certain)) / sum((r[i] for i in rest), Fraction(0)) if rest else Fraction(0)
        more = {i for i in rest if scale * r[i] >= 1}
        if not more:
            return [Fraction(1) if i in certain else scale * r[i] for i in range(len(r))]
        certain |= more
