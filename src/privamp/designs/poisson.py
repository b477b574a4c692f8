"""Poisson sampling: every record is kept independently with the same public probability.

Theorem 1 (add/remove → add/remove). If M has profile delta on the sample, then with q the rate and
alpha = e^eps', delta'_PQ(eps') = q delta_PQ(log(1 + (alpha-1)/q)) and
delta'_QP(eps') = A delta_QP(eps' + log q - log A), A = 1 - alpha(1-q). Exactly tight; for pure M,
eps' = log(1 + q(e^eps - 1)). Balle, Barthe & Gaboardi 2018, Theorem 8. A person with J records whose coins
are independent appears Binomial(J, q) times; for pure M the loss is exactly J eps', for Gaussian noise the pair
(sum_u p_u N(u C), N(0)) is exact (docs/persons.md).

Theorem 2 (add/remove → replace-one). For pure M exactly log[(1 + q(a-1))/(1 - q(1-1/a))], a = e^eps. For any
curve, q [w delta_2(eps) + (1-w) delta_1(eps)] at eps = log(1 + (alpha-1)/q), w = alpha q/(alpha-1+q). For
Gaussian noise the exact pair ((1-q)N(0) + qN(C), (1-q)N(0) + qN(-C)), for people with J records (sum_u p_u N(u C),
sum_u p_u N(-u C)). Proofs: docs/designs/poisson.md, docs/persons.md.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..chance.keyed import below, threshold
from ..chance.keys import Key
from ..core.curves import pure_curve
from ..core.design import Design, Units
from ..core.hub_plan import Hub
from ..core.identity import keep_plain
from ..core.mechanism import Mechanism
from ..core.multiplicity import Multiplicity
from ..core.neighbors import Neighbors
from ..core.population import Batch, Population
from ..core.profile import Curve, Profile
from ..core.sample import Drawn
from ..core.theorem import Theorem
from ..core.weighting import Coins
from ..core.words import Word
from ..numerics.log_domain import FloatArray, log_drop, log_mix, log_unmix
from ..validation import in_range
from .multiplicity import known, one_sided

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE


def _kept_or_not(design: "Poisson", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    return one_sided(design.appearances(neighbors.records), mechanism, AR)


def _swapped(design: "Poisson", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    """Theorem 2 for curves: the negative part is a mixture of the laws with the other record and without it."""
    q = design.rate
    if q == 0.0:
        return Profile.symmetric(pure_curve(0.0))
    one, two = mechanism.profile(AR).forward, mechanism.profile(RO).forward

    def log_delta(epsilon: FloatArray) -> FloatArray:
        inner = log_unmix(q, epsilon)
        # w = alpha q / (alpha - 1 + q), 1 - w = (alpha - 1)(1 - q) / (alpha - 1 + q)
        growth = -np.expm1(-epsilon)  # (alpha - 1)/alpha
        w = q / (growth + q * np.exp(-epsilon))
        with np.errstate(divide="ignore"):
            rest = np.log(growth * (1.0 - q) / (growth + q * np.exp(-epsilon)))
        return math.log(q) + np.logaddexp(np.log(w) + two(inner), rest + one(inner))

    return Profile.symmetric(Curve(log_delta, float(log_mix(q, two.largest_loss)) if q < 1 else two.largest_loss))


def _swapped_pure(design: "Poisson", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    epsilon, q = mechanism.profile(AR).largest_loss, design.rate
    return Profile.symmetric(pure_curve(float(log_mix(q, epsilon)) - log_drop(q, epsilon)))


def _swapped_gaussian(design: "Poisson", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    return known(mechanism.opposite_mixture(design.rate, neighbors.records))


def _people_gaussian(design: "Poisson", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    return known(mechanism.mixture(AR, design.appearances(neighbors.records)))


@dataclass(frozen=True, slots=True)
class Poisson(Design):
    """Keep each record with probability `rate`, independently.

    >>> from privamp import PureDP, amplify
    >>> round(amplify(PureDP(1.0), Poisson(0.01)).epsilon(), 6)
    0.017037
    """

    rate: float

    natural: ClassVar[Neighbors] = AR
    theorems: ClassVar[tuple[Theorem, ...]] = (
        Theorem(
            "Poisson amplification",
            "Balle, Barthe & Gaboardi 2018, Thm 8",
            AR.kind,
            AR.kind,
            True,
            _kept_or_not,
            groups=True,
        ),
        Theorem("Poisson, one record swapped", "docs/designs/poisson.md, Thm 2", AR.kind, RO.kind, False, _swapped),
        Theorem(
            "Poisson, one record swapped, pure",
            "docs/designs/poisson.md, Thm 2",
            AR.kind,
            RO.kind,
            True,
            _swapped_pure,
            applies=lambda m: m.neighbors.kind == AR.kind and math.isfinite(m.profile(AR).largest_loss),
        ),
        Theorem(
            "Poisson, one record swapped, Gaussian pair",
            "docs/designs/poisson.md, Thm 2",
            AR.kind,
            RO.kind,
            True,
            _swapped_gaussian,
            applies=lambda m: m.is_gaussian,
        ),
        Theorem(
            "Poisson, all of a person's records, Gaussian pair",
            "docs/persons.md, Thm 1",
            AR.kind,
            AR.kind,
            True,
            _people_gaussian,
            applies=lambda m: m.is_gaussian,
            people=True,
            settles=True,
        ),
        Theorem(
            "Poisson, all of a person's records swapped, Gaussian mixtures",
            "docs/persons.md, Thm 2",
            AR.kind,
            RO.kind,
            True,
            _swapped_gaussian,
            applies=lambda m: m.is_gaussian,
            people=True,
            settles=True,
        ),
    )

    decides_alone: ClassVar[bool] = True
    word: ClassVar[Word | None] = Word("poisson", ("rate",))

    def __post_init__(self) -> None:
        in_range(0, 1, rate=self.rate)
        keep_plain(self)

    @property
    def weight(self) -> float | None:
        """1/rate."""
        return 1.0 / self.rate if self.rate > 0 else None

    @property
    def treats_alike(self) -> bool:
        """One coin for all."""
        return True

    @property
    def equal_chances(self) -> Coins:
        """Independent coins of one chance."""
        return Coins(self.rate)

    @property
    def spread(self) -> float | None:
        """Independent coins: 1/rate - 1, exactly."""
        return None if self.weight is None else self.weight - 1.0

    @property
    def spread_of_size(self) -> float | None:
        """The same for all sums, also for the number of records."""
        return self.spread

    def appearances(self, records: int = 1) -> Multiplicity:
        """Binomial(records, rate): the coins are independent."""
        return Multiplicity.binomial(records, self.rate)

    def components(self) -> tuple[Hub, ...]:
        """In or out; the others' coins are their own."""
        return (Hub.kept(self.rate, 1),)

    @property
    def number_bound(self) -> int:
        """A record is kept when its number is below this."""
        return threshold(self.rate)

    def partial(self, batch: Batch, subkey: Key) -> NDArray[np.int64]:
        """Positions of the kept records of one batch."""
        return batch.at(below(subkey, batch.ids, threshold(self.rate)))

    def merge(self, parts: Iterable[NDArray[np.int64]]) -> NDArray[np.int64]:
        """Kept positions of all batches, in order."""
        return np.sort(np.concatenate(list(parts)))

    def finish(self, part: NDArray[np.int64], subkey: Key) -> Drawn:
        """Every kept record counts once."""
        return Drawn(part, np.ones(part.size, dtype=np.int64), np.ones(part.size))

    def law(self, population: Population) -> Iterator[tuple[Units, Fraction]]:
        """All subsets, by their coins."""
        ids, q = [int(i) for i in population.ids], Fraction(self.rate)
        for coins in product((0, 1), repeat=len(ids)):
            kept = sum(coins)
            yield tuple(i for i, c in zip(ids, coins, strict=True) if c), q**kept * (1 - q) ** (len(ids) - kept)

    @classmethod
    def small_cases(cls) -> Iterator[tuple["Poisson", int]]:
        """Rates from rare to certain, populations of 0 to 4."""
        for population in range(5):
            for rate in (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0):
                yield cls(rate), population

    def attack(self, mechanism: Mechanism, neighbors: Neighbors) -> Profile | None:
        """A sum in which only the changed records are not zero (replace-one: opposite to those in their place)."""
        if neighbors.kind == AR.kind:
            return mechanism.mixture(AR, self.appearances(neighbors.records))
        return mechanism.opposite_mixture(self.rate, neighbors.records)
