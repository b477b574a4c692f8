"""How much noise in the mean distance of clusters' sums must raise it, for normal sums of any variance.

Model: l sums of equal clusters, normal with deviation S, one record moving a sum by b = `away` h. The noise is
Laplace's, of the shares that `privamp.survey.clustered` gives to the mean and to the distances; the count is taken as
known. The chance over the noise of the mean is exact, that over sums and the noise of their distances is the average of
6,000 draws, with a standard error below .002.
"""

import math

import numpy as np
import pytest
from scipy.special import ndtri, stdtrit

from privamp.numerics.half_width import half_widths
from privamp.survey.clustered import SPLIT, distance_raise, variance_part

DRAWS = 6000
DEVIATIONS = np.geomspace(0.3, 60.0, 14)  # S, in units of the noise that the whole budget adds to a sum


def laplace_below(at, scale):
    """Pr[Laplace noise <= at]."""
    return np.where(at < 0.0, 0.5 * np.exp(np.minimum(at, 0.0) / scale), 1.0 - 0.5 * np.exp(-np.maximum(at, 0) / scale))


def least_coverage(drawn, away, part, raised):
    """Of 95% intervals, over all deviations."""
    random = np.random.default_rng(drawn)
    sums, noise = random.standard_normal((DRAWS, drawn)), random.laplace(0.0, math.sqrt(0.5), DRAWS) * away / part
    means = sums.mean(axis=1)
    distances = np.abs(sums - means[:, None]).sum(axis=1)
    sd = 1.0 / (drawn * (1.0 - part) * SPLIT[0])
    student = stdtrit(drawn - 1, 0.975) / ndtri(0.975)
    found = []
    for deviation in DEVIATIONS:
        seen = np.maximum(deviation * distances + noise, 0.0) + raised * away / part
        error = math.sqrt(0.5 * math.pi) * seen / (drawn * math.sqrt(drawn - 1.0))
        half = half_widths(student * error, np.full(DRAWS, sd), "laplace", 0.95)
        scale, off = sd / math.sqrt(2.0), deviation * means
        found.append(np.mean(laplace_below(half - off, scale) - laplace_below(-half - off, scale)))
    return min(found)


@pytest.mark.parametrize("drawn", [5, 16, 40])
@pytest.mark.parametrize("away", [1.0, 2.0])
@pytest.mark.parametrize("share", [0.05, 0.1, 0.2, 0.3, 0.45])
def test_normal_sums_are_covered_at_every_share(drawn, away, share):
    part = variance_part(share)
    assert least_coverage(drawn, away, part, distance_raise(part)) > 0.945


def test_distances_that_are_not_raised_cover_too_seldom():
    assert least_coverage(5, 2.0, variance_part(0.2), 0.0) < 0.940
    assert least_coverage(5, 2.0, variance_part(0.05), 0.3) < 0.930
