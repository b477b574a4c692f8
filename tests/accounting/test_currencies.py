"""Guarantees as Rényi, zCDP and GDP budgets: exact for Gaussian noise, above the truth and tight for pure noise."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from privamp import (
    ApproxDP,
    Gaussian,
    Laplace,
    Neighbors,
    Poisson,
    PureDP,
    WithoutReplacement,
    WithReplacement,
    amplify,
    compose,
)
from privamp.accounting import currencies

EVERYBODY = Poisson(1.0)


def test_gaussian_noise_is_exact() -> None:
    guarantee = compose(amplify(Gaussian(4.0), EVERYBODY), 9)
    assert 0.75 <= guarantee.gdp() <= 0.75 * (1 + 1e-3)
    assert 0.75**2 / 2 <= guarantee.zcdp() <= 0.75**2 / 2 * (1 + 2e-3)
    assert 3 * 0.75**2 / 2 <= guarantee.renyi(3.0) <= 3 * 0.75**2 / 2 * (1 + 1e-3)


def test_randomised_response() -> None:
    guarantee, a = amplify(PureDP(1.0), EVERYBODY), math.e
    orders = np.geomspace(1.0001, 1e4, 4000)
    p, q = np.log(a / (1 + a)), np.log(1 / (1 + a))
    exact = np.logaddexp(orders * p + (1 - orders) * q, orders * q + (1 - orders) * p) / (orders - 1)
    truth = float(np.max(exact / orders))
    assert truth <= guarantee.zcdp() <= 1.02 * truth
    assert exact[np.argmin(abs(orders - 2))] == pytest.approx(guarantee.renyi(2.0), rel=2e-3)
    # mu: total variation decides, Phi(mu/2) = a/(1 + a)
    mu = 2 * stats.norm.ppf(a / (1 + a))
    assert mu <= guarantee.gdp() <= mu * (1 + 1e-3)


def test_laplace_noise() -> None:
    guarantee = amplify(Laplace(1.0), EVERYBODY)
    mu = guarantee.gdp()
    e = np.linspace(0, 1, 2001)
    assert np.all(
        1 - np.exp((e - 1) / 2) <= stats.norm.cdf(mu / 2 - e / mu) - np.exp(e) * stats.norm.cdf(-mu / 2 - e / mu)
    )
    smaller = mu * 0.998
    gap = stats.norm.cdf(smaller / 2 - e / smaller) - np.exp(e) * stats.norm.cdf(-smaller / 2 - e / smaller)
    assert np.any(1 - np.exp((e - 1) / 2) > gap)


def test_sampled_noise_keeps_its_tail() -> None:
    """Sampling lowers every delta, and neither mu nor rho: the tail is the unsampled one's."""
    guarantee = amplify(Gaussian(2.0), Poisson(0.01))
    assert 0.3 < guarantee.gdp() <= 0.5 * (1 + 1e-3)
    value, _ = integrate.quad(
        lambda x: stats.norm.pdf(x) * (0.99 + 0.01 * math.exp(x / 2 - 1 / 8)) ** 8, -20, 30, limit=200
    )
    truth = math.log(value) / 7
    assert truth <= guarantee.renyi(8.0) <= truth * 1.001


def test_lost_mass_has_no_budget() -> None:
    guarantee = amplify(ApproxDP(1.0, 1e-6), EVERYBODY)
    assert guarantee.gdp() == guarantee.zcdp() == guarantee.renyi(2.0) == math.inf


def test_a_chord_taken_for_the_curve_is_caught() -> None:
    """(order - 1) D_order between two orders is below its chord, and the chord's ratio peaks inside."""
    assert currencies._chord_ratio(2.0, 4.0, 1.0, 3.0 * 1.0) >= max(1.0 / 2.0, 3.0 / 12.0)
    x = np.linspace(1.02, 64, 20001)
    p, q = -0.9, 1.0
    inside = currencies._chord_ratio(1.02, 64.0, p + q * 1.02, p + q * 64)
    assert inside >= np.max((p + q * x) / (x * (x - 1))) * (1 - 1e-12)


RO = Neighbors.REPLACE_ONE


@pytest.mark.parametrize(
    ("noise", "design"),
    [(Gaussian(1.0), Poisson(0.01)), (Gaussian(2.0, sensitivity=3.0, neighbors=RO), WithoutReplacement(5, 100))],
    ids=["poisson", "without replacement"],
)
def test_sampling_never_raises_the_noises_own_budget(noise, design) -> None:
    guarantee, mu = amplify(noise, design, noise.neighbors), noise.sensitivity / noise.sigma
    alone = noise.profile(noise.neighbors)
    epsilons = np.linspace(0.0, 30.0, 301)
    assert np.all(np.asarray(guarantee.delta(epsilons)) <= np.array([alone.delta(e) for e in epsilons.tolist()]))
    assert guarantee.gdp() == pytest.approx(mu, rel=1e-12)
    assert guarantee.zcdp() == pytest.approx(mu**2 / 2, rel=1e-12)
    assert guarantee.gdp() >= mu
    assert guarantee.zcdp() >= mu**2 / 2
    assert compose(guarantee, 4).gdp() == pytest.approx(2.0 * mu, rel=1e-12)


def test_designs_that_copy_a_record_may_raise_it() -> None:
    """Copies add up: with replacement the noise's own mu is none."""
    noise = Gaussian(1.0, neighbors=RO)
    guarantee = amplify(noise, WithReplacement(5, 3), RO)
    assert guarantee.lower.delta(3.0) > noise.profile(RO).delta(3.0)
    assert guarantee.gdp() > 1.5
    assert amplify(Gaussian(1.0), EVERYBODY, Neighbors.ADD_REMOVE.for_person(3)).gdp() > 2.9
    assert amplify(Gaussian(1.0), Poisson(0.9), RO).gdp() > 1.5
