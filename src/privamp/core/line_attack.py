"""Attacks by noisy sums whose values lie on a line: both laws cut into cells, an observer who sees only the cell.

P is a mixture of the noise at some places, Q at others; `log_tail(x)` is the log of the chance that the noise exceeds
x, and the noise is symmetric about 0. Which cell an output falls in is a function of the output, so the two discrete
laws are never farther apart than the truth, in every direction and over several rounds.
"""

import math
from collections.abc import Callable, Mapping

import numpy as np

from ..numerics.log_domain import FloatArray, as_floats, log_diff, log_sum
from .curves import discrete_curve
from .profile import Profile

LogTail = Callable[[FloatArray], FloatArray]
Places = Mapping[float, float]  # where the noise is centred → with which chance
_TARGETS, _SMALL = (1e-3, 1e-6), 0.05  # deltas, and an epsilon, for which attacks are chosen


def seen_on_a_line(log_tail: LogTail, edges: FloatArray, p: Places, q: Places) -> Profile:
    """A lower bound on the profile of the two mixtures; outer cells reach to infinity."""
    log_p, log_q = (_masses(log_tail, edges, law) for law in (p, q))
    live = np.isfinite(log_p) & np.isfinite(log_q)  # a cell without mass in one of the laws is left out
    loss = log_p[live] - log_q[live]
    return Profile(discrete_curve(loss, log_p[live]), discrete_curve(-loss, log_q[live]))


def _masses(log_tail: LogTail, edges: FloatArray, law: Places) -> FloatArray:
    rows = [math.log(chance) + _cells(log_tail, edges - at) for at, chance in law.items() if chance > 0.0]
    return log_sum(np.stack(rows))


def _cells(log_tail: LogTail, edges: FloatArray) -> FloatArray:
    """log of the noise's chance of every cell, each from the side of the nearer tail."""
    above = np.concatenate([[0.0], log_tail(edges), [-np.inf]])
    below = np.concatenate([[-np.inf], log_tail(-edges), [0.0]])
    right = np.concatenate([edges[:1] > 0, edges > 0])  # whether the cell's left edge is positive
    with np.errstate(invalid="ignore"):
        from_right = log_diff(above[:-1], np.minimum(above[1:], above[:-1]))
        from_left = log_diff(below[1:], np.minimum(below[:-1], below[1:]))
    return as_floats(np.where(right, from_right, from_left))


def best_of(attacks: Mapping[str, Profile]) -> dict[str, Profile]:
    """Those that are best at some deltas and, for many rounds, at a small epsilon."""
    if not attacks:
        return {}
    best = {max(attacks, key=lambda name: attacks[name].epsilon(delta)) for delta in _TARGETS}
    best.add(max(attacks, key=lambda name: float(attacks[name].delta(_SMALL))))
    return {name: attacks[name] for name in sorted(best)}
