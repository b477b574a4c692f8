"""The estimated variance of a weighted total, averaged over every sample that a design can draw."""

import itertools
import math

import numpy as np
import pytest

from privamp import Poisson, WithoutReplacement, WithReplacement
from privamp.core.weighting import Weighting

Z = np.array([2.0, -1.0, 5.0, 0.5])


def moments(found, samples):
    """(mean of T, variance of T, mean of V) over (chance, times each record is drawn)."""
    rows = []
    for chance, times in samples:
        total = float(np.sum(times * found.weight * Z))
        rows.append((chance, total, float(np.sum(times * found.second * Z**2)) - found.shrink * total**2))
    chances, totals, estimates = np.array(rows).T
    mean = float(chances @ totals)
    return mean, float(chances @ (totals - mean) ** 2), float(chances @ estimates)


def with_replacement(draws):
    for places in itertools.product(range(4), repeat=draws):
        yield 4.0**-draws, np.bincount(places, minlength=4)


def coins(rate):
    for kept in itertools.product((0, 1), repeat=4):
        yield math.prod(rate if k else 1.0 - rate for k in kept), np.array(kept)


@pytest.mark.parametrize("draws", [3, 5])
def test_with_replacement_the_estimate_is_unbiased(draws):
    found = WithReplacement(draws, 4).weighting(4, 4.0, {})
    mean, variance, estimate = moments(found, with_replacement(draws))
    assert mean == pytest.approx(Z.sum())
    assert estimate == pytest.approx(variance)
    assert found.shrink > 0.0


@pytest.mark.parametrize("draws", [1, 2])
def test_one_draw_or_two_show_no_spread_but_the_estimate_is_not_too_small(draws):
    mean, variance, estimate = moments(WithReplacement(draws, 4).weighting(4, 4.0, {}), with_replacement(draws))
    assert mean == pytest.approx(Z.sum())
    assert estimate >= variance * (1.0 - 1e-12)


def test_without_a_public_number_of_records_nothing_is_taken_off():
    for known in (None, 7.0):
        assert WithReplacement(3, 4).weighting(4, known, {}).shrink == 0.0


@pytest.mark.parametrize("rate", [0.2, 0.75])
def test_coins(rate):
    mean, variance, estimate = moments(Poisson(rate).weighting(4, None, {}), coins(rate))
    assert mean == pytest.approx(Z.sum())
    assert estimate == pytest.approx(variance)


def test_every_subset():
    samples = [(1 / 4, 1 - np.eye(4, dtype=int)[out]) for out in range(4)]
    mean, variance, estimate = moments(WithoutReplacement(3, 4).weighting(4, 4.0, {}), samples)
    assert mean == pytest.approx(Z.sum())
    assert estimate == pytest.approx(variance)


def test_one_weight_for_everybody():
    found = Weighting.equal(4.0, 3.0, 5)
    assert found.weight.tolist() == [4.0] * 5
    assert (found.heaviest, found.rate, found.first, found.spread_most) == (4.0, 0.25, 0.0, 3.0)
    assert found.second.tolist() == [found.second_most] * 5 == [12.0] * 5
    assert found.per_record
