"""Linear profiles: the solver against mpmath, and every record's loss in exact arithmetic."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from privamp import Infeasible, Influence, InvalidInput, Laplace, LinearProfile, privacy_constrained
from privamp.rules.linear_weights import linear_weights
from privamp.rules.rounded import probabilities_below, weights_below

EPSILONS = (1e-6, 1e-4, 0.01, 0.1, 0.29, 0.31, 0.5, 1.0, 3.0, 10.0, 39.0, 41.0, 100.0, 700.0, 1000.0)


def exact_weight(c, epsilon):
    """s with (e^s - 1)/s = (e^epsilon - 1)/c, over c, by Newton's method from above in 60 digits."""
    c, epsilon = mpmath.mpf(c), mpmath.mpf(epsilon)
    level = mpmath.log(mpmath.expm1(epsilon) / c)
    s = 2 * level + 1 if level < 1 else level + mpmath.log(level + mpmath.log(level + 1) + 1) + 1
    for _ in range(200):
        e = mpmath.expm1(s)
        step = (mpmath.log(e / s) - level) / ((e + 1) / e - 1 / s)
        s -= step
        if abs(step) < mpmath.mpf(10) ** -50 * s:
            return s / c
    raise AssertionError("no convergence")


def influences(epsilon, count, seed=0):
    """c/epsilon from 1e-8 to 1 - 1e-12, both ends dense."""
    random = np.random.default_rng(seed)
    shares = np.concatenate([10 ** random.uniform(-8, 0, count), 1 - 10 ** random.uniform(-12, -1, count), [1.0]])
    return np.minimum(shares * epsilon, epsilon)


def loss_is_within(q, w, c, epsilon):
    """log(1 + q(e^(c w) - 1)) <= epsilon, decided in 80 digits from the floats exactly as they are."""
    exponent = mpmath.mpf(Fraction(c).numerator) / Fraction(c).denominator
    exponent *= mpmath.mpf(Fraction(w).numerator) / Fraction(w).denominator
    q = mpmath.mpf(Fraction(q).numerator) / Fraction(q).denominator
    return q * mpmath.expm1(exponent) <= mpmath.expm1(mpmath.mpf(epsilon))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_weights_are_right_to_1e_13_and_never_above(epsilon):
    c = influences(epsilon, 30)
    with mpmath.workdps(60):
        for w, x in zip(linear_weights(c, epsilon, 2.0**64), c, strict=True):
            exact = exact_weight(x, epsilon)
            error = (mpmath.mpf(w) - max(exact, 1)) / exact
            assert -1e-13 <= error <= 0


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_record_loses_more_than_epsilon_in_exact_arithmetic(epsilon):
    c = influences(epsilon, 250, seed=1)
    w = linear_weights(c, epsilon, 2.0**64)
    q = probabilities_below(w)
    with mpmath.workdps(80):
        assert all(loss_is_within(*record, epsilon) for record in zip(q, w, c, strict=True))


def test_a_probability_rounded_to_nearest_is_caught():
    """The negative control: with w rounded down and q = 1/w rounded to nearest, some records lose too much."""
    epsilon = 1.0
    c = influences(epsilon, 1500, seed=2)
    w = linear_weights(c, epsilon, 2.0**64) / (1.0 - 2.0**-46)  # the solution itself, a few units off
    with mpmath.workdps(80):
        wrong = [not loss_is_within(*record, epsilon) for record in zip(1.0 / w, w, c, strict=True)]
    assert sum(wrong) > 100


def test_probabilities_are_below_and_on_the_grid_of_the_draw():
    w = np.concatenate([[1.0, 2.0**64], 2 ** np.random.default_rng(0).uniform(0, 64, 2000)])
    for probability, weight in zip(probabilities_below(w).tolist(), w.tolist(), strict=True):
        exact = Fraction(probability)
        assert exact * Fraction(weight) <= 1
        assert (exact * 2**64).denominator == 1
        assert exact >= Fraction(1, 2**64) or weight > 2.0**63
    q = np.random.default_rng(1).uniform(0, 1, 2000)
    assert all(
        Fraction(p) * Fraction(v) <= 1 for p, v in zip(q.tolist(), weights_below(q).tolist(), strict=True) if v > 1
    )


def test_the_largest_weight_is_drawn_with_the_smallest_probability():
    assert probabilities_below(np.array([2.0**64]))[0] >= 0.0
    rule = privacy_constrained(LinearProfile.of(Laplace(1.0)), 1.0, max_weight=2.0**63)
    assert rule.of_norms([0.0])[0] >= 2.0**-64


def test_lambert_agrees_in_mid_range():
    with mpmath.workdps(40):
        for epsilon, c in ((1.0, 0.3), (3.0, 0.01), (0.5, 0.49)):
            top = mpmath.expm1(epsilon)
            w = -mpmath.lambertw(-(c / top) * mpmath.exp(-c / top), -1) / c - 1 / top
            assert float(linear_weights(np.array([c]), epsilon, 2.0**64)[0]) == pytest.approx(float(w.real), rel=1e-12)


def test_chunks_and_shapes_do_not_matter():
    c = influences(1.0, 20_000)
    whole = linear_weights(c, 1.0, 2.0**40)
    assert np.array_equal(whole[::7], linear_weights(np.ascontiguousarray(c[::7]), 1.0, 2.0**40))
    assert linear_weights(np.empty(0), 1.0, 2.0).shape == (0,)
    assert linear_weights(np.full((2, 3), 0.5), 1.0, 2.0**40).shape == (2, 3)


def test_weights_fall_as_influence_grows_and_are_capped():
    c = np.sort(influences(0.7, 5000))
    w = linear_weights(c, 0.7, 2.0**40)
    assert np.all(np.diff(w) <= 1e-13 * w[:-1])
    assert linear_weights(np.zeros(2), 1.0, 2.0**40).tolist() == [2.0**40] * 2


def test_too_much_influence_is_refused():
    rule = privacy_constrained(LinearProfile(lambda x: np.abs(x)), 1.0)
    with pytest.raises(Infeasible, match="clip"):
        rule.probabilities(np.array([0.5, 1.0 + 1e-15 * 8]))
    with pytest.raises(Infeasible, match="radius"):
        privacy_constrained(LinearProfile.of(Laplace(1.0)), 1.0, radius=1.1)
    with pytest.raises(Infeasible, match="norm 0 has more influence"):
        privacy_constrained(LinearProfile(Influence("pure", 1.5, 1.0)), 1.0).weights(np.empty((0, 1)))
    with pytest.raises(InvalidInput, match="delta"):
        privacy_constrained(LinearProfile.of(Laplace(1.0)), 1.0, 1e-6)


def test_losses_are_never_above_epsilon_and_close_to_it():
    rule = privacy_constrained(LinearProfile.of(Laplace(10.0)), 1.0, radius=8.0)
    u = np.linspace(0.0, 8.0, 5001)
    losses = rule.losses_of_norms(u)
    assert losses.max() <= 1.0
    assert losses[1:].min() > 1.0 - 1e-6  # a weight of 2^40 only at norm 0
    assert rule.guarantee().epsilon() == 1.0
    assert rule.guarantee().at([0.0, 3.0]).epsilon() == pytest.approx(1.0, abs=1e-6)
