"""Mechanisms of which only a guarantee is known.

PureDP: the largest curve of any epsilon0-DP pair is randomised response's, (e^eps0 - e^eps)/(1 + e^eps0); j
records apart the same with j epsilon0. ApproxDP: delta is lost and the rest is pure; j records apart by group
privacy, delta_j(eps) <= (e^eps - 1)/(e^(eps/j) - 1) delta(eps/j). A black box has no weights, no norm and no
noise to add.
"""

from dataclasses import dataclass
from typing import Any, NoReturn

from ..chance.stream import Stream
from ..core.curves import approx_curve, group, pure_curve
from ..core.mechanism import ONE, Change, Mechanism
from ..core.neighbors import Neighbors
from ..core.profile import Profile
from ..errors import NoTheorem
from ..validation import in_range, nonnegative
from .noise import check_relation


class _BlackBox(Mechanism):
    """What both black boxes refuse."""

    __slots__ = ()

    def _records(self, neighbors: Neighbors, change: Change) -> int:
        """The distance in the mechanism's own relation."""
        if change.weight != 1.0 or change.norm is not None:
            raise NoTheorem(
                f"{type(self).__name__} is a black box, which says nothing about a record's weight or norm; "
                "describe the mechanism itself, for example Laplace(scale) or Gaussian(sigma)"
            )
        return change.copies * self.records_apart(neighbors)

    def release(self, value: Any, stream: Stream) -> NoReturn:
        """Refuse: there is no noise to add."""
        raise NoTheorem(
            f"{type(self).__name__} is a black box and has no noise to add; run your own mechanism on the "
            "sample, or use one that privamp knows, for example Laplace(scale)"
        )


@dataclass(frozen=True, slots=True)
class PureDP(_BlackBox):
    """Any epsilon-DP mechanism.

    >>> PureDP(epsilon=1.0).profile(Neighbors.REPLACE_ONE).epsilon()
    2.0
    """

    epsilon: float
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    def __post_init__(self) -> None:
        nonnegative(epsilon=self.epsilon)
        check_relation(self.neighbors)

    def profile(self, neighbors: Neighbors, change: Change = ONE) -> Profile:
        """The largest curve of any such mechanism, symmetric."""
        return Profile.symmetric(pure_curve(float(self.epsilon) * self._records(neighbors, change)))


@dataclass(frozen=True, slots=True)
class ApproxDP(_BlackBox):
    """Any (epsilon, delta)-DP mechanism.

    >>> f"{ApproxDP(epsilon=1.0, delta=1e-6).profile(Neighbors.ADD_REMOVE).delta(1.0):.1e}"
    '1.0e-06'
    """

    epsilon: float
    delta: float
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    def __post_init__(self) -> None:
        nonnegative(epsilon=self.epsilon)
        in_range(0, 1, delta=self.delta)
        check_relation(self.neighbors)

    def profile(self, neighbors: Neighbors, change: Change = ONE) -> Profile:
        """The largest curve of any such mechanism, symmetric; groups by the black-box bound."""
        records = self._records(neighbors, change)
        if self.delta == 0.0:
            return Profile.symmetric(pure_curve(float(self.epsilon) * records))
        return group(Profile.symmetric(approx_curve(float(self.epsilon), float(self.delta))), records)
