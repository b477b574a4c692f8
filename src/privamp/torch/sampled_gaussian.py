"""The Rényi divergence of one step: P = (1-q)N(0, m^2) + qN(1, m^2) against Q = N(0, m^2).

Whole orders, forward: E_Q[(P/Q)^a] = sum_j C(a,j) (1-q)^(a-j) q^j exp(j(j-1)/(2 m^2)), exactly (Mironov, Talwar &
Zhang 2019, section 3.3; DPIS Eq. 13 with q = bC/K, m = sigma N C/K). It is the larger of the two directions (there,
Theorem 5). Other orders and D(Q||P): the trapezoid rule, which converges faster than any power for such an integrand.
"""

import math

import numpy as np

from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray, log_sum
from ..numerics.rounding import number_up
from ..validation import in_range, positive, whole

_POINTS = 200_001
_REACH = 40.0  # standard deviations beyond the farthest peak


def renyi_step(rate: float, multiplier: float, order: int) -> float:
    """An upper bound on the divergence of a whole order, in both directions.

    >>> f"{renyi_step(1024 / 18000, 2.7, 8):.5e}"
    '2.00321e-03'
    """
    in_range(0, 1, rate=rate)
    positive(multiplier=multiplier)
    whole(2, order=order)
    if rate == 0.0:
        return 0.0
    j = np.arange(2.0, order + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = np.where(j == order, 0.0, (order - j) * np.log1p(-rate))
    exponent = j * (j - 1.0) / (2.0 * multiplier**2)
    log_gain = exponent + np.log(-np.expm1(-exponent))  # log(e^x - 1): the terms with j < 2 add up to exactly 1
    log_excess = float(log_sum(_log_choose(order) + rest + j * math.log(rate) + log_gain))
    return number_up(float(np.logaddexp(0.0, log_excess)) / (order - 1.0) * (1.0 + 1e-12))


def _log_choose(order: int) -> FloatArray:
    """log C(order, j) for j = 2, 3, ..., order."""
    return np.asarray([math.log(math.comb(order, j)) for j in range(2, order + 1)])


def renyi_step_by_quadrature(rate: float, multiplier: float, order: float, *, reverse: bool = False) -> float:
    """The divergence of any order above 1, or of the opposite direction, to about 1e-13 in its exponential."""
    in_range(0, 1, open_ends=True, rate=rate)
    positive(multiplier=multiplier)
    if not 1.0 < order < 1e4:
        raise InvalidInput(f"order must be above 1 and below 10000, got {order!r} instead")
    low, high = -_REACH * multiplier - order, _REACH * multiplier + order
    x = np.linspace(low, high, _POINTS)
    log_q = -0.5 * (x / multiplier) ** 2
    loss = np.logaddexp(math.log1p(-rate), math.log(rate) + (2.0 * x - 1.0) / (2.0 * multiplier**2))
    power = log_q + (order * loss if not reverse else (1.0 - order) * loss)
    return (float(log_sum(power)) - float(log_sum(log_q))) / (order - 1.0)
