"""Sampling with replacement: `size` independent draws, each uniform over the population.

A record appears Binomial(size, 1/population) times.

Theorem 1 (replace-one → replace-one). delta'(eps') <= sum_u p_u delta_u(log(1 + (e^eps' - 1)/eta)), delta_u the
replace-one profile at distance u. Balle, Barthe & Gaboardi 2018, Theorem 10. A bound, not tight.
Theorem 2 (pure, replace-one → replace-one). eps' = size * log(1 + (e^eps - 1)/population): replace the draws
one at a time, each a simple random sample of one. Exactly tight.
Theorems 3, 4, 5 (add/remove): the same one-sided, with population + 1 where `population` is a public lower
bound; for Gaussian noise the exact pair (sum_u p_u N(u s), N(0)).
Theorem 6 (Gaussian noise, replace-one → replace-one). Near that pair: shared_copies.py.
A person with J records appears Binomial(size, J/population) times, under add/remove Binomial(size, J/(population + J)).
Proofs: docs/designs/with_replacement.md, docs/persons.md.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from ..chance.stream import Stream
from ..core.curves import pure_curve
from ..core.design import Units
from ..core.identity import keep_plain
from ..core.mechanism import Mechanism
from ..core.multiplicity import Multiplicity
from ..core.neighbors import Neighbors
from ..core.population import Population
from ..core.profile import Profile
from ..core.theorem import Theorem
from ..core.words import Word
from ..numerics.log_domain import log_mix
from ..validation import whole
from .exact_law import with_replacement
from .fixed_size import Ints, OneStage, occupancy
from .multiplicity import added, added_pair, replaced
from .shared_copies import copies_bound, replaced_people

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE


def _pure(mechanism: Mechanism) -> bool:
    return math.isfinite(mechanism.profile(RO).largest_loss)


def _replaced_gaussian(design: "WithReplacement", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    return copies_bound((("wr", design.size),), design.population, mechanism)


def _replaced_pure(design: "WithReplacement", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    chance = min(neighbors.records / design.population, 1.0)
    return _draw_by_draw(design, mechanism, chance)


def _added_pure(design: "WithReplacement", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    return _draw_by_draw(design, mechanism, neighbors.records / (design.population + neighbors.records))


def _draw_by_draw(design: "WithReplacement", mechanism: Mechanism, chance: float) -> Profile:
    epsilon = mechanism.profile(RO).largest_loss
    return Profile.symmetric(pure_curve(design.size * float(log_mix(chance, epsilon))))


@dataclass(frozen=True, slots=True)
class WithReplacement(OneStage):
    """Draw `size` times from `population` records, with replacement.

    >>> from privamp import Neighbors, PureDP, amplify
    >>> design = WithReplacement(size=400, population=1000)
    >>> round(amplify(PureDP(1.0, neighbors=Neighbors.REPLACE_ONE), design).epsilon(), 4)
    0.6867
    """

    size: int  # m
    population: int  # n, public under replace-one; a public lower bound under add/remove

    natural: ClassVar[Neighbors] = RO
    theorems: ClassVar[tuple[Theorem, ...]] = (
        Theorem(
            "With replacement", "Balle, Barthe & Gaboardi 2018, Thm 10", RO.kind, RO.kind, False, replaced, groups=True
        ),
        Theorem(
            "With replacement, Gaussian copies against copies",
            "docs/designs/with_replacement.md, Thm 6",
            RO.kind,
            RO.kind,
            False,
            _replaced_gaussian,
            applies=lambda m: m.is_gaussian,
        ),
        Theorem(
            "With replacement, draw by draw",
            "docs/designs/with_replacement.md, Thm 2",
            RO.kind,
            RO.kind,
            True,
            _replaced_pure,
            applies=_pure,
            groups=True,
        ),
        Theorem(
            "With replacement, one record more",
            "docs/designs/with_replacement.md, Thm 3",
            RO.kind,
            AR.kind,
            False,
            added,
            groups=True,
        ),
        Theorem(
            "With replacement, one record more, draw by draw",
            "docs/designs/with_replacement.md, Thm 4",
            RO.kind,
            AR.kind,
            True,
            _added_pure,
            applies=_pure,
            groups=True,
        ),
        Theorem(
            "With replacement, one record more, Gaussian pair",
            "docs/designs/with_replacement.md, Thm 5",
            RO.kind,
            AR.kind,
            True,
            added_pair,
            applies=lambda m: m.is_gaussian,
        ),
        Theorem(
            "With replacement, all of a person's records, Gaussian copies against copies",
            "docs/persons.md, Thm 3",
            RO.kind,
            RO.kind,
            False,
            replaced_people,
            applies=lambda m: m.is_gaussian,
            people=True,
        ),
        Theorem(
            "With replacement, a person more, Gaussian pair",
            "docs/persons.md, Thm 1",
            RO.kind,
            AR.kind,
            True,
            added_pair,
            applies=lambda m: m.is_gaussian,
            people=True,
            settles=True,
        ),
    )

    word: ClassVar[Word | None] = Word("wr", ("size", "population"), whole=("size", "population"))

    def __post_init__(self) -> None:
        whole(1, population=self.population)
        whole(1, size=self.size)
        keep_plain(self)

    def hits(self, stream: Stream, population: int) -> Ints:
        """Throw `size` balls into `population` cells."""
        return occupancy(stream.below(population, self.size))

    def appearances(self, records: int = 1) -> Multiplicity:
        """Binomial(size, records/population)."""
        return Multiplicity.binomial(self.size, min(records / self.population, 1.0))

    def appearances_of_extra(self, records: int = 1) -> Multiplicity:
        """The extra records among population + records."""
        return Multiplicity.binomial(self.size, records / (self.population + records))

    def law(self, population: Population) -> Iterator[tuple[Units, Fraction]]:
        """All multisets."""
        return with_replacement(tuple(int(i) for i in population.ids), self.size)

    @classmethod
    def small_cases(cls) -> Iterator[tuple["WithReplacement", int]]:
        """Up to 4 draws from up to 5 records."""
        for population in range(1, 6):
            for size in range(1, 5):
                yield cls(size, population), population
