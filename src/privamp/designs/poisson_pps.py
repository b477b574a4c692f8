"""Poisson sampling with unequal public probabilities: every record has its own coin.

A record's probability q(x) is a public function of the record alone, somewhere in the public range from `low`
to `high`. With q = high, a = e^eps:

Theorem 1 (add/remove). Poisson sampling's Theorem 1 at rate q, for every mechanism; pure log(1 + q(a-1)).
Theorem 2 (replace-one). Poisson sampling's Theorem 2 at rate q; pure log[(1 + q(a-1))/(1 - q(1 - 1/a))].
Both are exactly the supremum over the range; for one record, put its own probability in place of q.

Proofs: docs/designs/pps.md. Probabilities that depend on the other records' sizes are another design,
`PoissonPPS.proportional`. Rates by class: `PoissonPPS.by_class`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from dataclasses import replace as changed
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from ..chance.keyed import threshold
from ..core.hub_plan import Hub
from ..core.identity import keep_plain
from ..core.mechanism import Mechanism
from ..core.multiplicity import Multiplicity
from ..core.neighbors import Neighbors
from ..core.population import Batch, Population
from ..core.profile import Profile
from ..core.reads import Numbers, Read
from ..core.theorem import Theorem
from ..core.weighting import Weighting
from ..core.words import Word
from ..errors import InvalidInput
from ..numerics.entries import column_of, is_text
from ..numerics.log_domain import FloatArray, as_floats
from ..validation import in_range, positive
from .coins import OwnCoins
from .poisson import Poisson

if TYPE_CHECKING:
    from .class_rates import ClassRates
    from .proportional_pps import ProportionalPPS

AR = Neighbors.ADD_REMOVE
_SMALLEST, _LARGEST = float(np.finfo(np.float64).tiny), float(np.finfo(np.float64).max)


def at_the_highest(theorem: Theorem, called: str) -> Theorem:
    """A theorem of Poisson sampling, at the largest probability `high` of a design."""

    def bound(design: Any, mechanism: Mechanism, neighbors: Neighbors) -> Profile:
        return theorem.bound(Poisson(design.high), mechanism, neighbors)

    name = theorem.name.replace("Poisson", called, 1)
    return changed(theorem, name=name, bound=bound, cite=f"docs/designs/pps.md; {theorem.cite}")


@dataclass(frozen=True, slots=True)
class PoissonPPS(OwnCoins):
    """Keep each record with its own public probability, independently.

    The probability is the column `probability`, or, with `per_size`, that number times the column `size`, cut
    to the range.

    `low` and `high` bound it; both are public. The guarantee is that of Poisson sampling at `high`, the worst record's.
    Weights 1/probability need `low` above 0.

    >>> from privamp import PureDP, amplify
    >>> round(amplify(PureDP(1.0), PoissonPPS(high=0.6)).epsilon(), 6)
    0.708513
    """

    high: float
    low: float = 0.0
    per_size: float | None = None

    natural: ClassVar[Neighbors] = AR
    theorems: ClassVar[tuple[Theorem, ...]] = tuple(
        at_the_highest(theorem, "Poisson with public probabilities") for theorem in Poisson.theorems
    )

    decides_alone: ClassVar[bool] = True
    word: ClassVar[Word | None] = Word("poisson-pps", ("high",), ("low", "per_size"))

    def __post_init__(self) -> None:
        in_range(0, 1, high=self.high)
        in_range(0, self.high, low=self.low)
        if self.per_size is not None:
            positive(per_size=self.per_size)
        keep_plain(self)

    @property
    def reads(self) -> Mapping[str, Read]:
        """The probability, or the size that it is proportional to."""
        if self.per_size is None:
            return {"probability": Numbers(self.low, self.high)}
        return {"size": Numbers(_SMALLEST, _LARGEST / max(self.per_size, 1.0))}  # the product is cut, not the size

    def weights(self, population: Population) -> FloatArray | None:
        """1/probability, where the declared smallest one is above 0."""
        return 1.0 / self.probabilities(population.batch()) if self.low > 0 else None

    def weighting(self, records: int, known: float | None, columns: Mapping[str, Any]) -> Weighting | None:
        """Independent coins of chance q: second = (1-q)/q^2, which falls with q; nothing else."""
        if self.low <= 0:
            raise InvalidInput("weights 1/probability need a public smallest probability above 0; declare low=")
        q = self.probabilities(Batch(np.arange(records), 0, columns))
        most = (1.0 - self.low) / self.low
        return Weighting(
            1.0 / q, 1.0 / self.low, 1.0, 0.0, (1.0 - q) / q**2, most / self.low, 0.0, most, per_record=True
        )

    @staticmethod
    def by_class(rates: Mapping[Any, float]) -> "ClassRates":
        """A public rate for every class, named by the column `category`: batches balanced over classes."""
        from .class_rates import ClassRates

        return ClassRates(rates)

    @staticmethod
    def proportional(
        size: float, low: float, high: float, at_least: int, capping: Literal["recursive", "once"] = "recursive"
    ) -> "ProportionalPPS":
        """Probabilities `size` r_i / (sum of r), r_i the column `size` in the public range from `low` to `high`."""
        from .proportional_pps import ProportionalPPS

        return ProportionalPPS(size, low, high, at_least, capping)

    @property
    def number_bound(self) -> int | None:
        """No probability is above `high`."""
        return threshold(self.high)

    def probabilities(self, batch: Batch) -> FloatArray:
        """One per record, cut to the declared range."""
        if self.per_size is not None:
            return declared_range(self.per_size * numbers(batch, "size"), self.low, self.high)
        return declared_range(numbers(batch, "probability"), self.low, self.high)

    def appearances(self, records: int = 1) -> Multiplicity:
        """Binomial at the largest probability: the worst case for a person."""
        return Multiplicity.binomial(records, self.high)

    def components(self) -> tuple[Hub, ...]:
        """In or out, at the largest probability."""
        return (Hub.kept(self.high, 1),)

    def neighboring(
        self, population: int | Population, neighbors: Neighbors
    ) -> Iterator[tuple[Population, Population]]:
        """One record of the least or the largest probability, more, less or instead of another."""
        column = "probability" if self.per_size is None else "size"
        ends = {self.low, self.high} if self.per_size is None else {1e-9, 1.0 / self.per_size}
        yield from changed_records(Population.of(population), column, sorted(ends), neighbors)

    @classmethod
    def small_cases(cls) -> Iterator[tuple["PoissonPPS", Population]]:
        """Up to three records, with probabilities all over the range."""
        for low, high in ((0.0, 0.6), (0.1, 0.9), (0.3, 0.3), (0.0, 0.05), (0.2, 1.0), (0.5, 0.75)):
            for others in ((), (low,), (0.5 * (low + high), low), (high, low)):
                q = [high, *others]
                yield cls(high, low), Population(len(q), f"probabilities {q}", probability=q)
        for sizes in ((3.0,), (3.0, 1.0), (2.5, 0.2, 1.0)):
            yield cls(0.5, 0.1, per_size=0.2), Population(len(sizes), f"sizes {sizes}", size=list(sizes))

    def attack(self, mechanism: Mechanism, neighbors: Neighbors) -> Profile | None:
        """That of Poisson sampling: some record may have the largest probability."""
        return Poisson(self.high).attack(mechanism, neighbors)


def numbers(batch: Batch, name: str) -> FloatArray:
    """A column of numbers; in one of objects, which a list may be, what is no number is nan."""
    values = batch.column(name)
    if values.dtype.kind == "O" and not is_text(values):
        return column_of(values, f"column {name!r}")
    if values.size and values.dtype.kind not in "iuf":
        raise InvalidInput(f"column {name!r} must hold numbers")
    return as_floats(values)


def declared_range(values: FloatArray, low: float, high: float) -> FloatArray:
    """Each value cut to the public range, `low` for what is no number: refusing one would tell that it is there."""
    return np.clip(np.where(np.isnan(values), low, values), low, high)


def size_measures(batch: Batch, low: float, high: float, name: str = "size") -> FloatArray:
    """A column of numbers, each cut to its public range."""
    return declared_range(numbers(batch, name), low, high)


def changed_records(
    population: Population, column: str, values: list[float], neighbors: Neighbors, fewest: int = 0
) -> Iterator[tuple[Population, Population]]:
    """Neighbours of a tiny population whose records differ by one number only, none with fewer than `fewest`.

    Newcomers and removals; under replace-one, every record gives way to two newcomers in turn.
    """
    records = [(int(i), float(v)) for i, v in zip(population.ids, population.columns[column], strict=True)]
    new = 1 + max((i for i, _ in records), default=-1)

    def made(*pairs: tuple[int, float]) -> Population:
        ids = np.array([i for i, _ in pairs], dtype=np.uint64)
        columns: dict[str, Any] = {column: np.array([v for _, v in pairs], dtype=np.float64)}
        return Population(ids, **columns)

    without = [(*records[:at], *records[at + 1 :]) for at in range(len(records))]
    if neighbors.kind == AR.kind:
        yield from ((made(*records, (new, value)), made(*records)) for value in values)
        if len(records) > fewest:
            yield from ((made(*records), made(*left)) for left in without)
        return
    for left, old, other in product(without, values, values):
        yield made(*left, (new, old)), made(*left, (new + 1, other))
