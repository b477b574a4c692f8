"""General profiles: the corrected Algorithm 1 against the exact solver and against a dense search."""

import math

import numpy as np
import pytest

from privamp import GeneralProfile, Infeasible, InvalidInput, Laplace, LinearProfile, privacy_constrained
from privamp.rules.general_weights import largest_feasible
from privamp.rules.linear_weights import linear_weights
from privamp.rules.sampled_curves import amplified


def linear():
    """epsilon(w, x) = x w, whose exponential is x² e^x strongly convex."""
    return GeneralProfile(lambda w, x: x * w, lambda w, x: x + 0.0 * w, lambda x: x**2 * np.exp(x))


def dipping():
    """epsilon(w, x) = x (w - 1)² + 1/w, falling at first: two roots of psi = epsilon* when epsilon*= epsilon(1) = 1."""
    return GeneralProfile(
        lambda w, x: x * (w - 1.0) ** 2 + 1.0 / w,
        lambda w, x: 2.0 * x * (w - 1.0) - 1.0 / w**2,
        lambda x: 2.0 * x,  # (e^f)'' = e^f (f'' + f'²) >= f'' >= 2x
    )


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 5.0, 20.0])
def test_a_linear_profile_gets_the_linear_weights(epsilon):
    x = epsilon * np.concatenate([np.geomspace(1e-3, 1.0, 40, endpoint=False), [0.999999]])
    rule = privacy_constrained(linear(), epsilon)
    assert rule.weights(x) == pytest.approx(linear_weights(x, epsilon, 2.0**40), rel=1e-9)
    assert np.all(rule.losses(x) <= epsilon)
    assert rule.guarantee().epsilon() == epsilon


@pytest.mark.parametrize("x", [0.01, 0.1, 0.5, 2.0])
def test_the_larger_of_two_roots_is_found(x):
    epsilon = 1.0  # used up at w = 1, where psi falls: epsilon'(1) = -1 < 1 - 1/e
    w = float(privacy_constrained(dipping(), epsilon).weights(np.array([x]))[0])
    grid = np.linspace(1.0, 60.0, 600_001)
    fine = amplified(1.0 / grid, dipping().epsilon(grid, x)) <= epsilon
    assert w == pytest.approx(grid[np.flatnonzero(fine)[-1]], abs=2e-4)
    assert w > 1.0


def test_a_profile_that_falls_slower_than_the_paper_asks_still_opens_the_bracket():
    """0 < epsilon'(1) < 1 - e^-epsilon(1): psi falls at 1 although epsilon grows; line 7 prints epsilon'(1) < 0."""
    profile = GeneralProfile(
        lambda w, x: 1.0 + 0.2 * (w - 1.0) + x * (w - 1.0) ** 2,
        lambda w, x: 0.2 + 2.0 * x * (w - 1.0),
        lambda x: 2.0 * x,
    )
    w = float(privacy_constrained(profile, 1.0).weights(np.array([0.1]))[0])
    grid = np.linspace(1.0, 20.0, 200_001)
    fine = amplified(1.0 / grid, profile.epsilon(grid, 0.1)) <= 1.0
    assert w == pytest.approx(grid[np.flatnonzero(fine)[-1]], abs=2e-4)
    assert w > 1.5


def test_the_bracket_holds_every_root():
    random = np.random.default_rng(0)
    c = 10 ** random.uniform(-3, 0.5, 2000)
    for epsilon in (0.1, 1.0, 4.0):
        x = c[c < epsilon]
        w = linear_weights(x, epsilon, 2.0**64)
        assert np.all(w <= largest_feasible(x, x, x**2 * np.exp(x), epsilon) * (1 + 1e-12))


def test_bad_profiles_are_refused():
    with pytest.raises(Infeasible):
        privacy_constrained(linear(), 1.0).weights(np.array([0.5, 1.5]))
    flat = GeneralProfile(lambda w, x: x * w, lambda w, x: x, lambda x: 0.0 * x)
    with pytest.raises(InvalidInput, match="strong-convexity"):
        privacy_constrained(flat, 1.0).weights(np.array([0.5]))
    broken = GeneralProfile(lambda w, x: math.nan * w, lambda w, x: x, lambda x: x)
    with pytest.raises(InvalidInput, match="one number per record"):
        privacy_constrained(broken, 1.0).weights(np.array([0.5]))


def test_the_guarantee_says_that_a_function_of_the_user_is_trusted():
    """Only for such a function: an influence of the library needs no trust."""
    own = "the profile's own function looks at one record at a time and allows every record"
    plain = privacy_constrained(LinearProfile.of(Laplace(scale=5.0)), 1.0, radius=4.0).guarantee()
    mine = privacy_constrained(LinearProfile(lambda rows: np.abs(rows[:, 0]) / 5.0), 1.0).guarantee()
    general = privacy_constrained(linear(), 1.0).guarantee()
    assert own not in plain.assumes
    assert own in mine.assumes
    assert own in general.assumes


def test_one_record_of_a_general_profile_has_its_own_loss():
    of_rows = GeneralProfile(
        lambda w, rows: rows[:, 0] * w,
        lambda w, rows: rows[:, 0] + 0.0 * w,
        lambda rows: rows[:, 0] ** 2 * np.exp(rows[:, 0]),
    )
    rule = privacy_constrained(of_rows, 1.0, max_weight=2.0)
    everybody = rule.guarantee()
    for x in (0.01, 0.2, 0.9):
        own = everybody.at([x]).epsilon()
        assert own == pytest.approx(float(rule.losses(np.array([[x]]))[0]), rel=1e-9)
        w = float(rule.weights(np.array([[x]]))[0])
        assert own == pytest.approx(math.log1p(math.expm1(w * x) / w), rel=1e-9)
    assert everybody.at([0.01]).epsilon() < 0.02 < everybody.epsilon()
