"""A design of your own in one file: Poisson sampling, cut to at most `most` records (docs/extending.md)."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, product
from math import comb
from typing import ClassVar

import numpy as np

from privamp import Design, Gaussian, Neighbors, NoTheorem, Profile, PureDP, Theorem, Word, amplify, register
from privamp.chance.keyed import keep, keyed_numbers, keyed_pairs, smallest
from privamp.core.multiplicity import Multiplicity
from privamp.core.profile import Curve
from privamp.core.sample import Drawn
from privamp.designs.fixed_size import BottomK
from privamp.designs.multiplicity import one_sided, shared_absence
from privamp.errors import InvalidInput
from privamp.numerics.log_domain import log_sum
from privamp.validation import in_range, whole
from privamp.verify import check_design

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE


def _replaced(design, mechanism, neighbors):
    """Given the size m, which looks at nobody, all subsets are equally likely: the average of simple random samples."""
    if not isinstance(design.population, int):
        raise NoTheorem("replace-one needs a public number of records: population=n")
    sizes = [(m, p) for m, p in enumerate(design.sizes(design.population)) if m and p > 0]
    each = [shared_absence(Multiplicity.binomial(1, m / design.population), mechanism, RO).forward for m, _ in sizes]
    log_p = np.log([p for _, p in sizes])
    return Profile.symmetric(
        Curve(
            lambda epsilon: log_sum(np.stack([w + curve(epsilon) for w, curve in zip(log_p, each, strict=True)])),
            max((curve.largest_loss for curve in each), default=0.0),
        )
    )


def _added(design, mechanism, neighbors):
    """Given the others' heads: with fewer than `most` the newcomer is added, else it takes somebody's place."""
    if isinstance(design.population, int):
        raise NoTheorem("add/remove needs a public range of the number of records: population=(low, high)")
    free = one_sided(Multiplicity.binomial(1, design.rate), mechanism, AR)
    if design.population[1] <= design.most:
        return free
    taken = one_sided(Multiplicity.binomial(1, design.rate * design.most / (design.most + 1)), mechanism, RO)
    return Profile.maximum([free, taken])


@lru_cache
def _sizes(rate, most, records):
    """Exact whole numbers over q^n, divided once: fractions of thousands of digits would take minutes to reduce."""
    p, q = Fraction(rate).as_integer_ratio()
    law, whole_law = [0] * (min(most, records) + 1), q**records
    for heads in range(records + 1):
        law[min(heads, most)] += comb(records, heads) * p**heads * (q - p) ** (records - heads)
    return tuple(chance / whole_law for chance in law)


@register
@dataclass(frozen=True, slots=True)
class TruncatedPoisson(Design):
    """Keep records by coins of chance `rate`; of more than `most` heads keep a uniform subset of `most`."""

    rate: float
    most: int
    population: int | tuple[int, int]  # public: a number of records (replace-one) or its range (add/remove)

    word: ClassVar = Word("truncated-poisson", ("rate", "most", "population"), whole=("most", "population"))
    holds_everyone: ClassVar = False  # a part of the draw has at most `most` records
    theorems: ClassVar = (
        Theorem("Truncated Poisson, one replaced", "docs/extending.md, Thm 1", RO.kind, RO.kind, False, _replaced),
        Theorem("Truncated Poisson, one more", "docs/extending.md, Thm 2", AR.kind, AR.kind, False, _added),
    )

    def __post_init__(self):
        Design.__post_init__(self)
        in_range(0, 1, rate=self.rate)
        whole(1, most=self.most)
        for n in self.population if isinstance(self.population, tuple) else (self.population,):
            whole(0, population=n)

    @property
    def natural(self):
        return RO if isinstance(self.population, int) else AR

    def sizes(self, records):
        """The law of the sample size, min(Binomial(records, rate), most): each chance rounded once."""
        return _sizes(self.rate, self.most, records)

    def expected_size(self, population):
        return float(sum(m * p for m, p in enumerate(self.sizes(population))))

    def appearances(self, records=1):
        if records > 1:
            raise NoTheorem("a person's records are not drawn independently here")
        n = self.population
        chance = self.expected_size(n) / n if isinstance(n, int) and n else self.rate
        return Multiplicity.binomial(1, chance)

    # what jobs and engines ask

    @property
    def public_size(self):
        return self.population if isinstance(self.population, int) else None

    @property
    def weight(self):
        return (
            None if not self.public_size or not self.rate else self.public_size / self.expected_size(self.public_size)
        )

    @property
    def spread(self):
        """The largest eigenvalue of the covariances of weighted counts, which are the same for all pairs."""
        if self.weight is None:
            return None
        n, law = self.public_size, self.sizes(self.public_size)
        pairs = float(sum(m * (m - 1) * p for m, p in enumerate(law))) / max(n * (n - 1), 1)
        shared = self.weight**2 * pairs - 1.0 if n > 1 else 0.0
        return max(self.weight - 1.0 - shared, self.weight - 1.0 + (n - 1) * shared, 0.0)

    @property
    def most_held(self):
        return self.most

    # the draw: heads by one coin, survivors by another keyed order

    def partial(self, batch, subkey):
        heads = keep(keyed_numbers(subkey.subkey("heads"), batch.ids), self.rate)
        high, low = keyed_pairs(subkey.subkey("order"), batch.ids[heads])
        first = smallest(high, low, min(self.most, high.size))
        return BottomK(high[first], low[first], batch.positions[heads][first], int(batch.ids.size))

    def merge(self, parts):
        parts = list(parts)
        high, low, at = (np.concatenate([getattr(p, name) for p in parts]) for name in ("high", "low", "positions"))
        first = smallest(high, low, min(self.most, at.size))
        return BottomK(high[first], low[first], at[first], sum(p.seen for p in parts))

    def finish(self, part, subkey):
        low, high = (self.population,) * 2 if isinstance(self.population, int) else self.population
        if not low <= part.seen <= high:
            raise InvalidInput(f"the design declares {self.population} records, which is not so; declare what holds")
        at = np.sort(part.positions)
        return Drawn(at, np.ones(at.size, dtype=np.int64), np.ones(at.size))

    # the truth, for the check

    def law(self, population):
        q, ids = Fraction(self.rate), sorted(int(i) for i in population.ids)
        for coins in product((0, 1), repeat=len(ids)):
            heads = [i for i, coin in zip(ids, coins, strict=True) if coin]
            chance = q ** len(heads) * (1 - q) ** (len(ids) - len(heads))
            kept = min(len(heads), self.most)
            for units in combinations(heads, kept):
                yield units, chance / comb(len(heads), kept)

    @classmethod
    def small_cases(cls):
        for n, most, rate in product((1, 2, 3, 4), (1, 2, 3), (0.25, 0.75)):
            yield cls(rate, most, n), n
        for n, most, rate in product((0, 1, 2, 3), (1, 2), (0.25, 1.0)):
            yield cls(rate, most, (n, n + 1)), n


if __name__ == "__main__":
    report = check_design(TruncatedPoisson, checks=100)
    print(report)
    assert report.ok
    design = TruncatedPoisson(0.1, 120, 1000)
    print(f"1-DP on the sample: {amplify(PureDP(1.0), design).epsilon():.6f} on everybody")
    print(f"sigma 4, delta 1e-6: {amplify(Gaussian(4.0), design).epsilon(1e-6):.6f}; spec {design.spec}")
    assert math.isfinite(design.spread)
