"""Poisson sampling with a public rate for every class of records, as for batches that are balanced over classes.

The coins are independent and a record's rate is a public function of the record alone, its class, so
`PoissonPPS` covers it: with q the largest rate, Theorems 1 and 2 of Poisson sampling hold at q, for every
mechanism, and both are exactly the supremum over records.

Theorem 1c (add/remove, one record). For a record of class c the same holds at its own rate q_c. A number
shown for its class reveals the class; the certificate for all records does not.

The rates must be public. b/(k n_c), computed from the numbers n_c of records per class, is not: a newcomer then
changes the coins of its whole class. Release the counts first, or fix the rates. Proofs: docs/designs/pps.md.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np

from ..core.design import Design
from ..core.hub_plan import Hub
from ..core.mechanism import Mechanism
from ..core.multiplicity import Multiplicity
from ..core.neighbors import Neighbors
from ..core.population import Batch, Population
from ..core.profile import Profile
from ..core.reads import Labels, Read
from ..core.theorem import Theorem
from ..core.weighting import Weighting
from ..core.words import Word
from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray
from ..validation import in_range
from .coins import OwnCoins
from .poisson import Poisson
from .poisson_pps import at_the_highest
from .strata import places

AR = Neighbors.ADD_REMOVE
Name = str | int
COLUMN = "category"
NEVER_DRAWN = "a record in a class that the design does not name is never drawn, and counts in no answer"
_NOT_IN_NAMES = "=+,:;"  # what separates the parts of a spec


@dataclass(frozen=True, slots=True, init=False)
class ClassRates(OwnCoins):
    """Keep each record with the public rate of its class, independently; the column `category` names the class.

    A record of a class that is not named is never drawn: refusing it would tell that it is there.

    >>> from privamp import PureDP, amplify
    >>> design = ClassRates({"common": 0.01, "rare": 0.2})
    >>> round(amplify(PureDP(1.0), design).epsilon(), 6)
    0.295395
    """

    rates: tuple[tuple[Name, float], ...]  # sorted by name

    natural: ClassVar[Neighbors] = AR
    theorems: ClassVar[tuple[Theorem, ...]] = tuple(
        at_the_highest(theorem, "Poisson by class") for theorem in Poisson.theorems
    )
    decides_alone: ClassVar[bool] = True
    assumes: ClassVar[tuple[str, ...]] = (*Design.assumes, NEVER_DRAWN)
    word: ClassVar[Word | None] = Word("class-rates", ("rates",), text=("rates",))

    def __init__(self, rates: Mapping[Any, float] | Iterable[tuple[Any, float]] | str) -> None:
        pairs = _read(rates) if isinstance(rates, str) else list(rates.items() if isinstance(rates, Mapping) else rates)
        if not pairs:
            raise InvalidInput("rates must name at least one class with its rate, got none instead")
        named = {_name(name): _rate(name, rate) for name, rate in pairs}
        if len(named) < len(pairs):
            raise InvalidInput("every class must have its own name, got one twice")
        order = sorted(named, key=lambda name: (isinstance(name, str), name))
        object.__setattr__(self, "rates", tuple((name, named[name]) for name in order))

    @property
    def spec(self) -> str | None:
        """`class-rates:rates=common=0.01+rare=0.2`, or None for names that this cannot say."""
        names = [name for name, _ in self.rates]
        if any(isinstance(name, str) and not _can_be_said(name) for name in names):
            return None
        return f"class-rates:rates={'+'.join(f'{name}={rate!r}' for name, rate in self.rates)}"

    @property
    def high(self) -> float:
        """The largest rate."""
        return max(rate for _, rate in self.rates)

    @property
    def low(self) -> float:
        """The smallest rate."""
        return min(rate for _, rate in self.rates)

    @property
    def rates_by_class(self) -> Mapping[Name, float]:
        """`rates`, by name."""
        return dict(self.rates)

    @property
    def names(self) -> tuple[Name, ...]:
        """The classes, sorted."""
        return tuple(name for name, _ in self.rates)

    @property
    def reads(self) -> Mapping[str, Read]:
        """The class."""
        return {COLUMN: Labels(self.names)}

    def probabilities(self, batch: Batch) -> FloatArray:
        """One per record, 0 for a class that is not named."""
        return np.array([*(rate for _, rate in self.rates), 0.0])[places(batch.column(COLUMN), self.names)]

    def weights(self, population: Population) -> FloatArray | None:
        """1/rate, where every rate is above 0; 0 for a record that is never drawn."""
        if self.low <= 0:
            return None
        q = self.probabilities(population.batch())
        return np.where(q > 0, 1.0 / np.where(q > 0, q, 1.0), 0.0)

    def weighting(self, records: int, known: float | None, columns: Mapping[str, Any]) -> Weighting | None:
        """Independent coins of chance q: second = (1-q)/q^2, which falls with q; nothing else."""
        if self.low <= 0:
            raise InvalidInput("weights 1/rate need rates above 0, got a class of rate 0 instead; omit the class")
        q = self.probabilities(Batch(np.arange(records), 0, columns))
        most = (1.0 - self.low) / self.low
        drawn = np.where(q > 0, q, 1.0)  # what is never drawn has no weight
        return Weighting(
            np.where(q > 0, 1.0 / drawn, 0.0), 1.0 / self.low, 1.0, 0.0, (1.0 - drawn) / drawn**2, most / self.low,
            0.0, most, per_record=True,
        )  # fmt: skip

    def appearances(self, records: int = 1) -> Multiplicity:
        """Binomial at the largest rate: the worst case for a person."""
        return Multiplicity.binomial(records, self.high)

    def components(self) -> tuple[Hub, ...]:
        """In or out, at the largest rate."""
        return (Hub.kept(self.high),)

    def neighboring(
        self, population: int | Population, neighbors: Neighbors
    ) -> Iterator[tuple[Population, Population]]:
        """One record of every class, more, less or instead of one of every class."""
        population = Population.of(population)
        records = list(zip(population.ids.tolist(), population.columns[COLUMN].tolist(), strict=True))
        new = 1 + max((i for i, _ in records), default=-1)
        if neighbors.kind == AR.kind:
            yield from ((_people([*records, (new, name)]), _people(records)) for name in self.names)
            return
        for at, old, other in product(range(len(records)), self.names, self.names):
            rest = [*records[:at], *records[at + 1 :]]
            yield _people([*rest, (new, old)]), _people([*rest, (new + 1, other)])

    @classmethod
    def small_cases(cls) -> Iterator[tuple["ClassRates", Population]]:
        """One to three classes, up to three records; rates 0 and 1, and a class that the design does not name."""
        laws = ({"a": 0.6}, {"a": 0.1, "b": 0.9}, {"a": 0.0, "b": 1.0}, {"a": 0.25, "b": 0.25}, {"a": 0.05, "b": 0.5})
        for rates, kinds in product((*laws, {"a": 0.2, "b": 0.5, "c": 0.75}), ("", "a", "ab", "bax")):
            inside = [kind for kind in kinds if kind in rates or kind == "x"]
            yield cls(rates), Population(len(inside), f"classes {kinds!r}", category=np.array(inside, dtype="<U1"))

    def attack(self, mechanism: Mechanism, neighbors: Neighbors) -> Profile | None:
        """That of Poisson sampling at the largest rate: some record may have it."""
        return Poisson(self.high).attack(mechanism, neighbors)

    def personal(self, mechanism: Mechanism, neighbors: Neighbors, record: Any) -> Profile | None:
        """Theorem 1c: `record` is the name of its class."""
        if neighbors.kind != AR.kind:
            return None
        rates = dict(self.rates)
        if record not in rates:
            raise InvalidInput(f"a record must be given by its class, one of {', '.join(map(repr, self.names))}")
        own = Poisson(rates[record])
        bounds = [t.bound(own, mechanism, neighbors) for t in own.theorems if t.covers(mechanism, neighbors)]
        return Profile.minimum(bounds)


def _people(records: list[tuple[Any, Any]]) -> Population:
    ids = np.array([i for i, _ in records], dtype=np.uint64)
    return Population(ids, category=np.array([name for _, name in records], dtype="<U1"))


def _can_be_said(name: str) -> bool:
    """Whether a spec gives back this text, and not a number."""
    return bool(name) and name == name.strip() and not set(name) & set(_NOT_IN_NAMES) and not name.lstrip("-").isdigit()


def _read(text: str) -> list[tuple[Name, Any]]:
    pairs: list[tuple[Name, Any]] = []
    for part in text.split("+"):
        name, equals, rate = part.rpartition("=")
        try:
            number = float(rate)
        except ValueError:
            equals = ""
        if not equals or not name.strip():
            raise InvalidInput(f"rates must be written class=rate+class=rate, got {part!r} instead")
        name = name.strip()
        pairs.append((int(name) if name.lstrip("-").isdigit() else name, number))
    return pairs


def _name(name: Any) -> Name:
    if not isinstance(name, (str, int, np.integer)) or isinstance(name, bool):
        raise InvalidInput(f"the name of a class must be a word or a whole number, got {name!r} instead")
    return str(name) if isinstance(name, str) else int(name)


def _rate(name: Any, rate: Any) -> float:
    in_range(0, 1, **{f"the rate of class {name!r}": rate})
    return float(rate)
