"""Privacy-constrained rules: every record is kept as rarely as its own privacy allows.

For each record the largest weight w >= 1 (the smallest probability 1/w) whose loss stays within the target. Records
with little influence are kept rarely, and all records use the same budget.

For linear pure profiles this costs privacy and never gains any: psi(x) >= epsilon(1, x), the loss without sampling,
for every weight. It makes the job faster. (Importance sampling paper, appendix A; docs/designs/importance.md.)
"""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from ..core.curves import approx_curve, pure_curve
from ..core.profile import Profile
from ..errors import Infeasible, InvalidInput, NoTheorem
from ..numerics.log_domain import FloatArray, as_floats
from ..numerics.printing import as_asked
from ..validation import in_range, positive
from .gaussian_weights import GaussianTable, gaussian_table
from .general_weights import general_weights
from .linear_weights import linear_weights
from .profiles import GaussianProfile, GeneralProfile, LinearProfile
from .rounded import LARGEST_WEIGHT, probabilities_below
from .rule import Rule
from .sampled_curves import amplified

_CITE = "(IS Thm 6 and Problem 7, docs/designs/importance.md)"
_BOUNDARY = 1.0 + 2.0**-46  # an influence this close to epsilon was rounded up
_ROOM = 1e-13  # slack that the table leaves for outward rounding of the reported curve


@overload
def privacy_constrained(
    profile: LinearProfile | GeneralProfile,
    epsilon: float,
    *,
    radius: float | None = ...,
    max_weight: float | None = ...,
) -> "LinearConstrained | GeneralConstrained": ...
@overload
def privacy_constrained(
    profile: GaussianProfile,
    epsilon: float,
    delta: float,
    *,
    radius: float | None = ...,
    max_weight: float | None = ...,
) -> "GaussianConstrained": ...


def privacy_constrained(
    profile: LinearProfile | GeneralProfile | GaussianProfile,
    epsilon: float,
    delta: float = 0.0,
    *,
    radius: float | None = None,
    max_weight: float | None = None,
) -> "LinearConstrained | GeneralConstrained | GaussianConstrained":
    """The rule that keeps every record with the smallest probability that loses at most epsilon (at delta).

    `radius` declares the domain. `max_weight` is a public cap on weights, and the weight of records without influence;
    by default 2^40, and 1/delta for Gaussian noise (rarer records would be hidden by delta alone).

    `profile` says what a record loses when it is kept with a weight w: `LinearProfile`, `GaussianProfile`, or a
    `GeneralProfile` of your own.

    >>> from privamp import Laplace
    >>> rule = privacy_constrained(LinearProfile.of(Laplace(scale=4.0)), epsilon=1.0, radius=4.0)
    >>> rule.of_norms([0.5, 1.0, 4.0]).round(6).tolist()
    [0.030993, 0.080462, 1.0]
    """
    positive(epsilon=epsilon)
    if radius is not None:
        positive(radius=radius)
    if isinstance(profile, GaussianProfile):
        in_range(0, 1, open_ends=True, delta=delta)
        cap = 1.0 / delta if max_weight is None else max_weight
        in_range(1, LARGEST_WEIGHT, max_weight=cap)
        return GaussianConstrained(profile, float(epsilon), float(delta), radius, float(cap))
    if not isinstance(profile, (LinearProfile, GeneralProfile)):
        raise InvalidInput(
            f"profile must be a LinearProfile, GaussianProfile or GeneralProfile, got {type(profile).__name__} instead"
        )
    if delta != 0:
        raise InvalidInput(f"delta must be 0 for a pure profile, got {delta!r} instead")
    cap = 2.0**40 if max_weight is None else max_weight
    in_range(1, LARGEST_WEIGHT, max_weight=cap)
    kind = LinearConstrained if isinstance(profile, LinearProfile) else GeneralConstrained
    return kind(profile, float(epsilon), radius, float(cap))  # type: ignore[arg-type]


class _Constrained(Rule):
    """What the three have in common: a target, and errors for too much influence."""

    epsilon: float

    @property
    def farthest(self) -> float | None:
        """The radius, or else the norm at which the target is used up without sampling."""
        if self.radius is not None or self.influence is None:
            return self.radius
        return self.influence.norm_at(self.largest_influence)

    @property
    @abstractmethod
    def largest_influence(self) -> float:
        """The largest influence of a record that is kept with probability 1; more is rejected."""

    def _check_radius(self) -> None:
        if self.radius is None or self.influence is None:
            return
        most, limit = float(self.influence.at(self.radius)), self.largest_influence
        if most > limit * _BOUNDARY:
            raise Infeasible(
                f"a record of norm {self.radius:g} has influence {most:g} even without sampling, above the {limit:g} "
                "that "
                f"{self._target()} allows; add noise, or declare a smaller radius"
            )

    def _feasible(self, influences: FloatArray) -> FloatArray:
        """Influences up to the limit; at the boundary of a declared domain the last bits do not count."""
        limit = self.largest_influence
        slack = _BOUNDARY if self.radius is not None and self.influence is not None else 1.0
        most = float(np.max(influences, initial=0.0))
        if most <= limit:
            return influences
        if not most <= limit * slack:
            raise Infeasible(
                f"some records have more influence than the {limit:g} that {self._target()} allows even without "
                "sampling; "
                "add noise, or clip the records"
            )
        return np.minimum(influences, limit)

    def _target(self) -> str:
        return f"epsilon {as_asked(self.epsilon)}"


@dataclass(frozen=True, slots=True)
class LinearConstrained(_Constrained):
    """psi(x) = log(1 + q(e^(c w) - 1)) <= epsilon for every record, in exact arithmetic."""

    profile: LinearProfile
    epsilon: float
    radius: float | None = None
    max_weight: float = 2.0**40

    delta = 0.0

    def __post_init__(self) -> None:
        self._check_radius()

    @property
    def largest_influence(self) -> float:
        """The largest influence of a record that is kept with probability 1."""
        return self.epsilon

    def weights_of_norms(self, norms: ArrayLike) -> FloatArray:
        """The largest weight that meets the target, of a record of each norm."""
        if self.influence is None:
            raise NoTheorem("the probability is not a function of the norm here; use probabilities(records)")
        return self._weights(self.influence.at(norms))

    @property
    def decides_by_norm(self) -> bool:
        """Unless the influence is a function of the whole record."""
        return self.influence is not None

    def weights(self, records: Any) -> FloatArray:
        """The largest weight that meets the target, of each record."""
        if self.influence is not None:
            return Rule.weights(self, records)
        return self._weights(self._influences(records))

    def _weights(self, influences: FloatArray) -> FloatArray:
        return linear_weights(self._feasible(influences), self.epsilon, self.max_weight)

    def _losses(self, q: FloatArray, w: FloatArray, influences: FloatArray) -> FloatArray:
        return np.minimum(Rule._losses(self, q, w, influences), self._certified())

    def _certified(self) -> float:
        """The target, or the loss at the end of the domain if rounding put that above it."""
        if self.radius is None or self.influence is None:
            return self.epsilon
        return max(self.epsilon, float(self.influence.at(self.radius)))

    def worst_profile(self) -> Profile:
        """That of the target, which no record exceeds."""
        return Profile.symmetric(pure_curve(self._certified(), is_certain=True))

    @property
    def reason(self) -> str:
        """IS Theorem 6, record by record."""
        return f"Privacy-constrained weights, linear profile [add-remove → add-remove] {_CITE}"


@dataclass(frozen=True, slots=True)
class GaussianConstrained(_Constrained):
    """D(P||Q)(epsilon) <= delta for every record."""

    profile: GaussianProfile
    epsilon: float
    delta: float
    radius: float | None = None
    max_weight: float = 2.0**40

    def __post_init__(self) -> None:
        self._check_radius()

    @property
    def inner(self) -> tuple[float, float]:
        """What the table is solved for: slightly inside the target, so that the rounded curve meets the target."""
        return max(self.epsilon - _ROOM * (1.0 + self.epsilon), 0.0), self.delta * (1.0 - 1e4 * _ROOM)

    @property
    def table(self) -> GaussianTable:
        """q as a function of the influence, shared by all rules with this target."""
        return gaussian_table(*self.inner, 1.0 / self.max_weight)

    @property
    def largest_influence(self) -> float:
        """The largest influence of a record that is kept with probability 1."""
        return self.table.s_full

    def _target(self) -> str:
        return f"epsilon {as_asked(self.epsilon)} at delta {as_asked(self.delta)}"

    def weights_of_norms(self, norms: ArrayLike) -> FloatArray:
        """From the table, at the next larger influence."""
        if self.influence is None:
            raise NoTheorem("the probability is not a function of the norm here; use probabilities(records)")
        return self.table.look_up(self._feasible(self.influence.at(norms)))

    @property
    def decides_by_norm(self) -> bool:
        """Unless the influence is a function of the whole record."""
        return self.influence is not None

    def weights(self, records: Any) -> FloatArray:
        """From the table, at the next larger influence."""
        if self.influence is not None:
            return Rule.weights(self, records)
        return self.table.look_up(self._feasible(self._influences(records)))

    def _losses(self, q: FloatArray, w: FloatArray, influences: FloatArray) -> FloatArray:
        influences = np.minimum(influences, self.table.s_full)
        return np.minimum(Rule._losses(self, q, w, influences), self.epsilon)

    def worst_profile(self) -> Profile:
        """The largest curve that meets the target."""
        return Profile.symmetric(approx_curve(*self.inner))

    @property
    def reason(self) -> str:
        """The closed form of one record kept by a coin."""
        return (
            "Privacy-constrained weights, Gaussian noise [add-remove → add-remove] (docs/designs/importance.md, Thm 2)"
        )


@dataclass(frozen=True, slots=True)
class GeneralConstrained(_Constrained):
    """psi(x) <= epsilon by bracketing, for any profile whose exponential is strongly convex."""

    profile: GeneralProfile
    epsilon: float
    radius: float | None = None
    max_weight: float = 2.0**40

    delta = 0.0

    def weights_of_norms(self, norms: ArrayLike) -> FloatArray:
        """Raise: a general profile reads the whole record."""
        raise NoTheorem("the probability is not a function of the norm here; use probabilities(records)")

    @property
    def decides_by_norm(self) -> bool:
        """False: the profile may read the whole record."""
        return False

    def weights(self, records: Any) -> FloatArray:
        """The largest weight that meets the target, by Algorithm 1 as corrected."""
        return general_weights(self.profile, records, self.epsilon, self.max_weight)

    def losses(self, records: Any) -> FloatArray:
        """psi(x), rounded up."""
        w = self.weights(records)
        loss = amplified(probabilities_below(w), as_floats(self.profile.epsilon(w, records)))
        return np.minimum(loss * _BOUNDARY, self.epsilon)

    def _personal_profile(self, q: FloatArray, w: FloatArray, row: FloatArray) -> Profile:
        return Profile.symmetric(pure_curve(float(self.losses(row)[0]), is_certain=True))

    @property
    def largest_influence(self) -> float:
        """The largest influence of a record that is kept with probability 1."""
        return math.inf

    def worst_profile(self) -> Profile:
        """That of the target, which no record exceeds."""
        return Profile.symmetric(pure_curve(self.epsilon, is_certain=True))

    @property
    def reason(self) -> str:
        """IS Theorem 6, record by record."""
        return f"Privacy-constrained weights, general profile [add-remove → add-remove] {_CITE}"
