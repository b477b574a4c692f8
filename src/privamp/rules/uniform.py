"""The uniform rule: every record is kept with the same probability, and weighted by one over it.

The loss grows with the norm, so the worst record is at the radius.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..core.curves import pure_curve
from ..core.profile import Profile
from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray, as_floats
from ..validation import in_range, positive
from .profiles import GaussianProfile, LinearProfile
from .rounded import probabilities_below, weights_below
from .rule import Rule
from .sampled_curves import amplified, record_profile

_UP = 1.0 + 2.0**-44


def uniform(
    profile: LinearProfile | GaussianProfile,
    *,
    rate: float | None = None,
    size: float | None = None,
    population: float | None = None,
    radius: float,
    delta: float = 0.0,
) -> Rule:
    """Keep every record with probability `rate`, or `size`/`population`, both public.

    `delta` is the delta of personal losses of Gaussian noise.

    `profile` says how much a record of each norm influences the release, and records are clipped to `radius`. The
    guarantee of the rule is that of Poisson sampling for the record of the largest influence.

    >>> from privamp import Laplace
    >>> rule = uniform(LinearProfile.of(Laplace(scale=40.0)), rate=0.1, radius=4.0)
    >>> round(rule.guarantee().epsilon(), 6)
    0.158565
    """
    if (rate is None) == (size is None) or (size is None) != (population is None):
        raise InvalidInput("uniform takes either rate, or size and population")
    if rate is None:
        positive(size=size, population=population)
        rate = float(size) / float(population)  # type: ignore[arg-type]
        if rate > 1:
            raise InvalidInput(f"size must be at most the population, got {size!r} of {population!r} instead")
    return Uniform(profile, float(rate), radius, float(delta))


@dataclass(frozen=True, slots=True)
class Uniform(Rule):
    """The rule of `uniform`: one probability for all."""

    profile: LinearProfile | GaussianProfile
    rate: float
    radius: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        in_range(2.0**-64, 1, rate=self.rate)
        positive(radius=self.radius)
        in_range(0, 1, delta=self.delta)
        if self.profile.influence is None:
            raise InvalidInput(
                "this rule needs a profile made from an Influence, because it needs the worst record of the domain"
            )

    def weights_of_norms(self, norms: ArrayLike) -> FloatArray:
        """The same for all."""
        u = self._inside(as_floats(norms))
        return np.full(u.shape, float(weights_below(as_floats(self.rate))))

    def worst_profile(self) -> Profile:
        """That of a record at the radius: exact."""
        w = self.weights_of_norms(as_floats([self.radius]))
        q, theta = probabilities_below(w), self.profile.influence.at(self.radius) * w  # type: ignore[union-attr]
        if self.kind == "gaussian":
            return record_profile("gaussian", q, theta)
        return Profile.symmetric(pure_curve(float(amplified(q, theta)[0]) * _UP))

    @property
    def reason(self) -> str:
        """Monotone in the norm."""
        return "Uniform weights, worst at the radius [add-remove → add-remove] (IS Thm 6, docs/designs/importance.md)"
