"""Epsilons where a curve ends in a plateau: reached at the plateau's own delta, infinite below it."""

import math

import numpy as np
import pytest

from privamp import ApproxDP, Neighbors
from privamp.core.profile import Curve, Profile


def plateau(epsilon):
    """delta = 0.1 e^-epsilon + 0.01 up to 2, then 0.01 for ever."""
    return np.where(np.asarray(epsilon) < 2.0, np.log(0.1 * np.exp(-np.asarray(epsilon)) + 0.01), math.log(0.01))


@pytest.mark.parametrize("ceiling", [None, lambda epsilon: plateau(epsilon) + 0.02 * (np.asarray(epsilon) < 2.0)])
def test_a_plateau_is_reached_at_its_own_delta(ceiling):
    profile = Profile.symmetric(Curve(plateau, ceiling=ceiling))
    assert profile.epsilon(0.01) == pytest.approx(2.0)
    assert profile.epsilon(0.011 + 0.1 * math.exp(-1.0)) < 1.0
    assert profile.epsilon(0.01 + 0.1 * math.exp(-1.0)) == pytest.approx(1.0)
    assert profile.epsilon(0.0099) == math.inf


def test_an_approximate_guarantee_has_its_epsilon_at_its_delta():
    profile = ApproxDP(1.0, 1e-6).profile(Neighbors.ADD_REMOVE)
    assert profile.epsilon(1e-6) == pytest.approx(1.0)
    assert profile.epsilon(0.99e-6) == math.inf
