"""Drawing by coins: every record has its own coin, whose probability is a public function of the record alone."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ..chance.keyed import keep, keyed_numbers
from ..chance.keys import Key
from ..core.design import Design, Units
from ..core.population import Batch, Population
from ..core.sample import Drawn
from ..numerics.log_domain import FloatArray


class OwnCoins(Design):
    """A design that keeps each record with its own chance, independently of all others."""

    @abstractmethod
    def probabilities(self, batch: Batch) -> FloatArray:
        """The chance of each record of a batch."""

    def partial(self, batch: Batch, subkey: Key) -> NDArray[np.int64]:
        """Positions of the kept records of one batch."""
        return batch.positions[keep(keyed_numbers(subkey, batch.ids), self.probabilities(batch))]

    def merge(self, parts: Iterable[NDArray[np.int64]]) -> NDArray[np.int64]:
        """Kept positions of all batches, in order."""
        return np.sort(np.concatenate(list(parts)))

    def finish(self, part: NDArray[np.int64], subkey: Key) -> Drawn:
        """Every kept record counts once."""
        return Drawn(part, np.ones(part.size, dtype=np.int64), np.ones(part.size))

    def law(self, population: Population) -> Iterator[tuple[Units, Fraction]]:
        """All subsets, by their coins."""
        yield from coin_law(population, [Fraction(q) for q in self.probabilities(population.batch()).tolist()])


def coin_law(population: Population, chances: list[Fraction]) -> Iterator[tuple[Units, Fraction]]:
    """All subsets of a tiny population whose records are kept by coins of their own."""
    ids = [int(i) for i in population.ids]
    for coins in product((False, True), repeat=len(ids)):
        chance = Fraction(1)
        for coin, q in zip(coins, chances, strict=True):
            chance *= q if coin else 1 - q
        yield tuple(sorted(i for i, coin in zip(ids, coins, strict=True) if coin)), chance
