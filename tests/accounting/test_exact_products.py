"""Composed bounds on both sides of exact products, where a fresh search found them on the wrong one."""

import math

import mpmath as mp
import numpy as np
import pytest

from privamp import (
    ApproxDP,
    Gaussian,
    ImportanceSampling,
    Laplace,
    LinearProfile,
    Poisson,
    PureDP,
    Stratified,
    amplify,
    compose,
    variance_optimal,
)
from privamp.accounting.composition import Composition
from privamp.accounting.tangents import log_choose
from privamp.mechanisms.per_stratum import PerStratum

EPSILONS = (0.0, 0.2, 0.5, 1.0, 2.0, 4.0)


def exact_response(strength, steps, epsilon):
    """delta(epsilon) of so many randomised responses."""
    with mp.workdps(50):
        yes, total = 1 / (1 + mp.exp(-mp.mpf(strength))), mp.mpf(0)
        for k in range(steps + 1):
            p = mp.binomial(steps, k) * yes**k * (1 - yes) ** (steps - k)
            loss = (2 * k - steps) * mp.mpf(strength)
            total += max(p * (1 - mp.exp(mp.mpf(epsilon) - loss)), 0)
        return total


@pytest.mark.parametrize(
    ("strength", "steps", "below"), [(10.453542147238116, 19, 2.7636e-6), (27.0, 7, 1e-3), (33.0, 40, 0.1)]
)
def test_an_attack_stays_below_the_truth_where_slopes_are_tiny(strength, steps, below):
    """The slope of a chord was the difference of two numbers near 1: its error was larger than its margin."""
    epsilon = strength * steps - below
    guarantee = compose(amplify(PureDP(strength), Poisson(1.0)), steps)
    truth = exact_response(strength, steps, epsilon)
    assert guarantee.lower.delta(epsilon) <= truth <= guarantee.delta(epsilon)


@pytest.mark.parametrize(("epsilon", "rate", "steps"), [(3.5e-5, 8.9e-8, 3), (9e-6, 1.8e-9, 500), (1250.0, 0.3, 50)])
def test_tiny_and_huge_losses_have_an_attack_or_none(epsilon, rate, steps):
    guarantee = compose(amplify(PureDP(epsilon), Poisson(rate)), steps)
    for at in (0.0, 0.5 * guarantee.epsilon()):
        assert 0.0 <= guarantee.lower.delta(at) <= guarantee.delta(at)


def test_binomial_coefficients_of_large_numbers_keep_their_digits():
    with mp.workdps(40):
        for n, k in ((5, 2), (17, 16), (292826718, 395), (10**9, 1), (10**9, 10**9 - 7), (956953, 0), (10**6, 499999)):
            truth = mp.loggamma(n + 1) - mp.loggamma(k + 1) - mp.loggamma(n - k + 1)
            assert abs(float(log_choose(n, np.asarray([float(k)]))[0]) - truth) <= 6e-15 * (1 + abs(truth))


def test_rounds_are_composed_for_one_stratum_at_a_time():
    """The larger of two strata's curves is reached by neither: composed, it lay above the truth."""
    noise = PerStratum(Gaussian(1.0), (("a", 0.3), ("b", 4.0)))
    design = Stratified({"a": Poisson(1.0), "b": Poisson(0.05)})
    for steps in (1, 2, 10):
        whole = compose(amplify(noise, design), steps)
        each = [(Gaussian(1.0, 0.3), Poisson(1.0)), (Gaussian(1.0, 4.0), Poisson(0.05))]
        truth = np.max([compose(amplify(*one), steps).delta(EPSILONS) for one in each], axis=0)
        assert np.all(whole.lower.delta(EPSILONS) <= truth)
        assert np.all(whole.lower.delta(EPSILONS) >= 0.99 * truth)


def test_strata_of_several_parts_are_the_same_stratum():
    one = amplify(PureDP(1.0), Stratified({"a": Poisson(0.1), "b": Poisson(0.9)}))
    other = amplify(PureDP(1.0), Stratified({"a": Poisson(0.9), "b": Poisson(0.1)}))
    truth = compose([amplify(PureDP(1.0), Poisson(0.1)), amplify(PureDP(1.0), Poisson(0.9))])
    assert compose([one, other]).lower.epsilon() <= truth.epsilon()
    elsewhere = amplify(PureDP(1.0), Stratified({"c": Poisson(0.5), "d": Poisson(0.1)}))
    assert compose([one, elsewhere]).lower is None


def test_rounds_are_composed_for_one_norm_at_a_time():
    noise = Laplace(1.0)
    design = ImportanceSampling(variance_optimal(LinearProfile.of(noise), kappa=0.8, radius=1.5, floor=0.3))
    one = amplify(noise, design)
    kinds = dict(one.parts[0].attacks)
    assert len(kinds) == 3
    ten = compose(one, 10)
    for norm in kinds:
        rate = 1.0 / float(design.rule.weights_of_norms(np.asarray([norm]))[0])
        own = compose(amplify(Laplace(rate, norm), Poisson(rate)), 10)
        kinds[norm] = np.asarray(own.delta(EPSILONS))
    assert np.all(ten.lower.delta(EPSILONS) <= np.max(list(kinds.values()), axis=0) * (1.0 + 1e-9))
    assert np.all(ten.lower.delta(EPSILONS) > 0.0)


def test_delta_does_not_rise_where_mass_is_lost():
    """Where half the mass is lost, nobody asked how good the rest of the bound was."""
    boxes = [amplify(PureDP(0.232), Poisson(0.0359)), amplify(ApproxDP(0.0192, 0.5), Poisson(1.0))]
    whole = compose([compose(boxes[0], 2), compose(amplify(PureDP(0.0611), Poisson(1.0)), 3), boxes[1]])
    deltas = np.asarray(whole.delta(np.linspace(0.0, 0.3, 61)))
    assert np.all(np.diff(deltas) <= 1e-5 * deltas[1:])
    assert 0.5 <= deltas[-1] < 0.50001


def test_a_loss_that_is_certain_composes():
    assert compose(amplify(ApproxDP(38.0, 1.0), Poisson(1.0)), 50).delta(3.0) == 1.0


def test_distances_too_small_for_doubles_add_up():
    """The smallest double is known to half of itself only: a billion of them were a third too few."""
    one = amplify(PureDP(2.5e-323), Poisson(0.5))
    found = Composition(compose(one, 10**9).parts)._total_variation
    assert found >= math.log(10**9) + float(one.upper.log_delta(0.0))
