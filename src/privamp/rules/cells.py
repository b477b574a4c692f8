"""The worst record of a ball, whatever the release: a supremum over cells of the norm.

Probabilities grow and weights fall with the norm. So every record of norm in [u, v] is kept with at most q(v) and
moved by at most c(v) w(u), and its curves grow with both: the largest of finitely many curves is an upper bound.
"""

import math

import numpy as np

from ..core.influence import Influence
from ..core.profile import Profile
from ..errors import NoTheorem
from ..numerics.log_domain import FloatArray
from .rounded import probabilities_below
from .rule import Rule
from .sampled_curves import record_profile

_PER_OCTAVE, _EVEN = 24, 512


def worst_of_cells(rule: Rule, influence: Influence) -> Profile:
    """An upper bound on the profile of a release with this influence (in the rule's norm) over the whole domain."""
    rule.check_public()
    end = rule.farthest
    if end is None or not math.isfinite(end) or end < 0:
        raise NoTheorem("the worst case needs a declared public domain, and this rule has none; give radius=…")
    edges = _edges(rule, end)
    w = rule.weights_of_norms(edges)
    q, theta = probabilities_below(w[1:]), influence.at(edges[1:]) * w[:-1]
    return record_profile(influence.kind, *_undominated(q, theta))


def _edges(rule: Rule, end: float) -> FloatArray:
    heaviest = float(rule.weights_of_norms(np.zeros(1))[0])
    octaves = math.log2(heaviest) + 4.0
    geometric = end * np.exp2(-np.linspace(octaves, 0.0, math.ceil(octaves * _PER_OCTAVE) + 1))
    return np.unique(np.concatenate([[0.0, end], geometric[:-1], np.linspace(0.0, end, _EVEN)]))


def _undominated(q: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Without the cells that another one with larger q and larger theta covers."""
    ahead = np.append(np.maximum.accumulate(theta[::-1])[::-1][1:], -np.inf)  # q never falls along the cells
    keep = theta > ahead
    return q[keep], theta[keep]
