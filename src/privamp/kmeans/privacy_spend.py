"""What a fit spends before its sample is drawn: every release on all the data, written down and paid out of epsilon."""

from dataclasses import dataclass, field
from typing import Any

from ..accounting.composition import Composition
from ..chance.keys import Key
from ..chance.stream import Stream
from ..core.curves import approx_curve
from ..core.guarantee import Guarantee, Part
from ..core.neighbors import Neighbors
from ..core.profile import Profile
from ..errors import NoTheorem
from ..mechanisms.laplace import Laplace
from ..mechanisms.norm_noise import NormNoise
from ..numerics import rounding

FIRST = "basic composition of the first look at all the data with what its answers chose (pure epsilons add up)"


@dataclass(slots=True)
class PrivacySpend:
    """The budget and what was taken out of it. Only pure noise is used here, so epsilons add up."""

    epsilon: float
    delta: float
    key: Key = field(repr=False)
    paid: list[Laplace | NormNoise] = field(default_factory=list)
    what: list[str] = field(default_factory=list)  # was released by each

    def release(self, what: str, mechanism: Laplace | NormNoise, value: Any) -> Any:
        """Write the mechanism down, then add its noise."""
        self.paid.append(mechanism)
        self.what.append(what)
        stream = Stream(self.key.subkey("first look", len(self.paid))) if self.key.is_test else Stream.from_os()
        return mechanism.release(value, stream)

    @property
    def spent(self) -> float:
        """Epsilon used so far, rounded up."""
        losses = (mechanism.profile(Neighbors.ADD_REMOVE).epsilon() for mechanism in self.paid)
        return rounding.number_up(sum(losses)) if self.paid else 0.0

    @property
    def left(self) -> float:
        """Epsilon for the sample, rounded down."""
        return self.epsilon - self.spent if not self.paid else rounding.number_down(self.epsilon - self.spent)

    def total(self, sample: Guarantee) -> Guarantee:
        """The whole fit, given the sample's own guarantee."""
        return first_then_sample(self.epsilon, self.delta, self.left, tuple(self.paid), sample)


def first_then_sample(
    epsilon: float, delta: float, left: float, paid: tuple[Laplace | NormNoise, ...], sample: Guarantee
) -> Guarantee:
    """Basic composition of what was paid with a sample that meets (left, delta).

    How the sample was drawn depends on the answers of the first look, but it meets (left, delta) whatever they are.
    """
    if sample.delta(left) > delta:
        raise NoTheorem(f"the sample does not meet epsilon {left:g} at delta {delta:g}: nothing is certified")
    upper = Profile.symmetric(approx_curve(epsilon, delta))
    parts = (Part(upper, None),)
    return Guarantee(
        neighbors=Neighbors.ADD_REMOVE,
        upper=upper,
        reasons=lambda: (*sample.because, FIRST),
        assumes=tuple(dict.fromkeys((*sample.assumes, *(a for m in paid for a in m.assumes)))),
        parts=parts,
        pld_maker=Composition(parts).pld,
    )
