"""P = sum_u p_u N(u theta, 1) against Q = sum_v p_v N(-v theta, 1), exact: two people whose records are kept by coins.

Reflection turns one law into the other, so both directions are equal. The ratio P/Q grows along the line; it is e^eps
at t >= 0 with

    e^eps - 1 = sum_u 2 p_u e^(-u^2 theta^2/2) sinh(u theta t) / sum_v p_v e^(-v theta t - v^2 theta^2/2),

a quotient of positive sums, so that t keeps its digits however small eps or p_1 is. With sum_u p_u phi(t - u theta) =
e^eps sum_v p_v phi(t + v theta) at that t (M the Mills ratio, phi the density), delta is a sum of positive terms,

    delta(eps) = sum_u p_u phi(t - u theta) [M(t - u theta) - M(t)]
                 + e^eps sum_v p_v phi(t + v theta) [M(t) - M(t + v theta)].
"""

import numpy as np

from ..core.multiplicity import Multiplicity
from ..core.profile import Curve, Profile
from ..numerics.log_domain import FloatArray, as_floats, log1mexp, log_expm1, log_mills_gap, log_sum
from ..numerics.roots import NumericalFailure

_ROUNDS = 300
_ENTRIES = 2_000_000  # of one array


class OppositeMixtures:
    """The components u >= 1, and the weight of none."""

    __slots__ = ("log_p", "log_p0", "shift")

    def __init__(self, theta: float, law: Multiplicity) -> None:
        live = np.isfinite(law.log_p)
        self.shift: FloatArray = law.counts[live] * theta  # u theta, shape (U,)
        self.log_p: FloatArray = law.log_p[live]
        self.log_p0 = float(np.logaddexp(law.log_none, law.log_tail))

    def threshold(self, target: FloatArray) -> FloatArray:
        """t > 0 where log(P/Q - 1) = target: Newton's method, bisection whenever it leaves the bracket."""
        top = np.logaddexp(0.0, target)[:, None]  # one term of P alone reaches the ratio: right of the root
        low, high = np.zeros_like(target), np.min((top - self.log_p) / self.shift + 0.5 * self.shift, axis=1)
        t = high
        for _ in range(_ROUNDS):
            above, slope = self._above(t, target)
            low, high = np.where(above < 0.0, t, low), np.where(above < 0.0, high, t)
            newton = t - above / slope
            step = np.where((newton > low) & (newton < high), newton, 0.5 * (low + high)) - t
            done = (np.abs(step) <= 4e-15 * t) | (high - low <= 4e-15 * high) | (above == 0.0)
            t = np.where(above == 0.0, t, t + step)
            if np.all(done):
                return np.asarray(t)
        raise NumericalFailure("the threshold of two opposite Gaussian mixtures did not converge")

    def _above(self, t: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray]:
        """log(P/Q - 1) - target at t, and its slope."""
        at = t[:, None]
        centred, moved = self.log_p - 0.5 * self.shift**2, self.shift * at
        rise, fall = centred + moved + log1mexp(-2.0 * moved), centred - moved
        log_rise, log_fall = log_sum(rise, axis=1), np.logaddexp(self.log_p0, log_sum(fall, axis=1))
        grows = np.sum(np.exp(rise - log_rise[:, None]) * self.shift / np.tanh(moved), axis=1)
        shrinks = np.sum(np.exp(fall - log_fall[:, None]) * self.shift, axis=1)
        return log_rise - log_fall - target, grows + shrinks

    def log_delta(self, epsilon: FloatArray) -> FloatArray:
        """log delta at epsilon >= 0, shape (E,)."""
        t = np.zeros_like(epsilon)
        away = epsilon > 0.0
        t[away] = self.threshold(log_expm1(epsilon[away]))
        at = t[:, None]
        own = self.log_p + log_mills_gap(at - self.shift, self.shift)
        other = self.log_p + log_mills_gap(at, self.shift) - self.shift * (at + 0.5 * self.shift)
        return np.asarray(np.logaddexp(log_sum(own, axis=1), epsilon + log_sum(other, axis=1)))


def opposite_mixtures(theta: float, law: Multiplicity) -> Profile:
    """The exact profile of the pair, symmetric; what the law has cut off counts as no appearance."""
    if theta == 0.0 or not np.any(np.isfinite(law.log_p)):
        return Profile.symmetric(Curve(lambda at: np.full_like(at, -np.inf), 0.0))
    pair = OppositeMixtures(theta, law)

    def log_delta(at: FloatArray) -> FloatArray:
        flat = as_floats(at).ravel()
        step = max(_ENTRIES // pair.shift.size, 1)
        pieces = [pair.log_delta(flat[i : i + step]) for i in range(0, flat.size, step)]
        return np.concatenate(pieces or [flat]).reshape(np.shape(at))

    return Profile.symmetric(Curve(log_delta))
