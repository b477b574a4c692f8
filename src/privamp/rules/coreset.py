"""The coreset rule: q(x) = share·m/n + (1 - share)·m||x||²/(n·x2), a mix of uniform and by squared norm.

m is the target size, n the population and x2 its mean squared norm, all public. With b = share·m/n and
k = (1 - share) m/(n x2) a record of norm u has q = b + k u², influence c = a + t u, and loses

    psi(u) = log(1 + q(e^E - 1)),  E = c/q.

psi' has the sign of t - 2 k u f(E), f(E) = E - 1 + e^-E: plus, minus, plus as u grows from 0, so besides the ends
psi has at most one local maximum. It lies left of the largest u f(E), where bisection finds it. A grid over u does
not: at share = 1e-4 on raw Covertype a grid of 100 points reports 1 where the truth is 3.817.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..core.curves import pure_curve
from ..core.influence import Influence
from ..core.profile import Profile
from ..errors import Infeasible, InvalidInput
from ..numerics.log_domain import FloatArray, as_floats
from ..numerics.roots import halved
from ..validation import in_range, positive
from .cells import worst_of_cells
from .profiles import GaussianProfile, LinearProfile
from .rounded import weights_below
from .rule import Rule
from .sampled_curves import amplified

_UP = 1.0 + 1e-12  # outward margin of a computed supremum


def coreset(
    profile: LinearProfile | GaussianProfile,
    *,
    share: float,
    size: float,
    population: float,
    mean_squared_norm: float,
    radius: float,
    dimension: int | None = None,
    delta: float = 0.0,
) -> Rule:
    """Keep a record with probability share·size/population + (1-share)·size·||x||²/(population·mean_squared_norm).

    All of it is public: the population size and the mean squared norm must not be computed from the data without
    noise. Norms are l2; a profile in another norm p < 2 needs the `dimension`.

    `profile` says how much a record of each norm influences the release, `size` is the expected sample size for that
    mean squared norm, `share` the part of it that is drawn uniformly, and records are clipped to `radius`. `delta` is
    that of the personal losses of Gaussian noise. The result is a rule for `ImportanceSampling`; its `guarantee()` is
    the worst over all records within the radius.

    >>> from privamp import NormNoise
    >>> profile = LinearProfile.of(NormNoise(scale=100.0, dimension=10))
    >>> rule = coreset(profile, share=0.5, size=200, population=10_000, mean_squared_norm=0.3, radius=1.0)
    >>> round(rule.guarantee().epsilon(), 6)
    0.011185
    """
    in_range(0, 1, share=share)
    if share == 0:
        raise InvalidInput("share must be above 0, got 0 instead: records of norm 0 would have probability 0")
    positive(size=size, population=population, mean_squared_norm=mean_squared_norm, radius=radius)
    most = largest_size(share, population, mean_squared_norm, radius)
    if size > most:
        raise Infeasible(
            f"a size of {size:g} needs a probability above 1 at the radius; the largest is {most:g} "
            "(population/(share + (1-share) radius²/mean_squared_norm))"
        )
    base = share * size / population
    per_square = (1.0 - share) * size / (population * mean_squared_norm)
    return Coreset(profile, float(base), float(per_square), float(radius), dimension, float(delta))


def largest_size(share: float, population: float, mean_squared_norm: float, radius: float) -> float:
    """The largest expected size for which no probability exceeds 1: exactly n/(share + (1-share) r²/x2)."""
    return population / (share + (1.0 - share) * radius**2 / mean_squared_norm)


@dataclass(frozen=True, slots=True)
class Coreset(Rule):
    """q(u) = base + per_square·u²."""

    profile: LinearProfile | GaussianProfile
    base: float
    per_square: float
    radius: float
    dimension: int | None = None
    delta: float = 0.0

    def __post_init__(self) -> None:
        in_range(2.0**-64, 1, base=self.base)
        in_range(0, 1, delta=self.delta)
        if self.profile.influence is None:
            raise InvalidInput(
                "this rule needs a profile made from an Influence, because it needs the worst record of the domain"
            )
        _ = self.radial

    @property
    def p(self) -> float:
        """The l2 norm."""
        return 2.0

    @property
    def radial(self) -> Influence:
        """The influence as a bound in l2 norms."""
        return self.profile.influence.in_l2(self.dimension)  # type: ignore[union-attr]

    def weights_of_norms(self, norms: ArrayLike) -> FloatArray:
        """One over the formula, rounded down."""
        u = self._inside(as_floats(norms))
        return weights_below(np.minimum(self.base + self.per_square * u * u, 1.0))

    def worst_profile(self) -> Profile:
        """The certified supremum for pure profiles, cells of the ball for Gaussian noise."""
        if self.kind == "gaussian":
            return worst_of_cells(self, self.radial)
        return Profile.symmetric(pure_curve(self.worst_loss()))

    def worst_loss(self) -> float:
        """sup of psi over norms from 0 to the radius, rounded up."""
        u = self.turning_point()
        ends = as_floats([0.0, self.radius] if u is None else [0.0, u, self.radius])
        return float(np.max(self._psi(ends))) * _UP

    def turning_point(self) -> float | None:
        """The interior local maximum of psi, where there is one."""
        a, t, b, k = self.radial.per_record, self.radial.per_norm, self.base, self.per_square
        if t == 0.0 or k == 0.0:
            return None

        def pull(u: FloatArray) -> FloatArray:  # u f(E), which rises and then falls
            e = (a + t * u) / (b + k * u * u)
            return u * (e + np.expm1(-e))

        top = _highest(pull, self.radius)
        if 2.0 * k * float(pull(as_floats(top))) <= t:
            return None  # psi grows all the way
        return halved(lambda u: not 2.0 * k * float(pull(as_floats(u))) < t, 0.0, top)[1]

    def _psi(self, u: FloatArray) -> FloatArray:
        q = np.minimum(self.base + self.per_square * u * u, 1.0)
        return amplified(q, self.radial.at(u) / q)

    @property
    def reason(self) -> str:
        """The sign pattern of psi'."""
        return "Coreset weights, certified supremum [add-remove → add-remove] (docs/designs/importance.md, Thm 5)"


def _highest(f: Callable[[FloatArray], FloatArray], end: float) -> float:
    """Where a function that rises and then falls is largest on [0, end]."""
    grid = np.concatenate([[0.0], np.geomspace(1e-15 * end, end, 2001)])
    for _ in range(12):
        best = int(np.argmax(f(grid)))
        grid = np.linspace(grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)], 101)
    return float(grid[int(np.argmax(f(grid)))])
