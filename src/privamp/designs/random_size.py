"""A random number of records: draw a size by a public law that does not look at the data, then a subset of that size.

Let n be public, t the law of the size m, and let M be eps_d-DP under add/remove and eps_r-DP under replace-one.

Theorem 1 (add/remove → replace-one). eps' <= log(1 + (E[m~]/n)(e^eps_r - 1)), where m~ has the law proportional to
e^(eps_d m) t(m). SD Theorem 3.1 prints eps_d for eps_r, which is false.

Theorem 2 (add/remove → replace-one). eps' is at most the value of the chain program (numerics/size_chain.py), and
that is exact over all eps_d-DP mechanisms. Proofs: docs/designs/random_size.md.

Theorem 3 (replace-one → replace-one, every mechanism). sum_m t(m) (m/n) delta(log(1 + (alpha-1) n/m)).
Theorem 4 (add/remove → replace-one, mechanisms that are not pure, few sizes). Transport (core/transport.py): with a
the record in or out and s others drawn, components (a, s) and (b, s') are a + b + |s - s'| apart. docs/transport.md.
Theorem 5 (add/remove → replace-one, Gaussian noise). Sizes along a chain (kept_sizes.py): exact up to a grid.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import blake2b
from typing import Any, ClassVar

import numpy as np

from ..chance.keys import Key
from ..core.curves import pure_curve
from ..core.mechanism import Mechanism
from ..core.multiplicity import Multiplicity
from ..core.neighbors import Neighbors
from ..core.profile import Curve, Profile
from ..core.sample import Drawn
from ..core.theorem import Theorem
from ..core.transport import Components, is_covered, transported
from ..core.weighting import Weighting
from ..errors import InvalidInput, NoTheorem
from ..numerics.count_laws import binomial_log_chance
from ..numerics.log_domain import FloatArray, as_floats, log_expm1, log_mix, log_sum, log_unmix
from ..numerics.size_chain import LARGEST_STEP, replaced
from ..validation import in_order, in_range, nonnegative, positive, whole
from . import kept_sizes
from .fixed_size import BottomK
from .keyed_order import SizeOnly, Weights
from .pure_only import is_black_box, lower_profile, pure_epsilon

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
_MARGIN, _ULP = 1e-12, 2.0**-52  # relative errors: of the tilted mean, and of one rounding
_MOST_DRAWN, _PIECE = 24, 4096  # components of a program; epsilons worked on together
_SHOWN = 12  # longer laws are shown by their digest


def _tilted(design: "RandomSize", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    add, swap = pure_epsilon(mechanism, AR), pure_epsilon(mechanism, RO)
    log_rate = design.log_tilted_mean(add) - math.log(design.population)
    loss = float(np.logaddexp(0.0, log_rate + float(log_expm1(swap)))) if swap > 0.0 else 0.0
    margin = _MARGIN + 8 * _ULP * (add * design.population + 745.0)  # the exponents are that large
    return Profile.symmetric(pure_curve(min(loss * (1.0 + margin), swap)))


def _chain(design: "RandomSize", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    add = pure_epsilon(mechanism, AR)
    if add > LARGEST_STEP:
        raise NoTheorem(f"the chain program is evaluated up to epsilon {LARGEST_STEP:g}")
    return Profile.symmetric(pure_curve(min(replaced(design.chances, add).upper, 2.0 * add)))


def _by_size(design: "RandomSize", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    swap, m = mechanism.profile(RO).symmetrised(), np.arange(len(design.sizes), dtype=np.float64)
    live = (design.chances > 0) & (m > 0)
    if not np.any(live):
        return Profile.symmetric(Curve(lambda at: np.full_like(at, -np.inf), 0.0))
    q, log_t = (m[live] / design.population)[:, None], np.log(design.chances[live] * (1.0 + 1e-9))[:, None]

    def log_delta(epsilon: FloatArray) -> FloatArray:
        flat, found = np.ravel(epsilon), []
        for start in range(0, flat.size, _PIECE):
            inner = log_unmix(q, flat[None, start : start + _PIECE])  # type: ignore[arg-type]
            found.append(log_sum(log_t + np.log(q) + swap.forward(inner)))
        return np.concatenate(found or [flat]).reshape(np.shape(epsilon))

    end = swap.largest_loss
    return Profile.symmetric(Curve(log_delta, float(log_mix(float(q[-1, 0]), end)) if math.isfinite(end) else math.inf))


def components(design: "RandomSize") -> Components:
    """The record in or out, and how many others are drawn; pairs whose others differ by two at most."""
    n, total = design.population, float(np.sum(design.chances))
    drawn = [
        (chance, a, m - a)
        for m, t in enumerate(design.chances.tolist())
        for a, chance in ((0, t / total * (n - m) / n), (1, t / total * m / n))
        if chance > 0.0
    ]
    if len(drawn) > _MOST_DRAWN:
        raise NoTheorem(f"the program is solved for laws of at most {_MOST_DRAWN // 2} sizes")
    far = [[a + b + abs(s - r) if abs(s - r) <= 2 else math.nan for _, b, r in drawn] for _, a, s in drawn]
    chances = [chance for chance, _, _ in drawn]
    return Components.of(chances, chances, far)


def _transported(design: "RandomSize", mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    return transported([components(design)], mechanism).symmetrised()


@dataclass(frozen=True, slots=True, repr=False)
class RandomSize(SizeOnly):
    """Draw m records with probability `sizes[m]`, then m of the n = len(sizes) - 1 records, all subsets equally likely.

    >>> from privamp import PureDP, amplify
    >>> round(amplify(PureDP(1.0), RandomSize([0.0, 0.0, 0.5, 0.5])).epsilon(), 6)
    1.763383
    """

    sizes: tuple[float, ...] = field()

    natural: ClassVar[Neighbors] = RO
    theorems: ClassVar[tuple[Theorem, ...]] = (
        Theorem(
            "Random size, tilted mean",
            "docs/designs/random_size.md, Thm 1; SD Thm 3.1 corrected",
            AR.kind,
            RO.kind,
            False,
            _tilted,
        ),
        Theorem("Random size, chain program", "docs/designs/random_size.md, Thm 2", AR.kind, RO.kind, True, _chain),
        Theorem(
            "Random size, size by size",
            "docs/designs/random_size.md, Thm 3",
            RO.kind,
            RO.kind,
            False,
            _by_size,
            applies=lambda m: m.neighbors.kind == RO.kind or not m.is_pure,
        ),
        Theorem(
            "Random size, transport",
            "docs/transport.md, Thm 3",
            AR.kind,
            RO.kind,
            False,
            _transported,
            is_covered,
            searches=True,
        ),
        *kept_sizes.theorems("Random size", RO.kind),
    )

    def __post_init__(self) -> None:
        sizes = _checked(self.sizes)
        object.__setattr__(self, "sizes", sizes)

    @classmethod
    def truncated_normal(cls, mean: float, sd: float, population: int) -> "RandomSize":
        """Whole numbers m from 0 to `population` with a chance proportional to exp(-(m - mean)^2 / 2 sd^2)."""
        positive(sd=sd)
        nonnegative(mean=mean)
        whole(1, population=population)
        log_p = as_floats(-0.5 * ((np.arange(population + 1) - mean) / sd) ** 2)
        return cls(_normalised(log_p))

    @classmethod
    def binomial(cls, population: int, rate: float) -> "RandomSize":
        """Binomial(population, rate): as many as Poisson sampling would draw."""
        whole(1, population=population)
        in_range(0, 1, rate=rate)
        return cls(_normalised(as_floats(binomial_log_chance(np.arange(population + 1), population, rate))))

    @classmethod
    def uniform(cls, low: int, high: int, population: int) -> "RandomSize":
        """Every size from `low` to `high` equally likely."""
        whole(1, population=population)
        whole(0, population, largest_size=high)
        whole(0, high, smallest_size=low)
        log_p = np.full(population + 1, -np.inf)
        log_p[low : high + 1] = 0.0
        return cls(_normalised(log_p))

    @property
    def spec(self) -> str | None:
        """By its ends where every size between them is as likely, or size by size."""
        drawn = [m for m, p in enumerate(self.sizes) if p > 0.0]
        low, high = drawn[0], drawn[-1]
        if self == RandomSize.uniform(low, high, self.population):
            return f"random-size:low={low},high={high},population={self.population}"
        chances = "+".join(f"{m}={self.sizes[m]!r}" for m in drawn)
        return f"random-size-law:chances={chances},population={self.population}"

    @property
    def population(self) -> int:
        """n, public under replace-one."""
        return len(self.sizes) - 1

    @property
    def public_size(self) -> int | None:
        """n."""
        return self.population

    @property
    def weight(self) -> float | None:
        """One over the chance of a record."""
        chance = self.appearances().mean
        return 1.0 / chance if chance > 0 else None

    def weighting(self, records: int, known: float | None, columns: Mapping[str, Any]) -> Weighting | None:
        """All pairs of records have one joint probability: V = A sum z^2 + c T^2 over all records, where 1 + c is that
        probability over pi^2, A = (1-pi)/pi - c; from the sample V = (A sum z^2/pi + c T^2)/(1 + c), without bias.
        """
        n, pi = self.population, self.appearances().mean
        if pi <= 0.0:
            raise InvalidInput("a size of 0 cannot be estimated from; draw some records")
        m = np.arange(n + 1.0)
        both = float(np.sum(self.chances * m * (m - 1.0))) / (n * max(n - 1.0, 1.0) * pi * pi)
        if both <= 0.0:  # never two at once
            return replace(Weighting.equal(1.0 / pi, 1.0 / pi, records), is_subset=True)
        c = both - 1.0
        each = max((1.0 - pi) / pi - c, 0.0)
        second = each / (pi * both)
        return Weighting(
            np.full(records, 1.0 / pi), 1.0 / pi, pi, 0.0, np.full(records, second), second, -c / both,
            each + max(c, 0.0) * n, per_record=True, is_subset=True,
        )  # fmt: skip

    @property
    def chances(self) -> FloatArray:
        """The law of the size up to a factor of 1, shape (n + 1,)."""
        return _as_array(self.sizes)

    def log_tilted_mean(self, epsilon: float) -> float:
        """log of the mean size under the law proportional to e^(epsilon m) t(m)."""
        with np.errstate(divide="ignore"):
            m, log_t = np.arange(len(self.sizes), dtype=np.float64), np.log(self.chances)
            tilted = log_t + epsilon * (m - self.population)
            return float(log_sum(tilted + np.log(m)) - log_sum(tilted))

    def size_weights(self, population: int) -> Weights:
        """The probabilities as whole numbers, exactly in proportion."""
        return _whole_weights(self.sizes)

    def finish(self, part: BottomK, subkey: Key) -> Drawn:
        """The first records of the order."""
        if part.seen != self.population:
            raise InvalidInput(
                f"the law of sizes is stated for exactly {self.population} records but another number was given; "
                "state it for that number"
            )
        return SizeOnly.finish(self, part, subkey)

    def appearances(self, records: int = 1) -> Multiplicity:
        """Hypergeometric given the size."""
        chance = float(np.sum(self.chances * np.arange(len(self.sizes))) / np.sum(self.chances) / self.population)
        if records == 1:
            return Multiplicity.binomial(1, min(chance, 1.0))
        return self._mixed(min(records, self.population))

    def _mixed(self, records: int) -> Multiplicity:
        log_p = np.full(records + 1, -np.inf)
        for m, chance in enumerate(self.chances / np.sum(self.chances)):
            if chance > 0.0:
                law = Multiplicity.hypergeometric(self.population, records, m) if m else Multiplicity.binomial(1, 0.0)
                here = np.concatenate([[law.log_none], law.log_p])
                log_p[: here.size] = np.logaddexp(log_p[: here.size], math.log(chance) + here)
        return Multiplicity(float(log_p[0]), log_p[1:])

    @classmethod
    def small_cases(cls) -> Iterator[tuple["RandomSize", int]]:
        """Point masses, pairs, spread-out and lopsided laws on up to 5 records."""
        for n in range(1, 6):
            yield cls.uniform(0, n, n), n
            yield cls.binomial(n, 0.3), n
            yield cls.truncated_normal(n / 2, 0.7, n), n
            yield cls((0.9, *[0.0] * (n - 1), 0.1)), n
            yield cls((0.25, 0.75, *[0.0] * (n - 1))), n
            yield cls.uniform(n // 2, n, n), n
            yield cls.uniform(n, n, n), n

    def attack(self, mechanism: Mechanism, neighbors: Neighbors) -> Profile | None:
        """The chain's own event for black boxes; else sums that follow the worst sequence over sizes."""
        found = self.attacks(mechanism, neighbors)
        return Profile.maximum(found.values()) if found else None

    def attacks(self, mechanism: Mechanism, neighbors: Neighbors) -> dict[Any, Profile]:
        """Sum by sum."""
        if neighbors.records > 1 or neighbors.kind != RO.kind:
            return {}
        if not is_black_box(mechanism, neighbors):
            return kept_sizes.attacks(self, mechanism, neighbors)
        add = pure_epsilon(mechanism, AR)
        return {"event": lower_profile(replaced(self.chances, add).lower)} if add <= LARGEST_STEP else {}

    def __repr__(self) -> str:
        if len(self.sizes) <= _SHOWN:
            return f"RandomSize(sizes={self.sizes})"
        digest = blake2b(self.chances.tobytes(), digest_size=8).hexdigest()
        return f"RandomSize(population={self.population}, sizes=law {digest})"


def _checked(sizes: object) -> tuple[float, ...]:
    try:
        law = tuple(float(p) for p in in_order("sizes", sizes))
    except (TypeError, ValueError):
        raise InvalidInput(f"sizes must be a list of probabilities, got a {type(sizes).__name__} instead") from None
    if len(law) < 2:
        raise InvalidInput(f"sizes must have a probability for every size from 0 to n >= 1, got {len(law)} instead")
    worst = min(law) if not any(map(math.isnan, law)) else math.nan
    if not 0.0 <= worst <= 1.0:
        raise InvalidInput(f"every probability in sizes must be a number of at least 0, got {worst!r} instead")
    if not abs(math.fsum(law) - 1.0) <= 1e-9:
        raise InvalidInput(f"sizes must sum to 1, got a sum of {math.fsum(law)!r} instead")
    return tuple(p + 0.0 for p in law)


def _normalised(log_p: FloatArray) -> tuple[float, ...]:
    return tuple(np.exp(log_p - float(log_sum(log_p))).tolist())


@lru_cache(maxsize=16)
def _as_array(sizes: tuple[float, ...]) -> FloatArray:
    array = as_floats(sizes)
    array.setflags(write=False)
    return array


@lru_cache(maxsize=16)
def _whole_weights(sizes: tuple[float, ...]) -> Weights:
    ratios = [p.as_integer_ratio() for p in sizes]
    scale = max(below for _, below in ratios)  # powers of two
    return {m: top * (scale // below) for m, (top, below) in enumerate(ratios) if top}
