"""Personal epsilons of Gaussian releases at a fixed delta, many records at once."""

import numpy as np
from numpy.typing import NDArray

from ..numerics import rounding
from ..numerics.log_domain import FloatArray, as_floats
from ..numerics.roots import NumericalFailure, bisected
from .sampled_curves import with_first

_CHUNK = 16384


def personal_epsilons(q: FloatArray, theta: FloatArray, delta: float) -> FloatArray:
    """The smallest eps >= 0 with D(P||Q)(eps) <= delta for each record, from the side where it holds."""
    q, theta = np.broadcast_arrays(as_floats(q), as_floats(theta))
    pairs, where = np.unique(np.stack([q.ravel(), theta.ravel()], axis=1), axis=0, return_inverse=True)
    found = [_bisected(pairs[i : i + _CHUNK, 0], pairs[i : i + _CHUNK, 1], delta) for i in range(0, len(pairs), _CHUNK)]
    return np.concatenate([*found, np.empty(0)])[np.ravel(where)].reshape(q.shape)


def _bisected(q: FloatArray, theta: FloatArray, delta: float) -> FloatArray:
    limit = np.log(delta)

    def holds(epsilon: FloatArray) -> NDArray[np.bool_]:
        return np.asarray(rounding.up(with_first("gaussian", q, theta, epsilon)) <= limit)

    high = np.ones_like(q)
    for _ in range(60):
        short = ~holds(high)
        if not np.any(short):
            break
        high = np.where(short, 2.0 * high, high)
    else:
        raise NumericalFailure("a personal epsilon could not be bracketed")
    low = np.where(holds(np.zeros_like(q)), high, 0.0)
    high = np.where(low == high, 0.0, high)
    low = np.minimum(low, high)
    return bisected(holds, low, high)[1]
