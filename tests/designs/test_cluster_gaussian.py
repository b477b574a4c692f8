"""Whole clusters under Gaussian noise: enumerated truth, reference values, planted mistakes."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from privamp import ClusterPPS, ClusterSampling, Gaussian, Neighbors, NoTheorem, Poisson, amplify
from privamp.designs.cluster_gaussian import one_against_several
from privamp.verify import exact_delta

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
WITHIN = Neighbors("replace-one", scope="within cluster")
EPSILONS = np.array([0.0, 0.3, 1.0])
CASES = [
    (ClusterSampling(1, 2, 1), (0, 1)),
    (ClusterSampling(1, 2, 2), (1, 2)),
    (ClusterSampling(1, 3, 1), (0, 1, 1)),
    (ClusterSampling(2, 3, 1), (0, 1, 1)),
    (ClusterSampling(1, 2, (2, 1)), (1, 1)),
    (ClusterPPS((0.7, 0.3), 2), (1, 2)),
    (ClusterPPS((0.5, 0.3, 0.2), (1, 2, 1)), (0, 2, 1)),
]


def comparisons(relation):
    for design, sizes in CASES:
        mechanism = Gaussian(1.2)
        yield (
            design,
            amplify(mechanism, design, relation),
            exact_delta(design, mechanism, design.sized(sizes), relation, EPSILONS),
        )


@pytest.mark.parametrize("relation", [AR, WITHIN, RO], ids=str)
@pytest.mark.filterwarnings("ignore::privamp.errors.DegradingDesign")
def test_enumerated_truth_is_never_above_and_reached_for_exact_relations(relation):
    ratios = []
    for design, guarantee, truth in comparisons(relation):
        upper = np.asarray(guarantee.delta(EPSILONS))
        assert np.all(upper >= truth - 1e-10), design
        if guarantee.lower:
            assert np.all(np.asarray(guarantee.lower.delta(EPSILONS)) <= upper)
        ratios.append(np.min(truth / upper))
    if relation != RO:
        assert max(ratios) > 0.9999


def test_a_distance_one_record_too_short_is_caught():
    design, theta = ClusterSampling(1, 2, 2), 1.0 / 1.2
    truth = exact_delta(design, Gaussian(1.2), design.sized((1, 2)), AR, EPSILONS)
    short = np.exp(one_against_several(0.5, theta, [(0.5, 3.0 * theta)])(EPSILONS))
    right = np.exp(one_against_several(0.5, theta, [(0.5, 4.0 * theta)])(EPSILONS))
    assert np.any(short < truth - 1e-6)
    assert np.all(right >= truth - 1e-10)


def test_curve_is_the_integral():
    q, b, e = 0.3, 0.7, 2.1
    for epsilon in (0.0, 0.2, 1.5):
        a = np.exp(epsilon)
        value = quad(
            lambda t, a=a: max(q * norm.pdf(t) - a * q * norm.pdf(t + b) - (a - 1) * (1 - q) * norm.pdf(t + e), 0.0),
            -12, 12, limit=400, epsabs=1e-13,
        )[0]  # fmt: skip
        assert np.exp(float(one_against_several(q, b, [(1 - q, e)])(epsilon))) == pytest.approx(value, rel=1e-7)


@pytest.mark.parametrize(("cap", "sigma", "expected"), [(1, 2.0, 1.489), (4, 4.0, 0.925)])
def test_reference_values(cap, sigma, expected):
    guarantee = amplify(Gaussian(sigma), ClusterSampling(5, 50, cap))
    assert guarantee.epsilon(1e-6) == pytest.approx(expected, abs=6e-4)
    assert guarantee.lower.epsilon(1e-6) == pytest.approx(guarantee.epsilon(1e-6), rel=1e-9)
    assert "Thm 8" in guarantee.because[0]


def test_trimmed_second_stages_and_replace_one_sensitivities_are_refused():
    with pytest.raises(NoTheorem):
        amplify(Gaussian(1.0), ClusterSampling(1, 2, 2, Poisson(0.5), trim=True))
    with pytest.raises(NoTheorem):
        amplify(Gaussian(1.0, neighbors=RO), ClusterSampling(1, 2, 2))
