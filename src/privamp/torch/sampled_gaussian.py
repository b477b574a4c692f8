"""The Rényi divergence of one step: P = (1-q)N(0, m^2) + qN(1, m^2) against Q = N(0, m^2).

Whole orders, forward: E_Q[(P/Q)^a] = sum_j C(a,j) (1-q)^(a-j) q^j exp(j(j-1)/(2 m^2)), exactly (Mironov, Talwar &
Zhang 2019, section 3.3; DPIS Eq. 13 with q = bC/K, m = sigma N C/K). It is the larger of the two directions (there,
Theorem 5).
"""

import math

import numpy as np

from ..numerics.log_domain import FloatArray, log_sum
from ..numerics.rounding import number_up
from ..validation import in_range, positive, whole


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
