"""The error of prefix sums under banded noise: how much better training can get when rounds share their noise.

Training releases g_1 + z_1, g_2 + z_2, ... and uses the prefix sums. With noise C^-1 z instead of z, C lower triangular
Toeplitz and `bands`-banded with columns of norm at most 1, the prefix sums have the error matrix A C^-1, A the lower
triangular matrix of ones; their root mean square error is sigma ||A C^-1||_F / sqrt(steps). C holds the first `bands`
coefficients of (1-x)^(-1/2), the square root of A, scaled to norm 1 (Choquette-Choo et al. 2023; Kalinin & Lampert
2024). One band is independent noise. What a schedule guarantees under it: `schedules/cyclic_poisson.py`.
"""

import numpy as np

from ..numerics.log_domain import FloatArray
from ..validation import whole


def band(bands: int) -> FloatArray:
    """The first column of C: `bands` coefficients with norm 1."""
    whole(1, bands=bands)
    ratios = 1.0 - 0.5 / np.arange(1.0, bands)
    found = np.concatenate([[1.0], np.cumprod(ratios)])
    scaled: FloatArray = found / np.sqrt(np.sum(found**2))
    return scaled


def prefix_error(steps: int, bands: int = 1) -> float:
    """The root mean square error of all `steps` prefix sums for noise of standard deviation 1.

    >>> round(prefix_error(100), 4), round(prefix_error(100, 10), 4)
    (7.1063, 3.0393)
    """
    from scipy.signal import lfilter

    whole(1, steps=steps)
    start = np.zeros(steps)
    start[0] = 1.0
    weights = np.cumsum(lfilter([1.0], band(min(bands, steps)), start))  # the coefficients of 1 / ((1 - x) c(x))
    squares = np.cumsum(weights**2)  # of prefix t: its first t weights
    return float(np.sqrt(np.mean(squares)))
