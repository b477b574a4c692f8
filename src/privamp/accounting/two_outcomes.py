"""Steps whose worst pair of laws has two outcomes, composed without a grid: the number of yes is binomial.

Two laws with P <= e^a Q and Q <= e^b P are at most as far apart as a yes-or-no answer with losses a and -b
(docs/theory.md, Lemma 6): P(yes) = (1 - e^-b)/(1 - e^-(a + b)). Where a step's bound is this answer's own curve, as
for a pure mechanism on a Poisson sample, the answer stands for the step and nothing is lost. k steps are then
Binomial(k, P(yes)), with loss a for every yes and -b for every no. Logarithms and losses are raised by more than
rounding can take from them.
"""

import math

import numpy as np

from ..core.curves import directed_curve, discrete_curve
from ..core.profile import Curve, Profile
from ..numerics.log_domain import FloatArray, as_floats, log1mexp
from .tangents import log_choose

_MOST = 20_000  # steps: beyond it rounding is no smaller than what a grid loses
_SAME = 1e-9  # relative difference at 0 below which the step's curve is the answer's
_ROUNDING = 8e-15  # of sums of logarithms, in units of their terms
_UNIT = 1e-15  # of one operation, generously
_LARGEST = 100.0  # a loss far inside of the doubles


def answers(profile: Profile, steps: int) -> tuple[Curve, Curve] | None:
    """Both directions of `steps` copies, from above; None for a step with more outcomes, and for too many steps."""
    own, other = profile.forward.largest_loss, profile.backward.largest_loss
    if steps > _MOST or not (0.0 < own < _LARGEST and 0.0 < other < _LARGEST):
        return None
    apart = float(directed_curve(own, other)(np.zeros(1))[0])
    if any(not abs(float(curve(np.zeros(1))[0]) - apart) < _SAME for curve in (profile.forward, profile.backward)):
        return None
    return _binomial(own, other, steps), _binomial(other, own, steps)


def _binomial(own: float, other: float, steps: int) -> Curve:
    """The direction in which yes has the loss `own` and no has -`other`."""
    yes = np.arange(steps + 1.0)
    whole = float(log1mexp(-own - other))
    log_yes, log_no = float(log1mexp(-other)) - whole, float(log1mexp(-own)) - other - whole
    ways = log_choose(steps, yes)
    loss = yes * own - (steps - yes) * other
    log_p = ways + yes * log_yes + (steps - yes) * log_no
    size = 1.0 + np.abs(ways) + yes * (1.0 + abs(log_yes)) + (steps - yes) * (1.0 + abs(log_no))
    exact = discrete_curve(loss + _UNIT * (yes * own + (steps - yes) * other), log_p + _ROUNDING * size)

    def log_delta(epsilon: FloatArray) -> FloatArray:
        found = exact(epsilon)
        return as_floats(np.minimum(found + _UNIT * steps * (1.0 + np.where(found > -np.inf, -found, 0.0)), 0.0))

    return Curve(log_delta, math.inf)
