"""Miss rates of attacks against the closed forms of pure and Gaussian releases."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from privamp import Gaussian, Poisson, PureDP, amplify

RATES = np.array([0.0, 1e-3, 0.05, 0.3, 0.5, 0.9, 1.0])


def test_a_pure_release():
    found = amplify(PureDP(1.0), Poisson(1.0)).tradeoff(RATES)
    exact = np.maximum(0.0, np.maximum(1.0 - math.e * RATES, (1.0 - RATES) / math.e))
    assert found == pytest.approx(exact, abs=1e-9)
    assert np.all(found <= exact)


@pytest.mark.parametrize("sigma", [0.5, 1.0, 4.0])
def test_a_gaussian_release(sigma):
    found = amplify(Gaussian(sigma), Poisson(1.0)).tradeoff(RATES)
    exact = norm.cdf(norm.isf(RATES) - 1.0 / sigma)
    assert found == pytest.approx(exact, abs=2e-3)
    assert np.all(found <= exact + 1e-15)


def test_one_rate_is_one_number():
    guarantee = amplify(Gaussian(1.0), Poisson(0.1))
    found = guarantee.tradeoff(0.2)
    assert isinstance(found, float)
    assert found == guarantee.tradeoff([0.2])[0]
    assert 0.7 < found < 0.8  # between a release that hides nothing and one that says nothing
