"""Simple random sampling: every subset of `size` records is equally likely.

Theorem 1 (replace-one → replace-one). delta'(eps') = q delta(log(1 + (e^eps' - 1)/q)), q = size/population;
for pure M, eps' = log(1 + q(e^eps - 1)). Exactly tight. Balle, Barthe & Gaboardi 2018, Theorem 9. A mechanism
stated under add/remove enters with its replace-one profile (distance two): log(1 + q(e^(2 eps) - 1)), tight.

Theorem 2 (replace-one → add/remove). One-sided with q = size/(population + 1), `population` a public lower
bound on the number of records: the larger data set mixes in a sample that holds the extra record, at
replace-one distance one. It can exceed eps. Exactly tight. Proofs: docs/designs/simple_random.md.

A person with J records appears Hypergeometric(population, J, size) times, under add/remove Hypergeometric(population +
J, J, size) times; exact for Gaussian noise and for pure M under add/remove. Proofs: docs/persons.md.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import ClassVar

import numpy as np

from ..chance.stream import Stream
from ..core.curves import pure_curve
from ..core.design import Units
from ..core.hub_plan import Hub
from ..core.identity import keep_plain
from ..core.mechanism import Mechanism
from ..core.multiplicity import Multiplicity
from ..core.neighbors import Neighbors
from ..core.population import Population
from ..core.profile import Profile
from ..core.theorem import Theorem
from ..core.weighting import Subset
from ..core.words import Word
from ..validation import whole
from .fixed_size import Ints, OneStage
from .multiplicity import added, added_pair, replaced
from .shared_copies import replaced_people

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE


def _added_pure(design: "WithoutReplacement", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    epsilon = mechanism.profile(RO).largest_loss
    return Profile.symmetric(pure_curve(design.appearances_of_extra(neighbors.records).log_moment(epsilon)))


@dataclass(frozen=True, slots=True)
class WithoutReplacement(OneStage):
    """Draw `size` of `population` records, all subsets equally likely.

    >>> from privamp import Neighbors, PureDP, amplify
    >>> design = WithoutReplacement(size=1, population=2)
    >>> round(amplify(PureDP(1.0, neighbors=Neighbors.REPLACE_ONE), design).epsilon(), 6)
    0.620115
    """

    size: int  # m
    population: int  # n, public under replace-one; a public lower bound under add/remove

    natural: ClassVar[Neighbors] = RO
    theorems: ClassVar[tuple[Theorem, ...]] = (
        Theorem(
            "Simple random sampling",
            "Balle, Barthe & Gaboardi 2018, Thm 9",
            RO.kind,
            RO.kind,
            True,
            replaced,
            groups=True,
        ),
        Theorem(
            "Simple random sampling, one record more",
            "docs/designs/simple_random.md, Thm 2",
            RO.kind,
            AR.kind,
            True,
            added,
            groups=True,
        ),
        Theorem(
            "Simple random sampling, all of a person's records, Gaussian copies against copies",
            "docs/persons.md, Thm 3",
            RO.kind,
            RO.kind,
            False,
            replaced_people,
            applies=lambda m: m.is_gaussian,
            people=True,
        ),
        Theorem(
            "Simple random sampling, a person more, Gaussian pair",
            "docs/persons.md, Thm 1",
            RO.kind,
            AR.kind,
            True,
            added_pair,
            applies=lambda m: m.is_gaussian,
            people=True,
            settles=True,
        ),
        Theorem(
            "Simple random sampling, a person more, pure",
            "docs/persons.md, Thm 4",
            RO.kind,
            AR.kind,
            True,
            _added_pure,
            applies=lambda m: math.isfinite(m.profile(RO).largest_loss),
            people=True,
        ),
    )

    word: ClassVar[Word | None] = Word("wor", ("size", "population"), whole=("size", "population"))

    def __post_init__(self) -> None:
        whole(1, population=self.population)
        whole(1, self.population, size=self.size)
        keep_plain(self)

    @property
    def equal_chances(self) -> Subset:
        """A subset of fixed size."""
        return Subset(self.size, self.population)

    @property
    def spread(self) -> float | None:
        """(n/m - 1) n/(n-1)."""
        return (self.population / self.size - 1.0) * self.population / max(self.population - 1, 1)

    def hits(self, stream: Stream, population: int) -> Ints:
        """Each drawn record once."""
        return np.ones(self.size, dtype=np.int64)

    def appearances(self, records: int = 1) -> Multiplicity:
        """Hypergeometric."""
        return Multiplicity.hypergeometric(self.population, min(records, self.population), self.size)

    def appearances_of_extra(self, records: int = 1) -> Multiplicity:
        """The extra records among population + records."""
        return Multiplicity.hypergeometric(self.population + records, records, self.size)

    def components(self) -> tuple[Hub, ...]:
        """In the place of another record, or out."""
        return (Hub.kept(self.size / (self.population + 1), 2),)

    def law(self, population: Population) -> Iterator[tuple[Units, Fraction]]:
        """All subsets of the wanted size."""
        ids = sorted(int(i) for i in population.ids)
        for units in combinations(ids, self.size):
            yield units, Fraction(1, comb(len(ids), self.size))

    @classmethod
    def small_cases(cls) -> Iterator[tuple["WithoutReplacement", int]]:
        """All sizes out of up to 6 records."""
        for population in range(1, 7):
            for size in range(1, population + 1):
                yield cls(size, population), population
