"""Mechanisms known only by their guarantee.

PureDP: the largest curve of any epsilon0-DP pair is randomised response's, (e^eps0 - e^eps)/(1 + e^eps0); j records
apart, through j - 1 samples in between, it is that of discrete Laplace noise moved by j steps (docs/persons.md, Thm 5).
ApproxDP: delta is lost and the rest is pure; j records apart by iterating the trade-off function. A black box has no
weights, no norm and no noise to add.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np

from ..chance.stream import Stream
from ..core.curves import approx_curve, group, pair_attack, pure_curve
from ..core.mechanism import ONE, Change, Mechanism
from ..core.multiplicity import Multiplicity
from ..core.neighbors import Neighbors, check_relation
from ..core.profile import Curve, Profile
from ..errors import NoTheorem
from ..numerics.log_domain import FloatArray, log1mexp, log_sum
from ..validation import in_range, nonnegative
from .discrete_laplace import discrete_laplace_curve, log_chain

_RAREST = 1e-300  # a smaller chance of "no" would vanish, and its loss look infinite; only steps above 690 have one


class BlackBox(Mechanism):
    """Common base: neither has weights, norms or noise."""

    __slots__ = ()

    def _records(self, neighbors: Neighbors, change: Change) -> int:
        """The distance in the mechanism's own relation."""
        if change.weight != 1.0 or change.norm is not None:
            raise NoTheorem(
                f"{type(self).__name__} is a black box, without weights or norms of records; describe the mechanism "
                "itself, for example Laplace(scale) or Gaussian(sigma)"
            )
        return change.copies * self.records_apart(neighbors)

    def release(self, value: Any, stream: Stream) -> NoReturn:
        """Refuse: there is no noise to add."""
        raise NoTheorem(
            f"{type(self).__name__} is a black box and has no noise to add; run your own mechanism on the "
            "sample, or use one that privamp knows, for example Laplace(scale)"
        )


@dataclass(frozen=True, slots=True)
class PureDP(BlackBox):
    """Any epsilon-DP mechanism.

    `neighbors` is the relation under which it is epsilon-DP; under replace-one, a mechanism stated for add/remove is (2
    epsilon)-DP. The guarantee of a sample holds for every such mechanism, so it is the worst over all of them. It has
    no noise to add: run your own mechanism, and state here what it guarantees.

    >>> PureDP(epsilon=1.0).profile(Neighbors.REPLACE_ONE).epsilon()
    2.0
    """

    epsilon: float
    neighbors: Neighbors = Neighbors.ADD_REMOVE
    any_event: ClassVar[bool] = True

    def __post_init__(self) -> None:
        nonnegative(epsilon=self.epsilon)
        check_relation(self.neighbors)

    def profile(self, neighbors: Neighbors, change: Change = ONE) -> Profile:
        """The largest curve of any such mechanism, symmetric."""
        records, epsilon = self._records(neighbors, change), float(self.epsilon)
        if records == 1 or epsilon == 0.0:
            return Profile.symmetric(pure_curve(epsilon))
        return Profile.symmetric(discrete_laplace_curve(epsilon, records))

    def family(self, neighbors: Neighbors) -> Callable[[FloatArray, FloatArray], FloatArray]:
        """All distances at once."""
        apart, step = self.records_apart(neighbors), float(self.epsilon)
        if step == 0.0:
            return lambda copies, epsilon: np.full(np.broadcast_shapes(copies.shape, epsilon.shape), -np.inf)
        return lambda copies, epsilon: log_chain(step, copies * apart, epsilon)

    def mixture(self, neighbors: Neighbors, law: Multiplicity) -> Profile | None:
        """A yes/no mechanism that says yes with chance proportional to e^(epsilon u): the worst one when u <= 1."""
        return all_say_yes([(self.epsilon, self.records_apart(neighbors))], law)

    def opposite_mixture(self, chance: float, records: int = 1) -> Profile | None:
        """Yes with chance proportional to e^epsilon, 1, e^-epsilon for one record, none, the other."""
        if self.neighbors.kind != "add-remove" or records > 1:
            return None
        return opposite_all_say_yes([self.epsilon], chance)


def all_say_yes(boxes: Sequence[tuple[float, int]], law: Multiplicity) -> Profile:
    """Mechanism i, (step, apart), says yes with chance proportional to e^(step apart u); all of them do.

    Every record on the way from u to u + 1, `apart` of them, changes its chances of yes and of no by e^step at most: so
    the largest chance of yes is e^step/(1 + e^step), whatever `apart` is.
    """
    most, total = law.log_p.size, sum(step * apart for step, apart in boxes)
    copies = np.arange(most + 1, dtype=np.float64)
    log_p = np.append(np.logaddexp(law.log_none, law.log_tail), law.log_p)  # P's tail counts as no appearance
    log_yes = _log_top([step for step, _ in boxes]) + total * (copies - most)  # at u = most; less is a weaker attack
    return _two_coins(log_p, log_yes, np.zeros(1), log_yes[:1])


def opposite_all_say_yes(steps: Sequence[float], chance: float) -> Profile:
    """The same for two opposite records, each kept with `chance`, symmetric."""
    total, top = sum(steps), _log_top(steps)
    with np.errstate(divide="ignore"):
        log_p = np.append(np.log1p([-chance]), np.log([chance]))  # log1p(chance - 1) has no digits for a tiny chance
    old, nobody, new = top, top - total, top - 2.0 * total
    return _two_coins(log_p, np.array([nobody, old]), log_p, np.array([nobody, new]))


def _log_top(steps: Sequence[float]) -> float:
    """log of the largest chance that all say yes, e^step/(1 + e^step) each; "no" stays possible for a double."""
    return min(-math.fsum(float(np.logaddexp(0.0, -step)) for step in steps), -_RAREST)


def _two_coins(log_p: FloatArray, yes_p: FloatArray, log_q: FloatArray, yes_q: FloatArray) -> Profile:
    """Two mixtures of coins by the logs of their weights and of their chances of yes.

    The chance of no is a sum of its own: taken from that of yes it would vanish where yes is nearly certain, and a loss
    that is only large would look infinite.
    """
    first, second = (
        np.array([log_sum(log_w + yes), log_sum(log_w + log1mexp(yes))])
        for log_w, yes in ((log_p, yes_p), (log_q, yes_q))
    )
    return pair_attack(first, second)


@dataclass(frozen=True, slots=True)
class ApproxDP(BlackBox):
    """Any (epsilon, delta)-DP mechanism.

    `neighbors` is the relation under which it is (epsilon, delta)-DP. The guarantee of a sample holds for every such
    mechanism; one that describes its noise (`Gaussian`) gets smaller numbers. It has no noise to add.

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
        epsilon, delta = float(self.epsilon), float(self.delta)
        if delta == 0.0:
            return Profile.symmetric(pure_curve(epsilon * records))
        curve = group(Profile.symmetric(approx_curve(epsilon, delta)), records).forward
        # the bound is least at epsilon * records, and delta never grows with epsilon
        return Profile.symmetric(Curve(lambda at: curve(np.minimum(at, epsilon * records))))
