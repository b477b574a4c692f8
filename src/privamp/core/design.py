"""A design: how the sample is drawn, its exact law, and the theorems that certify it, all in one object."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from importlib import import_module
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ..chance.keyed import below
from ..chance.keys import Key, given_key
from ..errors import NoTheorem
from ..numerics.log_domain import FloatArray
from ..validation import whole
from .hub_plan import Hub
from .identity import identity, keep_plain
from .mechanism import Mechanism
from .multiplicity import Multiplicity
from .neighbors import Neighbors
from .population import Batch, Population
from .profile import Profile
from .reads import Read, RuleLike
from .sample import Drawn, Sample
from .theorem import Theorem
from .weighting import Coins, Subset, Weighting
from .words import Word, spec_of

Units = tuple[int, ...]  # the ids in a sample, sorted, repeated when drawn more than once
Over = Callable[[Callable[[Batch], Any], Sequence[Batch]], Iterable[Any]]
Name = str | int


class Answers:
    """What designs and schedules have in common; a frozen dataclass per kind."""

    word: ClassVar[Word | None] = None  # what its spec string starts with, and which of its fields follow
    assumes: ClassVar[tuple[str, ...]] = ("AES is a pseudo-random function (keyed draws)",)

    def __post_init__(self) -> None:
        keep_plain(self)

    @property
    def identity(self) -> str:
        """One text for equal designs on every machine, with a version; the subkeys of its draws are derived from it."""
        return identity(self)

    @property
    def spec(self) -> str | None:
        """The spec string of this design, or None if it has none."""
        return spec_of(self, self.word)

    @property
    def reads(self) -> Mapping[str, Read]:
        """The columns it reads besides the id, and what they hold."""
        return {}

    @property
    def rates_by_class(self) -> Mapping[Name, float] | None:
        """The public rate of every class, for coins whose rate is the class's alone."""
        return None

    @property
    def weight(self) -> float | None:
        """One over the expected number of times a draw (a round) takes a record, if it is public and the same for all
        records."""
        return None

    def weights(self, population: Population) -> FloatArray | None:
        """One over the expected number of times each of these records is drawn; secret unless `weight` gives it too."""
        return None if self.weight is None else np.full(population.size, self.weight)

    def neighboring(
        self, population: int | Population, neighbors: Neighbors
    ) -> Iterator[tuple[Population, Population]]:
        """Pairs of neighbouring tiny populations that represent all pairs (all records are alike here).

        Under add/remove `population` is the smaller one.
        """
        ids = np.arange(Population.of(population).size + 1, dtype=np.uint64)
        if neighbors.kind == "add-remove":
            yield Population(ids), Population(ids[:-1])
        else:
            yield Population(ids[:-1]), Population(ids[1:])


class Design(Answers, ABC):
    """Frozen dataclass per kind; the fields are public facts, the drawn units are secret.

    Drawing is `finish(merge(partial(batch) ...))`, so that one key draws the same sample in one piece, out of core, or
    on many machines. Jobs and engines learn everything about a design from the methods below. Their defaults are safe
    (no weight is known, every record is held, nothing is read).
    """

    theorems: ClassVar[tuple[Theorem, ...]]
    natural: ClassVar[Neighbors]  # the relation reported by default
    keeps_apart: ClassVar[str] = "anywhere"  # a scope: what is stated within it still holds here
    unweighted: ClassVar[str] = "they are not the same in every population"  # why no weight is public, if none is
    trades_privacy: ClassVar[bool] = False  # costs privacy by its nature to save work: nothing to warn about

    def _repr_html_(self) -> str:
        """The design as notebooks show it."""
        text: str = import_module("..report.shown", __package__).design_fragment(self)
        return text

    @abstractmethod
    def partial(self, batch: Batch, subkey: Key) -> Any:
        """What one batch of records contributes to the draw."""

    @abstractmethod
    def merge(self, parts: Iterable[Any]) -> Any:
        """Join the contributions of several batches, in any order."""

    @abstractmethod
    def finish(self, part: Any, subkey: Key) -> Drawn:
        """The drawn positions, counts and weights."""

    @abstractmethod
    def law(self, population: Population) -> Iterator[tuple[Units, Fraction]]:
        """Every possible sample of a tiny population, as sorted ids, with its exact probability."""

    def also_attacked(self, neighbors: Neighbors) -> Iterator[Population]:
        """More tiny populations, besides that of a small case, on which pure mechanisms may be attacked.

        Empty, except for designs whose guarantee covers many populations, of which different ones are the worst.
        """
        yield from ()

    @classmethod
    @abstractmethod
    def small_cases(cls) -> Iterator[tuple[Self, int | Population]]:
        """Instances with a population (or its size) small enough for the exact verifier, at least 20 of them."""

    @abstractmethod
    def appearances(self, records: int = 1) -> Multiplicity:
        """How often one person's `records` records appear, under replace-one."""

    @property
    def decides_alone(self) -> bool:
        """Whether each record is decided independently, so that one pass over the batches draws the sample."""
        return False

    @property
    def parts(self) -> tuple[tuple[Name, "Design"], ...]:
        """The designs of the strata by name, if it has several; the column `stratum` holds each record's stratum."""
        return ()

    @property
    def public_size(self) -> int | None:
        """The number of records, where the design declares it; under add/remove a lower bound."""
        return None

    @property
    def spread(self) -> float | None:
        """v such that the sum of `weight` x over the sample has a variance of at most v (sum of x^2); None: unknown."""
        return None

    @property
    def spread_of_size(self) -> float | None:
        """The variance of `weight` times the number drawn, per record; None: unknown, and at most `spread`."""
        return None

    @property
    def equal_chances(self) -> Coins | Subset | None:
        """Independent coins of one rate, or subsets of one size: the two designs with a formula for everything."""
        return None

    @property
    def treats_alike(self) -> bool:
        """Whether its law is the same for every record, whatever its position and its columns."""
        return False

    @property
    def sample_size(self) -> int | None:
        """The number of entries in every sample, if it is fixed."""
        return None

    @property
    def weighing_rule(self) -> RuleLike | None:
        """The rule that gives the drawn records their weights; the guarantee covers only the columns the rule reads."""
        return None

    def weighting(self, records: int, known: float | None, columns: Mapping[str, Any]) -> Weighting | None:
        """How a total is estimated with Laplace noise, and its variance; None where no public weight is known.

        `known` is the public number of records, if there is one; `columns` are those that the design reads. The
        default takes `weight` and `spread`.
        """
        if self.weight is None or self.spread is None:
            return None
        is_fixed = known is not None and known == self.public_size and self.spread_of_size == 0.0
        return Weighting.equal(self.weight, self.spread, records, known if is_fixed else None)

    @property
    def holds_everyone(self) -> bool:
        """Whether parts of a draw hold something for every record, so that a driver needs memory for all of them."""
        return not self.decides_alone

    @property
    def most_held(self) -> int | None:
        """The largest number of records in a merged part, where merging makes parts smaller."""
        return None

    @property
    def most_on_driver(self) -> int | None:
        """A public bound of the records of which one machine learns when a draw of two passes is decided there; None:
        their number grows with the table."""
        return None if self.holds_everyone else self.most_held

    @property
    def number_bound(self) -> int | None:
        """A public number that the keyed number (stage 0) of every drawn record lies below; None: there is none."""
        return None

    @property
    def drawn_below(self) -> int | None:
        """`number_bound`, if the class has its own: one made from ours may draw in another way."""
        kind = type(self)
        is_own = kind.__module__.startswith("privamp.") or "number_bound" in vars(kind)
        return self.number_bound if is_own else None

    def counted(self, part: Any, records: int) -> Any:
        """A merged part of the records below `number_bound`, told how many records there are in all."""
        return part

    def decided(self, batch: Batch, subkey: Key) -> Drawn:
        """The whole draw of one batch, for designs that decide each record independently."""
        return self.finish(self.merge([self.partial(batch, subkey)]), subkey)

    def candidates(self, ids: NDArray[Any] | range, subkey: Key) -> NDArray[np.intp] | None:
        """Positions of the records below `drawn_below`; None for all. Nothing else is read of the others.

        A range stands for the ids of records by place.
        """
        return None if self.drawn_below is None else below(subkey, ids, self.drawn_below)

    def subkey(self, key: Key, label: str, round: int) -> Key:
        """The key of one draw: the same key, identity, label and round are the same sample and the same ledger."""
        whole(0, round=round)
        return key.subkey(self.identity, label, round)

    def moves(self, population: Population) -> dict[int, float] | None:
        """For designs with weights: by how much each record of a tiny population moves a weighted sum if it is drawn.

        Under a mechanism that is epsilon-DP at weight and norm 1, it costs that many epsilons. None: one each.
        """
        return None

    def expected_size(self, population: int) -> float:
        """Expected number of draws from a population of this size."""
        return population * self.appearances().mean

    def expected_distinct(self, population: int) -> float:
        """Expected number of different records in the sample."""
        return population * self.appearances().eta

    def components(self) -> tuple[Hub, ...]:
        """How many records a sample with one record more, and one without it, differ from a usual one; or NoTheorem.

        Laws of these numbers in the worst cases (core/hub_plan.py), for records that change their stratum.
        """
        raise NoTheorem(f"{type(self).__name__} has no bound on how far apart its samples are")

    def attack(self, mechanism: Mechanism, neighbors: Neighbors) -> Profile | None:
        """A profile that some real pair of neighbours reaches: a lower bound, or None."""
        return None

    def attacks(self, mechanism: Mechanism, neighbors: Neighbors) -> dict[Any, Profile]:
        """The same for each kind of changed record, where records differ: rounds compose for one record at a time.

        The largest of several curves bounds one round; over several rounds it is more than any one record can lose.
        """
        found = self.attack(mechanism, neighbors)
        return {} if found is None else {None: found}

    def personal(self, mechanism: Mechanism, neighbors: Neighbors, record: Any) -> Profile | None:
        """An upper bound on the profile of one record, where records differ; None: it is the same for all."""
        return None

    def draw(self, population: Population | int, key: Key | None = None, round: int = 0, *, over: Over = map) -> Sample:
        """Draw a sample. A fresh draw needs a fresh key or a fresh round; the same key, population label and round give
        the same sample.

        `over` goes through the batches of the population: `map`, or the `map` of a pool of threads.
        """
        population = Population.of(population)
        key = given_key(key)
        subkey = self.subkey(key, population.label_by(key), round)
        part = self.merge(over(lambda batch: self.partial(batch, subkey), population.batches()))
        drawn = self.finish(part, subkey)
        return Sample(self, population.ids, drawn, subkey, key.fingerprint, **population.columns)
