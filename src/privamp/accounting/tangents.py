"""Lower bounds for many rare steps: one yes-or-no question per step, and how often the answer was yes.

A line v -> a - b v that lies nowhere above a step's curve E(W - v)+ (W the likelihood ratio under Q, v = e^eps) is the
question with a = P(yes), b = Q(yes): the pair of these two coins is dominated by the step. k steps are then at least as
telling as Binomial(k, a) against Binomial(k, b), whose curve is exact. The line is a chord of the curve over a short
interval, lowered until it is below the extensions of the two half chords, which the convex curve is above.

Needed where a step's loss is so small and rare that no grid resolves it: the laws on a grid lose everything there.
"""

import math

import numpy as np
from scipy.special import betaln

from ..core.curves import discrete_curve
from ..core.profile import Curve, Profile
from ..numerics.log_domain import FloatArray, as_floats
from .discretize import reach

_QUESTIONS = 24
_HALF = 2e-3  # half the width of a chord, in units of eps
_SAFE = 1e-9  # relative, for all roundings on the way
_ROUNDING = 8e-15  # of sums of logarithms, in units of their terms


def counted(profile: Profile, steps: int) -> Profile:
    """Both directions of `steps` copies of a pair with this profile, from below."""
    forward = _questions(profile.forward, steps)
    return Profile(forward, forward if profile.is_symmetric else _questions(profile.backward, steps))


def _questions(curve: Curve, steps: int) -> Curve:
    """The best of several questions at every epsilon."""
    far = min(curve.largest_loss, reach(Profile.symmetric(curve)))
    found = [] if far <= 0.0 else [_yes(curve, float(e)) for e in np.geomspace(far / 300.0, far * 0.98, _QUESTIONS)]
    curves = [_binomials(a, b, steps) for a, b in found if 0.0 < b < a < 1.0]

    def log_delta(epsilon: FloatArray) -> FloatArray:
        nothing = np.full_like(as_floats(epsilon), -np.inf)
        return as_floats(np.maximum.reduce([nothing, *(c(epsilon) for c in curves)]) - _SAFE)

    return Curve(log_delta, steps * curve.largest_loss)


def _yes(curve: Curve, at: float) -> tuple[float, float]:
    """(P(yes), Q(yes)) of the question whose line touches the curve near `at`, from below."""
    width = min(_HALF, 0.01 * at)
    left, middle, right = np.exp(curve(np.asarray([at - width, at, at + width]))).tolist()
    u, v, w = math.exp(at - width), math.exp(at), math.exp(at + width)
    slope = (left - right) / (w - u)
    first, second = (left - middle) / (v - u), (middle - right) / (w - v)
    # how far the chord lies above the second half chord extended to u, and above the first extended to w
    lowered = max(left - (middle + second * (v - u)), right - (middle - first * (w - v)), 0.0)
    b = slope * (1.0 + _SAFE)  # steeper and lower: still below
    return (left + slope * u - lowered) * (1.0 - _SAFE), b


def _binomials(a: float, b: float, steps: int) -> Curve:
    """Binomial(steps, a) against Binomial(steps, b), a > b: the more yes, the larger the loss."""
    top = min(steps, math.ceil(steps * a + 60.0 * math.sqrt(steps * a) + 400.0))
    low = max(0, math.floor(steps * a - 60.0 * math.sqrt(steps * a) - 400.0))
    yes = np.arange(low, top + 1, dtype=np.float64)
    log_choose = -betaln(yes + 1.0, steps - yes + 1.0) - math.log(steps + 1.0)
    log_p = log_choose + yes * math.log(a) + (steps - yes) * math.log1p(-a)
    loss = yes * math.log(a / b) + (steps - yes) * (math.log1p(-a) - math.log1p(-b))
    size = np.abs(log_choose) + yes * abs(math.log(a)) + (steps - yes) * abs(math.log1p(-a))
    size_of_loss = yes * (abs(math.log(a)) + abs(math.log(b))) + steps * (a + b)
    return discrete_curve(loss - _ROUNDING * (1.0 + size_of_loss), log_p - _ROUNDING * (1.0 + size))
