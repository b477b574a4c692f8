"""Lower bounds for many rare steps: one yes-or-no question per step, and how often the answer was yes.

A line v -> a - b v that lies nowhere above a step's curve E(W - v)+ (W the likelihood ratio under Q, v = e^eps) is the
question with a = P(yes), b = Q(yes): the pair of these two coins is dominated by the step. k steps are then at least as
telling as Binomial(k, a) against Binomial(k, b), whose curve is exact. The line is a chord of the curve over a short
interval, lowered until it is below the extensions of the two half chords, which the convex curve is above. The curve
is known to its margin only: the line is made steeper and lower by what that may do to its slope.

Needed where a step's loss is so small and rare that no grid resolves it: the laws on a grid lose everything there.
"""

import math

import numpy as np
from scipy.special import gammaln

from ..core.curves import discrete_curve
from ..core.profile import Curve, Profile
from ..numerics.log_domain import FloatArray, as_floats
from ..numerics.rounding import margin
from .discretize import reach

_QUESTIONS = 24
_HALF = 2e-3  # half the width of a chord, in units of eps
_SAFE = 1e-9  # relative, for all roundings on the way
_WIDE, _MORE = 16.0, 100.0  # how far from the usual number of yes, in standard deviations and beyond them
_SMALLEST = 1e-290  # chances below it are not looked at: their last digits are gone
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
    logs = curve(np.asarray([at - width, at, at + width]))
    left, middle, right = np.exp(logs).tolist()
    known = float(np.max(np.exp(logs) * margin(logs), initial=0.0, where=logs > -np.inf))  # how well each is
    below, above = -math.expm1(-width), math.expm1(width)  # from the outer points to the middle one, in units of e^at
    slope = (left - right) / (below + above)
    first, second = (left - middle) / below, (middle - right) / above
    # how far the chord lies above the second half chord extended to the left, and above the first to the right
    lowered = max(left - (middle + second * below), right - (middle - first * above), 0.0)
    lowered += known * (2.0 + 2.0 * max(below / above, above / below))
    unknown = 2.0 * known / (below + above) + _SAFE * abs(slope)  # of the slope
    a = (left + (slope - unknown) * (1.0 - below) - lowered - known) * (1.0 - _SAFE)
    b = (slope + unknown) * math.exp(-at)  # steeper and lower: still below
    return (a, b) if b > _SMALLEST else (0.0, 0.0)


def _binomials(a: float, b: float, steps: int) -> Curve:
    """Binomial(steps, a) against Binomial(steps, b), a > b: the more yes, the larger the loss."""
    wide = _WIDE * math.sqrt(steps * a) + _MORE  # any part of the outcomes gives a lower bound
    top, low = min(steps, math.ceil(steps * a + wide)), max(0, math.floor(steps * a - wide))
    yes = np.arange(low, top + 1, dtype=np.float64)
    ways = log_choose(steps, yes)
    log_p = ways + yes * math.log(a) + (steps - yes) * math.log1p(-a)
    loss = yes * math.log(a / b) + (steps - yes) * (math.log1p(-a) - math.log1p(-b))
    size = np.abs(ways) + yes * abs(math.log(a)) + (steps - yes) * abs(math.log1p(-a))
    size_of_loss = yes * (abs(math.log(a)) + abs(math.log(b))) + steps * (a + b)
    return discrete_curve(loss - _ROUNDING * (1.0 + size_of_loss), log_p - _ROUNDING * (1.0 + size))


def log_choose(n: int, k: FloatArray) -> FloatArray:
    """log of n over k by Stirling's formula, in pieces that do not cancel: the difference of log-gammas of 1e9 errs by
    1e-6."""
    fewer = np.maximum(np.minimum(k, n - k), 1.0)
    rest = np.maximum(n - fewer, 1.0)
    entropy = fewer * np.log(n / fewer) - rest * np.log1p(-np.minimum(fewer / n, 0.5))
    root = 0.5 * (np.log(n / rest) - np.log(2.0 * math.pi * fewer))
    found = entropy + root + _stirling(as_floats(n)) - _stirling(fewer) - _stirling(rest)
    return as_floats(np.where((k <= 0.0) | (k >= n), 0.0, found))


def _stirling(x: FloatArray) -> FloatArray:
    """log x! less (x + 1/2) log x - x + log(2 pi)/2."""
    small = np.minimum(x, 16.0)
    exact = gammaln(small + 1.0) - (small + 0.5) * np.log(small) + small - 0.5 * math.log(2.0 * math.pi)
    square = 1.0 / (np.maximum(x, 16.0) ** 2)
    series = (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680))) * np.sqrt(square)
    return as_floats(np.where(x < 16.0, exact, series))
