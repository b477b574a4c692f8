"""Ratios of elementary symmetric polynomials of numbers given by their logarithms.

E_j(t) is the sum over all j-subsets of the product of their t. Tilt by z: with p_h = z t_h/(1 + z t_h),
Pr[j of the independent coins p_h show heads] = E_j(t) z^j / prod(1 + z t_h), so

    E_j / E_(j-1) = Pr[j] / (z Pr[j-1]).

Choose z such that j - 1/2 heads are expected: both probabilities are then the largest there are, nothing
overflows, and sums of positive numbers lose no digits. The coins' generating polynomials are multiplied in
pairs, all of one length at once.
"""

import math

import numpy as np
from scipy.special import expit

from .log_domain import FloatArray, as_floats
from .roots import halved


def log_symmetric_ratio(log_t: FloatArray, order: int) -> float:
    """log of E_order / E_(order-1) of the numbers e^log_t; -inf when there are fewer than `order` of them.

    >>> round(math.exp(log_symmetric_ratio(np.log([1.0, 2.0, 3.0]), 2)), 12)  # (2 + 3 + 6)/(1 + 2 + 3)
    1.833333333333
    """
    log_t = as_floats(log_t)
    if not 1 <= order <= log_t.size:
        return -math.inf
    log_z = _tilt(log_t, order - 0.5)
    heads = _coin_law(expit(log_t + log_z), expit(-log_t - log_z))
    return math.log(heads[order]) - math.log(heads[order - 1]) - log_z


def _tilt(log_t: FloatArray, expected: float) -> float:
    """log z such that the expected number of heads is about `expected` (it need not be exact)."""
    low, high = -float(np.max(log_t)) - 60.0, -float(np.min(log_t)) + 60.0
    is_above = lambda x: not float(np.sum(expit(log_t + x))) < expected  # noqa: E731
    low, high = halved(is_above, low, high, until=lambda low, high: high - low < 1e-9)
    return 0.5 * (low + high)


def _coin_law(heads: FloatArray, tails: FloatArray) -> FloatArray:
    """The law of the number of heads, shape (coins + 1,)."""
    padded = 1 << max(heads.size - 1, 0).bit_length()
    rows = np.zeros((padded, 2))  # coins that never show heads fill up to a power of two
    rows[:, 0] = 1.0
    rows[: heads.size] = np.stack([tails, heads], axis=1)
    while rows.shape[0] > 1:
        first, second = rows[0::2], rows[1::2]
        width = rows.shape[1]
        joined = np.zeros((first.shape[0], 2 * width - 1))
        for shift in range(width):
            joined[:, shift : shift + width] += first[:, shift : shift + 1] * second
        rows = joined
    return as_floats(rows[0])
