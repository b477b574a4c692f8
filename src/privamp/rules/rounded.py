"""Weights and probabilities as they are drawn and certified: both rounded in the safe direction.

A record kept with probability q and weight w loses log(1 + q(e^eps(w) - 1)), which grows with q and with w. So a
certified weight may be rounded down, and its probability is the largest multiple of 2^-64 below 1/w: what the keyed
draw compares integers with. Drawing with 1/w rounded to nearest would be wrong: q w would exceed 1 for half of all
records.
"""

import numpy as np

from ..numerics.log_domain import FloatArray

LARGEST_WEIGHT = 2.0**64  # its probability is the smallest that can be drawn
_DOWN = 1.0 - 2.0**-52  # takes back the rounding of a division and of this product itself
_GRID = 2.0**64
_CHUNK = 16384


def weights_below(probabilities: FloatArray) -> FloatArray:
    """1/q rounded down, at least 1."""
    return np.clip(_DOWN / probabilities, 1.0, None)


def probabilities_below(weights: FloatArray) -> FloatArray:
    """1/w rounded down to a multiple of 2^-64, and exactly 1 for the weight 1."""
    w = np.ravel(weights)
    q: FloatArray = np.empty(w.shape)
    for at in range(0, w.size, _CHUNK):
        piece, heavy = q[at : at + _CHUNK], w[at : at + _CHUNK]
        np.divide(_GRID, heavy, out=piece)
        piece *= _DOWN
        np.floor(piece, out=piece)
        piece *= 1.0 / _GRID
        piece[heavy == 1.0] = 1.0
    return q.reshape(np.shape(weights))
