"""Conditional Poisson sampling: fixed size, unequal chances, as random as that allows (maximum entropy).

A sample of m of n records has a probability proportional to the product of its records' odds. Odds are a
public function of the record alone, in the public range from w_lo = `low` to w_hi = `high`.

Theorem 4 (replace-one). With pi = w_hi m/(w_hi m + w_lo (n-m)), the largest inclusion probability there is,
delta'(eps') <= pi delta(log(1 + (e^eps' - 1)/pi)) for every mechanism; pure log(1 + pi(e^eps - 1)). Exactly the
supremum over the range. Theorem 5 (add/remove, n a public lower bound). One-sided with
pi = w_hi m/(w_hi m + w_lo (n+1-m)); it can exceed eps. Proofs: docs/designs/pps.md.

Drawn by coins whose odds are proportional to the records' odds, again and again until the size is right;
taking the records with the m smallest keyed numbers would be another design.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ..chance.keyed import keep, keyed_numbers
from ..chance.keys import Key
from ..core.design import Design, Units
from ..core.hub_plan import Hub
from ..core.identity import keep_plain
from ..core.mechanism import Mechanism
from ..core.multiplicity import Multiplicity
from ..core.neighbors import Neighbors
from ..core.population import Batch, Population
from ..core.profile import Profile
from ..core.reads import Numbers, Read
from ..core.sample import Drawn
from ..core.theorem import Theorem
from ..core.words import Word
from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray
from ..numerics.roots import halved
from ..validation import in_range, positive, whole
from .multiplicity import one_sided, shared_absence
from .poisson_pps import changed_records, size_measures

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE


def _replaced(design: "ConditionalPoisson", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    return shared_absence(design.appearances(), mechanism, RO)


def _added(design: "ConditionalPoisson", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    return one_sided(design.appearances_of_extra(), mechanism, RO)


@dataclass(frozen=True, slots=True)
class Weighted:
    """Ids and log odds of the records seen so far."""

    positions: NDArray[np.int64] = field(repr=False)
    ids: NDArray[Any] = field(repr=False)
    log_odds: FloatArray = field(repr=False)


@dataclass(frozen=True, slots=True)
class ConditionalPoisson(Design):
    """Draw `size` of `population` records; a sample's probability is proportional to the product of its `odds`.

    >>> from privamp import Neighbors, PureDP, amplify
    >>> design = ConditionalPoisson(size=1, population=2, low=1.0, high=3.0)
    >>> round(amplify(PureDP(1.0, neighbors=Neighbors.REPLACE_ONE), design).epsilon(), 6)
    0.827989
    """

    size: int  # m
    population: int  # n, public under replace-one; a public lower bound under add/remove
    low: float  # public range of the odds
    high: float

    natural: ClassVar[Neighbors] = RO
    unweighted: ClassVar[str] = "a record's chance depends on the odds of everybody else"
    theorems: ClassVar[tuple[Theorem, ...]] = (
        Theorem("Conditional Poisson", "docs/designs/pps.md, Thm 4", RO.kind, RO.kind, True, _replaced),
        Theorem("Conditional Poisson, one record more", "docs/designs/pps.md, Thm 5", RO.kind, AR.kind, True, _added),
    )

    word: ClassVar[Word | None] = Word(
        "conditional-poisson", ("size", "population", "low", "high"), whole=("size", "population")
    )

    def __post_init__(self) -> None:
        keep_plain(self)
        whole(1, population=self.population)
        whole(1, self.population, size=self.size)
        positive(low=self.low, high=self.high)
        in_range(0, self.high, low=self.low)

    @property
    def reads(self) -> Mapping[str, Read]:
        """The column `odds`, within the public range."""
        return {"odds": Numbers(self.low, self.high)}

    @property
    def sample_size(self) -> int | None:
        """`size`."""
        return self.size

    @property
    def public_size(self) -> int | None:
        """The declared population."""
        return self.population

    def largest_probability(self, population: int) -> float:
        """Of a record with the largest odds among others with the smallest."""
        wanted = self.high * self.size
        return wanted / (wanted + self.low * (population - self.size))

    def appearances(self, records: int = 1) -> Multiplicity:
        """Once or not at all, at the largest inclusion probability; a person's records at most that each."""
        return Multiplicity.binomial(records, self.largest_probability(self.population))

    def appearances_of_extra(self) -> Multiplicity:
        """The extra record among population + 1."""
        return Multiplicity.binomial(1, self.largest_probability(self.population + 1))

    def components(self) -> tuple[Hub, ...]:
        """In the place of another record, or out, at the largest probability."""
        return (Hub.kept(self.largest_probability(self.population + 1), 2),)

    def expected_size(self, population: int) -> float:
        """Always the declared size."""
        return float(self.size)

    def expected_distinct(self, population: int) -> float:
        """No record is drawn twice."""
        return float(self.size)

    def partial(self, batch: Batch, subkey: Key) -> Weighted:
        """Everything needed once all odds are known."""
        odds = size_measures(batch, self.low, self.high, "odds")
        return Weighted(batch.positions, batch.ids, np.log(odds))

    def merge(self, parts: Iterable[Weighted]) -> Weighted:
        """All records, in the order of the population."""
        found = list(parts)
        positions = np.concatenate([part.positions for part in found])
        filled = [part for part in found if part.ids.size] or found[:1]  # an empty batch has no type of ids
        order = np.argsort(positions)
        ids = np.concatenate([part.ids for part in filled])[order]
        return Weighted(positions[order], ids, np.concatenate([part.log_odds for part in found])[order])

    def finish(self, part: Weighted, subkey: Key) -> Drawn:
        """Coins, one attempt after another, until `size` records are kept."""
        if part.ids.size < self.population:
            raise InvalidInput(
                f"the design declares a population of at least {self.population} records but fewer were given; "
                "declare a number that is true"
            )
        kept = part.positions[_first_of_size(part, self.size, subkey)]
        return Drawn(kept, np.ones(kept.size, dtype=np.int64), np.ones(kept.size))

    def law(self, population: Population) -> Iterator[tuple[Units, Fraction]]:
        """All samples of the wanted size, by the product of their odds."""
        records = sorted(zip([int(i) for i in population.ids], population.columns["odds"].tolist(), strict=True))
        odds = {i: Fraction(w) for i, w in records}
        weights = {
            units: math.prod((odds[i] for i in units), start=Fraction(1)) for units in combinations(odds, self.size)
        }
        total = sum(weights.values(), Fraction(0))
        yield from ((units, weight / total) for units, weight in weights.items())

    def neighboring(
        self, population: int | Population, neighbors: Neighbors
    ) -> Iterator[tuple[Population, Population]]:
        """One record of the least or the largest odds, more, less or instead of another."""
        ends = sorted({self.low, self.high})
        yield from changed_records(Population.of(population), "odds", ends, neighbors, self.population)

    @classmethod
    def small_cases(cls) -> Iterator[tuple["ConditionalPoisson", Population]]:
        """Records of the smallest odds, among which one of the largest is the worst there is."""
        for low, high in ((1.0, 1.0), (1.0, 3.0), (0.5, 4.0), (2.0, 3.0)):
            for n in (1, 2, 3, 4) if high == 3.0 * low else (1, 2, 3):
                for m in range(1, n + 1):
                    odds = [low] * n
                    yield cls(m, n, low, high), Population(n, f"odds {odds}", odds=odds)

    def attack(self, mechanism: Mechanism, neighbors: Neighbors) -> Profile | None:
        """A sum with all other records at one end of the range and the changed one at the other."""
        if neighbors.records > 1:
            return None
        law = self.appearances() if neighbors.kind == RO.kind else self.appearances_of_extra()
        return mechanism.mixture(RO, law)


def _first_of_size(part: Weighted, size: int, subkey: Key) -> NDArray[np.bool_]:
    if size == part.ids.size:
        return np.ones(size, dtype=np.bool_)
    logits = part.log_odds + odds_shift(np.sort(part.log_odds), size)  # sorted: no order of the records changes a sum
    inside, outside = expit(logits), expit(-logits)
    often = logits > 0.0  # the smaller of the two chances keeps all its digits
    kept = np.zeros(part.ids.size, dtype=np.bool_)
    attempt = 0
    while int(np.count_nonzero(kept)) != size:
        coins = keep(keyed_numbers(subkey, part.ids, stage=attempt), np.where(often, outside, inside))
        kept, attempt = coins ^ often, attempt + 1
    return kept


def odds_shift(log_odds: FloatArray, size: int) -> float:
    """log z such that about `size` coins of odds z w are expected to show heads; any z gives the same law."""
    low, high = -float(np.max(log_odds)) - 50.0, -float(np.min(log_odds)) + 50.0
    low, high = halved(lambda x: not float(np.add.reduce(expit(log_odds + x))) < size, low, high, rounds=100)
    return 0.5 * (low + high)
