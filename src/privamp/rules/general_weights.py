"""Privacy-constrained weights of general profiles: IS Algorithm 1, corrected.

The largest w >= 1 with (e^(epsilon(w, x)) - 1)/w <= e^epsilon* - 1. With exp∘epsilon mu-strongly convex in w there
are at most two roots, and every w above b = 2(e^epsilon* - v)/mu + 2 is infeasible, v = min{e^epsilon(1) + mu/2,
epsilon'(1) e^epsilon(1) + 1}. (The paper prints + 1, which misses the root in most cases.) When epsilon(1) =
epsilon* the value w = 1 is itself a root, and it is not the largest one when psi falls there: when epsilon'(1) <
1 - e^-epsilon(1) (the paper prints < 0).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import Infeasible, InvalidInput
from ..numerics.log_domain import FloatArray, as_floats
from ..numerics.roots import bisected
from .profiles import GeneralProfile
from .sampled_curves import amplified

_MARGIN = 1.0 + 2.0**-44  # psi is held below the target by more than its rounding
_ROUNDS = 200


def general_weights(profile: GeneralProfile, records: Any, epsilon: float, largest: float) -> FloatArray:
    """The largest weights on the safe side of the root, one per record."""

    def numbers(value: Any, n: int) -> FloatArray:
        array = as_floats(value)
        if array.ndim != 1 or (n >= 0 and array.size != n) or np.any(np.isnan(array)):
            raise InvalidInput("a general profile must give one number per record; check its function")
        return array

    mu = numbers(profile.strong_convexity(records), -1)
    n = mu.size
    if not np.all(mu > 0):
        raise InvalidInput("the strong-convexity constant must be above 0 for every record; check its function")

    def loss(w: FloatArray) -> FloatArray:
        values = numbers(profile.epsilon(w, records), n)
        return amplified(1.0 / w, np.maximum(values, 0.0)) * _MARGIN

    one = np.ones(n)
    at_one, slope = numbers(profile.epsilon(one, records), n), numbers(profile.derivative(one, records), n)
    if np.any(at_one > epsilon):
        raise Infeasible(
            f"some records lose more than epsilon {epsilon:g} even without sampling; add noise, or clip the records"
        )
    high = np.minimum(np.maximum(largest_feasible(at_one, slope, mu, epsilon), 1.0), largest)
    falls = slope < -np.expm1(-at_one)  # psi falls at w = 1: feasible just above, even where w = 1 uses the target up
    low = one.copy()
    starts = (loss(one) > epsilon) & falls
    if np.any(starts):
        low = np.where(starts, _first_feasible(loss, high, epsilon, starts), low)
    capped = loss(high) <= epsilon
    low = np.where(capped, high, low)
    return bisected(lambda w: ~(loss(w) <= epsilon), low, high, rounds=_ROUNDS, until=_are_adjacent)[0]


def _are_adjacent(low: FloatArray, high: FloatArray) -> np.bool_:
    """Whether no number lies between the two, for every record."""
    middle = 0.5 * (low + high)
    return np.all((middle <= low) | (middle >= high))


def largest_feasible(at_one: FloatArray, slope: FloatArray, mu: FloatArray, epsilon: float) -> FloatArray:
    """b: every larger weight is infeasible."""
    with np.errstate(over="ignore"):
        v = np.minimum(np.exp(at_one) + 0.5 * mu, slope * np.exp(at_one) + 1.0)
        return as_floats(2.0 * (np.exp(epsilon) - v) / mu + 2.0)


def _first_feasible(loss: Any, high: FloatArray, epsilon: float, wanted: NDArray[np.bool_]) -> FloatArray:
    """A feasible weight right of 1 for records that use the target up at 1 and lose less just above; else 1."""
    found = np.ones_like(high)
    step = np.maximum(high - 1.0, 1e-15)
    for _ in range(60):
        w = np.minimum(1.0 + step, high)
        fine = (loss(w) <= epsilon) & wanted & (found == 1.0)
        found = np.where(fine, w, found)
        step = 0.5 * step
    return found
