"""Gaussian noise under (epsilon, delta): closed form against integration, the table against the exact solver."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from privamp import Gaussian, GaussianProfile, ImportanceSampling, Infeasible, Influence, amplify, privacy_constrained
from privamp.numerics.roots import bisected
from privamp.rules.gaussian_weights import excess, gaussian_table
from privamp.rules.losses import personal_epsilons
from privamp.rules.sampled_curves import with_first, without_first

UNIT = GaussianProfile(Influence("gaussian", 0.0, 1.0))
REFERENCE = {0.02: 0.0176284, 0.05: 0.0612854, 0.1: 0.175903, 0.15: 0.359519, 0.2: 0.655750}


def integrated(q, theta, epsilon):
    """D(P||Q) and D(Q||P) for P = (1-q)N(0) + qN(theta), Q = N(0): both likelihood ratios are monotone in t."""
    a = math.exp(epsilon)
    # P - aQ > 0 from t on: (1-q) + q e^(theta t - theta²/2) = a
    t = (math.log((a - 1.0 + q) / q) + 0.5 * theta**2) / theta
    forward = (1 - q - a) * ndtr(-t) + q * ndtr(theta - t)
    left = 1.0 / a - (1.0 - q)  # Q - aP > 0 up to t
    if left <= 0:
        return forward, 0.0
    t = (math.log(left / q) + 0.5 * theta**2) / theta
    return forward, ndtr(t) - a * ((1 - q) * ndtr(t) + q * ndtr(t - theta))


def numeric(q, theta, epsilon):
    """The same by adding up a fine grid: no formula at all."""
    t = np.linspace(-12.0, 12.0 + theta, 400_001)
    zero, moved = np.exp(-0.5 * t**2), np.exp(-0.5 * (t - theta) ** 2)
    p, a, cell = (1 - q) * zero + q * moved, math.exp(epsilon), (t[1] - t[0]) / math.sqrt(2 * math.pi)
    return np.maximum(p - a * zero, 0).sum() * cell, np.maximum(zero - a * p, 0).sum() * cell


@pytest.mark.parametrize("q", [0.003, 0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("theta", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.5, 2.0])
def test_both_directions_are_the_integrals(q, theta, epsilon):
    forward, backward = (float(np.exp(f("gaussian", q, theta, epsilon))) for f in (with_first, without_first))
    for other in (integrated(q, theta, epsilon), numeric(q, theta, epsilon)):
        assert forward == pytest.approx(other[0], rel=1e-6, abs=1e-9)
        assert backward == pytest.approx(other[1], rel=1e-6, abs=1e-9)
    assert backward <= forward * (1 + 1e-12)


def exact_probability(s: float, epsilon: float, delta: float, floor: float) -> float:
    """q(s) by bisection, from the private side; Infeasible above s_full. Slow and simple: the table's reference."""
    one = np.ones(1)
    if excess(one, one * s, epsilon, delta)[0] > 0:
        raise Infeasible(f"an influence of {s:g} does not meet epsilon {epsilon:g} at delta {delta:g} even unsampled")
    grid = np.geomspace(1.0, floor, 20_001)
    bad = np.flatnonzero(excess(grid, np.full_like(grid, s), epsilon, delta) > 0)
    if not bad.size:
        return floor
    high, low = one * grid[bad[0] - 1], one * grid[bad[0]]
    return float(bisected(lambda q: excess(q, one * s, epsilon, delta) <= 0, low, high, geometric=True)[1][0])


def test_the_formula_with_the_unweighted_shift_is_caught():
    """The negative control: amplification of the curve at weight 1 instead of 1/q is false."""
    q, s, epsilon = 0.2, 0.8, 0.5
    wrong = float(np.exp(with_first("gaussian", q, s, epsilon)))
    assert wrong < 0.1 * numeric(q, s / q, epsilon)[0]


def test_reference_values():
    rule = privacy_constrained(UNIT, 1.0, 1e-6)
    assert rule.largest_influence == pytest.approx(0.236704, abs=5e-7)
    for s, q in REFERENCE.items():
        assert exact_probability(s, 1.0, 1e-6, 1e-6) == pytest.approx(q, rel=5e-6)
        drawn = float(rule.of_norms([s])[0])
        assert exact_probability(s, 1.0, 1e-6, 1e-6) <= drawn <= q * (1 + 2e-4)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-9), (4.0, 1e-5), (0.5, 0.05)])
def test_every_record_meets_the_target(epsilon, delta):
    rule = privacy_constrained(UNIT, epsilon, delta)
    shares = np.concatenate([np.geomspace(1e-7, 1.0, 3000), np.linspace(1e-4, 1.0, 3000)])
    s = rule.largest_influence * (1 - 1e-12) * shares
    w, q = rule.weights_of_norms(s), rule.of_norms(s)
    assert np.all(q * w <= 1.0)
    for f in (with_first, without_first):
        assert np.all(f("gaussian", q, rule.influence.at(s) * w, epsilon) <= math.log(delta))
    order = np.argsort(s)
    assert np.all(np.diff(q[order]) >= 0)
    losses = rule.losses_of_norms(s[::50])
    assert losses.max() <= epsilon
    assert losses[-1] > 0.99 * epsilon


def test_the_useless_root_is_not_taken():
    """Above s_full a naive root q near delta exists; it must be an error."""
    s, epsilon, delta = 0.3, 1.0, 1e-6
    assert excess(np.array([0.5 * delta]), np.array([s]), epsilon, delta)[0] <= 0
    with pytest.raises(Infeasible):
        privacy_constrained(UNIT, epsilon, delta).of_norms([s])
    with pytest.raises(Infeasible):
        exact_probability(s, epsilon, delta, 1e-9)
    with pytest.raises(Infeasible, match="radius"):
        privacy_constrained(UNIT, epsilon, delta, radius=0.24)


def test_tiny_influences_get_the_public_floor():
    rule = privacy_constrained(UNIT, 1.0, 1e-6, max_weight=1e4)
    assert rule.of_norms([0.0, 1e-12]).tolist() == pytest.approx([1e-4] * 2, rel=1e-5)


def test_numbers_and_arrays_of_any_shape():
    rule = privacy_constrained(UNIT, 1.0, 1e-6)
    assert float(rule.of_norms(0.1)) == rule.of_norms([0.1])[0] == rule.of_norms(np.full((2, 3), 0.1))[1, 2]


def test_the_guarantee_is_the_target():
    noise = Gaussian(sigma=5.0)
    rule = privacy_constrained(GaussianProfile.of(noise), 1.0, 1e-6, radius=1.1)
    for guarantee in (rule.guarantee(), amplify(noise, ImportanceSampling(rule))):
        assert guarantee.delta(1.0) <= 1e-6
        assert 1.0 - 1e-9 <= guarantee.epsilon(1e-6) <= 1.0
    lower = amplify(noise, ImportanceSampling(rule)).lower.epsilon(1e-6)
    assert 0.999 < lower <= 1.0


def test_personal_epsilons_are_roots_from_the_private_side():
    q, theta = np.array([1.0, 0.1, 0.01, 1.0]), np.array([0.2, 1.0, 3.0, 0.0])
    found = personal_epsilons(q, theta, 1e-5)
    assert found[3] == 0.0
    for e, chance, shift in zip(found[:3], q, theta, strict=False):
        assert with_first("gaussian", chance, shift, e) <= math.log(1e-5)
        assert with_first("gaussian", chance, shift, e * (1 - 1e-6)) > math.log(1e-5)


def test_with_weak_noise_weighted_sampling_can_help():
    """IS App. A says when it cannot; the Gaussian curve at s = 3 is a counterexample in the other direction."""
    whole, sampled = (float(np.exp(with_first("gaussian", q, 3.0 / q, 1.0))) for q in (1.0, 0.7))
    assert round(whole, 3) == 0.788
    assert round(sampled, 3) == 0.660


@pytest.mark.parametrize(("epsilon", "delta", "floor"), [(0.5, 1e-6, 1e-4), (2.0, 1e-9, 0.01), (0.05, 1e-3, 0.5)])
def test_no_weight_of_the_table_is_below_1(epsilon, delta, floor):
    """No probability is above 1 or below the floor, though each is nudged up; and none falls with the influence."""
    weights = gaussian_table(epsilon, delta, floor).weights
    assert np.min(weights) == weights[-1] == 1.0
    assert 0.999 / floor < np.max(weights) <= 1.0 / floor
    assert np.all(np.diff(weights) <= 0.0)
