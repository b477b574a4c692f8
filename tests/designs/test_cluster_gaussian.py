"""Whole clusters under Gaussian noise: enumerated truth, reference values, planted mistakes."""

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from privamp import (
    ClusterPPS,
    ClusterSampling,
    Gaussian,
    Neighbors,
    NoTheorem,
    Poisson,
    PPSClusters,
    SystematicPPS,
    amplify,
)
from privamp.designs import cluster_gaussian
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


@pytest.mark.parametrize("sigma", [50.0, 80.0, 150.0, 400.0, 1e4])
@pytest.mark.parametrize(
    "design",
    [PPSClusters((30, 20, 25, 25), 2, 5), ClusterSampling(4, 8, 5), SystematicPPS((3, 2, 4, 1), 2),
     ClusterPPS((0.5, 0.25, 0.25), 2)],
    ids=lambda design: type(design).__name__,
)  # fmt: skip
def test_much_noise_has_a_guarantee(design, sigma):
    guarantee = amplify(Gaussian(sigma), design)
    assert 0.0 <= guarantee.epsilon(1e-6) < amplify(Gaussian(0.9 * sigma), design).epsilon(1e-6)


def settings(seed: int, many: int):
    """Distances from 1e-5 to 10 with up to five others."""
    rng = np.random.default_rng(seed)
    for _ in range(many):
        q, theta = rng.uniform(0.01, 0.99), 10 ** rng.uniform(-5, 1)
        shares = rng.dirichlet(np.ones(rng.integers(1, 6))) * (1.0 - q)
        others = [(float(p), float(theta * rng.integers(1, 12))) for p in shares]
        epsilon = 10 ** rng.uniform(-5, 1) * min(1.0, 5.0 * theta) if rng.random() < 0.9 else 0.0
        yield float(q), float(theta * rng.integers(1, 3)), others, float(epsilon)


def exact_curve(q, near, others, epsilon):
    """By mpmath: the threshold to 60 digits, then the integral right of it."""
    with mpmath.workdps(60):
        alpha = mpmath.exp(epsilon)
        held = [(alpha, mpmath.mpf(near)), *((mpmath.expm1(epsilon) * p / q, mpmath.mpf(e)) for p, e in others)]
        held = [(w, s) for w, s in held if w > 0]
        x = max((mpmath.log(w) - s * s / 2) / s for w, s in held)
        step = mpmath.inf
        while abs(step) > mpmath.mpf(10) ** -40 * (1 + abs(x)):
            terms = [w * mpmath.exp(-s * x - s * s / 2) for w, s in held]
            total = mpmath.fsum(terms)
            step = mpmath.log(total) * total / mpmath.fsum(t * s for t, (_, s) in zip(terms, held, strict=True))
            x += step
        return q * (mpmath.ncdf(-x) - mpmath.fsum(w * mpmath.ncdf(-x - s) for w, s in held))


def compared(curve, many):
    """By how much a curve is above the truth, relative to it, and the shortest distance of each setting."""
    for q, near, others, epsilon in settings(3, many):
        truth = exact_curve(q, near, others, epsilon)
        if truth > 1e-290:
            value = mpmath.exp(float(curve(q, near, others)(epsilon)))
            yield float(value / truth - 1), min(near, *(e for _, e in others), 1.0)


def test_curve_is_above_the_truth_and_close_to_it():
    for excess, shortest in compared(one_against_several, 200):
        assert 0.0 <= excess <= 2e-11 / shortest


def test_a_threshold_right_of_the_point_is_caught(monkeypatch):
    right = cluster_gaussian._threshold
    monkeypatch.setattr(cluster_gaussian, "_threshold", lambda w, shift: right(w, shift) * (1.0 + 1e-13) + 1e-13)
    assert min(excess for excess, _ in compared(one_against_several, 100)) < 0.0
