"""Privacy-constrained probabilities for Gaussian noise under (epsilon, delta)-DP.

A record of influence s (its norm over sigma), kept with probability q and weight 1/q, has

    D(P||Q)(eps) = q d(s/q; log(1 + (e^eps - 1)/q)),   d(theta; .) the Gaussian curve,

the larger direction. As a function of q it first rises, then falls. Its probability is

    q(s) = inf {q : every q' in [q, 1] has D(P||Q)(epsilon) <= delta},

not below a public floor; above s_full, where even q = 1 fails, there is none. At a fixed q and weight the loss
grows with s, so a table over s may be read at the next larger grid point; the grid is made of the leading bits of
s, each entry is checked by the formula itself, and q = 1 from the last feasible grid point to s_full.
"""

import math
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..numerics import rounding
from ..numerics.log_domain import FloatArray
from ..numerics.roots import NumericalFailure, bisected
from .rounded import weights_below
from .sampled_curves import with_first

_BITS = 14  # grid points per octave of s: 2^14, 6e-5 apart
_SHIFT = 52 - _BITS
_NODES = 4096  # probabilities at which the largest feasible s is solved for
_NUDGE = 1.0 + 5e-6  # interpolation between nodes is right to about 2e-6


def excess(q: FloatArray, s: FloatArray, epsilon: float, delta: float) -> FloatArray:
    """log D(P||Q)(epsilon) - log delta, rounded up: at most 0 where the record may be kept with q and weight 1/q."""
    return rounding.up(with_first("gaussian", q, s / q, epsilon)) - math.log(delta)


def largest_influence(q: FloatArray, epsilon: float, delta: float) -> FloatArray:
    """The largest s that may be kept with probability q and weight 1/q, from the side where it holds; inf for any."""
    low, high = 1e-12 * q, np.full_like(q, 1e7)
    unlimited = excess(q, high, epsilon, delta) <= 0
    if np.any(excess(q, low, epsilon, delta) > 0):
        raise NumericalFailure("not even the smallest influence meets this epsilon and delta; use larger ones")
    low, _ = bisected(lambda s: ~(excess(q, s, epsilon, delta) <= 0), low, high, rounds=64, geometric=True)
    return np.where(unlimited, np.inf, low)


@dataclass(frozen=True, slots=True)
class GaussianTable:
    """q(s) and its weight on the grid from `first` on; below the grid the floor, above it 1 up to `s_full`."""

    s_full: float
    first: int  # leading bits of the smallest grid point
    weights: FloatArray = field(repr=False)  # shape (grid points + 1,), the last one 1

    def look_up(self, s: FloatArray) -> FloatArray:
        """The weights of influences s <= s_full."""
        index = np.right_shift(np.ravel(s).view(np.int64), _SHIFT)
        index += 1 - self.first
        np.clip(index, 0, self.weights.size - 1, out=index)
        return self.weights[index].reshape(np.shape(s))


@lru_cache(maxsize=64)
def gaussian_table(epsilon: float, delta: float, floor: float) -> GaussianTable:
    """Build the table: the largest s for 4096 probabilities, turned around, each entry checked."""
    nodes = np.geomspace(floor, 1.0, _NODES)
    nodes[-1] = 1.0
    reach = largest_influence(nodes, epsilon, delta)
    s_full = float(reach[-1])
    reach = np.minimum.accumulate(reach[::-1])[::-1]  # every larger q must do as well
    grid = _grid(float(reach[0]), s_full)
    q = np.exp(np.interp(np.log(grid), np.log(reach), np.log(nodes))) * _NUDGE
    q = np.maximum.accumulate(np.clip(q, floor, 1.0))
    wrong = excess(q, grid, epsilon, delta) > 0
    if np.any(wrong):  # the next node's probability holds by construction
        q[wrong] = nodes[np.minimum(np.searchsorted(reach, grid[wrong]), _NODES - 1)]
    if np.any(excess(q, grid, epsilon, delta) > 0):
        raise NumericalFailure("the table of Gaussian probabilities does not satisfy its own condition")
    weights = np.append(weights_below(q), 1.0)
    return GaussianTable(s_full, int(grid.view(np.int64)[0]) >> _SHIFT, weights)


def _grid(low: float, high: float) -> FloatArray:
    """Numbers of `_BITS` leading bits from just below `low` to just below `high`."""
    first, last = (int(np.float64(x).view(np.int64)) >> _SHIFT for x in (low, high))
    bits: NDArray[np.int64] = np.arange(first, last + 1, dtype=np.int64) << _SHIFT
    return bits.view(np.float64)
