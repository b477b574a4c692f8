"""The variance-optimal rule: q(x) = min(1, kappa ||x||), proportional to the norm.

Among all rules with the same expected size it has the smallest sampling variance of a weighted sum. For a plain sum
(influence t u) every sampled record moves the release by t/kappa, whatever its norm, so that

    psi(u) = log(1 + kappa u (e^(t/kappa) - 1))  for kappa u <= 1,   t u above,

which grows with u and vanishes at 0: the worst record is at the radius. With a floor (needed when records are also
counted, a > 0) there are three pieces: on the floor psi grows; on the slope psi' has the sign of
e^(z + t/kappa)(1 - z) - 1, z = a/(kappa u), minus then plus, so that only the ends matter; at q = 1 it grows.

kappa must be public. Fitted to the data (the oracle of the papers' plots) it has no guarantee.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..core.curves import pure_curve
from ..core.profile import Profile
from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray, as_floats
from ..validation import in_range, positive
from .cells import worst_of_cells
from .profiles import GaussianProfile, LinearProfile
from .rounded import LARGEST_WEIGHT, weights_below
from .rule import Rule
from .sampled_curves import amplified

_UP = 1.0 + 1e-12


def variance_optimal(
    profile: LinearProfile | GaussianProfile,
    *,
    kappa: float,
    radius: float,
    public: bool = True,
    floor: float = 1.0 / LARGEST_WEIGHT,
    delta: float = 0.0,
) -> Rule:
    """Keep a record with probability min(1, kappa·norm), at least the public `floor`.

    `public=False` marks a kappa that was fitted to the data: the rule draws, but has no guarantee.

    `profile` says how much a record of each norm influences the release, and records are clipped to `radius`. `delta`
    is the delta of personal losses of Gaussian noise. The guarantee of the rule is the worst over all norms up to
    `radius`.

    >>> from privamp import Laplace
    >>> rule = variance_optimal(LinearProfile.of(Laplace(scale=40.0)), kappa=0.1, radius=4.0)
    >>> round(rule.guarantee().epsilon(), 6)
    0.107607
    """
    positive(kappa=kappa, radius=radius)
    return VarianceOptimal(profile, float(kappa), float(radius), bool(public), float(floor), float(delta))


@dataclass(frozen=True, slots=True)
class VarianceOptimal(Rule):
    """q(u) = min(1, max(floor, kappa·u))."""

    profile: LinearProfile | GaussianProfile
    kappa: float
    radius: float
    public: bool = True
    floor: float = 1.0 / LARGEST_WEIGHT
    delta: float = 0.0

    def __post_init__(self) -> None:
        in_range(1.0 / LARGEST_WEIGHT, 1, floor=self.floor)
        in_range(0, 1, delta=self.delta)
        if self.profile.influence is None:
            raise InvalidInput(
                "this rule needs a profile made from an Influence, because it needs the worst record of the domain"
            )

    def weights_of_norms(self, norms: ArrayLike) -> FloatArray:
        """One over the formula, rounded down."""
        u = self._inside(as_floats(norms))
        return weights_below(np.clip(self.kappa * u, self.floor, 1.0))

    @property
    def is_public(self) -> bool:
        """Whether kappa was declared public."""
        return self.public

    def worst_profile(self) -> Profile:
        """The largest of the ends for pure profiles, cells of the ball for Gaussian noise."""
        self.check_public()
        if self.kind == "gaussian":
            return worst_of_cells(self, self.profile.influence)  # type: ignore[arg-type]
        influence = self.profile.influence
        ends = as_floats([u for u in (self.floor / self.kappa, 1.0 / self.kappa) if u < self.radius] + [self.radius])
        q = np.clip(self.kappa * ends, self.floor, 1.0)
        loss = float(np.max(amplified(q, influence.at(ends) / q)))  # type: ignore[union-attr]
        return Profile.symmetric(pure_curve(loss * _UP if math.isfinite(loss) else math.inf))

    @property
    def reason(self) -> str:
        """Monotone pieces."""
        return "Variance-optimal weights, public kappa [add-remove → add-remove] (docs/designs/importance.md, Thm 6)"
