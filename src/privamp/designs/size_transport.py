"""One cluster by its private size, under mechanisms with noise: components of what is drawn (core/transport.py).

The changed cluster has x records without the new one, and N - x are elsewhere: it is drawn with the chances p =
(x+1)/(N+1) and q = x/N. At caps c, in add/remove steps: in, in 1; in, out 2c; out, in 2c - 1; out, out 0. Sizes are
private, and the bound is convex in (p, q): it is largest at a corner of any polygon around all chances that sizes
from s to c allow. For given p the smallest q is at x = s, where q = sp/(s+1-p) is convex in p, or on a chord from
there to the largest p; and q <= p. Replaced inside: p = q, at its two ends. Moved: both clusters are one record
apart, at chances whose ratio is 1 + 1/s at most: H_alpha <= delta_1(eps - log(1 + 1/s)). Proof: docs/transport.md,
Thm 8.
"""

import math
from itertools import pairwise
from typing import Any

import numpy as np

from ..core.mechanism import Mechanism
from ..core.neighbors import Neighbors
from ..core.profile import Curve, Profile
from ..core.theorem import Theorem
from ..core.transport import Components, has_noise, stakes_of, transported
from ..errors import NoTheorem
from ..numerics.log_domain import FloatArray
from . import cluster_transport as cluster

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
PAGE = "docs/transport.md, Thm 8"
_TANGENTS = 4  # along the curve of the smallest clusters


def corners(clusters: int, smallest: int, largest: int) -> list[tuple[float, float]]:
    """Chances (p, q) around all that occur when one record comes."""
    s, c, others = float(smallest), float(largest), clusters - 1
    if others == 0:
        return [(1.0, 1.0)]
    least, most = (s + 1.0) / (s + 1.0 + others * c), c / (c + others * s)
    own = (s + 1.0) / (s + 1.0 + others * s)
    touched = [(p, s * p / (s + 1.0 - p), s * (s + 1.0) / (s + 1.0 - p) ** 2)
               for p in np.geomspace(least, own, _TANGENTS).tolist()]  # fmt: skip
    low = [touched[0][:2], touched[-1][:2], (most, (c - 1.0) / (c - 1.0 + others * s))]
    for (p, q, up), (r, t, steep) in pairwise(touched):
        if steep - up > 1e-9 * up:
            at = (t - q + up * p - steep * r) / (up - steep)
            low.append((at, q + up * (at - p)))
    return [*low, (least, least), (most, most)]


def _check_floor(design: Any) -> int:
    if design.min_size < 1:
        raise NoTheorem(
            "a cluster drawn in proportion to its size that may be empty has an unbounded privacy loss as the others "
            "grow; declare min_size (2 under replace-one), or draw with public probabilities by ClusterPPS"
        )
    return int(design.min_size)


def _added(design: Any, mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    c, found = design.max_size, corners(design.clusters, _check_floor(design), design.max_size)
    far = [[1, 2 * c], [2 * c - 1, 0]]
    return transported([Components.of([p, 1.0 - p], [q, 1.0 - q], far) for p, q in found], mechanism)


def _inside(design: Any, mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    s, c, others = design.min_size, design.max_size, design.clusters - 1
    ends = {max(s, 1) / (max(s, 1) + others * c), c / (c + others * s)}
    return transported([cluster.replaced(p, c, c) for p in ends], mechanism).symmetrised()


def _moved(design: Any, mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    inside = _inside(design, mechanism, neighbors)
    if design.clusters == 1:
        return inside
    stakes, lost = stakes_of(mechanism), math.log1p(1.0 / _check_floor(design)) * (1.0 + 1e-15)

    def log_delta(epsilon: FloatArray) -> FloatArray:
        return np.minimum(stakes(np.ones(np.shape(epsilon)), epsilon - lost), 0.0)

    return Profile.maximum([inside, Profile.symmetric(Curve(log_delta))]).symmetrised()


THEOREMS = (
    Theorem("One cluster by size, one record more, transport", PAGE, AR.kind, AR.kind, False, _added, has_noise),
    Theorem(
        "One cluster by size, one record replaced inside its cluster, transport", PAGE, AR.kind, RO.kind, False,
        _inside, has_noise, scope="within cluster",
    ),
    Theorem("One cluster by size, one record replaced, transport", PAGE, AR.kind, RO.kind, False, _moved, has_noise),
)  # fmt: skip


def noisy_sum(design: Any, mechanism: Mechanism, neighbors: Neighbors) -> Profile | None:
    """The changed cluster, one below its cap, counts 1 per record, and the smallest others -1."""
    x, size, others = design.max_size - 1, design.min_size, design.clusters - 1
    newcomers = 1 if neighbors.kind == AR.kind else 0
    if x + newcomers == 0 or x + others * size == 0:
        return None
    p, q = (x + newcomers) / (x + newcomers + others * size), x / (x + others * size)
    here, there = (float(x + 1), float(x)) if newcomers else (float(x), float(x - 2))
    if -float(size) in (here, there):
        return None
    return mechanism.on_a_line({here: p, -float(size): 1.0 - p}, {there: q, -float(size): 1.0 - q})
