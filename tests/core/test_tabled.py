"""Curves as tables: never below the curve, near it, and a table that is no chord is caught."""

import time

import numpy as np
import pytest

from privamp import Gaussian, Neighbors, Proportional, Stratified, amplify, compose
from privamp.core.tabled import MANY, tabled_curve
from privamp.mechanisms.gaussian import gaussian_curve

EPSILONS = np.sort(np.random.default_rng(3).uniform(0.0, 9.0, MANY + 40))


@pytest.mark.parametrize("theta", [0.1, 0.5, 1.0, 4.0])
def test_a_table_is_never_below_its_curve_and_near_it(theta):
    exact = gaussian_curve(theta)
    found, truth = tabled_curve(exact)(EPSILONS), exact(EPSILONS)
    live = truth > -300.0
    assert np.all(found >= truth)
    assert np.all(found[live] - truth[live] <= 2e-3 * np.maximum(1.0, np.abs(0.05 * truth[live]) ** 3))
    assert np.array_equal(tabled_curve(exact)(EPSILONS[:9]), truth[:9])  # few numbers are exact


def test_interpolating_logarithms_is_caught():
    """The planted mistake: log delta, straight between points, is below the curve."""
    exact, points = gaussian_curve(1.0), np.linspace(0.0, 9.0, 10)
    assert np.any(np.interp(EPSILONS, points, exact(points)) < exact(EPSILONS))


@pytest.mark.filterwarnings("ignore::privamp.errors.DegradingDesign")
def test_moves_between_fixed_shares_compose_in_seconds():
    design = Stratified({"a": Proportional(0.1), "b": Proportional(0.2)})
    one = amplify(Gaussian(4.0), design, Neighbors.REPLACE_ONE)
    start = time.process_time()
    several = compose(one, 10).epsilon(1e-5)
    assert time.process_time() - start < 20.0  # it took minutes
    assert one.epsilon(1e-6) < several < 10 * one.epsilon(1e-6)
