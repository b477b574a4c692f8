"""What a fit spends before its sample is drawn: every release on all the data, recorded and paid from epsilon."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..accounting.joint import Joint
from ..amplification import amplify
from ..chance.keys import Key
from ..chance.stream import Stream
from ..core.claim import Claim
from ..core.curves import approx_curve
from ..core.guarantee import Guarantee, Part
from ..core.neighbors import Neighbors
from ..core.profile import Profile
from ..designs.importance import ImportanceSampling
from ..errors import NoTheorem
from ..mechanisms.chosen_quantiles import ChosenQuantiles
from ..mechanisms.laplace import Laplace
from ..mechanisms.norm_noise import NormNoise
from ..numerics import rounding
from ..rules.rule import Rule

FirstNoise = Laplace | NormNoise | ChosenQuantiles  # all of it pure
FIRST = "basic composition of the first look at all the data with what its answers chose (pure epsilons add up)"


@dataclass(slots=True)
class PrivacySpend:
    """The budget and what was spent from it. Only pure noise is used here, so epsilons add up."""

    epsilon: float
    delta: float
    key: Key = field(repr=False)
    paid: list[FirstNoise] = field(default_factory=list)
    what: list[str] = field(default_factory=list)  # was released by each

    def release(self, what: str, mechanism: FirstNoise, value: Any) -> Any:
        """Record the mechanism, then add its noise."""
        self.paid.append(mechanism)
        self.what.append(what)
        stream = Stream(self.key.subkey("first look", len(self.paid))) if self.key.is_test else Stream.from_os()
        return mechanism.release(value, stream)

    @property
    def left(self) -> float:
        """Epsilon for the sample, rounded down."""
        return left_of(self.epsilon, self.paid)

    def then(self, plan: Joint, rule: Rule) -> "FirstThenSample":
        """The whole fit: what was paid, then this plan on a sample by this rule."""
        return FirstThenSample(self.epsilon, self.delta, tuple(self.paid), plan, rule)


@dataclass(frozen=True, slots=True)
class Promise:
    """The guarantee of every fit with this budget, whatever its first look finds: known before any record is read."""

    epsilon: float
    delta: float

    def guarantee(self) -> Guarantee:
        """(epsilon, delta), by construction."""
        return _within(self.epsilon, self.delta, self, (), (FIRST,))


@dataclass(frozen=True, slots=True)
class FirstThenSample:
    """Basic composition of the first look with a sample that satisfies the rest of epsilon at delta.

    How the sample was drawn depends on the answers of the first look, but it satisfies that for all answers.
    """

    epsilon: float
    delta: float
    paid: tuple[FirstNoise, ...]  # on all the data
    plan: Joint  # on the sample
    rule: Rule

    def guarantee(self) -> Guarantee:
        """Everything once more, from public facts."""
        return self.certified(amplify(self.plan, ImportanceSampling(self.rule)))

    def certified(self, sample: Guarantee) -> Guarantee:
        """The whole fit, given the sample's own guarantee."""
        left = left_of(self.epsilon, self.paid)
        if sample.delta(left) > self.delta:
            raise NoTheorem(
                f"the sample does not reach epsilon {left:g} at delta {self.delta:g}, so nothing is certified"
            )
        assumes = tuple(dict.fromkeys((*sample.assumes, *(a for m in self.paid for a in m.assumes))))
        return _within(self.epsilon, self.delta, self, assumes, lambda: (*sample.because, FIRST))


def left_of(epsilon: float, paid: Sequence[FirstNoise]) -> float:
    """Epsilon for the sample, rounded down."""
    if not paid:
        return epsilon
    spent = rounding.number_up(sum(mechanism.profile(Neighbors.ADD_REMOVE).epsilon() for mechanism in paid))
    return rounding.number_down(epsilon - spent)


def _within(
    epsilon: float,
    delta: float,
    stated: Promise | FirstThenSample,
    assumes: tuple[str, ...],
    because: tuple[str, ...] | Callable[[], tuple[str, ...]],
) -> Guarantee:
    upper = Profile.symmetric(approx_curve(epsilon, delta))
    parts = (Part(upper, None, claim=Claim(stated, None, Neighbors.ADD_REMOVE)),)
    return Guarantee(
        neighbors=Neighbors.ADD_REMOVE,
        upper=upper,
        reasons=because if callable(because) else lambda: because,
        assumes=assumes,
        parts=parts,
    )
