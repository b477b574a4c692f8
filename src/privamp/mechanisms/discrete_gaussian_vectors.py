"""Discrete Gaussian noise on several whole numbers at once: a curve that depends on the shift's l2 norm alone.

The noise is not rotation invariant, and the continuous curve is too small for it (sigma = 0.5, shift (1, 1): up to 2.4
times). Two bounds hold for a shift v in Z^d with ||v||_2 = norm; the smaller is taken at every epsilon.

1. Smoothing. Let 0 < s < sigma, Y = N(v, sigma^2 - s^2) and K a discrete Gaussian of parameter s centred at Y. K is
   post-processing of Y, and Pr[K = k] is N(k; v, sigma^2) divided by a mean of theta sums that lie within 1 +- eta,
   eta = 2 sum_m e^(-2 (pi s m)^2) (Poisson summation). So the discrete Gaussian has, up to the factors (1 +- eta)^d,
   the curve of continuous noise with sigma' = sqrt(sigma^2 - s^2):

       delta(eps) <= (1 + eta)^d delta_G(eps - d log((1+eta)/(1-eta)); norm/sigma').

   At s = 3, eta is below 1e-76, which is negligible in any dimension.
2. Rényi. D_alpha <= alpha norm^2/(2 sigma^2) (Canonne, Kamath & Steinke 2020, Prop. 5, coordinate by coordinate), and
   delta(eps) <= e^((alpha-1)(D_alpha - eps)) (1 - 1/alpha)^(alpha-1)/alpha (their Prop. 12), for every order.

Proofs and costs: docs/exact_noise.md.
"""

import math

import numpy as np

from ..core.profile import Curve
from ..numerics.log_domain import FloatArray, log_mills_gap
from .discrete_mixture import identical

SMOOTHING = 3.0  # s at which the ripple eta is below 1e-76
_RIPPLES = (0.3, 0.1, 1e-2, 1e-3, 1e-5, 1e-8, 1e-12, 1e-17)  # wanted d * eta, from coarse to none
_ORDERS = 1.0 + np.geomspace(1e-2, 1e6, 200)  # fixed, so that the bound falls with epsilon


def ripple(s: float) -> float:
    """eta: how far a sum of Gaussian bells of width s on the whole numbers strays from its mean, relatively."""
    q = math.exp(-2.0 * (math.pi * s) ** 2)
    return 2.0 * q / (1.0 - q**3)


def smoothed_curve(sigma: float, norm: float, dimension: int, s: float) -> Curve:
    """Bound 1 at one s, for which ripple(s) < 1 and s < sigma."""
    theta, eta = norm / math.sqrt((sigma - s) * (sigma + s)), ripple(s)
    more, later = dimension * math.log1p(eta), dimension * (math.log1p(eta) - math.log1p(-eta))

    def log_delta(epsilon: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return more + log_mills_gap((epsilon - later) / theta - 0.5 * theta, theta)

    return Curve(log_delta)


def renyi_curve(rho: float) -> Curve:
    """Bound 2, the least over a fixed set of orders; rho = norm^2/(2 sigma^2)."""
    rest = (_ORDERS - 1.0) * np.log1p(-1.0 / _ORDERS) - np.log(_ORDERS)

    def log_delta(epsilon: FloatArray) -> FloatArray:
        at = np.asarray(epsilon)[..., None]
        return np.asarray(np.min((_ORDERS - 1.0) * (rho * _ORDERS - at) + rest, axis=-1))

    return Curve(log_delta)


def discrete_gaussian_vector_curve(sigma: float, norm: float, dimension: int) -> Curve:
    """The smaller of both bounds, over several s."""
    if norm == 0.0:
        return identical().forward
    widths = [math.sqrt(math.log(2.0 * dimension / wanted) / 2.0) / math.pi for wanted in _RIPPLES]
    curves = [renyi_curve(0.5 * (norm / sigma) ** 2)]
    curves += [smoothed_curve(sigma, norm, dimension, s) for s in widths if s < 0.99 * sigma]
    return Curve(lambda epsilon: np.minimum.reduce([curve(epsilon) for curve in curves]))
