"""How much noise a procedure needs: the largest shift/sigma whose certified guarantee keeps the budget."""

import math
from functools import lru_cache

from ..accounting.composition import compose
from ..amplification import amplify
from ..core.guarantee import Guarantee
from ..errors import Infeasible
from ..mechanisms.gaussian import gaussian_curve
from ..numerics.log_domain import as_floats
from ..numerics.roots import NumericalFailure, halved, passing_near
from .procedure import Procedure

_CLOSE = 0.03  # stop when delta is within 3 % below the budget: 0.2 % of the noise


@lru_cache(maxsize=128)
def strength(procedure: Procedure, epsilon: float, delta: float) -> tuple[float, Guarantee]:
    """theta = sensitivity/sigma of every release, and the guarantee of all of them together: at most the budget.

    Where noise is so small that the losses are too large to be composed (an epsilon above 30 to 100, for designs
    with repeats), the least noise that can be certified is taken: the guarantee is then better than the budget.
    """
    wanted = math.log(delta)
    certified: dict[float, Guarantee] = {}

    def excess(log_theta: float) -> float:
        found = compose(amplify(procedure.mechanism(1.0, math.exp(log_theta)), procedure.design), procedure.groups)
        try:
            reached = float(found.upper.log_delta(epsilon))
        except NumericalFailure:
            return math.inf
        certified[log_theta] = found
        return reached - wanted

    start = math.log(_guess(procedure, epsilon, delta))
    best = passing_near(excess, start, close=_CLOSE, lowest=-40.0, highest=10.0)
    if best is None:
        raise Infeasible("no amount of noise keeps this budget; allow a larger epsilon or delta")
    return math.exp(best), certified[best]


def _guess(procedure: Procedure, epsilon: float, delta: float) -> float:
    """The limit of many small samples, groups * eta^2 (e^(theta^2) - 1) = mu^2, made a little smaller."""
    mu = whole_data(epsilon, delta)
    eta = procedure.design.appearances().eta
    inside = procedure.inside.appearances() if procedure.inside else None
    copies = inside.mean * math.sqrt(procedure.each) if inside else 1.0
    theta = math.sqrt(math.log1p(mu * mu / (procedure.groups * eta * eta)))
    return 0.8 * theta / max(copies, 1.0)


@lru_cache(maxsize=64)
def whole_data(epsilon: float, delta: float) -> float:
    """The shift/sigma that the budget allows for one release from all the data."""

    def is_above(log_theta: float) -> bool:
        return not float(gaussian_curve(math.exp(log_theta))(as_floats(epsilon))) <= math.log(delta)

    return math.exp(halved(is_above, -30.0, 10.0, rounds=60)[0])
