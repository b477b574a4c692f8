"""Designs under mechanisms that are not pure: enumerated truth, and distances that are too small are caught."""

import numpy as np
import pytest

from privamp import (
    ApproxDP,
    ClusterPPS,
    ClusterSampling,
    DiscreteGaussian,
    Gaussian,
    Neighbors,
    NoTheorem,
    Poisson,
    RandomSize,
    amplify,
    compose,
)
from privamp.core.transport import Components, transported
from privamp.verify.enumerate import exact_deltas

pytestmark = pytest.mark.filterwarnings("ignore::privamp.errors.DegradingDesign")
AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
WITHIN = Neighbors("replace-one", scope="within cluster")
EPSILONS = np.array([0.0, 0.2, 0.9])


def cases():
    coins, fixed, free = (
        ClusterSampling(1, 2, 2, Poisson(0.4)),
        ClusterSampling(1, 2, 4, 2, 2),
        ClusterSampling(1, 3, 2),
    )
    trimmed, pps = ClusterSampling(1, 2, 1, trim=True), ClusterPPS((0.5, 0.5), 2)
    yield coins, coins.sized((1, 2)), AR
    yield coins, coins.sized((1, 2)), WITHIN
    yield fixed, fixed.sized((2, 2)), AR
    yield fixed, fixed.sized((2, 3)), WITHIN
    yield ClusterSampling(1, 2, 4, 2), ClusterSampling(1, 2, 4, 2).sized((1, 2)), AR  # not the worst sizes
    yield trimmed, trimmed.sized((1, 1)), AR
    yield free, free.sized((1, 2, 2)), RO
    yield pps, pps.sized((1, 2)), RO
    for law in ([0.25, 0.75, 0.0], [0.0, 0.5, 0.5, 0.0], [0.2] * 5):
        yield RandomSize(law), len(law) - 1, RO


@pytest.mark.parametrize(("design", "population", "relation"), list(cases()), ids=lambda x: str(x)[:40])
def test_the_truth_is_below_the_bound(design, population, relation):
    mechanism = DiscreteGaussian(1.2) if isinstance(design, ClusterPPS) else Gaussian(1.4)
    upper = amplify(mechanism, design, relation).upper
    bounds = np.exp(np.stack([upper.forward(EPSILONS), upper.backward(EPSILONS)]))
    truth = exact_deltas(design, mechanism, population, relation, EPSILONS)
    assert np.all(bounds >= truth - 1e-12)
    if not getattr(design, "trim", False) and getattr(design, "min_size", 2) == getattr(design, "second_size", 2):
        assert np.all(truth[0, :2] >= 0.75 * bounds[0, :2])


@pytest.mark.parametrize("far", [[[1, 3], [3, 0]], [[1, 4], [2, 0]], [[0, 4], [3, 0]]])
def test_distances_that_are_too_small_are_caught(far):
    """The plants: a member forgotten on the way out, on the way in, and the newcomer itself."""
    design = ClusterSampling(1, 2, 2)
    truth = exact_deltas(design, Gaussian(1.4), design.sized((1, 2)), AR, EPSILONS)
    wrong = transported([Components.of([0.5, 0.5], [0.5, 0.5], far)], Gaussian(1.4))
    claims = np.exp(np.stack([wrong.forward(EPSILONS), wrong.backward(EPSILONS)]))
    assert np.any(claims < truth - 1e-4)


def test_approximate_black_boxes_and_rounds():
    one = amplify(ApproxDP(1.0, 1e-6), ClusterSampling(5, 50, 2))
    assert one.delta(1.0) < 1e-5
    assert one.epsilon(1e-5) < 1.0
    rounds = compose(amplify(Gaussian(4.0), ClusterSampling(5, 50, 4, 2, 2)), 10)
    assert 0.0 < rounds.epsilon(1e-5) < 10 * amplify(Gaussian(4.0), ClusterSampling(5, 50, 4, 2, 2)).epsilon(1e-6)


def test_random_sizes_for_every_law_and_mechanism():
    large = RandomSize.uniform(10, 90, 100)
    assert amplify(Gaussian(2.0), large).epsilon(1e-6) > 0
    assert amplify(Gaussian(2.0, neighbors=RO), large).epsilon(1e-6) > 0
    certain = RandomSize([0.0, 0.0, 1.0, 0.0])
    assert amplify(Gaussian(2.0, neighbors=RO), certain).delta(0.1) == pytest.approx(
        np.exp(np.log(2 / 3) + Gaussian(2.0, neighbors=RO).profile(RO).forward(np.log1p(np.expm1(0.1) * 1.5))), rel=1e-6
    )


def test_what_is_still_refused():
    with pytest.raises(NoTheorem):
        amplify(DiscreteGaussian(1.0), ClusterSampling(1, 2, 9, Poisson(0.5)))
    with pytest.raises(NoTheorem):
        amplify(Gaussian(1.0), ClusterSampling(1, 2, 2, Poisson(0.5), trim=True))
