"""Privacy profiles: delta as a function of epsilon, one curve per direction.

P is the law of the output with the record, Q without (under replace-one both orders occur, so the two
curves are equal). `forward` bounds D(P||Q), `backward` bounds D(Q||P). A curve is stored for epsilon >= 0
only; negative arguments follow from the other direction,

    delta_PQ(-epsilon) = 1 - e^(-epsilon) + e^(-epsilon) delta_QP(epsilon),

which is an identity for every pair. Extending a direction by itself would be false.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..numerics import rounding
from ..numerics.log_domain import FloatArray, as_floats, log1mexp
from ..numerics.roots import first_at_most
from ..validation import in_range

_UNREACHED = 1e6  # a larger epsilon is reported as infinite
_FARTHEST = 1e300  # stands for infinity, so that no curve meets inf - inf
LogDelta = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, slots=True)
class Curve:
    """log delta(epsilon) for epsilon >= 0 in one direction; zero from `largest_loss` on."""

    log_delta: LogDelta
    largest_loss: float = math.inf
    is_end_certain: bool = False  # `largest_loss` was proved in directed arithmetic and needs no margin
    ceiling: LogDelta | None = None  # a quick upper bound of the curve: it says where to look for a root

    def __call__(self, epsilon: ArrayLike) -> FloatArray:
        """log delta at epsilon >= 0, never above log 1."""
        asked = as_floats(epsilon)
        values = np.minimum(self.log_delta(np.minimum(asked, _FARTHEST)), 0.0)
        return np.where(asked >= self.largest_loss, -np.inf, values)

    def rounded_up(self) -> "Curve":
        """An upper bound in spite of floating-point error."""
        inner = self

        def log_delta(epsilon: FloatArray) -> FloatArray:
            return rounding.up(inner(np.maximum(epsilon - rounding.ARGUMENT * (1.0 + epsilon), 0.0)))

        end = self.largest_loss if self.is_end_certain else rounding.number_up(self.largest_loss)
        return Curve(log_delta, end)

    def rounded_down(self) -> "Curve":
        """A lower bound in spite of floating-point error."""
        inner = self

        def log_delta(epsilon: FloatArray) -> FloatArray:
            return rounding.down(inner(epsilon + rounding.ARGUMENT * (1.0 + epsilon)))

        return Curve(log_delta, rounding.number_down(self.largest_loss))


@dataclass(frozen=True, slots=True)
class Profile:
    """delta(epsilon) for every real epsilon, in both directions.

    `forward` is the curve of P against Q, `backward` that of Q against P, where P has one record more. `delta(epsilon)`
    and `epsilon(delta)` take the larger direction and round up.

    >>> from privamp import Laplace, Neighbors
    >>> Laplace(scale=2.0).profile(Neighbors.ADD_REMOVE).epsilon()
    0.5
    """

    forward: Curve
    backward: Curve

    @classmethod
    def symmetric(cls, curve: Curve) -> "Profile":
        """Both directions equal, as under replace-one."""
        return cls(curve, curve)

    @classmethod
    def minimum(cls, profiles: Iterable["Profile"]) -> "Profile":
        """The smaller of several upper bounds at every epsilon and in each direction."""
        profiles = tuple(profiles)
        if len(profiles) == 1:
            return profiles[0]
        forward = _lowest([p.forward for p in profiles])
        if all(p.is_symmetric for p in profiles):
            return cls.symmetric(forward)
        return cls(forward, _lowest([p.backward for p in profiles]))

    @classmethod
    def maximum(cls, profiles: Iterable["Profile"]) -> "Profile":
        """The larger of several curves at every epsilon and in each direction."""
        profiles = tuple(profiles)
        if len(profiles) == 1:
            return profiles[0]
        forward = _highest([p.forward for p in profiles])
        if all(p.is_symmetric for p in profiles):
            return cls.symmetric(forward)
        return cls(forward, _highest([p.backward for p in profiles]))

    @property
    def is_symmetric(self) -> bool:
        """Whether both directions are one curve."""
        return self.forward is self.backward

    @property
    def largest_loss(self) -> float:
        """The pure-DP epsilon: delta is zero from here on (inf when there is none)."""
        return max(self.forward.largest_loss, self.backward.largest_loss)

    def symmetrised(self) -> "Profile":
        """Both directions replaced by the larger one: under replace-one the two data sets have no order, in any
        round."""
        return self if self.is_symmetric else Profile.symmetric(_highest([self.forward, self.backward]))

    def log_delta(self, epsilon: ArrayLike) -> FloatArray:
        """log of the larger direction's delta at any real epsilon."""
        epsilon = as_floats(epsilon)
        one = _extended(self.forward, self.backward, epsilon)
        return one if self.is_symmetric else np.maximum(one, _extended(self.backward, self.forward, epsilon))

    def delta(self, epsilon: ArrayLike) -> FloatArray | float:
        """The larger direction's delta at any real epsilon; a float for a float."""
        value = np.exp(self.log_delta(epsilon))
        return float(value) if np.ndim(epsilon) == 0 else value

    def epsilon(self, delta: float = 0.0) -> float:
        """The smallest epsilon >= 0 with delta(epsilon) <= delta, from the side where it holds; inf for none."""
        in_range(0, 1, delta=delta)
        if delta == 0.0:
            return self.largest_loss
        if delta == 1.0:
            return 0.0
        target, end = math.log(delta), self.largest_loss
        if self.forward.ceiling is None or self.backward.ceiling is None:
            if float(self.log_delta(_UNREACHED)) > target:
                return end
            return min(first_at_most(self.log_delta, target, limit=_UNREACHED, chords=True), end)
        found = 0.0  # one direction after the other: the second is rarely needed at more than one epsilon
        for curve in dict.fromkeys((self.forward, self.backward)):
            if float(curve(_UNREACHED)) > target:
                return end
            found = first_at_most(curve, target, start=found, limit=_UNREACHED, ceiling=curve.ceiling, chords=True)
        return min(found, end)

    def rounded_up(self) -> "Profile":
        """Both directions rounded in the safe direction."""
        forward = self.forward.rounded_up()
        return Profile(forward, forward if self.is_symmetric else self.backward.rounded_up())

    def rounded_down(self) -> "Profile":
        """Both directions rounded down, as lower bounds."""
        forward = self.forward.rounded_down()
        return Profile(forward, forward if self.is_symmetric else self.backward.rounded_down())


def _lowest(curves: list[Curve]) -> Curve:
    return Curve(lambda epsilon: np.minimum.reduce([c(epsilon) for c in curves]), min(c.largest_loss for c in curves))


def _highest(curves: list[Curve]) -> Curve:
    return Curve(lambda epsilon: np.maximum.reduce([c(epsilon) for c in curves]), max(c.largest_loss for c in curves))


def _extended(curve: Curve, other: Curve, epsilon: FloatArray) -> FloatArray:
    if np.all(epsilon >= 0):
        return curve(epsilon)
    size = np.abs(epsilon)
    mirrored = np.logaddexp(log1mexp(-size), other(size) - size)
    return np.where(epsilon >= 0, curve(size), np.minimum(mirrored, 0.0))
