"""Discrete noise on several whole numbers at once, against enumeration in two and three dimensions.

Negative controls: the continuous curve of the same norm is too small for either noise and must be caught.
"""

import math

import numpy as np
import pytest

from privamp import DiscreteGaussian, DiscreteLaplace, Neighbors, Population, WithoutReplacement
from privamp.errors import InvalidInput
from privamp.mechanisms.discrete_gaussian_vectors import (
    discrete_gaussian_vector_curve,
    renyi_curve,
    ripple,
    smoothed_curve,
)
from privamp.mechanisms.discrete_laplace import discrete_laplace_curve, more_than_continuous
from privamp.mechanisms.gaussian import gaussian_curve
from privamp.mechanisms.laplace import laplace_curve
from privamp.testing import seeded_key, seeded_stream

AR = Neighbors.ADD_REMOVE


def laplace_mass(k, scale):
    return math.tanh(0.5 / scale) * np.exp(-np.abs(k) / scale)


def gaussian_mass(k, sigma):
    everywhere = np.arange(-60, 61) if sigma < 4 else np.arange(-400, 401)
    return np.exp(-0.5 * (k / sigma) ** 2) / np.exp(-0.5 * (everywhere / sigma) ** 2).sum()


def exact_delta(mass, scale, shift, epsilons, reach):
    """The hockey stick of independent noise moved by `shift`, summed over a cube; a lower bound of the truth."""
    k = np.arange(-reach, reach + max(shift) + 1)
    p = q = np.ones(1)
    for s in shift:
        p = np.multiply.outer(p, mass(k - s, scale)).ravel()
        q = np.multiply.outer(q, mass(k, scale)).ravel()
    return np.array([np.maximum(p - np.exp(e) * q, 0.0).sum() for e in epsilons])


@pytest.mark.parametrize(
    ("scale", "shift"),
    [(1.0, (1, 1)), (0.7, (2, 1)), (2.0, (2, 3)), (0.4, (3, 1)), (1.0, (1, 1, 1)), (0.8, (1, 2, 1))],
)
def test_discrete_laplace_vectors_have_the_scalar_curve(scale, shift):
    steps = sum(shift)
    epsilons = np.linspace(0, 0.999 * steps / scale, 21)
    exact = exact_delta(laplace_mass, scale, shift, epsilons, int(25 * scale) + 4)
    curve = np.exp(discrete_laplace_curve(1 / scale, steps)(epsilons))
    assert np.all(exact <= curve * (1 + 1e-12) + 1e-15)
    one = exact_delta(laplace_mass, scale, (steps,), epsilons, int(60 * scale) + 4)
    assert np.allclose(one, curve, rtol=1e-9)  # one coordinate reaches it


@pytest.mark.parametrize(("scale", "shift"), [(1.0, (1, 1)), (0.7, (2, 1)), (0.4, (3, 1))])
def test_the_continuous_laplace_curve_is_caught(scale, shift):
    epsilons = np.linspace(0, sum(shift) / scale, 41)
    exact = exact_delta(laplace_mass, scale, shift, epsilons, int(25 * scale) + 4)
    assert np.any(exact > np.exp(laplace_curve(sum(shift) / scale)(epsilons)) + 1e-3)


@pytest.mark.parametrize("rate", [2.0, 1.0, 0.3, 0.01])
@pytest.mark.parametrize("steps", [1, 2, 7])
def test_a_laplace_curve_a_hair_larger_covers_the_discrete_one_and_touches_it(rate, steps):
    discrete = discrete_laplace_curve(rate, steps)
    theta = steps * rate + more_than_continuous(rate)
    epsilons = np.linspace(0, steps * rate * (1 - 1e-9), 1001)
    assert np.all(discrete(epsilons) <= laplace_curve(theta)(epsilons) + 1e-12)
    # between the kinks T(m), T(m+1) the optimal event changes where the curve's slope jumps: at rate (2m - steps)
    middle = rate * np.arange(-steps % 2, steps, 2)
    middle = middle[middle > 0] if steps > 1 else np.array([0.0])
    gap = laplace_curve(theta)(middle) - discrete(middle)
    assert np.all(gap >= -1e-12)
    assert np.any(discrete(epsilons) > laplace_curve(theta - 0.9 * more_than_continuous(rate))(epsilons))


def test_the_hair_is_two_log_cosh():
    for rate in (1e-9, 1e-3, 0.5, 3.0, 50.0):
        assert more_than_continuous(rate) == pytest.approx(2 * math.log(math.cosh(rate / 2)), rel=1e-6, abs=1e-15)
        assert more_than_continuous(rate) <= rate**2 / 4 * (1 + 1e-12)
    assert more_than_continuous(1000.0) >= 1000.0 - 2 * math.log(2)


GAUSSIAN_CASES = [(0.5, (1, 1)), (0.8, (1, 1)), (1.0, (1, 2)), (2.0, (1, 1)), (3.0, (2, 2)), (10.0, (3, 4))]


@pytest.mark.parametrize(("sigma", "shift"), [*GAUSSIAN_CASES, (0.7, (1, 1, 1)), (1.3, (1, 2, 1))])
def test_discrete_gaussian_vectors(sigma, shift):
    norm = math.sqrt(sum(s * s for s in shift))
    theta = norm / sigma
    epsilons = np.linspace(0, theta * (5 + theta / 2), 15)
    exact = exact_delta(gaussian_mass, sigma, shift, epsilons, int(11 * sigma) + 4)
    for curve in (
        discrete_gaussian_vector_curve(sigma, norm, len(shift)),
        renyi_curve(0.5 * theta**2),
        *(smoothed_curve(sigma, norm, len(shift), s) for s in (0.3, 0.45, 0.6, 1.0) if s < sigma),
    ):
        assert np.all(exact <= np.exp(curve(epsilons)) * (1 + 1e-10))


@pytest.mark.parametrize(("sigma", "shift"), GAUSSIAN_CASES[:5])
def test_the_continuous_gaussian_curve_is_caught(sigma, shift):
    theta = math.hypot(*shift) / sigma
    epsilons = np.linspace(0, theta * (4 + theta / 2), 60)
    exact = exact_delta(gaussian_mass, sigma, shift, epsilons, int(11 * sigma) + 4)
    assert np.any(exact > np.exp(gaussian_curve(theta)(epsilons)) * 1.001)


@pytest.mark.parametrize("s", [0.35, 0.5, 0.8])
def test_the_smoothing_lemma(s):
    """Rounding N(0, sigma^2 - s^2) by a discrete Gaussian gives the discrete Gaussian up to 1 +- eta."""
    sigma, eta = 1.2, ripple(s)
    y = np.linspace(-12, 12, 48_001)
    density = np.exp(-0.5 * y**2 / (sigma**2 - s**2)) / math.sqrt(2 * math.pi * (sigma**2 - s**2))
    k = np.arange(-30, 31)
    bells = np.exp(-0.5 * ((k[:, None] - y) / s) ** 2)
    sums = bells.sum(axis=0) / (s * math.sqrt(2 * math.pi))
    assert np.max(np.abs(sums - 1)) <= eta * (1 + 1e-9)
    assert np.max(np.abs(sums - 1)) >= eta * 0.9  # and no looser than it need be
    rounded = (density * bells / bells.sum(axis=0)).sum(axis=1) * (y[1] - y[0])
    near = np.abs(k) <= 5
    ratio = gaussian_mass(k, sigma)[near] / rounded[near] * (1 + ripple(sigma))
    assert np.all((ratio >= 1 - eta - 1e-6) & (ratio <= (1 + eta) * (1 + ripple(sigma)) + 1e-6))


def test_fine_grids_cost_nothing_and_small_sigmas_little():
    wide = discrete_gaussian_vector_curve(2.0**20, 2.0**20, 1000)
    assert wide(1.0) == pytest.approx(float(gaussian_curve(1.0)(1.0)), rel=1e-9)
    small = discrete_gaussian_vector_curve(10.0, 10.0, 10)
    assert np.exp(small(1.0)) < 1.03 * np.exp(gaussian_curve(1.0)(1.0))
    renyi = renyi_curve(0.5)
    assert np.exp(renyi(1.0)) > 1.5 * np.exp(gaussian_curve(1.0)(1.0))  # what the smoothing bound saves


def test_curves_fall_with_epsilon():
    for sigma, norm, d in [(0.5, 1.0, 2), (5.0, 3.0, 40), (100.0, 1.0, 3), (2.0, 30.0, 7)]:
        values = discrete_gaussian_vector_curve(sigma, norm, d)(np.linspace(0, 200, 4001))
        assert np.all(np.diff(values) <= 0)
        assert np.all(values <= 0)


def test_vectors_go_through_a_sample():
    rows = np.tile(np.array([[1, 0], [0, 2]]), (25, 1))
    design = WithoutReplacement(size=20, population=50)
    for noise in (DiscreteLaplace(4.0, 2), DiscreteGaussian(4.0, 2.0, dimension=2)):
        sample = design.draw(Population(50), seeded_key(3))
        answer = sample.release(noise, rows)
        assert answer.shape == (2,)
        assert answer.dtype == np.int64
    with pytest.raises(InvalidInput, match="one number"):
        design.draw(Population(50), seeded_key(4)).release(DiscreteGaussian(4.0, 2), rows)


def test_bad_dimensions():
    for bad in (0, -1, 1.5, True, 2**41):
        with pytest.raises(InvalidInput, match="dimension"):
            DiscreteGaussian(1.0, dimension=bad)
    with pytest.raises(InvalidInput, match="sensitivity"):
        DiscreteGaussian(1.0, 1.5)
    with pytest.raises(InvalidInput, match="last axis"):
        DiscreteGaussian(1.0, 1.5, dimension=3).release(np.zeros(2, dtype=int), seeded_stream(1))
    assert DiscreteGaussian(1.0, 1.5, dimension=3).profile(AR).delta(50.0) < 1e-100
