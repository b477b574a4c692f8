"""Truncated Poisson sampling: coins of one rate p, and of more than B heads a uniform subset of B is kept.

The number n of records is secret under add/remove and lies in a public range. With K heads among the others,
r_K = 1 if K < B, else B/(K+1), q_K = p r_K, alpha = e^eps >= 1, and d_K the mechanism's add/remove profile if K < B,
else its replace-one profile:

Theorem 1 (add/remove → add/remove). D(P||Q) <= E q_K d_K(log(1 + (alpha-1)/q_K)) and D(Q||P) <= E A_K
d_K(log(alpha q_K/A_K)), A_K = 1 - alpha(1-q_K) (0 if negative); the supremum over the range (head_counts.py), which is
not monotone in n. Without a range: over every n.
Theorem 2 (add/remove → replace-one). E of Poisson's Theorem 2 at p if K < B and of simple random sampling at q_K if
K >= B; the supremum over the range.
Theorem 3 (add/remove → replace-one). Simple random sampling's bound at q = E min(Bin(n, p), B)/n, at the smallest n of
the range, with the larger of the mechanism's two profiles.
Theorem 4 (replace-one → replace-one). E of (m/n) d(log(1 + (alpha-1)n/m)), m = min(Bin(n, p), B), n public; in a range,
simple random sampling's bound at min(1, B/n), n the smallest.
Theorem 5 (pure mechanisms, a range of up to 512 numbers). The chain program (numerics/size_chain.py), exact; Gaussian
noise: sizes along a chain (kept_sizes.py).

Proofs: docs/designs/truncated_poisson.md. Heads and survivors are drawn by two keyed numbers per record.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from math import comb
from typing import Any, ClassVar

import numpy as np

from ..chance.keyed import keep, keyed_numbers, keyed_pairs, smallest
from ..chance.keys import Key
from ..core.design import Design, Units
from ..core.identity import keep_plain
from ..core.mechanism import Mechanism
from ..core.multiplicity import Multiplicity
from ..core.neighbors import Neighbors
from ..core.population import Batch, Population
from ..core.profile import Curve, Profile
from ..core.sample import Drawn
from ..core.theorem import Theorem
from ..core.words import Word
from ..errors import InvalidInput, NoTheorem
from ..numerics.count_laws import binomial_above, binomial_chance
from ..numerics.log_domain import FloatArray, log1mexp, log_mix, log_sum, log_unmix
from ..validation import in_range, whole
from . import kept_sizes
from .fixed_size import BottomK
from .head_counts import expected_kept, heads, worst_mixture
from .multiplicity import one_sided
from .poisson import Poisson

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
PAGE = "docs/designs/truncated_poisson.md"
_TAILS = 1e-10  # relative: tails of a binomial law are computed to well within it


def _added(design: "TruncatedPoisson", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    if design.public_size is not None:
        raise NoTheorem("a record more or less changes a number of records that is public; declare a range of it")
    p, most = design.rate, design.most
    free, swap = one_sided(Multiplicity.binomial(1, p), mechanism, AR), mechanism.profile(RO)
    last = None if design.at_most is None else design.at_most - 1
    taken = one_sided(Multiplicity.binomial(1, p * most / (most + 1)), mechanism, RO)
    found = heads(p, most, design.at_least, last)

    def present(counts: FloatArray, epsilon: FloatArray) -> FloatArray:
        q = (p * most / (counts + 1.0))[:, None]
        return np.log(q) + swap.forward(log_unmix_all(q, epsilon))

    def absent(counts: FloatArray, epsilon: FloatArray) -> FloatArray:
        q = (p * most / (counts + 1.0))[:, None]
        log_a = log1mexp(np.minimum(epsilon + np.log1p(-q), 0.0))
        alive = np.isfinite(log_a)
        safe = np.where(alive, log_a, 0.0)
        return np.where(alive, safe + swap.backward(np.maximum(epsilon + np.log(q) - safe, 0.0)), -np.inf)

    return Profile(
        worst_mixture(found, free.forward, present, taken.forward.largest_loss),
        worst_mixture(found, free.backward, absent, taken.backward.largest_loss),
    )


def _swapped(design: "TruncatedPoisson", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    p, most = design.rate, design.most
    coins = Poisson(p)
    bounds = [t.bound(coins, mechanism, RO) for t in coins.theorems if not t.people and t.covers(mechanism, RO)]
    free, swap = Profile.minimum(bounds).symmetrised(), mechanism.profile(RO).symmetrised()
    last = None if design.at_most is None else design.at_most - 1
    found = heads(p, most, max(design.at_least - 1, 0), last)

    def either(counts: FloatArray, epsilon: FloatArray) -> FloatArray:
        q = (p * most / (counts + 1.0))[:, None]
        return np.log(q) + swap.forward(log_unmix_all(q, epsilon))

    end = float(log_mix(p * most / (most + 1), swap.forward.largest_loss)) if swap.largest_loss < math.inf else math.inf
    return Profile.symmetric(worst_mixture(found, free.forward, either, end))


def _at_mean(design: "TruncatedPoisson", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    chance = min(design.chance(max(design.at_least, 1)) * (1.0 + _TAILS), design.rate)
    return _simple(chance, Profile.maximum([mechanism.profile(AR), mechanism.profile(RO)]).symmetrised())


def _by_size(design: "TruncatedPoisson", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    n, swap = max(design.at_least, 1), mechanism.profile(RO).symmetrised()
    if design.public_size is None or design.most >= n:
        return _simple(min(1.0, design.most / n), swap)
    m = np.arange(1, design.most + 1)
    full = binomial_above(design.most - 1, n, design.rate)
    chances = np.append(binomial_chance(m[:-1], n, design.rate), full) * (1.0 + _TAILS)
    live = chances > 0
    q, chances = (m[live] / n)[:, None], chances[live]
    if not q.size:
        return _simple(0.0, swap)

    def log_delta(epsilon: FloatArray) -> FloatArray:
        flat = np.ravel(epsilon)
        rows = np.log(chances)[:, None] + np.log(q) + swap.forward(log_unmix_all(q, flat))
        return log_sum(rows).reshape(np.shape(epsilon))

    return Profile.symmetric(Curve(log_delta, _simple(float(q[-1, 0]), swap).largest_loss))


def _simple(chance: float, profile: Profile) -> Profile:
    """Simple random sampling's bound: q d(log(1 + (alpha-1)/q))."""
    if chance == 0.0:
        return Profile.symmetric(Curve(lambda at: np.full_like(at, -np.inf), 0.0))
    curve, end = profile.forward, profile.largest_loss
    return Profile.symmetric(
        Curve(
            lambda at: math.log(chance) + curve(log_unmix(chance, at)),
            float(log_mix(chance, end)) if math.isfinite(end) else math.inf,
        )
    )


def log_unmix_all(weights: FloatArray, epsilon: FloatArray) -> FloatArray:
    """log(1 + (e^epsilon - 1)/weight) for every weight and epsilon, by broadcasting."""
    return log_unmix(weights, epsilon)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class TruncatedPoisson(Design):
    """Poisson sampling at `rate` with a cap: of more than `most` drawn records keep a uniform subset of `most`.

    `at_least` and `at_most` are a public range of the number of records; equal ones make it public.

    >>> from privamp import Gaussian, Neighbors, amplify, compose
    >>> step = amplify(Gaussian(4.0), TruncatedPoisson(0.1, 120, at_least=1000, at_most=1001))
    >>> round(compose(step, 100).epsilon(1e-6), 3)
    1.179
    """

    rate: float  # p
    most: int  # B
    at_least: int = 0
    at_most: int | None = None

    theorems: ClassVar[tuple[Theorem, ...]] = (
        Theorem("Truncated Poisson, one record more", f"{PAGE}, Thm 1", AR.kind, AR.kind, False, _added),
        Theorem("Truncated Poisson, one swapped, by heads", f"{PAGE}, Thm 2", AR.kind, RO.kind, False, _swapped),
        Theorem("Truncated Poisson, one swapped, mean size", f"{PAGE}, Thm 3", AR.kind, RO.kind, False, _at_mean),
        Theorem("Truncated Poisson, one replaced, by size", f"{PAGE}, Thm 4", RO.kind, RO.kind, False, _by_size),
        *kept_sizes.pure_theorems("Truncated Poisson", f"{PAGE}, Thm 5"),
        *kept_sizes.theorems("Truncated Poisson", AR.kind, RO.kind),
    )
    holds_everyone: ClassVar[bool] = False  # a part of the draw has at most `most` records
    word: ClassVar[Word | None] = Word(
        "capped-poisson", ("rate", "most"), ("at_least", "at_most"), whole=("most", "at_least", "at_most")
    )

    def __post_init__(self) -> None:
        keep_plain(self)
        in_range(0, 1, rate=self.rate)
        whole(1, most=self.most)
        whole(0, at_least=self.at_least)
        if self.at_most is not None:
            whole(max(self.at_least, 1), at_most=self.at_most)

    @property
    def natural(self) -> Neighbors:  # type: ignore[override]
        """Replace-one where the number of records is public."""
        return AR if self.public_size is None else RO

    def chance(self, records: int) -> float:
        """The chance that one of so many records is kept; it falls with their number."""
        return min(expected_kept(self.rate, self.most, records) / records, self.rate) if records else self.rate

    def expected_size(self, population: int) -> float:
        """E min(heads, most)."""
        return expected_kept(self.rate, self.most, population)

    def expected_distinct(self, population: int) -> float:
        """No record is drawn twice."""
        return self.expected_size(population)

    def appearances(self, records: int = 1) -> Multiplicity:
        """One record at the smallest number of records; a person's records are not independent."""
        if records > 1:
            raise NoTheorem("a person's records displace each other at the cap; state the guarantee for one record")
        return Multiplicity.binomial(1, self.chance(max(self.at_least, 1)))

    @property
    def public_size(self) -> int | None:
        """The number of records, where the range has one number only."""
        return self.at_least if self.at_least == self.at_most else None

    @property
    def weight(self) -> float | None:
        """One over a record's chance, where the number of records is public."""
        return 1.0 / self.chance(self.public_size) if self.public_size and self.rate > 0 else None

    @property
    def spread(self) -> float | None:
        """The largest eigenvalue of the covariances of weighted counts, which are the same for all pairs."""
        if self.public_size is None or self.weight is None:
            return None
        return max(self.weight - 1.0 - self._shared, self.spread_of_size or 0.0, 0.0) * (1.0 + 1e-9)

    @property
    def spread_of_size(self) -> float | None:
        """The eigenvalue of sums that count every record."""
        if self.public_size is None or self.weight is None:
            return None
        return max(self.weight - 1.0 + (self.public_size - 1) * self._shared, 0.0)

    @property
    def _shared(self) -> float:
        """The covariance of the weighted counts of two records, where the number of records is public."""
        n, w = self.public_size, self.weight
        if n is None or w is None or n == 1:
            return 0.0
        m = np.arange(2, min(self.most, n) + 1)
        if m.size == 0:
            return -1.0
        at = np.append(binomial_chance(m[:-1], n, self.rate), binomial_above(m[-1] - 1, n, self.rate))
        return w**2 * float(np.sum(m * (m - 1.0) * at)) / (n * (n - 1.0)) - 1.0

    @property
    def treats_alike(self) -> bool:
        """One coin and one order for all."""
        return True

    @property
    def most_held(self) -> int | None:
        """The cap."""
        return self.most

    def partial(self, batch: Batch, subkey: Key) -> BottomK:
        """The batch's heads that come first in a keyed order of their own."""
        mine = keep(keyed_numbers(subkey.subkey("heads"), batch.ids), self.rate)
        high, low = keyed_pairs(subkey.subkey("order"), batch.ids[mine])
        first = smallest(high, low, min(self.most, high.size))
        return BottomK(high[first], low[first], batch.positions[mine][first], int(batch.ids.size))

    def merge(self, parts: Iterable[BottomK]) -> BottomK:
        """The first heads over all batches."""
        several = list(parts)
        high, low, at = (np.concatenate([getattr(p, name) for p in several]) for name in ("high", "low", "positions"))
        first = smallest(high, low, min(self.most, at.size))
        return BottomK(high[first], low[first], at[first], sum(p.seen for p in several))

    def finish(self, part: BottomK, subkey: Key) -> Drawn:
        """Every kept record counts once."""
        if part.seen < self.at_least or (self.at_most is not None and part.seen > self.at_most):
            upper = "" if self.at_most is None else f" and at most {self.at_most}"
            raise InvalidInput(
                f"the design declares at least {self.at_least}{upper} records, but another number was given; declare "
                "a range that is true"
            )
        at = np.sort(part.positions)
        return Drawn(at, np.ones(at.size, dtype=np.int64), np.ones(at.size))

    def law(self, population: Population) -> Iterator[tuple[Units, Fraction]]:
        """All coins, then all subsets of the heads."""
        q, ids = Fraction(self.rate), sorted(int(i) for i in population.ids)
        for coins in product((0, 1), repeat=len(ids)):
            mine = [i for i, coin in zip(ids, coins, strict=True) if coin]
            chance, kept = q ** len(mine) * (1 - q) ** (len(ids) - len(mine)), min(len(mine), self.most)
            for units in combinations(mine, kept):
                yield units, chance / comb(len(mine), kept)

    def neighboring(
        self, population: int | Population, neighbors: Neighbors
    ) -> Iterator[tuple[Population, Population]]:
        """Pairs of every size in the range, up to one record more than `population`."""
        size = Population.of(population).size
        ids = np.arange(size + 2, dtype=np.uint64)
        top = size + 1 if self.at_most is None else min(size + 1, self.at_most)
        for n in range(max(self.at_least, 1), top + 1):
            if neighbors.kind == RO.kind:
                yield Population(ids[:n]), Population(ids[1 : n + 1])
            elif n > self.at_least:
                yield Population(ids[:n]), Population(ids[: n - 1])

    @classmethod
    def small_cases(cls) -> Iterator[tuple["TruncatedPoisson", int]]:
        """Caps of one to three, rates from rare to certain, ranges of one number, of a few, and without an end."""
        for n, most, rate in product((1, 2, 3), (1, 2, 3), (0.25, 0.75)):
            yield cls(rate, most, n, n + 1), n
            yield cls(rate, most, 0, n), n - 1
        for n, most, rate in product((0, 2, 3), (1, 2), (0.1, 0.5, 1.0)):
            yield cls(rate, most, n), n

    def attack(self, mechanism: Mechanism, neighbors: Neighbors) -> Profile | None:
        """The largest of several attacks."""
        found = self.attacks(mechanism, neighbors)
        return Profile.maximum(found.values()) if found else None

    def attacks(self, mechanism: Mechanism, neighbors: Neighbors) -> dict[Any, Profile]:
        """The changed record alone, at the smallest number of records; sums that follow the sizes along a chain."""
        if neighbors.records > 1:
            return {}
        if neighbors.kind == AR.kind:
            alone = mechanism.mixture(AR, Multiplicity.binomial(1, (1.0 - _TAILS) * self.chance(self.at_least + 1)))
        else:
            alone = mechanism.opposite_mixture((1.0 - _TAILS) * self.chance(max(self.at_least, 1)))
        found = {} if alone is None else {"alone": alone}
        return found | kept_sizes.attacks(self, mechanism, neighbors)
