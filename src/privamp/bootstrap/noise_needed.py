"""How much noise a procedure needs: the largest shift/sigma whose certified guarantee keeps the budget."""

import math
from collections.abc import Callable
from functools import lru_cache

from ..accounting.composition import compose
from ..amplification import amplify
from ..core.guarantee import Guarantee
from ..errors import Infeasible
from ..mechanisms.gaussian import gaussian_curve
from ..numerics.log_domain import as_floats
from .procedure import Procedure

_CLOSE = 0.03  # stop when delta is within 3 % below the budget: 0.2 % of the noise
_TRIALS = 60


@lru_cache(maxsize=128)
def strength(procedure: Procedure, epsilon: float, delta: float) -> tuple[float, Guarantee]:
    """theta = sensitivity/sigma of every release, and what all of them together guarantee: at most the budget."""
    wanted = math.log(delta)
    certified: dict[float, Guarantee] = {}

    def excess(log_theta: float) -> float:
        found = compose(amplify(procedure.mechanism(1.0, math.exp(log_theta)), procedure.design), procedure.groups)
        certified[log_theta] = found
        return float(found.upper.log_delta(epsilon)) - wanted

    best = _root(excess, math.log(_guess(procedure, epsilon, delta)))
    return math.exp(best), certified[best]


def _root(excess: Callable[[float], float], start: float) -> float:
    """A point with excess in (-_CLOSE, 0]: bracket, then false position with halving."""
    high, at_high = start, excess(start)
    step = 0.25
    low, at_low = high, at_high
    while at_low > 0.0:
        high, at_high = low, at_low
        low, step = low - step, 2.0 * step
        at_low = excess(low)
        if low < -40.0:
            raise Infeasible("no amount of noise keeps this budget; allow a larger epsilon or delta")
    step = 0.25
    while at_high <= 0.0:
        if at_high > -_CLOSE:
            return high
        low, at_low = high, at_high
        high, step = high + step, 2.0 * step
        at_high = excess(high)
        if high > 10.0:
            return low
    for trial in range(_TRIALS):
        if at_low > -_CLOSE or high - low < 1e-6:
            return low
        share = (at_low + 0.5 * _CLOSE) / (at_low - at_high)
        middle = low + (high - low) * (share if trial % 3 != 2 and 0.02 < share < 0.98 else 0.5)
        value = excess(middle)
        low, at_low, high, at_high = (middle, value, high, at_high) if value <= 0.0 else (low, at_low, middle, value)
    return low


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
    low, high = -30.0, 10.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        passes = float(gaussian_curve(math.exp(middle))(as_floats(epsilon))) <= math.log(delta)
        low, high = (middle, high) if passes else (low, middle)
    return math.exp(low)
