"""One round of a sample with Gaussian noise under replace-one: three centres, two mixtures.

The record is drawn with chance q. Without it the output is centred at 0; with one of the two records at a or at b:

    P = (1-q) N(0) + q N(a),   Q = (1-q) N(0) + q N(b),   r = |a|, s = |b|, d = |a - b|, all in units of sigma.

Along a - b the two records have the coordinates A = (r^2 - s^2 + d^2)/(2d) and A - d, and across it the same
p = sqrt(r^2 - A^2). So given the coordinate y across, P - alpha Q is one-dimensional with q_y = q e^(p y - p^2/2) in
place of q beside the records, its ratio grows along the line, and

    H_alpha = E_y integral [q_y phi(x - A) - (alpha-1)(1-q) phi(x) - alpha q_y phi(x - A + d)]+,   y ~ N(0, 1).

For alpha >= 1 it grows in r and d and falls in s; docs/designs/rounds.md.
"""

import math

import numpy as np
from scipy.special import ndtr

from ..numerics.log_domain import FloatArray, as_floats, log_expm1
from ..numerics.roots import NumericalFailure

_LOST = 1e-17  # added to every delta: below double precision
_ROUNDING = 1e-15  # of the three tails, relative to the first
_WIDTH, _ACROSS = 1.0, 0.5  # of the trapezoidal rule's cells; less where the centres lie farther across
_TAIL = 9.0  # standard deviations across
_STEP = 1e-7  # of the last step to a threshold, whose error is of the order of its square


def triangle_delta(chance: float, r: float, s: float, d: float, epsilon: FloatArray) -> FloatArray:
    """H_alpha at alpha = e^epsilon >= 1, shape of epsilon, rounded up by its quadrature's error."""
    along = (r * r - s * s + d * d) / (2.0 * d)
    across = math.sqrt(max(r * r - along * along, 0.0))
    if across < 1e-9 * d:
        return _given(chance, np.full(1, math.log(chance)), along, d, epsilon)[:, 0] + _LOST
    log_q, weights = _across(chance, across)
    both = _given(chance, log_q, along, d, epsilon) * weights
    even, odd = np.sum(both[:, ::2], axis=1), np.sum(both[:, 1::2], axis=1)  # two rules, and their mean a finer one
    return np.asarray(even + odd + 2.0 * np.abs(even - odd) + _LOST + chance * ndtr(across - _TAIL))


def _across(chance: float, across: float) -> tuple[FloatArray, FloatArray]:
    """log q_y at the points of a trapezoidal rule across, and its weights.

    For an analytic integrand that falls off, its error is aliasing. The two rules of every second point alias
    far more, in opposite directions; so their difference is a generous bound on the error of all points together.
    """
    width = 0.5 * min(_WIDTH, _ACROSS / across)
    points = math.ceil(_TAIL / width)
    y = as_floats(np.arange(-points, points + math.ceil(across / width) + 2) * width)
    return math.log(chance) + across * (y - 0.5 * across), width * np.exp(-0.5 * y * y) / math.sqrt(2.0 * math.pi)


def _given(chance: float, log_q: FloatArray, along: float, d: float, epsilon: FloatArray) -> FloatArray:
    """The one-dimensional integral for each epsilon and each weight of the records, shape (E, Y)."""
    at, log_q = epsilon[:, None], log_q[None, :]
    with np.errstate(divide="ignore"):
        log_rest = log_expm1(at) + (math.log1p(-chance) if chance < 1.0 else -math.inf)
    x = _threshold(log_q, log_rest, along, d, at)
    q, rest = np.exp(log_q), np.exp(log_rest)
    own = q * ndtr(along - x)
    value = own * (1.0 + _ROUNDING) - rest * ndtr(-x) - np.exp(at + log_q) * ndtr(along - d - x)
    return np.asarray(np.maximum(value, 0.0))


def _threshold(log_q: FloatArray, log_rest: FloatArray, along: float, d: float, at: FloatArray) -> FloatArray:
    """Where the first density overtakes the two others; a small error changes the integral by its square only.

    The log ratio is concave and rising in x, so Newton's steps from the left stay left and converge quadratically.
    """
    back, far = along - d, 0.5 * along * along
    by_rest, by_other = (log_rest - log_q + far) / along, (at + far - 0.5 * back * back) / d
    x = np.maximum(by_rest, by_other)  # each of the two is overtaken alone
    fixed_first, fixed_other = log_q - far, at + log_q - 0.5 * back * back
    for _ in range(60):
        other = fixed_other + back * x
        total = np.maximum(log_rest, other) + np.log1p(np.exp(-np.abs(log_rest - other)))
        step = (total - fixed_first - along * x) / (along - back * np.exp(other - total))
        x = x + step
        if np.all(np.abs(step) <= _STEP * (1.0 + np.abs(x))):
            return np.asarray(x)
    raise NumericalFailure("the threshold of three Gaussian densities did not converge")
