"""Composition where steps are rare, tiny or many: against exact laws, alone and after other questions."""

import math

import numpy as np
import pytest
from scipy import stats

from privamp import Gaussian, Neighbors, Poisson, PureDP, amplify, compose
from privamp.accounting import tangents
from privamp.accounting.composed import Composed
from privamp.accounting.tangents import counted

AR = Neighbors.ADD_REMOVE


def exact_response(strength: float, steps: int, epsilon: float) -> float:
    yes = np.arange(steps + 1)
    loss = (2 * yes - steps) * strength
    mass = stats.binom.pmf(yes, steps, 1 / (1 + math.exp(-strength)))
    return float(np.sum(mass * np.maximum(-np.expm1(epsilon - loss), 0.0)))


def test_tiny_steps_get_a_grid_of_their_size() -> None:
    many = compose(amplify(PureDP(1.7e-4), Poisson(1.0)), 10**6)
    truth = exact_response(1.7e-4, 10**6, 0.5)
    assert truth <= many.delta(0.5) <= 1.001 * truth
    assert 0.999 * truth <= many.lower.delta(0.5) <= truth


def test_answers_do_not_depend_on_what_was_asked_before() -> None:
    def fresh():
        return compose(amplify(Gaussian(128.0), Poisson(1e-5)), 10**6)

    alone = fresh().epsilon(1e-8)
    later = fresh()
    later.delta(0.01), later.delta(0.3), later.epsilon(1e-4)
    assert later.epsilon(1e-8) == alone < 3e-4
    deltas = np.asarray(fresh().delta(np.linspace(0.0, 0.01, 12)))
    assert np.all(np.diff(deltas) <= 1e-9 * deltas[:-1])
    assert [fresh().delta(e) for e in (1e-4, 0.01)] == [later.delta(e) for e in (1e-4, 0.01)]


def test_a_deep_tail_is_known_from_both_sides_when_asked_alone() -> None:
    guarantee = compose(amplify(Gaussian(1.0), Poisson(0.01)), 1000)
    assert 3.13e-26 < guarantee.lower.delta(8.0) <= guarantee.delta(8.0) < 3.15e-26


@pytest.mark.parametrize(("rate", "sigma", "steps", "share"), [(1e-5, 0.7, 10**5, 0.4), (1e-8, 0.3, 10**6, 0.99)])
def test_rare_steps_have_an_attack(rate, sigma, steps, share) -> None:
    guarantee = compose(amplify(Gaussian(sigma), Poisson(rate)), steps)
    upper, lower = guarantee.epsilon(1e-8), guarantee.lower.epsilon(1e-8)
    assert share * upper < lower <= upper


def one_large_loss(rate, sigma, steps, epsilon, large=0.5):
    """Exactly one step has a loss above `large`, in 40 digits: part of delta, so never above it."""
    from mpmath import exp, log, mp, mpf, ncdf

    with mp.workdps(40):
        q, s, eps = mpf(rate), mpf(sigma), mpf(epsilon)

        def tails(loss):
            x = s * s * log((exp(loss) - 1 + q) / q) + mpf(1) / 2
            without = ncdf(-x / s)
            return (1 - q) * without + q * ncdf(-(x - 1) / s), without

        p_large, q_large = tails(mpf(large))
        left = eps - (steps - 1) * log((1 - p_large) / (1 - q_large))
        p, q0 = tails(left)
        return float(steps * (1 - p_large) ** (steps - 1) * (p - exp(left) * q0))


def test_a_million_steps_of_tiny_rate_are_above_one_large_loss() -> None:
    """dp-accounting 0.6.0 has epsilon 2.44863 here, where delta is above 1e-8."""
    rate, sigma, steps = "1e-8", "0.3", 10**6
    guarantee = compose(amplify(Gaussian(0.3), Poisson(1e-8)), steps)
    for epsilon in (0.5, 1.0, 2.448631, 4.0):
        reached = one_large_loss(rate, sigma, steps, epsilon)
        assert reached <= guarantee.delta(epsilon)
        assert guarantee.lower.delta(epsilon) <= guarantee.delta(epsilon)
    assert one_large_loss(rate, sigma, steps, 2.448631) > 1.003e-8
    assert one_large_loss(rate, sigma, steps, guarantee.epsilon(1e-8)) > 0.999e-8


def test_one_question_per_step_is_a_pair_of_coins() -> None:
    profile = Gaussian(1.0).profile(AR)
    a, b = tangents._yes(profile.forward, 0.7)
    edge = 0.7 + 0.5  # yes: x above the point where the loss is .7
    assert a == pytest.approx(stats.norm.sf(edge - 1), rel=1e-4)
    assert b == pytest.approx(stats.norm.sf(edge), rel=1e-4)
    v = np.exp(np.linspace(-5, 5, 4001))
    x = np.log(v) + 0.5
    price = stats.norm.sf(x - 1) - v * stats.norm.sf(x)
    assert np.all(a - b * v <= price)


def test_a_line_that_is_not_lowered_is_caught(monkeypatch) -> None:
    monkeypatch.setattr(tangents, "_HALF", 0.5)
    profile = Gaussian(1.0).profile(AR)
    v = np.exp(np.linspace(-5, 5, 4001))
    x = np.log(v) + 0.5
    price = stats.norm.sf(x - 1) - v * stats.norm.sf(x)
    for at in (0.2, 1.0, 3.0):
        a, b = tangents._yes(profile.forward, at)
        assert np.all(a - b * v <= price)
    left, right = (float(np.exp(profile.forward(e))) for e in (0.5, 1.5))
    slope = (left - right) / (math.exp(1.5) - math.exp(0.5))
    assert not np.all(left - slope * (v - math.exp(0.5)) <= price)  # the chord itself


def test_counting_is_below_the_composed_bound() -> None:
    profile = amplify(Gaussian(0.8), Poisson(0.05)).upper
    at = np.linspace(0.0, 3.0, 31)
    assert np.all(
        counted(profile, 20).forward(at) <= compose(amplify(Gaussian(0.8), Poisson(0.05)), 20).upper.forward(at)
    )


@pytest.mark.parametrize("z", [1e-12 + 1e-12j, -1e-9 + 3e-8j, -0.3 + 0.2j])
def test_powers_by_logarithms_agree_with_exact_ones(z) -> None:
    from mpmath import mp, mpc

    mp.dps = 40
    x, y = z.real, z.imag
    ours = np.exp(1000 * (0.5 * np.log1p(x * (2 + x) + y * y) + 1j * np.arctan2(y, 1 + x)))
    exact = complex((1 + mpc(x, y)) ** 1000)
    assert abs(ours - exact) <= 1e-13 * abs(exact)


def test_errors_grow_with_the_steps_in_which_something_happens() -> None:
    from privamp.accounting.discretize import LossLaw

    def law(p: float) -> LossLaw:
        return LossLaw(0.01, np.array([-60, 0, 60]), np.array([0.45 * p, 1 - p, 0.55 * p]), 0.0)

    rare = Composed(((law(1e-6), 10**6),), upper=True)
    error = math.exp(rare.table(0.0).log_error)
    assert error < 1e-11
    truth = 0.061439637050127931518  # by mpmath: the binomial law of the active steps, 30 digits
    assert truth <= math.exp(float(rare.log_delta(np.asarray(0.5)))) <= truth + 1e-11
