"""A fixed share of the records, however many there are: m is r n, rounded up or down at random or by a rule.

With a = e^eps, M eps-DP under add/remove and every number of records allowed:

Theorem 1 (random rounding, add/remove → add/remove). eps' = log(1 + r(a-1) + r(1-r)(a^2-1)), the supremum over n.
It amplifies when r < 1/(1+a). SD Theorem 4.3 is 2 to 6 times larger.
Theorem 2 (random rounding, add/remove → replace-one). eps' = log(1 + r(a^2-1)), the supremum over n.
Theorem 3 (floor, half-up, ceil). One record more: max(eps, log(1 + q(a^2-1))); one replaced: log(1 + q(a^2-1)),
with the q of `rounded_size`: never better than eps, and worse for large r. Under a public bound on the number of
records all of them are evaluated exactly. Proofs: docs/designs/proportional.md.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from ..chance.keys import Key
from ..core.design import Design
from ..core.hub_plan import Hub
from ..core.identity import plain
from ..core.mechanism import Mechanism
from ..core.multiplicity import Multiplicity
from ..core.neighbors import Neighbors
from ..core.population import Population
from ..core.profile import Profile
from ..core.sample import Drawn
from ..core.theorem import Theorem
from ..core.weighting import Weighting
from ..core.words import Word
from ..errors import InvalidInput, NoTheorem
from ..numerics.log_domain import log_mix
from ..numerics.size_chain import ChainValue
from ..validation import in_range, one_of, whole
from . import rounded_size as rounded
from . import rounded_transport as transport
from .fixed_size import BottomK
from .keyed_order import SizeOnly, Weights
from .pure_only import is_black_box, lower_profile, pure_epsilon, upper_profile

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
PAGE = "docs/designs/proportional.md"


class FixedShare(SizeOnly):
    """A design that draws a public share of all records, its size rounded; `at_most` bounds the records, or is None."""

    at_most: int | None

    @property
    @abstractmethod
    def share(self) -> Fraction:
        """r as an exact fraction."""

    @property
    @abstractmethod
    def how(self) -> str:
        """How r n is rounded."""

    def size_weights(self, population: int) -> Weights:
        """One size, or the two around r n."""
        return rounded.size_weights(self.share, population, self.how)

    @property
    def weight(self) -> float | None:
        """1/share with random rounding; rules of rounding make it depend on the secret number of records."""
        return float(1 / self.share) if self.how == "random" and self.share > 0 else None

    def weighting(self, records: int, known: float | None, columns: Mapping[str, Any]) -> Weighting | None:
        """A fixed share q of N records, m = qN: first = 0, second = (1-q)/q^2 m/(m-1),
        shrink = (1-q)/(m-1) less v/m^2, v the variance of the rounded size; with N secret second is (1-q)/q^2.
        """
        if self.how != "random":
            raise NoTheorem(
                f"rounding {self.how!r} has no public weights: how many are drawn depends on the secret number of "
                "records; use rounding='random'"
            )
        if self.share == 0:
            raise InvalidInput("a share of 0 cannot be estimated from; give a rate above 0")
        return _weighting(float(self.share), records, known)

    def finish(self, part: BottomK, subkey: Key) -> Drawn:
        """The first records of the order."""
        self.check_population(part.seen)
        return SizeOnly.finish(self, part, subkey)

    def check_population(self, records: int) -> None:
        """Refuse more records than declared."""
        if self.at_most is not None and records > self.at_most:
            raise InvalidInput(
                f"the design declares at most {self.at_most} records but more were given; declare a bound that is true"
            )

    def appearances(self, records: int = 1) -> Multiplicity:
        """One record is drawn with chance r (random rounding; rules deviate by their rounding)."""
        if records > 1:
            raise NoTheorem("how many of a person's records are drawn depends on the secret number of records")
        return Multiplicity.binomial(1, float(self.share))

    def neighboring(
        self, population: int | Population, neighbors: Neighbors
    ) -> Iterator[tuple[Population, Population]]:
        """Pairs of all sizes: the larger one has at most one record more than `population`."""
        ids = np.arange(Population.of(population).size + 2, dtype=np.uint64)
        for n in range(1, ids.size):
            if neighbors.kind == AR.kind:
                yield Population(ids[:n]), Population(ids[: n - 1])
            else:
                yield Population(ids[:n]), Population(ids[1 : n + 1])

    def components(self) -> tuple[Hub, ...]:
        """One record more, at the worst numbers of records."""
        return transport.hubs(self)

    def attacks(self, mechanism: Mechanism, neighbors: Neighbors) -> dict[Any, Profile]:
        """Noisy sums at several numbers of records; for a black box its worst event."""
        if is_black_box(mechanism, neighbors):
            return Design.attacks(self, mechanism, neighbors)
        return transport.noisy_sums(self, mechanism, neighbors)

    def attack(self, mechanism: Mechanism, neighbors: Neighbors) -> Profile | None:
        """The worst event of a black box at the worst number of records (in the limit, when there is no bound)."""
        if not is_black_box(mechanism, neighbors):
            found = transport.noisy_sums(self, mechanism, neighbors)
            return Profile.maximum(found.values()) if found else None
        epsilon = pure_epsilon(mechanism, AR)
        if self.at_most is not None:
            exact = self.up_to(epsilon, neighbors)
            return lower_profile(exact.lower) if exact else None
        return lower_profile(self.over_all(epsilon, neighbors, certain=False))

    def up_to(self, epsilon: float, neighbors: Neighbors) -> ChainValue | None:
        """The exact value under the public bound on the number of records, None without a small one."""
        if self.at_most is None:
            return None
        exact = rounded.added_up_to if neighbors.kind == AR.kind else rounded.replaced_up_to
        return exact(self.share, self.how, epsilon, self.at_most)

    def over_all(self, epsilon: float, neighbors: Neighbors, certain: bool) -> float:
        """The supremum over all n: a number not below it when `certain`, otherwise one not above it."""
        if self.share == 0:
            return 0.0
        if neighbors.kind == RO.kind:
            return float(log_mix(float(rounded.share_replaced(self.share, self.how)), 2.0 * epsilon))
        if self.how == "random":
            return rounded.random_added(self.share, epsilon)
        return rounded.deterministic_added(float(rounded.share_kept(self.share, self.how)[certain]), epsilon)


def _weighting(q: float, records: int, known: float | None) -> Weighting:
    second, shrink, grown = (1.0 - q) / q**2, 0.0, 1.0
    if known is not None:
        m = q * known
        if m <= 1.0:
            raise InvalidInput("a share of one record or less cannot be estimated from; give a larger rate")
        part = m % 1.0
        second *= m / (m - 1.0)
        shrink = (1.0 - q) / (m - 1.0) - part * (1.0 - part) / m**2
        grown = known / (known - 1.0)
    most, ones = (1.0 - q) / q * grown, np.ones(records)
    return Weighting(ones / q, 1.0 / q, q, 0.0, second * ones, second, shrink, most, per_record=True, is_share=True)


def any_number(design: FixedShare, mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    """The supremum over every number of records."""
    return upper_profile(design.over_all(pure_epsilon(mechanism, AR), neighbors, certain=True))


def bounded_number(design: FixedShare, mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    """The maximum over every number of records up to the declared bound, by the chain program."""
    exact = design.up_to(pure_epsilon(mechanism, AR), neighbors)
    if exact is None:
        raise NoTheorem("no small public bound on the number of records is declared")
    return upper_profile(exact.upper)


FIXED_SHARE_THEOREMS = (
    Theorem("Fixed share, any number of records", f"{PAGE}, Thms 1 and 3", AR.kind, AR.kind, True, any_number),
    Theorem("Fixed share, one replaced", f"{PAGE}, Thms 2 and 3", AR.kind, RO.kind, True, any_number),
    Theorem("Fixed share, bounded number of records", f"{PAGE}, chain", AR.kind, AR.kind, True, bounded_number),
    Theorem("Fixed share, bounded, one replaced", f"{PAGE}, chain", AR.kind, RO.kind, True, bounded_number),
    *transport.THEOREMS,
)


@dataclass(frozen=True, slots=True)
class Proportional(FixedShare):
    """Draw the share `rate` of all records; r n is rounded at random, so that its mean is right, or by a rule.

    A float rate is read as the decimal it is written as (0.1 is one tenth); a Fraction stays as it is.

    `rounding` is "random", "floor", "half-up" or "ceil"; `at_most` a public upper bound on the number of records n,
    where there is one: random rounding does not need it. Under add/remove, where n is secret, rounding by a rule may
    cost more.

    >>> from privamp import PureDP, amplify
    >>> round(amplify(PureDP(1.0), Proportional(0.1)).epsilon(), 6)
    0.55781
    """

    rate: float | Fraction
    rounding: rounded.Rounding = "random"
    at_most: int | None = None  # public upper bound on the number of records, when there is one

    natural: ClassVar[Neighbors] = AR
    theorems: ClassVar[tuple[Theorem, ...]] = FIXED_SHARE_THEOREMS

    word: ClassVar[Word | None] = Word(
        "proportional", ("rate",), ("rounding", "at_most"), whole=("at_most",), text=("rounding",)
    )

    def __post_init__(self) -> None:
        in_range(0, 1, rate=self.rate)
        one_of(rounded.ROUNDINGS, rounding=self.rounding)
        if self.at_most is not None:
            whole(1, at_most=self.at_most)
        object.__setattr__(self, "rate", self.rate if isinstance(self.rate, Fraction) else plain(self.rate))
        object.__setattr__(self, "at_most", plain(self.at_most))

    def identity_fields(self) -> dict[str, Any]:
        """The rate as the fraction that is drawn by."""
        return {"rate": self.share, "rounding": self.rounding, "at_most": self.at_most}

    @property
    def share(self) -> Fraction:
        """The rate as a fraction."""
        return self.rate if isinstance(self.rate, Fraction) else Fraction(str(float(self.rate)))

    @property
    def how(self) -> str:
        """How r n becomes a whole number."""
        return self.rounding

    @classmethod
    def small_cases(cls) -> Iterator[tuple["Proportional", int]]:
        """Every rounding, rates from rare to certain, up to 6 records."""
        for n, rounding in ((1, "random"), (3, "random"), (4, "half-up"), (5, "random"), (4, "floor"), (4, "ceil")):
            for rate in (0.1, 0.25, Fraction(1, 3), 0.5, 0.6, 0.9, 1.0):
                yield cls(rate, rounding, n + 1), n  # type: ignore[arg-type]
