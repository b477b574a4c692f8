"""Filters: a limit set beforehand that adaptively chosen releases cannot exceed.

What is certified is the limit, not what was used of it, so choosing each release by the answers before it is free.
A reading of what was used (an odometer) or the best Rényi order picked afterwards would not be covered.

pure      the epsilons add up                      Rogers, Roth, Ullman & Vadhan 2016
basic     epsilons and deltas add up               Rogers, Roth, Ullman & Vadhan 2016
renyi     divergences of ONE order add up          Feldman & Zrnic 2021
gdp       squared shifts of Gaussian noise add up  Smith & Thakurta 2022

Proofs, and why a Gaussian limit keeps the sharper theorems of samples: docs/ledger.md.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypedDict

import numpy as np

from ..core.claim import Claim
from ..core.curves import group
from ..core.guarantee import Guarantee, Part
from ..core.mechanism import Mechanism
from ..core.neighbors import Neighbors, check_relation
from ..core.profile import Profile
from ..errors import BudgetExceeded, InvalidInput, NoTheorem
from ..mechanisms.black_box import ApproxDP, PureDP
from ..mechanisms.gaussian import Gaussian, gaussian_curve
from ..numerics.printing import as_asked, shown_down
from ..numerics.roots import least_passing
from ..numerics.rounding import number_up
from ..validation import in_range, one_of, positive
from .amounts import Amounts, cost_amounts, limit_amounts, number_of
from .joint import Joint
from .renyi import RenyiDP, best_order, check_order, loss_within, renyi_of_guarantee, renyi_of_mechanism

Release = Mechanism | Guarantee
_NEVER_FITS = (
    "an unused budget of the Rényi rule would refuse it too, because it adds up divergences and reserves "
    "1% of its delta for releases without one; for releases with one epsilon and delta use rule='basic'"
)
_SPARE = 0.01  # of a budget's delta: more than a sample's, because a charged sample takes its own from it


class Filter(ABC):
    """A limit and how releases count against it. Frozen dataclass per rule; `neighbors` is its relation."""

    rule: ClassVar[str]
    theorem: ClassVar[str]
    neighbors: Neighbors

    @property
    @abstractmethod
    def limits(self) -> dict[str, float]:
        """What is added up, by name, and how far it may go."""

    @abstractmethod
    def cost(self, release: Release, delta: float | None = None) -> dict[str, float]:
        """What a mechanism, or a release that is already certified, adds to each of `limits`."""

    @abstractmethod
    def whole(self) -> Mechanism:
        """One mechanism that covers everything the filter admits."""

    def guarantee(self) -> Guarantee:
        """The guarantee of everything the filter admits, however it was chosen."""
        whole = self.whole()
        upper = whole.profile(whole.neighbors).rounded_up()  # costs were counted for persons where the limit is
        part = Part(upper, None, claim=Claim(self, None, self.neighbors))
        return Guarantee(self.neighbors, upper, lambda: (self.theorem,), (), (part,))

    def admit(self, made: Iterable[Mechanism], release: Mechanism) -> None:
        """Raise BudgetExceeded if `release`, after those already made, would exceed the limit."""
        spent: Amounts = dict.fromkeys(self.limits, 0)
        for mechanism in made:
            spent = added(spent, cost_amounts(self.cost(mechanism)))
        self.admit_after(spent, release)

    def admit_after(self, used: Mapping[str, int], release: Mechanism) -> Amounts:
        """What is used after `release`; raises BudgetExceeded if that would exceed the limit.

        `used` is empty before the first release. The work does not grow with the number of releases.
        """
        cost = cost_amounts(self.cost(release))
        before = {name: used.get(name, 0) for name in cost}
        self.check(before, cost, "draw a fresh sample, or add more noise")
        return added(before, cost)

    def check(self, spent: Amounts, cost: Amounts, way_out: str) -> None:
        """Raise BudgetExceeded when the sum of both is above a limit."""
        limits = limit_amounts(self.limits)
        for name, units in added(spent, cost).items():
            if units > limits[name]:
                word, left = name.replace("_", " "), max(limits[name] - spent[name], 0)
                asked, whole = (as_asked(number_of(name, amount)) for amount in (cost[name], limits[name]))
                raise BudgetExceeded(
                    f"this release costs {word} {asked} and {shown_down(number_of(name, left))} of {whole} is left, "
                    f"so it was not made; {way_out}"
                )

    def facts(self) -> dict[str, Any]:
        """The parameters, for storage; without the relation."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "neighbors"}  # type: ignore[arg-type]

    def _same_relation(self, guarantee: Guarantee) -> None:
        if guarantee.neighbors != self.neighbors:
            raise InvalidInput(
                f"the limit is for {self.neighbors} but this guarantee is for {guarantee.neighbors}; use the "
                "guarantee under the limit's relation"
            )
        if not guarantee.is_private:
            raise InvalidInput(
                "a guarantee made with a known seed is not private and cannot be counted; use a real key"
            )

    def _profile(self, release: Release) -> Profile:
        if isinstance(release, Guarantee):
            self._same_relation(release)
            return release.upper
        if not isinstance(release, Mechanism):
            raise InvalidInput(f"a filter counts mechanisms and guarantees, got a {type(release).__name__} instead")
        release.check_scope(self.neighbors.scope)
        return group(release.profile(self.neighbors.per_record), self.neighbors.records)


def added(one: Amounts, two: Amounts) -> Amounts:
    """Costs of two releases, added name by name."""
    return {name: units + two[name] for name, units in one.items()}


@dataclass(frozen=True, slots=True)
class PureFilter(Filter):
    """A limit on pure releases: their epsilons add up to at most `epsilon`.

    All releases together are epsilon-DP for `neighbors`.

    >>> from privamp import Laplace
    >>> PureFilter(5.0).cost(Laplace(scale=2.0))
    {'epsilon': 0.5}
    """

    epsilon: float
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    rule: ClassVar[str] = "pure"
    theorem: ClassVar[str] = "Filter: pure epsilons add up (Rogers, Roth, Ullman & Vadhan 2016; docs/ledger.md, Thm 1)"

    def __post_init__(self) -> None:
        positive(epsilon=self.epsilon)
        check_relation(self.neighbors)

    @property
    def limits(self) -> dict[str, float]:
        """How far the epsilons may add up."""
        return {"epsilon": float(self.epsilon)}

    def cost(self, release: Release, delta: float | None = None) -> dict[str, float]:
        """The pure epsilon; there must be one."""
        epsilon = self._profile(release).largest_loss
        if epsilon == float("inf"):
            raise NoTheorem(
                "this release is not pure DP and cannot be counted by a limit on pure epsilon; "
                "use a Rényi or Gaussian limit, or Laplace noise"
            )
        return {"epsilon": epsilon}

    def whole(self) -> Mechanism:
        """Any pure mechanism of that epsilon."""
        return PureDP(number_up(float(self.epsilon)), neighbors=self.neighbors.per_record)


@dataclass(frozen=True, slots=True)
class ApproxFilter(Filter):
    """A limit on the sums of epsilons and deltas: simple, but never the tightest.

    All releases together are (epsilon, delta)-DP for `neighbors`, however each was chosen.

    >>> from privamp import ApproxDP
    >>> ApproxFilter(1.0, 1e-6).cost(ApproxDP(0.1, 1e-8))
    {'epsilon': 0.1, 'delta': 1e-08}
    """

    epsilon: float
    delta: float
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    rule: ClassVar[str] = "basic"
    theorem: ClassVar[str] = (
        "Filter: epsilons and deltas add up (Rogers, Roth, Ullman & Vadhan 2016; docs/ledger.md, Thm 1)"
    )

    def __post_init__(self) -> None:
        positive(epsilon=self.epsilon)
        in_range(0, 1, delta=self.delta)
        check_relation(self.neighbors)

    @property
    def limits(self) -> dict[str, float]:
        """How far the epsilons and the deltas may add up."""
        return {"epsilon": float(self.epsilon), "delta": float(self.delta)}

    def cost(self, release: Release, delta: float | None = None) -> dict[str, float]:
        """Epsilon at the delta given; delta 0 for pure releases, its own for an ApproxDP."""
        if delta is None and isinstance(release, ApproxDP) and release.neighbors == self.neighbors:
            return {"epsilon": float(release.epsilon), "delta": float(release.delta)}
        profile = self._profile(release)
        share = 0.0 if delta is None else float(delta)
        in_range(0, 1, delta=share)
        if share > 0.0 and isinstance(release, Mechanism):
            profile = profile.rounded_up()  # a guarantee is already; a pure epsilon has its margin in `whole`
        epsilon = profile.epsilon(share)
        if epsilon == float("inf"):
            raise InvalidInput(
                f"this release is not pure DP at delta {share:g}: give the part of the limit's delta that it uses, "
                "for example delta=1e-8"
            )
        return {"epsilon": epsilon, "delta": share}

    def whole(self) -> Mechanism:
        """Any mechanism of that epsilon and delta."""
        epsilon, delta = number_up(float(self.epsilon)), min(number_up(float(self.delta)), 1.0)
        return ApproxDP(epsilon, delta, neighbors=self.neighbors.per_record)


@dataclass(frozen=True, slots=True)
class RenyiFilter(Filter):
    """A limit on the sum of Rényi divergences of one order, fixed in advance, that gives (epsilon, delta).

    The share `spare` of delta is kept for mass that has no divergence: what a composed curve cuts off, or the delta of
    a black box.

    All releases together are (epsilon, delta)-DP for `neighbors`.

    >>> round(RenyiFilter(order=8.0, epsilon=3.0, delta=1e-6).limits["renyi_loss"], 4)
    1.4569
    """

    order: float
    epsilon: float
    delta: float
    spare: float = 1e-6
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    rule: ClassVar[str] = "renyi"
    theorem: ClassVar[str] = (
        "Filter: Rényi divergences of one order add up (Feldman & Zrnic 2021; docs/ledger.md, Thm 2)"
    )

    def __post_init__(self) -> None:
        check_order(self.order)
        positive(epsilon=self.epsilon)
        in_range(0, 1, open_ends=True, delta=self.delta, spare=self.spare)
        check_relation(self.neighbors)
        _ = self.limits  # says so when nothing fits

    @property
    def limits(self) -> dict[str, float]:
        """The divergence that the conversion at this order allows, and the mass that may be lost beside it."""
        delta, spare = float(self.delta), float(self.spare)
        allowed = loss_within(float(self.order), float(self.epsilon), delta * (1.0 - spare))
        return {"renyi_loss": allowed, "delta": delta * spare}

    def cost(self, release: Release, delta: float | None = None) -> dict[str, float]:
        """The release's Rényi divergence of the order that was fixed."""
        if isinstance(release, Guarantee):
            self._same_relation(release)
            loss, lost = renyi_of_guarantee(release, float(self.order))
        elif isinstance(release, Mechanism):
            loss, lost = renyi_of_mechanism(release, float(self.order), self.neighbors)
        else:
            raise InvalidInput(f"a filter counts mechanisms and guarantees, got a {type(release).__name__} instead")
        return {"renyi_loss": loss, "delta": lost}

    def check(self, spent: Amounts, cost: Amounts, way_out: str) -> None:
        """Raise BudgetExceeded, with a hint if a release with its own delta can never fit."""
        limits = limit_amounts(self.limits)
        never = cost.get("delta", 0) > 0 and any(units > limits[name] for name, units in cost.items())
        Filter.check(self, spent, cost, _NEVER_FITS if never and self.spare == _SPARE else way_out)

    def whole(self) -> Mechanism:
        """What this one order implies, and no other order."""
        loss, lost = (number_up(limit) for limit in self.limits.values())
        return RenyiDP(float(self.order), loss, lost, neighbors=self.neighbors.per_record)


@dataclass(frozen=True, slots=True)
class GaussianFilter(Filter):
    """A limit on Gaussian releases: their squared shifts (sensitivity/sigma) add up to at most mu squared.

    All releases together have the privacy of one Gaussian release with shift `mu` for `neighbors`.

    >>> from privamp import Gaussian
    >>> GaussianFilter(1.0).cost(Gaussian(sigma=2.0))
    {'mu_squared': 0.25}
    """

    mu: float
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    rule: ClassVar[str] = "gdp"
    theorem: ClassVar[str] = "Filter: squared Gaussian shifts add up (Smith & Thakurta 2022; docs/ledger.md, Thm 3)"

    def __post_init__(self) -> None:
        positive(mu=self.mu)
        check_relation(self.neighbors)

    @classmethod
    def within(cls, epsilon: float, delta: float, neighbors: Neighbors = Neighbors.ADD_REMOVE) -> "GaussianFilter":
        """The largest mu that is (epsilon, delta)-DP.

        >>> round(GaussianFilter.within(1.0, 1e-6).mu, 6)
        0.236704
        """
        positive(epsilon=epsilon)
        in_range(0, 1, open_ends=True, delta=delta)
        at, wanted = np.asarray([float(epsilon)]), float(np.log(delta))

        def excess(noise: float) -> float:
            return float(gaussian_curve(1.0 / noise).rounded_up()(at)[0]) - wanted

        mu = 1.0 / least_passing(excess, 1e-3, 1e9, relative=1e-13)
        return cls(mu * (1.0 - 4e-12), neighbors)  # so that the certified number, rounded up, is within too

    @property
    def limits(self) -> dict[str, float]:
        """How far the squared shifts may add up."""
        return {"mu_squared": float(self.mu) ** 2}

    def cost(self, release: Release, delta: float | None = None) -> dict[str, float]:
        """The squared shift of Gaussian noise; nothing else has one."""
        parts = release.mechanisms if isinstance(release, Joint) else (release,)
        return {"mu_squared": math.fsum(self._square(part) for part in parts)}

    def _square(self, release: Release) -> float:
        if not isinstance(release, Gaussian):
            raise NoTheorem(
                "only Gaussian noise can be counted by a Gaussian limit; use a Rényi limit for other releases, "
                "and for samples"
            )
        records = release.records_apart(self.neighbors) * self.neighbors.records
        return float(records * release.sensitivity / release.sigma) ** 2

    def whole(self) -> Mechanism:
        """One Gaussian release with shift mu, which all releases together are at most."""
        return Gaussian(1.0, number_up(float(self.mu)), neighbors=self.neighbors.per_record)


RULES: dict[str, Any] = {kind.rule: kind for kind in (PureFilter, ApproxFilter, RenyiFilter, GaussianFilter)}


class LimitOptions(TypedDict, total=False):
    """What `filter_within` makes a filter of, as keywords of a call."""

    epsilon: float
    delta: float
    rule: str | None
    order: float | None
    neighbors: Neighbors


def filter_within(
    epsilon: float,
    delta: float = 0.0,
    *,
    rule: str | None = None,
    order: float | None = None,
    neighbors: Neighbors = Neighbors.ADD_REMOVE,
) -> Filter:
    """The filter of a rule that ends at (epsilon, delta).

    Without a rule: pure for delta 0, else Rényi, at the order into which the most Gaussian noise fits.
    """
    positive(epsilon=epsilon)
    in_range(0, 1, delta=delta)
    chosen = rule or ("renyi" if delta > 0 else "pure")
    one_of(RULES, rule=chosen)
    if order is not None and chosen != "renyi":
        raise InvalidInput(f"an order is only for the renyi rule, got {order!r} for {chosen}; omit it")
    if chosen == "pure" and delta > 0:
        raise InvalidInput(f"the pure rule has no delta, got {delta!r}; omit it, or use renyi or basic")
    if chosen == "pure":
        return PureFilter(epsilon, neighbors)
    if delta == 0.0:
        raise InvalidInput(f"the {chosen} rule needs a delta above 0; give one, for example 1e-6, or use pure")
    if chosen == "basic":
        return ApproxFilter(epsilon, delta, neighbors)
    if chosen == "gdp":
        return GaussianFilter.within(epsilon, delta, neighbors)
    chosen_order = best_order(epsilon, delta) if order is None else order
    return RenyiFilter(chosen_order, epsilon, delta, _SPARE, neighbors)


def stored_filter(rule: str, facts: dict[str, Any], neighbors: Neighbors) -> Filter:
    """A filter rebuilt from its rule and `facts()`."""
    rebuilt: Filter = RULES[rule](**facts, neighbors=neighbors)
    return rebuilt
