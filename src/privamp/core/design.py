"""A design: how the sample is drawn, its exact law, and the theorems that certify it. One object for all."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from ..chance.keys import Key
from ..validation import whole
from .mechanism import Mechanism
from .multiplicity import Multiplicity
from .neighbors import Neighbors
from .population import Batch, Population
from .profile import Profile
from .sample import Drawn, Sample
from .theorem import Theorem

Units = tuple[int, ...]  # the ids in a sample, sorted, repeated when drawn more than once
Over = Callable[[Callable[[Batch], Any], Sequence[Batch]], Iterable[Any]]


class Design(ABC):
    """Frozen dataclass per kind; the fields are public facts, the drawn units are secret.

    Drawing is `finish(merge(partial(batch) ...))`, so that one key draws the same sample in one piece,
    out of core, or on many machines.
    """

    theorems: ClassVar[tuple[Theorem, ...]]
    natural: ClassVar[Neighbors]  # the relation reported when none is asked for
    keeps_apart: ClassVar[str] = "anywhere"  # a scope: what a mechanism stated within it says is still true here
    trades_privacy: ClassVar[bool] = False  # costs privacy by its nature and saves work: nothing to warn about
    assumes: ClassVar[tuple[str, ...]] = ("AES is a pseudo-random function (keyed draws)",)

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

    @classmethod
    @abstractmethod
    def small_cases(cls) -> Iterator[tuple[Self, int | Population]]:
        """Instances with a population (or its size) small enough for the exact verifier, at least 20 of them."""

    @abstractmethod
    def appearances(self, records: int = 1) -> Multiplicity:
        """How often the records of one person (who has `records` of them) appear, under replace-one."""

    def moves(self, population: Population) -> dict[int, float] | None:
        """For designs with weights: by how much each record of a tiny population moves a weighted sum if it is drawn.

        A mechanism that is epsilon-DP at weight and norm 1 lets it cost that many epsilons. None: one each.
        """
        return None

    def expected_size(self, population: int) -> float:
        """Expected number of draws from a population of this size."""
        return population * self.appearances().mean

    def expected_distinct(self, population: int) -> float:
        """Expected number of different records in the sample."""
        return population * self.appearances().eta

    def attack(self, mechanism: Mechanism, neighbors: Neighbors) -> Profile | None:
        """A profile that some real pair of neighbours reaches: a lower bound, or None."""
        return None

    def personal(self, mechanism: Mechanism, neighbors: Neighbors, record: Any) -> Profile | None:
        """An upper bound on the profile of one record, where records differ; None: it is everybody's."""
        return None

    def draw(self, population: Population | int, key: Key | None = None, round: int = 0, *, over: Over = map) -> Sample:
        """Draw a sample. A fresh draw takes a fresh key or a fresh round; the same three give the same sample.

        `over` goes through the batches of the population: `map`, or the `map` of a pool of threads.
        """
        whole(0, round=round)
        population = Population.of(population)
        key = key or Key.generate()
        subkey = key.subkey(repr(self), population.label, round)
        part = self.merge(over(lambda batch: self.partial(batch, subkey), population.batches()))
        drawn = self.finish(part, subkey)
        return Sample(self, population.ids, drawn, subkey, key.fingerprint, **population.columns)

    def neighboring(
        self, population: int | Population, neighbors: Neighbors
    ) -> Iterator[tuple[Population, Population]]:
        """Pairs of neighbouring tiny populations that stand for all pairs (all records are alike here).

        Under add/remove `population` is the smaller one.
        """
        ids = np.arange(Population.of(population).size + 1, dtype=np.uint64)
        if neighbors.kind == "add-remove":
            yield Population(ids), Population(ids[:-1])
        else:
            yield Population(ids[:-1]), Population(ids[1:])
