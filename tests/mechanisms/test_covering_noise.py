"""Discrete Gaussian noise under theorems about continuous noise: sigma' covers it, sigma itself would not."""

import math

import numpy as np
import pytest

from privamp import DiscreteGaussian, Gaussian, Neighbors, WithoutReplacement, WithReplacement, amplify
from privamp.core.multiplicity import Multiplicity

RO = Neighbors.REPLACE_ONE
AT = np.linspace(0.0, 4.0, 41)


def discrete(sigma, centre):
    places = np.arange(-400, 401)
    weights = np.exp(-0.5 * ((places - centre) / sigma) ** 2)
    return weights / weights.sum()


@pytest.mark.parametrize(("sigma", "shift"), [(4.0, 1), (4.0, 7), (5.5, 2), (30.0, 11)])
def test_the_covering_curve_lies_above_and_the_same_sigma_does_not(sigma, shift):
    p, q = discrete(sigma, shift), discrete(sigma, 0)
    exact = np.array([np.maximum(p - math.exp(e) * q, 0.0).sum() for e in AT])
    covering = DiscreteGaussian(sigma, shift).covering
    assert 0.9 * sigma <= covering.sigma < sigma
    assert np.all(exact <= np.exp(covering.profile(Neighbors.ADD_REMOVE).forward(AT)) + 1e-15)
    same = np.exp(Gaussian(sigma, shift).profile(Neighbors.ADD_REMOVE).forward(AT))
    assert sigma > 10.0 or np.any(exact > same * (1 + 1e-9))  # a forgotten s is caught


def test_no_covering_where_it_would_cost_too_much():
    assert DiscreteGaussian(3.0).covering is None
    assert DiscreteGaussian(4.0, math.sqrt(2), dimension=10**6).covering is None


def test_copies_of_a_record_against_every_choice_of_values():
    """Two of four with replacement; the record and the one in its place have any values from -1 to 1."""
    law = np.exp(Multiplicity.binomial(2, 0.25).log_p)
    p = [1.0 - law.sum(), *law]
    bound = np.asarray(amplify(DiscreteGaussian(4.0), WithReplacement(2, 4), RO).delta(AT))
    for own, other in ((1, 0), (0, 1), (1, -1)):
        one, two = (sum(w * discrete(4.0, u * x) for u, w in enumerate(p)) for x in (own, other))
        assert np.all([np.maximum(one - math.exp(e) * two, 0.0).sum() for e in AT] <= bound)


def test_with_replacement_is_near_its_attack_and_other_designs_keep_their_own_curves():
    found = amplify(DiscreteGaussian(8.0), WithReplacement(100, 1000), RO)
    assert found.epsilon(1e-6) < 1.1 * found.lower.epsilon(1e-6)
    one = amplify(DiscreteGaussian(8.0), WithoutReplacement(100, 1000), RO)
    assert one.epsilon(1e-6) < 1.001 * one.lower.epsilon(1e-6)  # by the exact curve, not the covering one
