"""One draw in the terms of MUST: amplification types (Definition 5) and the aligned profile (Remark 1).

With eta = Pr[a record is in the sample] and eps' = log(1 + eta (e^eps - 1)), a design has *strong* amplification when
eps' < eps and delta'(eps') < delta(eps), *weak I* when only eps' is smaller, *weak II* when only delta' is, and
*dilution* when neither is; the aligned profile is (eps'/eps, delta' - delta). It does not rank designs, because n eta =
E[distinct records]: eps' only measures how few different records are used.
"""

from dataclasses import dataclass

from ..core.guarantee import Guarantee
from ..core.mechanism import Mechanism
from ..errors import NoTheorem
from ..numerics.log_domain import log_mix

_SAME = 1e-9  # relative; guarantees are rounded up by less, and where delta should be 0 by less than _NOTHING
_NOTHING = 1e-11


@dataclass(frozen=True, slots=True)
class Aligned:
    """One draw in MUST's view: base (eps, delta) and amplified (eps', delta')."""

    base_epsilon: float
    base_delta: float
    epsilon: float
    delta: float

    @property
    def ratio(self) -> float:
        """eps'/eps."""
        return self.epsilon / self.base_epsilon

    @property
    def difference(self) -> float:
        """delta' - delta."""
        return self.delta - self.base_delta

    @property
    def kind(self) -> str:
        """The PA type of Definition 5; a number that stays equal is not worse."""
        worse_epsilon = self.epsilon > self.base_epsilon * (1.0 + _SAME)
        worse_delta = self.delta > self.base_delta * (1.0 + _SAME) + _NOTHING
        if worse_epsilon or worse_delta:
            return "dilution" if worse_epsilon and worse_delta else "weak II" if worse_epsilon else "weak I"
        better = self.ratio < 1.0 - _SAME or self.delta < self.base_delta * (1.0 - _SAME)
        return "strong" if better else "none"


def align(one: Guarantee, mechanism: Mechanism, eta: float, epsilon: float) -> Aligned | None:
    """MUST's view of one draw at base `epsilon`; None where the mechanism alone has no guarantee to compare with."""
    try:
        base = mechanism.profile(one.neighbors.per_record)
    except NoTheorem:
        return None
    amplified = float(log_mix(eta, epsilon)) if eta > 0 else 0.0
    return Aligned(epsilon, float(base.delta(epsilon)), amplified, float(one.delta(amplified)))
