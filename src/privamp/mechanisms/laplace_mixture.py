"""Both directions of P = sum_u p_u Lap(u theta) against Q = Lap(0), exact, in units of the scale.

The loss L(t) = log sum_u p_u e^(|t| - |t - u theta|) rises from t = 0 to t = U theta and is flat outside;
between two centres e^L = A + B e^(2t), so the threshold t with L(t) = y is closed form. With the sum of the
likelihood ratios in place of e^eps every term is positive and nothing cancels:

    delta_PQ(eps) = sum over u theta > t of p_u (1 - e^(t - u theta)),                        L(t) = eps
    delta_QP(eps) = e^eps sum_u p_u e^(min(0, t - u theta)) (e^min(u theta, t) - 1),          L(t) = -eps
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..core.multiplicity import Multiplicity
from ..core.profile import Curve, Profile
from ..numerics.log_domain import FloatArray, as_floats, log1mexp, log_diff, log_expm1, log_sum

_ENTRIES = 2_000_000  # matrix entries worked on at a time


def in_pieces(f: Callable[[FloatArray], FloatArray], at: FloatArray, width: int) -> FloatArray:
    """f over the flattened arguments, few enough at a time that width * arguments stays small."""
    flat = as_floats(at).ravel()
    step = max(1, _ENTRIES // max(width, 1))
    pieces = [f(flat[i : i + step]) for i in range(0, flat.size, step)]
    return np.concatenate(pieces).reshape(np.shape(at)) if pieces else np.zeros(np.shape(at))


def excess(y: FloatArray, value: FloatArray, log_value: FloatArray) -> FloatArray:
    """log(e^y - V) for e^y >= V, V given as V - 1 and as log V: whichever form keeps the digits."""
    with np.errstate(divide="ignore", over="ignore"):
        near = np.log(np.maximum(np.expm1(np.minimum(y, 2.0)) - value, 0.0))
    return np.where(np.abs(y) < 1.0, near, log_diff(np.maximum(y, log_value), log_value))


def value_of(log_p: FloatArray, exponent: FloatArray) -> FloatArray:
    """Sum of p_u (e^exponent_u - 1) along the last axis: e^L - 1, with its digits when it is tiny."""
    with np.errstate(over="ignore"):
        small = np.exp(log_p) * np.expm1(np.minimum(exponent, 40.0))
        return np.asarray(np.sum(np.where(exponent < 40.0, small, np.exp(log_p + exponent)), axis=-1))


def log_one_plus(value: FloatArray, log_terms: FloatArray) -> FloatArray:
    """log(1 + value); where value is near -1 or large, from the logs of its positive parts instead."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.abs(value) < 0.5, np.log1p(value), log_sum(log_terms, axis=-1))


@dataclass(frozen=True, slots=True)
class _Mixture:
    """P's centres and weights for u >= 1, and L at the centres k theta, k = 0..U."""

    theta: float
    centre: FloatArray  # u theta, shape (U,)
    log_p: FloatArray  # shape (U,)
    value: FloatArray  # e^L(k theta) - 1, shape (U+1,)
    log_value: FloatArray  # L(k theta), shape (U+1,)
    log_rise: FloatArray  # log B_k e^(2 k theta), the part of e^L(k theta) that grows, shape (U+1,)

    def threshold(self, y: FloatArray) -> FloatArray:
        """t in [0, U theta] with L(t) = y, for y between L's ends."""
        k = np.clip(np.searchsorted(self.log_value, y, side="right") - 1, 0, self.centre.size - 1)
        more = excess(y, self.value[k], self.log_value[k]) - self.log_rise[k]
        return np.asarray(k * self.theta + np.minimum(0.5 * np.logaddexp(0.0, more), self.theta))

    def log_forward(self, epsilon: FloatArray) -> FloatArray:
        """log delta_PQ, shape as epsilon."""
        t = self.threshold(epsilon)[:, None]
        return log_sum(self.log_p + log1mexp(np.minimum(t - self.centre, 0.0)), axis=1)

    def log_backward(self, epsilon: FloatArray) -> FloatArray:
        """log delta_QP."""
        t = self.threshold(-epsilon)[:, None]
        terms = self.log_p + np.minimum(t - self.centre, 0.0) + log_expm1(np.minimum(self.centre, t))
        return epsilon + log_sum(terms, axis=1)


def _mixture(theta: float, law: Multiplicity) -> _Mixture:
    log_p0 = float(np.logaddexp(law.log_none, law.log_tail))
    centre, log_p = law.counts * theta, law.log_p
    k = np.arange(log_p.size + 1)[:, None]
    # log likelihood ratio of u copies at t = k theta
    exponent = np.where(law.counts <= k, centre, 2.0 * k * theta - centre)
    value = value_of(log_p, exponent)
    terms = np.concatenate([np.full(k.shape, log_p0), log_p + exponent], axis=1)
    log_value = np.maximum.accumulate(log_one_plus(value, terms))
    log_rise = log_sum(np.where(law.counts > k, log_p + exponent, -np.inf), axis=1)
    return _Mixture(theta, centre, log_p, value, log_value, log_rise)


def laplace_mixture(theta: float, law: Multiplicity) -> Profile | None:
    """The exact profile, or None for a law too long to tabulate; P's tail counts as no appearance."""
    if theta == 0.0 or law.log_p.size == 0 or bool(np.all(np.isneginf(law.log_p))):
        return Profile.symmetric(Curve(lambda at: np.full_like(at, -np.inf), 0.0))
    if law.log_p.size > 2000:
        return None
    mixture, width = _mixture(theta, law), law.log_p.size
    forward = Curve(lambda at: in_pieces(mixture.log_forward, at, width), float(mixture.log_value[-1]))
    least = float(mixture.log_value[0])
    backward = Curve(lambda at: in_pieces(mixture.log_backward, at, width), max(-least, 0.0))
    return Profile(forward, backward) if math.isfinite(least) else None
