"""Exact mixtures, both directions, against root finding and summation in 80 digits."""

import math
import time

import mpmath as mp
import numpy as np
import pytest

from privamp.core.multiplicity import Multiplicity
from privamp.core.neighbors import Neighbors
from privamp.mechanisms.black_box import ApproxDP
from privamp.mechanisms.discrete_gaussian import DiscreteGaussian
from privamp.mechanisms.discrete_laplace import DiscreteLaplace
from privamp.mechanisms.gaussian import Gaussian
from privamp.mechanisms.geometric import GeometricCount
from privamp.mechanisms.laplace import Laplace
from privamp.mechanisms.norm_noise import NormNoise
from privamp.mechanisms.randomized_response import RandomizedResponse

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
LAWS = [(1, 1e-8), (4, 0.02), (3, 0.9)]
THETAS = [1e-3, 1.0, 20.0]


def check_gaussian(oracle, theta, law, points):
    profile, weights = Gaussian(1.0, theta).mixture(AR, law), oracle.weights(law)
    up = np.append(0.0, np.geomspace(1e-5, 1, points) * theta * (30 + theta))
    down = np.append(0.0, np.geomspace(1e-4, 0.99, points) * profile.backward.largest_loss)
    for curve, forward, grid in ((profile.forward, True, up), (profile.backward, False, down)):
        assert not oracle.misses(curve, oracle.gaussian_mixture(theta, weights, forward), grid, argument=True)


@pytest.mark.parametrize("theta", THETAS)
@pytest.mark.parametrize(("draws", "chance"), LAWS)
def test_gaussian(oracle, theta, draws, chance):
    check_gaussian(oracle, theta, Multiplicity.binomial(draws, chance), 4)


@pytest.mark.slow
def test_gaussian_fine(oracle):
    for theta in (1e-4, 0.03, 0.3, 3.0, 60.0):
        for chance in (1e-12, 0.1, 0.5):
            check_gaussian(oracle, theta, Multiplicity.binomial(5, chance), 12)


@pytest.mark.parametrize("theta", THETAS)
@pytest.mark.parametrize(("draws", "chance"), LAWS)
def test_laplace(oracle, theta, draws, chance):
    law = Multiplicity.binomial(draws, chance)
    profile, weights = Laplace(1.0, theta).mixture(AR, law), oracle.weights(law)
    for curve, forward in ((profile.forward, True), (profile.backward, False)):
        grid = np.append(0.0, np.geomspace(1e-4, 0.99, 4) * curve.largest_loss)
        assert not oracle.misses(curve, oracle.laplace_mixture(theta, weights, forward), grid, argument=True)


def test_a_wrong_direction_is_caught(oracle):
    law = Multiplicity.binomial(4, 0.3)
    weights = oracle.weights(law)
    for profile, truth in (
        (Gaussian(1.0).mixture(AR, law), oracle.gaussian_mixture),
        (Laplace(1.0).mixture(AR, law), oracle.laplace_mixture),
    ):
        assert oracle.misses(profile.backward, truth(1.0, weights, True), [0.1, 0.5], argument=True)
        assert oracle.misses(profile.forward, truth(1.0, weights, False), [0.1, 0.5], argument=True)


@pytest.mark.parametrize("theta", [1e-3, 1.0, 20.0])
@pytest.mark.parametrize("chance", [1e-8, 0.02, 0.3, 1.0])
def test_opposite_gaussians(oracle, theta, chance):
    curve = Gaussian(1.0, theta).opposite_mixture(chance).forward
    grid = np.append(0.0, np.geomspace(1e-5, 1, 10) * theta * (40 + 2 * theta))
    assert not oracle.misses(curve, oracle.opposite(theta, chance), grid, argument=True)
    wrong = Gaussian(1.0, theta).mixture(RO, Multiplicity.binomial(1, chance)).forward
    if chance < 1.0:
        assert oracle.misses(wrong, oracle.opposite(theta, chance), grid, argument=True)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 2.0])
def test_opposite_gaussians_by_quadrature(epsilon):
    q, s = mp.mpf("0.3"), mp.mpf("1.5")
    with mp.workdps(30):

        def p(t, sign):
            return (1 - q) * mp.npdf(t) + q * mp.npdf(t, sign * s)

        start = mp.findroot(lambda t: p(t, 1) - mp.exp(epsilon) * p(t, -1), 1.0)
        exact = mp.quad(lambda t: p(t, 1) - mp.exp(epsilon) * p(t, -1), [start, start + 2, start + 6, start + 20])
    got = Gaussian(1.0, 1.5).opposite_mixture(0.3).delta(epsilon)
    assert got == pytest.approx(float(exact), rel=1e-12)


def discrete_truths(oracle, law, log_weight, reach, shift):
    q = oracle.pmf(log_weight, reach)
    copies = [{k + u * shift: v for k, v in q.items()} for u in range(law.log_p.size + 1)]
    p = oracle.mix(list(zip(oracle.weights(law), copies, strict=True)))
    return oracle.table(p, q), oracle.table(q, p)


@pytest.mark.parametrize("scale", [0.25, 1.0, 8.0])
@pytest.mark.parametrize("shift", [1, 3])
def test_discrete_laplace(oracle, scale, shift):
    law = Multiplicity.binomial(3, 0.2)
    truths = discrete_truths(oracle, law, lambda k: -k / mp.mpf(scale), int(200 * scale) + 20, shift)
    profile = DiscreteLaplace(scale, shift).mixture(AR, law)
    for curve, truth in zip((profile.forward, profile.backward), truths, strict=True):
        assert not oracle.misses(curve, truth, np.linspace(0, 0.99, 5) * curve.largest_loss, argument=True)


@pytest.mark.parametrize("sigma", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("shift", [1, 3])
def test_discrete_gaussian(oracle, sigma, shift):
    law = Multiplicity.binomial(3, 0.2)
    reach = int(45 * sigma) + 6
    truths = discrete_truths(oracle, law, lambda k: -(mp.mpf(k) ** 2) / (2 * mp.mpf(sigma) ** 2), reach, shift)
    profile = DiscreteGaussian(sigma, shift).mixture(AR, law)
    assert not oracle.misses(profile.forward, truths[0], np.linspace(0, 25 * shift / sigma, 5), argument=True)
    assert not oracle.misses(profile.backward, truths[1], np.linspace(0, 0.6, 4), argument=True)
    assert np.isneginf(profile.backward(-law.log_none * 1.0001))


def numeric_pair(density, law, shift):
    t = np.linspace(-40, 60, 1_000_001)
    p = math.exp(law.log_none) * density(t)
    for u, log_p in zip(law.counts, law.log_p, strict=True):
        p = p + math.exp(log_p) * density(t - u * shift)
    return p, density(t), t[1] - t[0]


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_identity_between_directions_by_integration(kind):
    """delta_PQ(-eps), integrated, equals 1 - e^-eps + e^-eps delta_QP(eps)."""
    law = Multiplicity.binomial(3, 0.3)
    if kind == "gaussian":
        profile = Gaussian(1.0).mixture(AR, law)
        p, q, h = numeric_pair(lambda t: np.exp(-t * t / 2) / math.sqrt(2 * math.pi), law, 1.0)
    else:
        profile = Laplace(1.0).mixture(AR, law)
        p, q, h = numeric_pair(lambda t: np.exp(-np.abs(t)) / 2, law, 1.0)
    for eps in (0.0, 0.1, 0.5, 0.9):
        integrated = float(np.sum(np.maximum(p - math.exp(-eps) * q, 0)) * h)
        by_backward = 1 - math.exp(-eps) + math.exp(-eps) * math.exp(float(profile.backward(eps)))
        by_forward = 1 - math.exp(-eps) + math.exp(-eps) * math.exp(float(profile.forward(eps)))
        assert integrated == pytest.approx(by_backward, abs=1e-7)
        if eps > 0:
            assert abs(integrated - by_forward) > 1e-4  # extending a direction by itself is false


@pytest.mark.parametrize("mechanism", [Gaussian(0.5), Laplace(0.7), DiscreteLaplace(0.75, 2), DiscreteGaussian(1.5, 2)])
@pytest.mark.parametrize("relation", [AR, RO])
def test_certain_appearance_is_the_profile(mechanism, relation):
    mixture, profile = mechanism.mixture(relation, Multiplicity.certain(1)), mechanism.profile(relation)
    eps = np.linspace(0, min(profile.largest_loss * 0.99, 20.0), 60)
    for curve in (mixture.forward, mixture.backward):
        np.testing.assert_allclose(curve(eps), profile.forward(eps), rtol=1e-11)


@pytest.mark.parametrize("mechanism", [Gaussian(1.0), Laplace(1.0), DiscreteLaplace(1.0), DiscreteGaussian(1.0)])
def test_the_tail_counts_as_no_appearance(mechanism):
    full = Multiplicity.binomial(3, 0.1)
    cut = Multiplicity(full.log_none, full.log_p[:1], float(np.logaddexp(*full.log_p[1:])))
    moved = Multiplicity(float(np.logaddexp(cut.log_none, cut.log_tail)), cut.log_p)
    eps = np.linspace(0, 3, 40)
    with_tail, without = mechanism.mixture(AR, cut), mechanism.mixture(AR, moved)
    whole = mechanism.mixture(AR, full)
    for name in ("forward", "backward"):
        got = getattr(with_tail, name)(eps)
        np.testing.assert_allclose(got, getattr(without, name)(eps), rtol=1e-12)
        assert np.all(got <= getattr(whole, name)(eps) + 1e-12)


@pytest.mark.parametrize("theta", [1e-9, 1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize(
    "law",
    [
        Multiplicity.certain(3),
        Multiplicity.binomial(1, 1e-300),
        Multiplicity.binomial(1000, 1e-3),
        Multiplicity.binomial(5, 1 - 1e-12),
        Multiplicity(-1e-300, np.array([-690.0, -700.0])),
    ],
)
def test_extreme_gaussian_mixtures_are_sane(theta, law):
    profile, eps = Gaussian(1.0, theta).mixture(AR, law), np.append(0.0, np.geomspace(1e-12, 500, 100))
    forward, backward = profile.forward(eps), profile.backward(eps)
    assert not np.any(np.isnan(forward) | np.isnan(backward))
    assert forward[0] == pytest.approx(backward[0], rel=1e-12)  # total variation has no direction
    finite = forward[np.isfinite(forward)]
    assert np.all(np.diff(finite) <= 1e-12 * (1 + np.abs(finite[1:])))
    assert np.all(backward <= forward + 1e-11 * (1 + np.abs(forward)))


def test_speed():
    profile = Gaussian(1.0).mixture(AR, Multiplicity.binomial(5, 0.02))
    eps = np.linspace(0, 20, 20_000)
    start = time.process_time()
    profile.forward(eps)
    profile.backward(eps * profile.backward.largest_loss / 20)
    assert time.process_time() - start < 1.5  # 0.1 s here; slack for a loaded machine


def test_who_has_a_mixture():
    law = Multiplicity.binomial(2, 0.1)
    assert NormNoise(1.0, 3, p=2).mixture(AR, law) is None
    assert NormNoise(1.0, 3, p=1).mixture(AR, law) is not None
    assert NormNoise(1.0, 1, p=2).mixture(AR, law) is not None
    assert GeometricCount(1.0).mixture(AR, law) is not None
    for black_box in (ApproxDP(1.0, 1e-5), RandomizedResponse(1.0)):
        assert black_box.mixture(RO, law) is None
        assert black_box.opposite_mixture(0.1) is None
    assert Gaussian(1.0, neighbors=RO).opposite_mixture(0.1) is None
    assert Laplace(1.0).opposite_mixture(0.1) is not None
    nobody = Multiplicity(0.0, np.array([-np.inf]))
    for mechanism in (Gaussian(1.0), Laplace(1.0)):
        assert mechanism.mixture(AR, nobody).epsilon() == 0.0
    assert Gaussian(1.0).opposite_mixture(0.0).epsilon() == 0.0
    assert DiscreteLaplace(1.0, 10**9).mixture(AR, law) is None
    assert DiscreteGaussian(1e6).mixture(AR, law) is None


@pytest.mark.parametrize(("draws", "chance", "theta"), [(200, 1 / 118, 0.5), (400, 1 / 500, 1.0), (20, 0.4, 2.0)])
def test_many_epsilons_leave_out_only_what_no_double_shows(draws, chance, theta) -> None:
    from privamp.core.multiplicity import Multiplicity
    from privamp.mechanisms.gaussian_mixture import gaussian_mixture

    profile = gaussian_mixture(theta, Multiplicity.binomial(draws, chance))
    for curve, farthest in ((profile.forward, 60.0), (profile.backward, 0.999 * profile.backward.largest_loss)):
        at = np.linspace(0.0, farthest, 300)
        one_by_one = np.array([float(curve(np.asarray([e]))[0]) for e in at])
        assert curve(at) == pytest.approx(one_by_one, rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("chance", [1.0, 0.3])
@pytest.mark.parametrize("sigma", [0.5, 1.0])
def test_discrete_gaussian_attacks_never_exceed_the_truth_beyond_their_table(sigma, chance):
    profile = DiscreteGaussian(sigma).mixture(AR, Multiplicity.binomial(1, chance)).rounded_down()
    for epsilon in (10.0, 50.0, 70.0, 200.0):
        with mp.workdps(60):
            weight = [mp.exp(-(mp.mpf(k) ** 2) / (2 * mp.mpf(sigma) ** 2)) for k in range(600)]
            mixed = [mp.mpf(chance) * weight[k - 1] + (1 - mp.mpf(chance)) * weight[k] for k in range(1, 600)]
            over = [max(p - mp.exp(epsilon) * q, 0) for p, q in zip(mixed, weight[1:], strict=True)]
            truth = mp.log(mp.fsum(over)) - mp.log(2 * mp.fsum(weight) - 1)
        assert float(profile.forward(epsilon)) <= truth
    assert profile.epsilon() == math.inf  # there is no pure epsilon, and that is the truth
