"""Uniform, coreset and variance-optimal rules: certified suprema against dense search, and what is refused."""

import math

import numpy as np
import pytest

from privamp import (
    Gaussian,
    GaussianProfile,
    Infeasible,
    Influence,
    InvalidInput,
    Laplace,
    LinearProfile,
    NormNoise,
    NoTheorem,
    amplify,
    coreset,
    uniform,
    variance_optimal,
)
from privamp.designs.importance import ImportanceSampling
from privamp.rules.coreset import largest_size

COUNTED, PLAIN = Influence("pure", 0.05, 0.3), Influence("pure", 0.0, 0.3)


def dense(rule, points=400_001):
    """The largest loss on a very fine grid, geometric towards 0, with the end of a floor."""
    kink = min(getattr(rule, "floor", 0.0) / getattr(rule, "kappa", 1.0), rule.radius)
    u = np.append(np.concatenate([[0.0], np.geomspace(1e-9, 1.0, points)]) * rule.radius, kink)
    return float(np.max(rule.losses_of_norms(u)))


@pytest.mark.parametrize("share", [1e-4, 0.01, 0.3, 0.9, 1.0])
@pytest.mark.parametrize("influence", [COUNTED, PLAIN, Influence("pure", 0.05, 0.0)])
@pytest.mark.parametrize("size", [20, 900])
def test_the_coreset_supremum_is_the_largest_loss(share, influence, size):
    rule = coreset(
        LinearProfile(influence), share=share, size=size, population=10_000, mean_squared_norm=0.3, radius=1.5
    )
    worst = dense(rule)
    assert worst <= rule.worst_loss() * (1 + 1e-12)
    assert rule.worst_loss() <= worst * (1 + 1e-6)
    assert rule.guarantee().epsilon() >= worst


def test_random_coresets():
    random = np.random.default_rng(3)
    for _ in range(60):
        a, t, share = 10 ** random.uniform(-4, 0), 10 ** random.uniform(-4, 1), 10 ** random.uniform(-5, -0.01)
        rule = coreset(
            LinearProfile(Influence("pure", a, t)), share=share, size=50, population=10_000,
            mean_squared_norm=10 ** random.uniform(-1.5, 0), radius=1.0,
        )  # fmt: skip
        worst = dense(rule, 40_001)
        assert worst * (1 - 1e-12) <= rule.worst_loss() <= worst * (1 + 1e-4)


def test_coreset_sizes_and_norms():
    with pytest.raises(InvalidInput, match="share"):
        coreset(LinearProfile(PLAIN), share=0.0, size=1, population=10, mean_squared_norm=1.0, radius=1.0)
    most = largest_size(0.2, 1000, 0.3, 2.0)
    coreset(
        LinearProfile(PLAIN), share=0.2, size=most * (1 - 1e-12), population=1000, mean_squared_norm=0.3, radius=2.0
    )
    with pytest.raises(Infeasible, match=f"{most:g}"):
        coreset(LinearProfile(PLAIN), share=0.2, size=most * 1.01, population=1000, mean_squared_norm=0.3, radius=2.0)
    laplace = LinearProfile.of(Laplace(10.0))
    with pytest.raises(NoTheorem, match="dimension"):
        coreset(laplace, share=0.2, size=1, population=10, mean_squared_norm=1.0, radius=1.0)
    rule = coreset(laplace, share=0.2, size=1, population=10, mean_squared_norm=1.0, radius=1.0, dimension=9)
    diagonal, axis = np.full((1, 9), 1.0 / 3.0), np.eye(1, 9)
    assert rule.probabilities(diagonal) == pytest.approx(rule.probabilities(axis))  # squared l2 norms decide
    assert rule.losses(diagonal)[0] > 1.9 * rule.losses(axis)[0]  # and l1 norms lose
    assert rule.guarantee().epsilon() >= rule.losses(diagonal)[0]


def test_the_uniform_rule_is_worst_at_the_radius():
    for influence in (COUNTED, PLAIN):
        rule = uniform(LinearProfile(influence), size=30, population=1000, radius=2.0)
        assert rule.guarantee().epsilon() == pytest.approx(dense(rule, 2001), rel=1e-12)
        c, q = float(influence.at(2.0)), 0.03
        assert rule.guarantee().epsilon() == pytest.approx(math.log1p(q * math.expm1(c / q)), rel=1e-12)
    noise = Gaussian(40.0)
    rule = uniform(GaussianProfile.of(noise), rate=0.1, radius=2.0, delta=1e-5)
    assert rule.guarantee().epsilon(1e-5) == pytest.approx(rule.losses_of_norms([2.0])[0], rel=1e-9)
    assert amplify(noise, ImportanceSampling(rule)).epsilon(1e-5) == pytest.approx(rule.guarantee().epsilon(1e-5))
    with pytest.raises(InvalidInput):
        uniform(LinearProfile(PLAIN), radius=1.0)
    with pytest.raises(InvalidInput):
        uniform(LinearProfile(PLAIN), size=20, population=10, radius=1.0)
    with pytest.raises(InvalidInput, match="Influence"):
        uniform(LinearProfile(lambda x: np.abs(x)), rate=0.5, radius=1.0)


@pytest.mark.parametrize("kappa", [0.05, 0.4, 2.0, 50.0])
@pytest.mark.parametrize(("influence", "floor"), [(PLAIN, 2.0**-64), (PLAIN, 0.01), (COUNTED, 0.01), (COUNTED, 0.3)])
def test_the_variance_optimal_supremum_is_the_largest_loss(kappa, influence, floor):
    rule = variance_optimal(LinearProfile(influence), kappa=kappa, radius=1.5, floor=floor)
    worst = dense(rule)
    assert worst <= rule.guarantee().epsilon()
    assert rule.guarantee().epsilon() <= worst * (1 + 1e-6)


def test_tiny_norms_of_a_plain_sum_lose_nothing():
    rule = variance_optimal(LinearProfile(PLAIN), kappa=0.4, radius=1.5)
    u = np.array([1e-12, 1e-6, 1e-3])
    assert rule.weights_of_norms(u) * u == pytest.approx(1 / 0.4)  # every record moves the sum by 1/kappa
    assert rule.losses_of_norms(u) == pytest.approx(0.4 * u * math.expm1(0.3 / 0.4), rel=1e-3)


def test_counted_records_need_a_floor():
    rule = variance_optimal(LinearProfile(COUNTED), kappa=0.4, radius=1.5)
    assert rule.guarantee().epsilon() > 1e15  # a record of norm 0 would have weight 2^64 in the count


def test_a_fitted_constant_has_no_guarantee():
    rule = variance_optimal(LinearProfile(PLAIN), kappa=0.4, radius=1.5, public=False)
    assert rule.of_norms([1.0])[0] == pytest.approx(0.4)
    with pytest.raises(NoTheorem, match="fitted"):
        rule.guarantee()
    for mechanism in (NormNoise(1 / 0.3, 2), Gaussian(4.0)):
        with pytest.raises(NoTheorem, match="fitted"):
            amplify(mechanism, ImportanceSampling(rule))


@pytest.mark.parametrize("make", ["coreset", "variance_optimal"])
def test_gaussian_worst_cases_cover_every_record_of_the_ball(make):
    noise = Gaussian(30.0)
    if make == "coreset":
        rule = coreset(
            GaussianProfile.of(noise),
            share=0.1,
            size=50,
            population=1000,
            mean_squared_norm=0.3,
            radius=1.0,
            delta=1e-5,
        )
    else:
        rule = variance_optimal(GaussianProfile.of(noise), kappa=0.2, radius=1.0, floor=0.01, delta=1e-5)
    personal = rule.losses_of_norms(np.linspace(0.0, 1.0, 2001)).max()
    worst = rule.guarantee().epsilon(1e-5)
    assert personal <= worst <= 1.1 * personal


def test_weighted_sampling_cannot_beat_the_unsampled_mechanism():
    """IS App. A: psi(x) >= epsilon(1, x) for linear pure profiles, whatever the probability."""
    c = np.geomspace(1e-4, 5.0, 60)[:, None]
    q = np.geomspace(1e-3, 1.0, 60)
    from privamp.rules.sampled_curves import amplified

    assert np.all(amplified(q, c / q) >= c * (1 - 1e-12))


def test_a_record_that_is_always_kept_loses_what_the_release_loses():
    from privamp.rules.sampled_curves import record_profile

    assert record_profile("pure", np.array([1.0]), np.array([50.0])).largest_loss == pytest.approx(50.0, rel=1e-12)
    tiny = record_profile("pure", np.array([1e-9]), np.array([5.0])).backward.largest_loss
    assert tiny == pytest.approx(1e-9 * -np.expm1(-5.0), rel=1e-8)
