"""One round of Gaussian noise under replace-one against a grid over the plane, from above and from below."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from privamp import Gaussian, Neighbors, WithoutReplacement, WithReplacement, amplify
from privamp.accounting.blocks import followed
from privamp.accounting.composition import Composition
from privamp.accounting.gaussian_rounds import GaussianRounds

RO = Neighbors.REPLACE_ONE
SIDE = np.arange(-10.0, 10.0, 0.02) + 0.01


def on_a_grid(weights, a, b, epsilon):
    """H of sum_u p_u N(u a) against sum_u p_u N(u b), records at the places a and b of the plane."""

    def density(at):
        return sum(
            p * norm.pdf(SIDE - u * at[0])[:, None] * norm.pdf(SIDE - u * at[1])[None, :] for u, p in enumerate(weights)
        )

    return float(np.sum(np.maximum(density(a) - math.exp(epsilon) * density(b), 0.0)) * 0.02**2)


def corner(r, s, d):
    """b, when a is at (r, 0)."""
    x = (r * r + s * s - d * d) / (2.0 * r)
    return x, math.sqrt(max(s * s - x * x, 0.0))


@pytest.mark.parametrize(("r", "s", "d"), [(1.2, 1.2, 1.2), (1.0, 0.5, 1.2), (0.5, 0.5, 0.9)])
def test_with_replacement_the_bound_is_above_and_near(r, s, d):
    rounds = GaussianRounds(1.2, "diameter", 4, 10, replaced=True)
    weights = binom.pmf(np.arange(5), 4, 0.1)
    epsilons = np.array([0.05, 0.3, 1.0])
    found = rounds.one_side(r, s, d, epsilons)
    for epsilon, delta in zip(epsilons, found, strict=True):
        exact = on_a_grid(weights, (r, 0.0), corner(r, s, d), epsilon)
        assert delta >= exact * (1.0 - 1e-3)
        if d == rounds.theta:  # copies are bounded as if they were as far apart as records may be
            assert delta <= exact * 1.7 + 2e-3


def test_without_replacement_it_is_the_triangle():
    rounds = GaussianRounds(1.0, "diameter", 2, 10)
    (found,) = rounds.one_side(1.0, 1.0, 1.0, np.array([0.2]))
    assert found == pytest.approx(on_a_grid((0.8, 0.2), (1.0, 0.0), corner(1.0, 1.0, 1.0), 0.2), rel=2e-3)


def test_attacks_are_pairs_that_exist_and_no_better():
    rounds = GaussianRounds(1.0, "diameter", 2, 10)
    line, back, equilateral = rounds.attacks()
    for epsilon in (0.05, 0.3, 1.0):
        exact = on_a_grid((0.8, 0.2), (1.0, 0.0), corner(1.0, 1.0, 1.0), epsilon)
        assert exact * 0.99 <= equilateral.delta(epsilon) <= exact * (1.0 + 1e-3)
        forward = on_a_grid((0.8, 0.2), (1.0, 0.0), (0.0, 0.0), epsilon)
        found = float(np.exp(line.forward(np.array([epsilon]))[0]))
        assert found == pytest.approx(forward, rel=2e-3)
        assert float(np.exp(back.backward(np.array([epsilon]))[0])) == pytest.approx(forward, rel=2e-3)
    assert len(GaussianRounds(1.0, "ball", 2, 10).attacks()) == 2
    assert len(GaussianRounds(1.0, "diameter", 2, 10, replaced=True).attacks()) == 2


@pytest.mark.parametrize("design", [WithoutReplacement(10, 50), WithReplacement(5, 50)])
def test_following_rounds_never_loosens_either_side(design):
    one = amplify(Gaussian(3.0, neighbors=RO), design)
    (part,) = one.parts
    several = part.__class__(part.upper, part.lower, 4, claim=part.claim)
    alone = Composition((several,))
    block = followed(several, alone)
    assert block.rounds == 4
    for epsilon in (0.1, 0.5):
        assert block.upper.delta(epsilon) <= alone.upper.delta(epsilon)
        assert block.lower.delta(epsilon) >= alone.lower.delta(epsilon)
        assert block.lower.delta(epsilon) <= block.upper.delta(epsilon)
