"""Parameters at the ends of their ranges: numbers, no crash, and still on the safe side."""

import math
import warnings

import mpmath as mp
import numpy as np
import pytest

from privamp import (
    ClusterPPS,
    ClusterSampling,
    Joint,
    Neighbors,
    Poisson,
    PoissonPPS,
    PureDP,
    amplify,
)

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
CERTAIN = [
    Poisson(1.0),
    PoissonPPS(high=1.0),
    PoissonPPS.proportional(3, 1.0, 1.0, 3),
    ClusterSampling(2, 2, 3, 2, min_size=1),
    ClusterPPS.proportional_to_size(1, 3, 2),
]


@pytest.mark.parametrize("epsilon", [37.0, 38.0, 300.0, 700.0])
@pytest.mark.parametrize("design", CERTAIN, ids=lambda d: type(d).__name__)
def test_records_that_are_kept_for_certain(design, epsilon):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for mechanism in (PureDP(epsilon), Joint([PureDP(epsilon / 2)] * 2)):
            found = amplify(mechanism, design, RO)
            assert found.epsilon() >= 2.0 * epsilon * (1.0 - 1e-12)
            if found.lower is not None:
                assert found.lower.epsilon() <= found.epsilon()
                assert np.all(found.lower.delta([0.0, 1.0, epsilon]) <= np.asarray(found.delta([0.0, 1.0, epsilon])))


@pytest.mark.parametrize("rate", [1e-150, 1e-12, 1e-6, 0.3, 1.0 - 2.0**-53, 1.0])
@pytest.mark.parametrize("epsilon", [1e-12, 1e-3, 1.0, 38.0, 700.0])
def test_a_swapped_record_is_rounded_up_at_every_rate(rate, epsilon):
    with mp.workdps(800):
        a, q = mp.exp(mp.mpf(epsilon)), mp.mpf(rate)
        exact = mp.log((1 + q * (a - 1)) / (1 - q * (1 - 1 / a)))
        found = amplify(PureDP(epsilon), Poisson(rate), RO).epsilon()
        assert exact <= found <= exact * (1 + mp.mpf(10) ** -13)


@pytest.mark.parametrize(("rate", "records"), [(0.99, 8), (0.999, 6), (0.9, 17), (1.0 - 2.0**-50, 1), (1e-9, 3)])
def test_where_the_absent_direction_of_a_person_ends(rate, records):
    """Q is at most 1/p_0 times P, and p_0 = (1-q)^J may be far below the last digit of 1."""
    relation = AR.for_person(records)
    curve = Poisson(rate).theorems[0].bound(Poisson(rate), PureDP(60.0), relation).backward
    with mp.workdps(200):
        p0 = (1 - mp.mpf(rate)) ** records
        exact = -mp.log(p0 + (1 - p0) * mp.exp(-60 * records))
        assert abs(curve.largest_loss - exact) <= 1e-12 * exact
    assert math.isfinite(curve.largest_loss)
