"""The privacy loss of drawing whole clusters, for pure mechanisms: one formula for all cluster designs.

Members of drawn clusters are kept with rate r (r = 1: all of them). Write a = e^eps, b = 1 + r(a-1),
d = 1 - r(1 - 1/a), and w for the weight of the samples without the changed cluster beside those with it, in
the worst event. Then

    one record more:      log[(b + w)/(1 + w)]
    one record replaced:  log[(b + w)/(d + w)].

Proofs: docs/designs/cluster.md.
"""

import math
from collections.abc import Sequence

import numpy as np

from ..numerics.log_domain import log_drop, log_mix, log_sum
from ..numerics.symmetric import log_symmetric_ratio

_MARGIN = 1e-14  # of a logarithm, times what was added up to compute it: w errs downward, the loss upward


def log_gain(epsilon: float, rate: float) -> float:
    """log b: how much a member adds to the worst event when its cluster is drawn."""
    return float(log_mix(rate, epsilon))


def log_loss(epsilon: float, rate: float) -> float:
    """log d: how much a member of another cluster takes away."""
    return log_drop(rate, epsilon)


def log_rest(epsilon: float, rate: float, members: int, others: Sequence[int], chosen: int) -> float:
    """log w = log E_l/E_(l-1) of {d^n_h} over the other clusters, less `members` times log b."""
    others_d = log_loss(epsilon, rate) * np.asarray(others, dtype=np.float64)
    ratio = log_symmetric_ratio(others_d, chosen)
    terms = 8 * len(others) + float(np.max(np.abs(others_d), initial=0.0))
    return _down(ratio - members * log_gain(epsilon, rate), terms)


def log_rest_equal(epsilon: float, rate: float, members: int, others: int, share: float) -> float:
    """The same when every other cluster has `others` members and a share l/k is drawn."""
    if share == 1.0:
        return -math.inf
    odds = math.log1p(-share) - math.log(share)
    return _down(odds + others * log_loss(epsilon, rate) - members * log_gain(epsilon, rate), others + members)


def log_rest_chances(epsilon: float, members: int, chance: float, others: Sequence[tuple[float, int]]) -> float:
    """log w when one cluster is drawn with public chances: sum of pi_h a^-(n_i + n_h) over pi_i."""
    terms = [math.log(p) - n * epsilon for p, n in others if p > 0.0]
    if not terms:
        return -math.inf
    return _down(float(log_sum(terms)) - math.log(chance) - members * epsilon, len(terms))


def added(epsilon: float, rate: float, log_w: float) -> float:
    """log[(b + w)/(1 + w)]."""
    return float(log_mix(_one_of(log_w), log_gain(epsilon, rate)))


def replaced(epsilon: float, rate: float, log_w: float) -> float:
    """log[(b + w)/(d + w)]."""
    v = _one_of(log_w)
    drop = -v * rate * math.expm1(-epsilon)  # 1 - (d + w)/(1 + w)
    if drop < 0.5:
        return added(epsilon, rate, log_w) - math.log1p(-drop)
    below = np.logaddexp(log_loss(epsilon, rate), log_w) - np.logaddexp(0.0, log_w)
    return added(epsilon, rate, log_w) - float(below)


def _one_of(log_w: float) -> float:
    """1/(1 + w)."""
    return float(np.exp(-np.logaddexp(0.0, log_w)))


def _down(log_w: float, terms: float) -> float:
    return log_w - _MARGIN * (16.0 + terms + abs(log_w)) if math.isfinite(log_w) else log_w
