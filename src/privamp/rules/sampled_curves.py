"""The exact curves of one record kept by a coin: P = (1-q) Q + q R, R the output with the record at its weight.

    D(P||Q)(eps) = q d(log(1 + (e^eps - 1)/q)),    D(Q||P)(eps) = A d(eps + log q - log A),  A = 1 - e^eps (1 - q),

d the curve between R and Q: Gaussian noise moved by theta, or Laplace noise (an upper bound for every pure
influence theta). D(Q||P) <= D(P||Q) for eps >= 0. Both grow with q and with theta. Arrays broadcast.
"""

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ..core.profile import Curve, Profile
from ..numerics.log_domain import FloatArray, as_floats, log1mexp, log_expm1, log_mills_gap

Kind = Literal["pure", "gaussian"]


def base_log_delta(kind: Kind, theta: ArrayLike, epsilon: ArrayLike) -> FloatArray:
    """log delta of the noise itself moved by theta, eps >= 0."""
    theta, epsilon = np.broadcast_arrays(as_floats(theta), as_floats(epsilon))
    if kind == "pure":
        return log1mexp(0.5 * np.minimum(epsilon - theta, 0.0))
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        x = np.where(theta > 0, epsilon / theta - 0.5 * theta, 0.0)
    return np.where(x > 1e150, -np.inf, log_mills_gap(np.minimum(x, 1e150), theta))


def unmixed(q: ArrayLike, epsilon: ArrayLike) -> FloatArray:
    """log(1 + (e^eps - 1)/q)."""
    q, epsilon = np.broadcast_arrays(as_floats(q), as_floats(epsilon))
    with np.errstate(over="ignore"):
        small = np.log1p(np.expm1(np.minimum(epsilon, 30.0)) / q)
    large = np.logaddexp(0.0, log_expm1(epsilon) - np.log(q))
    return as_floats(np.where((epsilon < 30.0) & np.isfinite(small), small, large))


def with_first(kind: Kind, q: ArrayLike, theta: ArrayLike, epsilon: ArrayLike) -> FloatArray:
    """log D(P||Q), the larger direction, at eps >= 0."""
    return np.log(as_floats(q)) + base_log_delta(kind, theta, unmixed(q, epsilon))


def without_first(kind: Kind, q: ArrayLike, theta: ArrayLike, epsilon: ArrayLike) -> FloatArray:
    """log D(Q||P) at eps >= 0; zero from -log(1 - q) on."""
    q, theta, epsilon = np.broadcast_arrays(as_floats(q), as_floats(theta), as_floats(epsilon))
    with np.errstate(divide="ignore"):
        log_a = log1mexp(np.minimum(epsilon + np.log1p(-q), 0.0))
    alive = np.isfinite(log_a)
    safe = np.where(alive, log_a, 0.0)
    inner = np.maximum(epsilon + np.log(q) - safe, 0.0)
    return np.where(alive, safe + base_log_delta(kind, theta, inner), -np.inf)


def amplified(q: ArrayLike, epsilon: ArrayLike) -> FloatArray:
    """log(1 + q(e^eps - 1)): the loss of a record kept with probability q, at full precision for every size."""
    q, epsilon = np.broadcast_arrays(as_floats(q), as_floats(epsilon))
    small = np.log1p(q * np.expm1(np.minimum(epsilon, 30.0)))
    with np.errstate(divide="ignore"):
        large = np.logaddexp(0.0, np.log(q) + log_expm1(np.maximum(epsilon, 1.0)))
    return as_floats(np.where(epsilon < 30.0, small, large))


def record_profile(kind: Kind, q: FloatArray, theta: FloatArray) -> Profile:
    """The pointwise largest of the profiles of some records, q and theta of shape (K,): an upper bound for all."""
    q, theta = np.atleast_1d(as_floats(q)), np.atleast_1d(as_floats(theta))
    ends = (math.inf, math.inf)
    if kind == "pure":
        there = float(np.max(amplified(q, theta)))
        gone = -q * np.expm1(-theta)
        with np.errstate(divide="ignore"):  # -log(1 - q + q e^-theta), at full precision for tiny q and for q = 1
            large = -np.logaddexp(np.log1p(-q), np.log(q) - theta)
            back = float(np.max(np.where(gone < 0.5, -np.log1p(-np.minimum(gone, 0.5)), large)))
        ends = (there, max(back, 0.0))
    elif not np.any(theta > 0):
        ends = (0.0, 0.0)

    def curve(side: int) -> Curve:
        bound = without_first if side else with_first

        def log_delta(epsilon: FloatArray) -> FloatArray:
            flat = np.ravel(epsilon)
            rows = max(1, 2**18 // max(q.size, 1))
            found = [np.max(bound(kind, q, theta, flat[i : i + rows, None]), axis=1) for i in range(0, flat.size, rows)]
            return np.concatenate([*found, np.empty(0)]).reshape(np.shape(epsilon))

        return Curve(log_delta, ends[side])

    return Profile(curve(0), curve(1))
