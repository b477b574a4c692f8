"""Pairs of Gaussian mixtures that replacements lead to, against root finding in 80 digits and against plain grids."""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.stats import norm

from privamp import Gaussian, Laplace, Neighbors
from privamp.core.multiplicity import Multiplicity
from privamp.mechanisms.gaussian_mixture import moved_gaussians
from privamp.mechanisms.gaussian_triangles import triangle_delta

AR = Neighbors.ADD_REMOVE


def tail(x):
    return mp.erfc(x / mp.sqrt(2)) / 2


def opposite(theta, weights):
    """log delta of sum p_u N(u theta) against sum p_u N(-u theta): halving finds where the ratio is e^epsilon."""
    s = mp.mpf(theta)

    def truth(e):
        low, high = mp.mpf(0), mp.mpf(1)

        def short(t):
            up = mp.fsum(p * mp.exp(u * s * t - (u * s) ** 2 / 2) for u, p in enumerate(weights))
            return up < mp.exp(e) * mp.fsum(p * mp.exp(-u * s * t - (u * s) ** 2 / 2) for u, p in enumerate(weights))

        while short(high):
            high *= 2
        for _ in range(260):
            middle = (low + high) / 2
            low, high = (middle, high) if short(middle) else (low, middle)
        p, q = (mp.fsum(w * tail(low - sign * u * s) for u, w in enumerate(weights)) for sign in (1, -1))
        return mp.log(p - mp.exp(e) * q)

    return truth


@pytest.mark.parametrize("theta", [1e-2, 1.0, 12.0])
@pytest.mark.parametrize(("records", "chance"), [(2, 1e-6), (3, 0.3), (5, 0.9), (2, 1.0)])
def test_several_records_against_their_opposites(oracle, theta, records, chance):
    curve = Gaussian(2.0, 2.0 * theta).opposite_mixture(chance, records).forward
    weights = oracle.weights(Multiplicity.binomial(records, chance))
    grid = np.append(0.0, np.geomspace(1e-4, 1.0, 5) * theta * (20 + theta))
    assert not oracle.misses(curve, opposite(theta, weights), grid, argument=True)


def test_the_wrong_number_of_records_is_caught(oracle):
    truth = opposite(1.0, oracle.weights(Multiplicity.binomial(3, 0.3)))
    assert oracle.misses(Gaussian(1.0).opposite_mixture(0.3, 2).forward, truth, [0.1, 1.0], argument=True)


def test_no_records_and_no_noise_to_hide():
    assert np.all(np.isneginf(Gaussian(1.0).opposite_mixture(0.0, 3).forward(np.array([0.0, 1.0]))))
    replaced = Gaussian(1.0, neighbors=Neighbors.REPLACE_ONE)
    assert replaced.opposite_mixture(0.3, 2) is None


def test_a_rare_record_with_a_large_loss(oracle):
    """Where e^40 and more stands beside 1: the threshold is still the best one."""
    for theta, chance, epsilon in [(10.0, 1e-4, 8.0), (9.0, 0.5, 60.0), (0.5, 1e-20, 5.0)]:
        curve = Gaussian(1.0, theta).opposite_mixture(chance).forward
        assert not oracle.misses(curve, oracle.opposite(theta, chance), [epsilon], argument=True)


@pytest.mark.parametrize("theta", [0.1, 2.0])
def test_moved_gaussians_are_a_mixture(oracle, theta):
    """The shifts theta and 2 theta with chances 0.3 and 0.1."""
    profile = moved_gaussians(np.array([theta, 2.0 * theta]), np.array([0.3, 0.1]))
    weights = [1 - mp.mpf(0.3) - mp.mpf(0.1), mp.mpf(0.3), mp.mpf(0.1)]
    for curve, forward in ((profile.forward, True), (profile.backward, False)):
        grid = [0.0, 0.02 * theta, 0.3] if forward else [0.0, 0.02 * theta]
        assert not oracle.misses(curve, oracle.gaussian_mixture(theta, weights, forward), grid, argument=True)
    assert profile.backward.largest_loss == pytest.approx(-math.log(0.6))


def test_nothing_moved_and_everything_moved():
    assert np.all(np.isneginf(moved_gaussians(np.empty(0), np.empty(0)).forward(np.array([0.0, 1.0]))))
    always = moved_gaussians(np.array([1.5]), np.array([1.0]))
    assert always.delta(0.7) == pytest.approx(Gaussian(1.0, 1.5).profile(AR).delta(0.7), rel=1e-9)


def on_a_grid(chance, r, s, d, epsilon):
    """The same in the plane: a at distance r from 0, b at distance s, and d between them; a sum over cells."""
    a = np.array([r, 0.0])
    x = (r * r + s * s - d * d) / (2.0 * r)
    b = np.array([x, math.sqrt(max(s * s - x * x, 0.0))])
    side = np.arange(-9.0, 9.0, 0.02) + 0.01

    def density(centre):
        return norm.pdf(side - centre[0])[:, None] * norm.pdf(side - centre[1])[None, :]

    middle, alpha = (1.0 - chance) * density((0.0, 0.0)), math.exp(epsilon)
    return float(np.sum(np.maximum(middle * (1.0 - alpha) + chance * (density(a) - alpha * density(b)), 0.0)) * 0.02**2)


@pytest.mark.parametrize("chance", [0.1, 0.6, 1.0])
@pytest.mark.parametrize(("r", "s", "d"), [(1.0, 1.0, 1.0), (1.0, 0.5, 1.3), (0.7, 1.5, 1.9), (2.0, 2.0, 3.9)])
def test_three_centres_in_the_plane(chance, r, s, d):
    epsilons = np.array([0.0, 0.1, 0.5, 1.5])
    found = triangle_delta(chance, r, s, d, epsilons)
    for epsilon, delta in zip(epsilons, found, strict=True):
        assert delta == pytest.approx(on_a_grid(chance, r, s, d, epsilon), rel=2e-3, abs=1e-6)


@pytest.mark.parametrize("chance", [0.05, 0.6])
@pytest.mark.parametrize(("r", "s"), [(1.0, 0.0), (1.0, 1.0), (2.0, 0.5)])
def test_three_centres_on_a_line(chance, r, s):
    """a and b on opposite sides of 0, where the plane adds nothing: an integral along the line."""
    x = np.linspace(-12.0, 12.0, 400_001)
    own, other = (chance * norm.pdf(x - at) + (1.0 - chance) * norm.pdf(x) for at in (r, -s))
    epsilons = np.array([0.0, 0.2, 1.0])
    found = triangle_delta(chance, r, s, r + s, epsilons)
    for epsilon, delta in zip(epsilons, found, strict=True):
        exact = float(trapezoid(np.maximum(own - math.exp(epsilon) * other, 0.0), x))
        assert delta == pytest.approx(exact, rel=1e-6)
        assert delta >= exact * (1.0 - 1e-8)


def test_triangles_grow_with_the_record_and_the_distance_and_fall_with_the_other():
    at = np.array([0.3])
    middle = triangle_delta(0.3, 1.0, 1.0, 1.2, at)
    assert triangle_delta(0.3, 1.1, 1.0, 1.2, at) > middle
    assert triangle_delta(0.3, 1.0, 1.0, 1.3, at) > middle
    assert triangle_delta(0.3, 1.0, 1.1, 1.2, at) < middle


@pytest.mark.parametrize("mechanism", [Gaussian(2.0, 3.0), Laplace(2.0, 3.0)])
def test_an_attack_on_a_line_is_below_the_exact_curve_and_near_it(mechanism):
    law = Multiplicity.binomial(1, 0.3)
    exact = mechanism.mixture(AR, law)
    attack = mechanism.on_a_line({0.0: 0.7, 1.0: 0.3}, {0.0: 1.0})
    back = mechanism.on_a_line({0.0: 1.0}, {0.0: 0.7, 1.0: 0.3})
    for epsilon in (0.0, 0.05, 0.2, 0.3):
        for found, curve in ((attack.forward, exact.forward), (attack.backward, exact.backward)):
            upper = float(np.exp(curve(np.array([epsilon]))[0]))
            assert upper * 0.999 <= float(np.exp(found(np.array([epsilon]))[0])) <= upper * (1.0 + 1e-12)
        swapped = float(back.forward(np.array([epsilon]))[0])
        assert swapped == pytest.approx(float(attack.backward(np.array([epsilon]))[0]), rel=1e-9)
    far = float(np.exp(attack.forward(np.array([5.0]))[0])) if isinstance(mechanism, Gaussian) else None
    if far is not None:
        assert far == pytest.approx(float(np.exp(exact.forward(np.array([5.0]))[0])), rel=1e-2)


@pytest.mark.parametrize(
    ("mechanism", "density"),
    [(Gaussian(2.0, 3.0), lambda x: -(x**2) / 8.0), (Laplace(2.0, 3.0), lambda x: -np.abs(x) / 2.0)],
)
def test_the_slope_is_the_ratio_of_densities_one_step_on(mechanism, density):
    places = np.array([-2.0, -0.7, 0.0, 0.4, 3.0])
    expected = density(3.0 * (places + 1.0)) - density(3.0 * places)
    assert mechanism.log_slope(places) == pytest.approx(expected)
    assert mechanism.line_step == 1.5


def test_no_attack_on_a_line_where_a_record_is_replaced():
    for mechanism in (Gaussian(1.0, neighbors=Neighbors.REPLACE_ONE), Laplace(1.0, neighbors=Neighbors.REPLACE_ONE)):
        assert mechanism.on_a_line({0.0: 1.0}, {1.0: 1.0}) is None


def test_a_record_that_is_always_there_is_two_steps_away():
    """At chance 1 the pair is N(theta) against N(-theta): Gaussian noise at twice the distance."""
    epsilons = np.array([0.0, 0.3, 1.0, 5.0])
    found = Gaussian(1.0, 0.7).opposite_mixture(1.0).forward(epsilons)
    assert found == pytest.approx(Gaussian(1.0, 1.4).profile(Neighbors.ADD_REMOVE).forward(epsilons), rel=1e-9)
