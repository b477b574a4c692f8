"""Widths of intervals against integrals of the two laws, and Gauss's inequality against laws that reach it."""

import math

import mpmath
import numpy as np
import pytest
from scipy.stats import norm

from privamp.numerics.half_width import half_width, half_widths, tails

LEVELS = (0.3, 0.6, 0.9, 0.95, 0.999)
PAIRS = [(1.0, 1.0), (3.0, 0.2), (0.1, 2.0), (1.0, 1e-3), (1e-3, 1.0)]  # standard deviations: sampling, noise


def within(t, sampling, noise):
    """Pr[|normal + Laplace| <= t], the integral of the normal law over the Laplace density."""
    b = mpmath.mpf(noise) / mpmath.sqrt(2)

    def inside(x):
        return (mpmath.ncdf((t - x) / sampling) - mpmath.ncdf((-t - x) / sampling)) * mpmath.exp(-abs(x) / b) / (2 * b)

    places = sorted({-40 * b, -t - 8 * sampling, -t + 8 * sampling, 0, t - 8 * sampling, t + 8 * sampling, 40 * b})
    return float(mpmath.quad(inside, places))


@pytest.mark.parametrize(("sampling", "noise"), PAIRS)
@pytest.mark.parametrize("level", LEVELS)
def test_a_normal_error_and_laplace_noise_are_covered_exactly(sampling, noise, level):
    assert within(half_width(sampling, noise, "laplace", level), sampling, noise) == pytest.approx(level, abs=1e-7)


@pytest.mark.parametrize("level", LEVELS)
def test_one_error_alone(level):
    assert half_width(0.0, math.sqrt(2.0), "laplace", level) == pytest.approx(-math.log(1.0 - level), rel=1e-12)
    for kind in ("gaussian", "laplace", "other"):
        assert half_width(2.0, 0.0, kind, level) == pytest.approx(2.0 * norm.interval(level)[1], rel=1e-9)
    assert half_width(3.0, 4.0, "gaussian", level) == pytest.approx(5.0 * norm.interval(level)[1], rel=1e-9)


@pytest.mark.parametrize(("t", "s", "b"), [(0.0, 1.0, 1.0), (1.5, 1.0, 2.0), (4.0, 0.5, 0.7), (2.0, 5.0, 0.1)])
def test_tails_are_the_integral(t, s, b):
    exact = 0.5 - 0.5 * (within(t, s, b * math.sqrt(2.0)) if t else 0.0)
    assert float(tails(np.array(t), s, b)) == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize("level", LEVELS)
def test_many_widths_at_once_are_no_narrower_than_one_by_one(level):
    sampling, noise = (np.array(side) for side in zip(*PAIRS, (1.0, 0.0), (0.0, 1.0), (1e-9, 1.0), strict=True))
    exact = np.array([half_width(s, b, "laplace", level) for s, b in zip(sampling, noise, strict=True)])
    found = half_widths(sampling, noise, "laplace", level)
    assert np.all(found >= exact)
    assert np.all(found <= exact * (1.0 + 1e-4))
    exact = [half_width(s, b, "gaussian", level) for s, b in zip(sampling, noise, strict=True)]
    assert half_widths(sampling, noise, "gaussian", level) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("level", LEVELS)
def test_other_noise_is_covered_whatever_its_law(level):
    """Gauss's inequality: a uniform law, and one with a point mass at 0 besides, are worst, and the width is theirs."""
    k = half_width(0.6, 0.8, "other", level)  # standard deviation 1

    def covered(inside):
        """Uniform on [-a, a] with chance `inside`, else 0, with variance inside a^2/3 = 1."""
        a = math.sqrt(3.0 / inside)
        return 1.0 - inside + inside * min(k / a, 1.0)

    worst = min(covered(inside) for inside in np.linspace(0.001, 1.0, 4000))
    assert worst == pytest.approx(level, abs=1e-6)
