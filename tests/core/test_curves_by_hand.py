"""Curves and profiles of small laws: against sums over all outcomes in many digits."""

import math

import mpmath
import numpy as np
import pytest

from privamp import InvalidInput, Neighbors
from privamp.core.curves import (
    approx_curve,
    directed_curve,
    discrete_curve,
    pair_attack,
    pair_profile,
    pure_curve,
    rare_event,
)
from privamp.core.profile import Curve, Profile

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
EPSILONS = np.array([0.0, 1e-6, 0.1, 0.5, 1.0, 2.5, 6.0])


def stick(p, q, epsilon):
    """log of sum max(p - e^eps q, 0) in 60 digits."""
    with mpmath.workdps(60):
        total = sum(
            max(mpmath.mpf(a) - mpmath.exp(mpmath.mpf(float(epsilon))) * mpmath.mpf(b), 0)
            for a, b in zip(p, q, strict=True)
        )
        return float(mpmath.log(total)) if total > 0 else -math.inf


# --- discrete curves


@pytest.mark.parametrize("seed", range(8))
def test_a_discrete_curve_is_its_sum_however_small(seed):
    """Losses given in no order, some equal, one outcome of no chance, and one that Q does not have."""
    random = np.random.default_rng(seed)
    losses = np.round(random.uniform(-2.0, 3.0, 9), 1)
    log_p = np.log(random.dirichlet(np.ones(9))) - random.choice([0.0, 300.0], 9)
    log_p[3] = -np.inf
    for infinite in (-math.inf, -5.0):
        curve = discrete_curve(losses, log_p, infinite)
        for epsilon in [*EPSILONS, float(np.max(losses)) - 1e-9]:
            with mpmath.workdps(60):
                parts = [
                    mpmath.exp(mpmath.mpf(a)) * (1 - mpmath.exp(mpmath.mpf(float(epsilon)) - mpmath.mpf(float(x))))
                    for x, a in zip(losses, log_p, strict=True)
                    if x > epsilon and np.isfinite(a)
                ]
                total = sum(parts) + (mpmath.exp(infinite) if infinite > -math.inf else 0)
                exact = float(mpmath.log(total)) if total > 0 else -math.inf
            assert float(curve(epsilon)) == pytest.approx(exact, rel=1e-9, abs=1e-9)
        live = losses[np.isfinite(log_p)]
        assert curve.largest_loss == (max(live.max(), 0.0) if infinite == -math.inf else math.inf)
    assert discrete_curve(np.array([-1.0]), np.zeros(1)).largest_loss == 0.0


def test_a_discrete_curve_of_nothing():
    for infinite, end in ((-math.inf, 0.0), (-3.0, math.inf)):
        curve = discrete_curve(np.array([1.0]), np.array([-np.inf]), infinite)
        assert (curve.largest_loss, float(curve(0.5)), float(curve.log_delta(np.zeros(1))[0])) == (
            end,
            infinite,
            infinite,
        )


def test_pairs_with_outcomes_of_one_law_only():
    p, q = np.array([0.5, 0.3, 0.2, 0.0]), np.array([0.4, 0.0, 0.35, 0.25])
    with np.errstate(divide="ignore"):
        profile, attack = (make(np.log(p), np.log(q)) for make in (pair_profile, pair_attack))
    assert (profile.forward.largest_loss, profile.backward.largest_loss) == (math.inf, math.inf)
    for curve, low, one, other in (
        (profile.forward, attack.forward, p, q), (profile.backward, attack.backward, q, p)
    ):  # fmt: skip
        for epsilon in EPSILONS:
            exact = stick(one, other, epsilon)
            assert float(curve(epsilon)) == pytest.approx(exact, abs=1e-12)
            assert exact - 1e-13 <= float(low(epsilon)) <= exact + 3e-16  # the given logarithms are rounded


def test_an_attack_gives_back_what_its_logarithms_may_have_lost():
    """2e-15 of the largest logarithm and 1, on epsilon: a loss of ten thousand is ten thousand times as uncertain."""
    for size in (0.5, 1e4):
        log_p, log_q = np.array([-1e-5, -size]), np.array([-size, -1e-5])
        end = size - 1e-5
        assert pair_profile(log_p, log_q).largest_loss == pytest.approx(end, rel=1e-14)
        lost = pair_profile(log_p, log_q).largest_loss - pair_attack(log_p, log_q).largest_loss
        assert lost == pytest.approx(2e-15 * (1.0 + size), rel=0.3)


@pytest.mark.parametrize("loss", [0.01, 1.0, 30.0])
def test_a_rare_event_is_that_much_likelier(loss):
    profile = rare_event(loss)
    assert profile.is_symmetric
    assert profile.largest_loss == loss
    for share in (0.1, 0.9):
        exact = -600.0 + math.log1p(-math.exp((share - 1.0) * loss))
        assert float(profile.forward(share * loss)) == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize(("own", "other"), [(1.0, 1.0), (0.3, 2.0), (2.0, 0.3), (1.0, math.inf), (40.0, 1e-6)])
def test_the_largest_curve_between_two_ends_is_that_of_two_outcomes(own, other):
    """P <= e^own Q and Q <= e^other P, both reached: P has p and 1 - p, Q p e^-own and (1 - p) e^other."""
    with mpmath.workdps(60):
        p = (1 - mpmath.exp(-other)) / (1 - mpmath.exp(-mpmath.mpf(own) - other))
        curve = directed_curve(own, other)
        for epsilon in (0.0, 0.1, 0.9 * own):
            exact = float(mpmath.log(p * (1 - mpmath.exp(mpmath.mpf(epsilon) - own))))
            assert float(curve(epsilon)) == pytest.approx(exact, abs=1e-12)
            if own == other:
                assert float(pure_curve(own)(epsilon)) == pytest.approx(exact, abs=1e-12)
    assert curve.largest_loss == own
    for nothing in ((0.0, 1.0), (1.0, 0.0), (0.0, 0.0)):
        assert directed_curve(*nothing).largest_loss == 0.0
        assert float(directed_curve(*nothing).log_delta(np.zeros(1))[0]) == -math.inf


@pytest.mark.parametrize("delta", [1e-9, 0.3])
def test_approximate_pairs_lose_delta_and_are_pure_else(delta):
    pure, curve = pure_curve(0.7), approx_curve(0.7, delta)
    for epsilon in (0.0, 0.3, 0.69, 0.7, 5.0):
        exact = math.log(delta + (1.0 - delta) * math.exp(float(pure(epsilon))))
        assert float(curve(epsilon)) == pytest.approx(exact, abs=1e-12)
    assert curve.largest_loss == math.inf
    assert float(approx_curve(0.7, 1.0)(3.0)) == 0.0
    assert approx_curve(0.7, 0.0).largest_loss == 0.7
    assert pure_curve(0.7).is_end_certain is False
    assert pure_curve(0.7, is_certain=True).rounded_up().largest_loss == 0.7
    assert pure_curve(0.7).rounded_up().largest_loss > 0.7


# --- profiles


def lopsided():
    p, q = np.array([0.9, 0.1]), np.array([0.99, 0.01])
    return pair_profile(np.log(p), np.log(q)), p, q


def test_profiles_take_the_larger_direction_at_every_epsilon():
    profile, p, q = lopsided()
    at = np.concatenate([-EPSILONS[::-1], EPSILONS])
    exact = [max(math.exp(stick(p, q, e)), math.exp(stick(q, p, e))) for e in at]
    assert profile.delta(at) == pytest.approx(np.array(exact), rel=1e-12, abs=1e-300)
    assert isinstance(profile.delta(0.5), float)
    assert profile.delta(at.reshape(2, -1)).shape == (2, 7)
    assert profile.largest_loss == pytest.approx(math.log(10.0))
    assert profile.epsilon(0.0) == profile.largest_loss
    assert profile.epsilon(1.0) == 0.0
    for delta in (1e-3, 0.05, 0.0899):
        found = profile.epsilon(delta)
        assert profile.delta(found) <= delta * (1 + 1e-15) < profile.delta(found - 1e-9)
    assert profile.epsilon(0.2) == 0.0
    for bad in (-0.1, 1.1, math.nan):
        with pytest.raises(InvalidInput, match="delta must be a number from 0 to 1"):
            profile.epsilon(bad)


def test_the_smallest_and_the_largest_of_profiles_go_by_direction():
    profile, _, _ = lopsided()
    other = Profile.symmetric(pure_curve(0.2))
    low, high = Profile.minimum([profile, other]), Profile.maximum([profile, other])
    for epsilon in EPSILONS:
        for name in ("forward", "backward"):
            pair = [float(getattr(one, name)(epsilon)) for one in (profile, other)]
            assert float(getattr(low, name)(epsilon)) == min(pair)
            assert float(getattr(high, name)(epsilon)) == max(pair)
    assert (low.forward.largest_loss, high.forward.largest_loss) == (0.2, profile.forward.largest_loss)
    assert (low.backward.largest_loss, high.backward.largest_loss) == (profile.backward.largest_loss, 0.2)
    for combine in (Profile.minimum, Profile.maximum):
        assert combine([profile]) is profile
        assert combine([other, Profile.symmetric(pure_curve(0.3))]).is_symmetric
        assert not combine([other, profile]).is_symmetric
    assert profile.symmetrised().is_symmetric
    assert profile.symmetrised().delta(0.1) == profile.delta(0.1)
    assert other.symmetrised() is other


def test_rounding_a_curve_moves_epsilon_and_delta_outward():
    """By 4e-15 (1 + eps) and 1e-12 (1 + |log delta|): seen on log delta = -1e3 eps, and on a constant."""
    steep, flat = Curve(lambda at: -1e3 * at - 1.0), Curve(lambda at: np.full(np.shape(at), -2.0), 5.0)
    for epsilon in (0.5, 2.0):
        value = -1e3 * epsilon - 1.0
        shift, margin = 4e-15 * (1.0 + epsilon) * 1e3, 1e-12 * (1.0 - value)
        assert float(steep.rounded_up()(epsilon)) - value == pytest.approx(margin + shift, rel=0.05)
        assert value - float(steep.rounded_down()(epsilon)) == pytest.approx(margin + shift, rel=0.05)
    assert float(flat.rounded_up()(0.0)) == pytest.approx(-2.0 + 3e-12, abs=1e-14)
    assert float(flat.rounded_down()(0.0)) == pytest.approx(-2.0 - 3e-12, abs=1e-14)
    assert flat.rounded_down().largest_loss < 5.0 < flat.rounded_up().largest_loss
    profile = Profile(steep, flat)
    up, down = profile.rounded_up(), profile.rounded_down()
    assert down.delta(0.001) < profile.delta(0.001) < up.delta(0.001)
    assert not up.is_symmetric
    assert Profile.symmetric(flat).rounded_up().is_symmetric
    assert Profile.symmetric(flat).rounded_down().is_symmetric


def test_a_curve_is_at_most_one_and_zero_from_its_end_on():
    curve = Curve(lambda at: 3.0 - at, 4.0)
    assert curve(np.array([0.0, 2.5, 3.5, 4.0, np.inf])).tolist() == [0.0, 0.0, -0.5, -np.inf, -np.inf]
    endless = Curve(lambda at: -at)
    assert endless(np.array([1e301, math.inf])).tolist() == [-1e300, -math.inf]


def test_an_epsilon_that_is_out_of_reach_is_the_end():
    flat = Curve(lambda at: np.full(np.shape(at), -2.0))
    assert Profile.symmetric(flat).epsilon(0.1) == math.inf
    assert Profile.symmetric(Curve(flat.log_delta, ceiling=flat.log_delta)).epsilon(0.1) == math.inf
    falling = Curve(lambda at: -at, ceiling=lambda at: 1.0 - at)
    lower = Curve(lambda at: -2.0 * at, ceiling=lambda at: 1.0 - 2.0 * at)
    for profile in (Profile(falling, lower), Profile(lower, falling)):
        assert profile.epsilon(1e-3) == pytest.approx(-math.log(1e-3), rel=1e-12)
    ended = Profile.symmetric(Curve(lambda at: np.full(np.shape(at), -2.0), 3.0))
    assert ended.epsilon(0.1) == pytest.approx(3.0)
    assert ended.epsilon(0.2) == 0.0
