"""The thresholds of several Gaussian densities at once, each against its own root."""

import math

import numpy as np
from scipy.optimize import brentq

from privamp.designs.cluster_gaussian import _threshold

SHIFT = np.array([1.0, 2.0, 0.5])
LOG_W = np.array(
    [[0.0, -np.inf, -np.inf], [0.0, 0.0, 0.0], [-3.0, -1.0, -2.0], [5.0, -40.0, 2.0], [-np.inf, -700.0, -1.0]]
)


def test_every_threshold_is_left_of_its_root_and_near_it():
    """The first row has one term and is found at once, the others take more rounds."""

    def excess(x, row):
        return math.log(sum(math.exp(w - s * x) for w, s in zip(row, SHIFT, strict=True)))

    found = _threshold(LOG_W, SHIFT)
    for x, row in zip(found, LOG_W, strict=True):
        root = brentq(excess, x - 50.0, x + 50.0, args=(row,), xtol=1e-13, rtol=1e-14)
        assert root - 1e-10 * max(1.0, abs(root)) <= x < root
    alone = [_threshold(LOG_W[i : i + 1], SHIFT)[0] for i in range(len(LOG_W))]
    np.testing.assert_allclose(found, alone, rtol=1e-12, atol=1e-12)
