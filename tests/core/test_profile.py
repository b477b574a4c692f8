import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privamp import DiscreteLaplace, Gaussian, InvalidInput, Laplace, Neighbors, Poisson, PureDP, amplify
from privamp.core.curves import approx_curve, discrete_curve, group, pair_profile, pure_curve
from privamp.core.profile import Curve, Profile

AR = Neighbors.ADD_REMOVE


def hockey_stick(p, q, epsilon):
    return float(np.sum(np.maximum(p - math.exp(epsilon) * q, 0.0)))


@given(st.lists(st.tuples(st.floats(0.01, 1), st.floats(0.01, 1)), min_size=2, max_size=6), st.floats(-3, 3))
@settings(deadline=None, max_examples=200)
def test_a_discrete_pair_gives_its_hockey_stick_divergence_at_every_real_epsilon(weights, epsilon):
    p, q = np.array(weights).T
    p, q = p / p.sum(), q / q.sum()
    profile = pair_profile(np.log(p), np.log(q))
    truth = max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))
    assert profile.delta(epsilon) == pytest.approx(truth, abs=1e-14, rel=1e-10)


def test_extending_a_direction_by_itself_is_caught():
    # THEORY 0: negative epsilons come from the OTHER direction. A sampled pair is not symmetric.
    p, q = np.array([0.9, 0.1]), np.array([0.99, 0.01])
    profile = pair_profile(np.log(p), np.log(q))
    wrong = Profile.symmetric(profile.forward)
    epsilon = -1.5
    truth = hockey_stick(p, q, epsilon)
    own = float(np.exp(np.logaddexp(np.log(-np.expm1(epsilon)), wrong.forward(-epsilon) + epsilon)))
    right = float(np.exp(np.logaddexp(np.log(-np.expm1(epsilon)), profile.backward(-epsilon) + epsilon)))
    assert right == pytest.approx(truth, rel=1e-12)
    assert abs(own - truth) > 1e-3


def test_the_formula_is_false_below_zero_and_the_library_does_not_use_it_there():
    # Laplace theta=1.5, q=.3, base epsilon -1.2: the formula claims .222; D(P||Q) is that, but D(Q||P) is .293.
    theta, q, base = 1.5, 0.3, -1.2
    claimed = q * -math.expm1((base - theta) / 2)
    epsilon = math.log1p(q * math.expm1(base))
    t = np.linspace(-40, 40, 2_000_001)
    without = 0.5 * np.exp(-np.abs(t))
    mixed = (1 - q) * without + q * 0.5 * np.exp(-np.abs(t - theta))
    step = t[1] - t[0]
    forward, backward = (
        np.maximum(a - math.exp(epsilon) * b, 0).sum() * step for a, b in ((mixed, without), (without, mixed))
    )
    assert (round(claimed, 3), round(forward, 3), round(backward, 3)) == (0.222, 0.222, 0.293)
    design = Poisson(q)
    profile = design.theorems[0].bound(design, Laplace(1 / theta), AR)
    assert profile.delta(epsilon) == pytest.approx(max(forward, backward), rel=1e-5)


@given(st.floats(0.01, 5), st.floats(0, 8))
@settings(deadline=None)
def test_the_pure_curve_is_that_of_randomised_response(epsilon0, epsilon):
    p = np.array([math.exp(epsilon0), 1.0]) / (1 + math.exp(epsilon0))
    truth = hockey_stick(p, p[::-1], epsilon)
    assert float(np.exp(pure_curve(epsilon0)(epsilon))) == pytest.approx(truth, abs=1e-15)


def test_the_approximate_curve_loses_delta_and_no_more():
    curve = approx_curve(1.0, 0.01)
    assert float(np.exp(curve(1.0))) == pytest.approx(0.01)
    assert float(np.exp(curve(9.0))) == pytest.approx(0.01)


def test_groups_never_lose_less_than_one_record_and_pure_groups_are_exact():
    base = PureDP(0.3).profile(AR)
    three = group(base, 3)
    assert three.epsilon() == pytest.approx(0.9)
    at = np.linspace(0, 1, 11)
    assert np.all(three.log_delta(at) >= base.log_delta(at) - 1e-12)


def test_group_privacy_bounds_the_exact_gaussian_group():
    one = Gaussian(2.0).profile(AR)
    exact = Gaussian(2.0, sensitivity=4.0).profile(AR)
    at = np.linspace(0, 6, 25)
    assert np.all(group(one, 4).log_delta(at) >= exact.log_delta(at) - 1e-12)


def test_discrete_curve_keeps_relative_precision_far_out():
    losses = np.array([0.5, 200.0, 400.0])
    log_p = np.array([0.0, -500.0, -700.0])
    curve = discrete_curve(losses, log_p)
    assert float(curve(100.0)) == pytest.approx(np.logaddexp(-500 + np.log1p(-math.exp(-100)), -700.0), rel=1e-14)
    assert float(curve(300.0)) == pytest.approx(-700.0 + np.log1p(-math.exp(-100.0)), rel=1e-14)


def test_epsilon_is_on_the_private_side_and_pure_is_exact():
    profile = Gaussian(1.0).profile(AR)
    epsilon = profile.epsilon(1e-6)
    assert profile.delta(epsilon) <= 1e-6
    assert profile.delta(epsilon * (1 - 1e-9)) > 1e-6
    assert profile.epsilon() == math.inf
    assert Laplace(2.0).profile(AR).epsilon() == 0.5


@pytest.mark.parametrize("delta", [-0.1, 1.1, math.nan, math.inf, "x", True])
def test_a_bad_delta_is_refused(delta):
    with pytest.raises(InvalidInput, match="delta must be"):
        Gaussian(1.0).profile(AR).epsilon(delta)


def test_rounding_moves_both_bounds_outward():
    profile = Gaussian(1.0).profile(AR)
    at = np.linspace(0, 20, 41)
    assert np.all(profile.rounded_up().log_delta(at) > profile.log_delta(at))
    assert np.all(profile.rounded_down().log_delta(at) < profile.log_delta(at))


def test_a_curve_never_exceeds_one():
    assert float(Curve(lambda e: e + 5.0)(1.0)) == 0.0


def test_an_upper_bound_does_not_vanish_by_underflow():
    from privamp import WithoutReplacement, amplify

    guarantee = amplify(Gaussian(1.0, neighbors=Neighbors.REPLACE_ONE), WithoutReplacement(400, 1000))
    assert guarantee.upper.log_delta(45.0) < -1000
    assert 0 < guarantee.delta(45.0) < 1e-300
    assert amplify(Laplace(1.0), Poisson(0.5)).delta(45.0) == 0.0


def test_a_group_bound_does_not_rise_with_epsilon():
    """A rare and huge loss: e^(eps (1 - 1/j)) lifted the bound from 1e-11 to 1."""
    rare = amplify(DiscreteLaplace(0.286, 15), Poisson(1.5e-12)).upper
    deltas = np.asarray(group(rare, 7).delta(np.linspace(0.0, 300.0, 400)))
    assert np.all(np.diff(deltas) <= 0.0)
    assert deltas[-1] <= 7.1 * rare.delta(0.0)


def test_epsilon_at_a_delta_is_never_above_the_pure_epsilon():
    tiny = Profile.symmetric(pure_curve(2e-21))
    assert all(tiny.epsilon(delta) <= 2e-21 for delta in (1e-3, 1e-25, 1e-30, 1e-300))
    assert Profile.symmetric(pure_curve(4e16)).epsilon(1e-3) == 4e16


@pytest.mark.parametrize("delta", [0.3, 1e-3, 1e-9, 1e-30])
def test_the_lower_epsilon_is_proved_by_its_own_delta(delta):
    for one in (amplify(Gaussian(0.7), Poisson(0.3)), amplify(PureDP(3.0), Poisson(0.9))):
        at = one.lower.epsilon(delta)
        assert one.lower.delta(at) > delta or at == 0.0
