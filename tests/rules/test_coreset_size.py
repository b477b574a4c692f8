"""The size of a coreset: the least one for which the stated bound on the failure holds."""

import math

import numpy as np
import pytest

from privamp import Influence, InvalidInput, LinearProfile
from privamp.errors import Infeasible
from privamp.rules.coreset import coreset, largest_size
from privamp.rules.coreset_size import all_centres_size, coreset_size


def failure_of(size, error, sets):
    """Bernstein's bound with steps of at most 16/m and a variance of at most 32/m, for each set of centres."""
    variance, step = 32.0 / size, 16.0 / size
    return sets * 2.0 * math.exp(-0.5 * error**2 / (variance + step * error / 3.0))


@pytest.mark.parametrize("error", [0.03, 0.1, 1.0])
@pytest.mark.parametrize(("failure", "sets"), [(1e-3, 1), (0.2, 7), (1e-9, 1000)])
def test_it_is_the_least_size_with_the_failure(error, failure, sets):
    size = coreset_size(error, failure, sets)
    assert failure_of(size, error, sets) <= failure * (1.0 + 1e-12)
    assert failure_of(size - 1, error, sets) > failure


def test_a_thousandth_is_the_default_failure():
    assert coreset_size(0.1) == coreset_size(0.1, 1e-3, 1)


def test_costs_of_a_drawn_coreset_have_the_error():
    """400 samples of the certified size, of which at most one in a thousand may miss; 6 misses have chance 1e-6."""
    rng = np.random.default_rng(5)
    x = rng.standard_t(3, size=30_000)
    x -= x.mean()
    v, error = float(np.mean(x**2)), 0.5
    size = coreset_size(error)
    q = np.minimum(1.0, size / (2 * x.size) * (1.0 + x**2 / v))
    centres = np.array([-1.0, 0.5, 3.0])
    cost = np.min((x[:, None] - centres) ** 2, axis=1)
    misses = 0
    for _ in range(400):
        kept = rng.random(x.size) < q
        misses += abs(np.sum(cost[kept] / q[kept]) / x.size - cost.mean()) > error * 0.5 * (cost.mean() + v)
    assert misses <= 5


@pytest.mark.parametrize("bad", [{"error": 0.0}, {"error": 0.1, "failure": 0.0}, {"error": 0.1, "failure": 1.5}])
def test_bad_values_are_refused(bad):
    with pytest.raises(InvalidInput):
        coreset_size(**bad)
    with pytest.raises(InvalidInput):
        all_centres_size(**{"clusters": 3, "dimension": 2, "failure": 0.1, **bad})
    with pytest.raises(InvalidInput):
        coreset_size(0.1, sets=0)


def test_all_sets_of_centres():
    """Twice the error is four times less; twice the dimension adds k d log k."""
    first = all_centres_size(0.1, 4, 3, 0.01)
    assert first == pytest.approx((12 * math.log(4) + math.log(100)) * 100)
    assert all_centres_size(0.2, 4, 3, 0.01) == pytest.approx(first / 4)
    assert all_centres_size(0.1, 4, 3, 0.01, constant=5.0) == pytest.approx(5 * first)
    assert all_centres_size(0.1, 4, 6, 0.01) - first == pytest.approx(1200 * math.log(4))


def test_the_largest_size_is_one_that_can_be_drawn():
    """At the radius its probability is 1, and for a share above it would be more."""
    profile = LinearProfile(Influence("pure", 0.0, 0.01))
    given = {"share": 0.5, "population": 1000, "mean_squared_norm": 0.25, "radius": 1.0}
    most = largest_size(0.5, 1000, 0.25, 1.0)
    assert most == 1000.0 / (0.5 + 0.5 / 0.25)
    rule = coreset(profile, size=most, **given)
    assert rule.base + rule.per_square == pytest.approx(1.0)
    with pytest.raises(Infeasible, match="probability above 1"):
        coreset(profile, size=most * (1.0 + 1e-12), **given)
