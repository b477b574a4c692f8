"""Steps with two outcomes: never below the exact composition, above it by rounding only, and nothing else is taken."""

import mpmath
import numpy as np
import pytest

from privamp import ClusterSampling, Gaussian, Neighbors, Poisson, PureDP, WithoutReplacement, amplify, compose
from privamp.accounting.two_outcomes import answers
from privamp.core.curves import directed_curve
from privamp.core.profile import Curve, Profile

AT = (0.0, 0.03, 0.4, 1.5)


def exact(own: float, other: float, steps: int, epsilon: float) -> mpmath.mpf:
    """delta of `steps` answers with losses `own` and -`other`, sixty digits."""
    with mpmath.workdps(60):
        a, b = mpmath.mpf(own), mpmath.mpf(other)
        yes, total = (1 - mpmath.exp(-b)) / (1 - mpmath.exp(-a - b)), mpmath.mpf(0)
        for k in range(steps + 1):
            loss = k * a - (steps - k) * b
            if loss > epsilon:
                chance = mpmath.binomial(steps, k) * yes**k * (1 - yes) ** (steps - k)
                total += chance * (1 - mpmath.exp(epsilon - loss))
        return total


@pytest.mark.parametrize(
    ("rate", "epsilon", "steps"), [(0.1, 0.5, 200), (0.01, 1.0, 60), (0.5, 3.0, 20), (0.9, 0.01, 7)]
)
def test_both_directions_are_the_binomial_law_rounded_up(rate: float, epsilon: float, steps: int) -> None:
    one = amplify(PureDP(epsilon), Poisson(rate)).upper
    found = answers(one, steps)
    assert found is not None
    ends = one.forward.largest_loss, one.backward.largest_loss
    for curve, (own, other) in zip(found, (ends, ends[::-1]), strict=True):
        for at in AT:
            truth = exact(own, other, steps, at)
            if truth > 0:
                assert truth <= mpmath.exp(float(curve(np.asarray([at]))[0])) <= truth * (1 + mpmath.mpf(10) ** -9)


def test_the_composition_is_that_and_stays_above_its_attack() -> None:
    one = amplify(PureDP(0.5), Poisson(0.1))
    both = compose(one, 50)
    ends = one.upper.forward.largest_loss, one.upper.backward.largest_loss
    largest = [exact(*ends, 50, 0.4), exact(*ends[::-1], 50, 0.4)]
    assert float(both.delta(0.4)) == pytest.approx(float(max(largest)), rel=1e-9)
    assert float(both.delta(0.4)) >= float(max(largest))
    assert both.lower is not None
    assert both.lower.epsilon(1e-6) <= both.epsilon(1e-6)


def test_a_grid_that_is_asked_for_is_used() -> None:
    one = amplify(PureDP(0.5), Poisson(0.1))
    coarse, usual = compose(one, 50, interval=0.01), compose(one, 50)
    assert coarse.epsilon(1e-6) > usual.epsilon(1e-6)


def test_steps_with_more_outcomes_and_very_many_steps_are_left_to_the_grid() -> None:
    replaced = amplify(PureDP(0.5, neighbors=Neighbors.REPLACE_ONE), WithoutReplacement(10, 100)).upper
    assert answers(replaced, 5) is None  # its two directions are one curve: a mixture of two answers
    assert answers(amplify(Gaussian(1.0), Poisson(0.1)).upper, 5) is None
    pure = amplify(PureDP(0.5), ClusterSampling(5, 50, 4)).upper
    assert answers(pure, 20_000) is not None
    assert answers(pure, 20_001) is None


def test_a_curve_below_its_ends_is_no_answer() -> None:
    """The ends alone would give a valid bound, but a looser one than the grid's."""
    full = directed_curve(0.3, 0.2)
    below = Curve(lambda at: full(at) - 1e-6, 0.3)
    other = directed_curve(0.2, 0.3)
    assert answers(Profile(full, other), 3) is not None
    assert answers(Profile(below, other), 3) is None
    assert answers(Profile(full, Curve(lambda at: other(at) - 1e-6, 0.2)), 3) is None
