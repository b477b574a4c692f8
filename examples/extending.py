"""A design of your own in one file: Poisson sampling thinned a second time."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import ClassVar

import numpy as np

from privamp import Design, Neighbors, PureDP, Theorem, amplify
from privamp.chance.keyed import keep, keyed_numbers
from privamp.core.multiplicity import Multiplicity
from privamp.core.sample import Drawn
from privamp.designs.multiplicity import one_sided
from privamp.verify import check_design

AR = Neighbors.ADD_REMOVE


def _kept_twice(design, mechanism, neighbors):
    return one_sided(design.appearances(neighbors.records), mechanism, AR)


@dataclass(frozen=True, slots=True)
class Thinned(Design):
    """Keep a record when two independent coins, of chances `first` and `second`, both say so."""

    first: float
    second: float
    natural: ClassVar[Neighbors] = AR
    theorems: ClassVar = (
        Theorem("Thinned Poisson", "docs/extending.md", AR.kind, AR.kind, True, _kept_twice, groups=True),
    )

    def appearances(self, records=1):
        return Multiplicity.binomial(records, self.first * self.second)

    def partial(self, batch, subkey):
        one = keep(keyed_numbers(subkey.subkey("first"), batch.ids), self.first)
        two = keep(keyed_numbers(subkey.subkey("second"), batch.ids), self.second)
        return batch.positions[one & two]

    def merge(self, parts):
        return np.sort(np.concatenate(list(parts)))

    def finish(self, part, subkey):
        return Drawn(part, np.ones(part.size, dtype=np.int64), np.ones(part.size))

    def law(self, population):
        q, n = Fraction(self.first) * Fraction(self.second), population.size
        for coins in product((0, 1), repeat=n):
            kept = tuple(int(i) for i, coin in zip(population.ids, coins, strict=True) if coin)
            yield kept, q ** len(kept) * (1 - q) ** (n - len(kept))

    @classmethod
    def small_cases(cls):
        for population, first, second in product(range(4), (0.1, 0.5, 1.0), (0.25, 0.9)):
            yield cls(first, second), population


report = check_design(Thinned, checks=100)
print(report, f"\n1-DP on the sample: {amplify(PureDP(1.0), Thinned(0.1, 0.5)).epsilon():.6f} on everybody")
assert report.ok
