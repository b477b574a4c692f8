"""Every curve against its definition in 80 digits, to a tenth of the rounding margin."""

import mpmath as mp
import numpy as np
import pytest
from scipy.special import log_ndtr

from privamp.core.curves import group
from privamp.core.mechanism import Change
from privamp.core.neighbors import Neighbors
from privamp.core.profile import Curve, Profile
from privamp.mechanisms.black_box import ApproxDP, PureDP
from privamp.mechanisms.discrete_gaussian import DiscreteGaussian, _smooth_curve, _tabulated_curve
from privamp.mechanisms.discrete_laplace import DiscreteLaplace
from privamp.mechanisms.gaussian import Gaussian, gaussian_curve
from privamp.mechanisms.geometric import GeometricCount
from privamp.mechanisms.laplace import Laplace, laplace_curve
from privamp.mechanisms.norm_noise import NormNoise
from privamp.mechanisms.randomized_response import RandomizedResponse
from privamp.numerics.log_domain import log_diff
from privamp.numerics.rounding import margin

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE


def gaussian_grid(theta, points):
    """From 0 over the middle to delta = 1e-300, and a little around eps = theta^2/2."""
    right = theta * (np.linspace(0.0, 37.0, points) + theta / 2)
    return np.concatenate([right, np.linspace(0, 1, points // 2) * theta * theta / 2, [theta * 1e-9]])


@pytest.mark.parametrize("theta", [1e-6, 1e-3, 0.1, 0.5, 1.0, 3.0, 10.0, 50.0, 100.0])
def test_gaussian(oracle, theta):
    assert not oracle.misses(gaussian_curve(theta), oracle.gaussian(theta), gaussian_grid(theta, 24))


@pytest.mark.slow
def test_gaussian_fine_grid(oracle):
    for theta in np.geomspace(1e-6, 100, 60):
        assert not oracle.misses(gaussian_curve(theta), oracle.gaussian(theta), gaussian_grid(theta, 200))


def test_gaussian_at_1e_minus_73_has_ten_digits(oracle):
    """The size of MUST Table S1."""
    sigma, sensitivity, epsilon = 4.0, 2.0, 9.08
    got = float(Gaussian(sigma, sensitivity).profile(AR).forward(epsilon))
    with mp.workdps(120):
        exact = oracle.gaussian(0.5)(mp.mpf(epsilon))
        assert -170 < exact < -165
        assert abs(mp.expm1(mp.mpf(got) - exact)) < 1e-10


def test_differencing_logarithms_is_caught(oracle):
    theta = 0.01

    def naive(eps):
        first, second = log_ndtr(theta / 2 - eps / theta), eps + log_ndtr(-theta / 2 - eps / theta)
        return log_diff(first, np.minimum(first, second))

    assert oracle.misses(naive, oracle.gaussian(theta), gaussian_grid(theta, 24))


@pytest.mark.parametrize("theta", [1e-6, 1e-3, 0.1, 1.0, 3.0, 10.0, 100.0])
def test_laplace(oracle, theta):
    grid = np.concatenate([np.linspace(0, 0.999999, 40) * theta, [theta, 2 * theta]])
    assert not oracle.misses(laplace_curve(theta), oracle.laplace(theta), grid, argument=True)


def discrete_laplace_pair(oracle, scale, shift):
    rate = 1 / mp.mpf(scale)
    q = oracle.pmf(lambda k: -k * rate, int(200 * scale) + 20)
    return {k + shift: v for k, v in q.items()}, q


@pytest.mark.parametrize("scale", [0.1, 1.0, 3.7])
@pytest.mark.parametrize("shift", [1, 2, 5])
def test_discrete_laplace(oracle, scale, shift):
    curve = DiscreteLaplace(scale, shift).profile(AR).forward
    truth = oracle.table(*discrete_laplace_pair(oracle, scale, shift))
    grid = np.linspace(0, 0.999, 9) * shift / scale
    assert not oracle.misses(curve, truth, grid, argument=True)
    continuous = laplace_curve(shift / scale)
    assert oracle.misses(continuous, truth, grid, argument=True)
    assert np.isneginf(curve(shift / scale))


def test_discrete_laplace_is_worse_than_continuous():
    assert np.exp(DiscreteLaplace(1.0).profile(AR).forward(0.0)) == pytest.approx(0.46211715726, rel=1e-10)
    assert np.exp(Laplace(1.0).profile(AR).forward(0.0)) == pytest.approx(0.39346934029, rel=1e-10)


def test_geometric_is_discrete_laplace():
    eps = np.linspace(0, 3, 50)
    one, other = GeometricCount(0.5).profile(RO).forward, DiscreteLaplace(2.0).profile(RO).forward
    assert np.array_equal(one(eps), other(eps))


def discrete_gaussian_pair(oracle, sigma, shift):
    q = oracle.pmf(lambda k: -(mp.mpf(k) ** 2) / (2 * mp.mpf(sigma) ** 2), int(45 * sigma) + 6)
    return {k + shift: v for k, v in q.items()}, q


@pytest.mark.parametrize("sigma", [0.25, 0.5, 1.0, 2.5, 10.0])
@pytest.mark.parametrize("shift", [1, 3])
def test_discrete_gaussian(oracle, sigma, shift):
    curve = DiscreteGaussian(sigma, shift).profile(AR).forward
    truth = oracle.table(*discrete_gaussian_pair(oracle, sigma, shift))
    theta = shift / sigma
    grid = np.linspace(0, theta * (35 + theta / 2), 9)
    assert not oracle.misses(curve, truth, grid, argument=True)
    assert oracle.misses(gaussian_curve(theta), truth, grid, argument=True)


@pytest.mark.parametrize(("sigma", "shift"), [(2000.0, 1), (2000.0, 20_000), (5000.5, 7), (5000.5, 1000)])
def test_discrete_gaussian_smooth_equals_table(sigma, shift):
    theta = shift / sigma
    grid = theta * np.linspace(0, 40 + theta / 2, 3001)
    one, other = _smooth_curve(sigma, shift)(grid), _tabulated_curve(sigma, shift)(grid)
    assert np.all(np.abs(one - other) <= 0.1 * margin(other))
    without_corrections = gaussian_curve(theta)(grid)
    assert np.any(np.abs(without_corrections - other) > margin(other))


def test_discrete_gaussian_certifies_the_sigma_that_is_drawn():
    mechanism = DiscreteGaussian(1.1)
    assert 1.1 <= mechanism.drawn_sigma < 1.1 + 2.0**-19
    assert np.isfinite(DiscreteGaussian(1e9).profile(AR).log_delta(1e-8))


@pytest.mark.parametrize(("epsilon", "categories", "copies"), [(1.0, 2, 1), (1.0, 2, 5), (2.0, 4, 3), (0.1, 3, 40)])
def test_randomized_response(oracle, epsilon, categories, copies):
    with mp.workdps(80):
        new = 1 / (mp.exp(mp.mpf(epsilon)) + categories - 1)
        one = {1: mp.exp(mp.mpf(epsilon)) * new, -1: new, 0: (categories - 2) * new}
        law = {0: mp.mpf(1)}
        for _ in range(copies):
            law = oracle.mix([(w, {k + d: v for k, v in law.items()}) for d, w in one.items()])
        truth = oracle.table(law, {-k: v for k, v in law.items()})
    profile = RandomizedResponse(epsilon, categories).profile(RO, Change(copies=copies))
    grid = np.linspace(0, 0.99, 8) * epsilon * copies
    assert not oracle.misses(profile.forward, truth, grid, argument=True)
    black_box = PureDP(epsilon, RO).profile(RO, Change(copies=copies))
    assert np.all(profile.forward(grid) <= black_box.forward(grid) + 1e-12)
    assert profile.largest_loss == pytest.approx(epsilon * copies)


def test_black_boxes():
    assert PureDP(1.0).profile(RO, Change(copies=3)).epsilon() == 6.0
    delta = PureDP(1.0).profile(AR).delta(0.0)
    assert delta == pytest.approx((np.e - 1) / (np.e + 1), rel=1e-14)
    approx = ApproxDP(1.0, 1e-6).profile(AR)
    assert approx.delta(1.0) == pytest.approx(1e-6, rel=1e-12)
    assert approx.delta(50.0) == pytest.approx(1e-6, rel=1e-12)
    two = ApproxDP(1.0, 1e-6).profile(RO)
    assert two.delta(2.0) == pytest.approx(1e-6 * (1 + np.e), rel=1e-12)
    assert two.delta(50.0) == two.delta(2.0)  # the plain group bound would grow back to 1
    assert two.epsilon(4e-6) == pytest.approx(2.0, rel=1e-5)
    assert ApproxDP(1.0, 0.0).profile(RO).epsilon() == 2.0
    assert ApproxDP(1.0, 1.0).profile(AR).delta(3.0) == 1.0


def test_norm_noise_is_bounded_by_laplace():
    for p in (1.0, 1.5, 2.0, np.inf):
        profile = NormNoise(2.0, 7, p=p, sensitivity=3.0).profile(AR)
        assert profile.epsilon() == 1.5
        assert profile.delta(0.5) == pytest.approx(-np.expm1(-0.5))


def test_group_bounds_never_grow():
    """A curve with a floor: e^(eps(1 - 1/j)) times the floor would climb back to 1."""
    floor = Curve(lambda e: np.logaddexp(gaussian_curve(0.5)(e), np.log(1e-9)))
    curve = group(Profile.symmetric(floor), 3).forward
    eps = np.linspace(0, 200, 5001)
    assert np.all(np.diff(curve(eps)) <= 1e-13)
    assert curve(200.0) < np.log(1e-4)
    once = np.log(np.expm1(9.0) / np.expm1(3.0)) + floor(3.0)
    assert curve(9.0) <= once + 1e-6
