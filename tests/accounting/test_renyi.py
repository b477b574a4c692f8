"""Rényi divergences: upper bounds, against closed forms, against mpmath, and back."""

import math

import mpmath
import numpy as np
import pytest

from privamp import (
    ApproxDP,
    DiscreteGaussian,
    Gaussian,
    Infeasible,
    InvalidInput,
    Joint,
    Laplace,
    Neighbors,
    Poisson,
    PureDP,
    WithReplacement,
    amplify,
    compose,
)
from privamp.accounting.renyi import (
    RenyiDP,
    best_order,
    loss_within,
    renyi_curve,
    renyi_of_guarantee,
    renyi_of_mechanism,
    renyi_of_profile,
    renyi_with_cut,
)
from privamp.core.profile import Curve, Profile
from privamp.mechanisms.gaussian_mixture import gaussian_mixture

AR = Neighbors.ADD_REMOVE
ORDERS = (1.05, 1.5, 2.0, 8.0, 32.0)


def laplace(theta, a):
    with mpmath.workdps(40):
        a, theta = mpmath.mpf(a), mpmath.mpf(theta)
        rising, falling = mpmath.e ** ((a - 1) * theta), mpmath.e ** (-a * theta)
        return mpmath.log(a / (2 * a - 1) * rising + (a - 1) / (2 * a - 1) * falling) / (a - 1)


def randomized_response(epsilon, a):
    with mpmath.workdps(40):
        a, p = mpmath.mpf(a), 1 / (1 + mpmath.e ** (-mpmath.mpf(epsilon)))
        return mpmath.log(p**a * (1 - p) ** (1 - a) + (1 - p) ** a * p ** (1 - a)) / (a - 1)


@pytest.mark.parametrize("theta", [1e-3, 0.3, 1.0, 6.0])
@pytest.mark.parametrize("order", ORDERS)
def test_an_upper_bound_close_to_the_closed_forms(theta, order):
    for found, exact in (
        (renyi_of_profile(Gaussian(1.0, theta).profile(AR), order), order * mpmath.mpf(theta) ** 2 / 2),
        (renyi_of_profile(Laplace(1.0, theta).profile(AR), order), laplace(theta, order)),
        (renyi_of_profile(PureDP(theta).profile(AR), order), randomized_response(theta, order)),
    ):
        assert exact < found < exact * (1 + 1e-5)


@pytest.mark.parametrize(
    ("order", "printed"), [(1.5, 3.55336e-4), (2.0, 4.75720e-4), (8.0, 2.00321e-3), (32.0, 1.05695e-2)]
)
def test_a_sampled_gaussian_has_its_known_divergence(order, printed):
    found = renyi_of_profile(amplify(Gaussian(2.7), Poisson(0.0568889)).upper, order)
    assert found == pytest.approx(printed, rel=5e-6)


def test_each_direction_against_mpmath_integrals():
    """A lopsided pair: P = (1-q)N(0) + qN(1/2.7), Q = N(0). The reverse at order 8 is 1.77502e-3."""
    q, shift = 0.0568889, 1 / 2.7
    pair = gaussian_mixture(shift, Poisson(q).appearances())
    nothing = Curve(lambda at: np.full_like(at, -np.inf), 0.0)

    def ratio(x):
        return 1 - q + q * mpmath.e ** (shift * x - shift**2 / 2)

    def exact(power, order):
        points = [-12, 0, 12]
        return mpmath.log(mpmath.quad(lambda x: mpmath.npdf(x) * ratio(x) ** power, points)) / (order - 1)

    for order in (2, 8):
        forward, backward = exact(order, order), exact(1 - order, order)
        assert backward < forward < renyi_of_profile(pair, order) < forward * (1 + 1e-6)
        for one, truth in ((pair.forward, forward), (pair.backward, backward)):
            alone = renyi_of_profile(Profile(one, nothing), order)
            assert alone < truth  # negative control: without the other direction a part of the integral is missing
    assert float(exact(-7, 8)) == pytest.approx(1.77502e-3, rel=5e-6)


def test_what_has_no_divergence_says_so():
    assert renyi_of_profile(ApproxDP(1.0, 1e-12).profile(AR), 2.0) == math.inf
    assert renyi_of_profile(PureDP(0.0).profile(AR), 2.0) == 0.0
    rdp = Profile.symmetric(renyi_curve(4.0, 0.5))
    assert renyi_of_profile(rdp, 4.0) == math.inf  # e^(-3 eps) against e^(3 eps): only smaller orders are known
    assert 0 < renyi_of_profile(rdp, 2.0) < math.inf
    for bad in (1.0, 0.5, 1e5, "x"):
        with pytest.raises(InvalidInput):
            renyi_of_profile(rdp, bad)


def test_a_pure_release_never_costs_more_than_its_epsilon():
    for order in (*ORDERS, 5000.0):
        assert renyi_of_profile(Laplace(1.0, 3.0).profile(AR), order) <= 3.0 * (1 + 1e-12)


def test_several_on_one_data_set_and_fresh_draws_add_up():
    parts = Joint([Gaussian(2.0), Laplace(3.0), Gaussian(1.0)])
    alone = sum(renyi_of_mechanism(m, 3.0, AR)[0] for m in parts.mechanisms)
    assert renyi_of_mechanism(parts, 3.0, AR) == (pytest.approx(alone, rel=1e-12), 0.0)
    assert renyi_of_mechanism(Gaussian(2.0), 3.0, Neighbors.REPLACE_ONE)[0] == pytest.approx(4 * 3 / 8, rel=1e-12)
    assert renyi_of_mechanism(Gaussian(2.0), 3.0, AR.for_person(3))[0] == pytest.approx(9 * 3 / 8, rel=1e-12)
    one = amplify(Gaussian(1.0), Poisson(0.1))
    seven = 7 * renyi_of_guarantee(one, 4.0)[0]
    assert renyi_of_guarantee(compose(one, 7), 4.0) == (pytest.approx(seven, rel=1e-12), 0.0)


def test_a_flat_tail_is_cut_off_and_counted_as_lost():
    noise = DiscreteGaussian(4.0)
    loss, lost = renyi_of_mechanism(noise, 8.0, AR)
    assert 0.25 * (1 - 1e-9) < loss < 0.25 * (1 + 1e-5)  # alpha/(2 sigma^2) (Canonne, Kamath & Steinke 2020)
    assert lost < 1e-20
    parts = [Gaussian(4.0), Laplace(4.0)]
    composed = Joint(parts).profile(AR)  # its loss distribution has cut off some mass
    assert renyi_of_profile(composed, 8.0) == math.inf
    loss, lost = renyi_with_cut(composed, 8.0)
    exact = sum(renyi_of_mechanism(m, 8.0, AR)[0] for m in parts)
    assert exact * (1 - 1e-6) < loss < exact * (1 + 1e-4)
    assert 0 < lost < 1e-20
    for epsilon, delta in ((0.5, 1e-6), (1.0, 0.01)):
        loss, lost = renyi_of_mechanism(ApproxDP(epsilon, delta), 4.0, AR)
        assert delta <= lost < delta * (1 + 1e-5)
        pure = float(randomized_response(epsilon, 4.0))
        assert loss == pytest.approx(pure, rel=0.2)
    assert renyi_of_mechanism(ApproxDP(1.0, 0.9), 4.0, AR) == (math.inf, 1.0)


@pytest.mark.parametrize("order", [2.0, 8.0])
def test_a_cut_profile_still_bounds_the_truth(order):
    """The cut pair, added up by its order and its lost mass, is above the true curve of two releases."""
    box = ApproxDP(0.5, 1e-4)
    loss, lost = renyi_of_mechanism(Joint([box, box]), order, AR)
    at = np.linspace(0.0, 12.0, 241)
    truth = Joint([box, box]).profile(AR).log_delta(at)
    assert np.all(renyi_curve(order, loss, lost)(at) >= truth - 1e-9)
    assert np.any(renyi_curve(order, loss, 0.0)(at) < truth)  # negative control: without the lost mass it is false


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("theta", [0.05, 1.0, 4.0])
def test_the_profile_it_implies_is_above_the_truth(order, theta):
    at = np.concatenate([[0.0], np.geomspace(1e-3, 60.0, 200)])
    implied = renyi_curve(order, order * theta**2 / 2)(at)
    truth = Gaussian(1.0, theta).profile(AR).log_delta(at)
    assert np.all(implied >= truth)
    shrunk = renyi_curve(order, 0.05 * order * theta**2 / 2)(at)  # negative control: a false divergence is caught
    assert np.any(shrunk < truth)


def test_limits_and_orders():
    loss = loss_within(8.0, 3.0, 1e-6)
    assert RenyiDP(8.0, loss).profile(AR).rounded_up().delta(3.0) <= 1e-6
    assert RenyiDP(8.0, loss * (1 + 1e-9)).profile(AR).delta(3.0) > 1e-6
    best = best_order(3.0, 1e-6)
    rates = [loss_within(a, 3.0, 1e-6) / a for a in (best, best / 1.3, best * 1.3)]
    assert rates[0] == max(rates)
    with pytest.raises(Infeasible, match="nothing fits"):
        loss_within(1.5, 0.5, 1e-9)
    with pytest.raises(Infeasible):
        best_order(1e-9, 1e-9)


def test_a_renyi_black_box_in_a_sample_of_copies():
    """Distance u by group privacy: never below the Gaussian that has this divergence."""
    theta, design = 0.3, WithReplacement(20, 100)
    box = RenyiDP(12.0, 12.0 * theta**2 / 2, neighbors=Neighbors.REPLACE_ONE)
    noise = Gaussian(1.0, theta, neighbors=Neighbors.REPLACE_ONE)
    at = np.linspace(0.0, 3.0, 13)
    assert np.all(np.asarray(amplify(box, design).delta(at)) >= np.asarray(amplify(noise, design).delta(at)))
