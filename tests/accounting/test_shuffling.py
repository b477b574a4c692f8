"""The attack on shuffled batches against quadrature, against simulated shuffles, and above Poisson's certificate."""

import itertools
import math

import numpy as np
import pytest

from privamp import DiscreteGaussian, Gaussian, InvalidInput, Laplace, Neighbors, NoTheorem, Poisson, amplify, compose
from privamp.accounting.shuffling import shuffling_attack

RO = Neighbors.REPLACE_ONE


def two_rounds(theta, epsilon, points=1201, reach=9.0):
    """delta of ((N(theta e1) + N(theta e2))/2, N(0)) by a rule of points in the plane."""
    x = np.linspace(-reach, reach + theta, points)
    density = np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
    ratio = np.exp(theta * x - 0.5 * theta * theta)
    loss = 0.5 * (ratio[:, None] + ratio[None, :]) - math.exp(epsilon)
    return float(np.sum(np.maximum(loss, 0.0) * np.outer(density, density)) * (x[1] - x[0]) ** 2)


@pytest.mark.parametrize(("theta", "epsilon"), [(1.0, 1.0), (2.0, 1.0), (1.0, 2.0)])
def test_two_batches_by_quadrature(theta, epsilon):
    found = shuffling_attack(Gaussian(1.0 / theta, neighbors=RO), 2).delta(epsilon)
    truth = two_rounds(theta, epsilon)
    assert truth * (1.0 - 2e-3) < found < truth * (1.0 + 1e-6)


def test_the_shuffled_sums_are_the_pair():
    """Every order of four records in two batches: the sums, less what they have in common, are those of the theorem."""

    def sums(values):
        orders = itertools.permutations(values)
        found = [(sum(order[:2]), sum(order[2:])) for order in orders]
        return {pair: found.count(pair) / len(found) for pair in set(found)}

    assert sums((1.0, -1.0, -1.0, -1.0)) == {(0.0, -2.0): 0.5, (-2.0, 0.0): 0.5}
    assert sums((-1.0, -1.0, -1.0, -1.0)) == {(-2.0, -2.0): 1.0}


def test_poisson_accounting_of_shuffled_batches_is_false():
    attack = shuffling_attack(Gaussian(1.0), 100)
    claimed = compose(amplify(Gaussian(1.0), Poisson(0.01), RO), 100)
    assert attack.epsilon(1e-6) > 5.0 * claimed.epsilon(1e-6)


def test_one_batch_is_the_mechanism_and_epochs_cost_more():
    alone = Gaussian(1.0).profile(RO)
    assert shuffling_attack(Gaussian(1.0), 1).epsilon(1e-6) == pytest.approx(alone.epsilon(1e-6), rel=1e-3)
    once, twice = (shuffling_attack(Gaussian(2.0), 10, epochs) for epochs in (1, 2))
    assert once.epsilon(1e-6) < twice.epsilon(1e-6) < 2.0 * once.epsilon(5e-7) + 0.1


def test_laplace_noise():
    attack = shuffling_attack(Laplace(1.0), 10)
    assert 0.0 < attack.delta(1.0) < 1.0
    assert attack.epsilon() <= 2.0


def test_refusals():
    with pytest.raises(NoTheorem, match="Gaussian and Laplace"):
        shuffling_attack(DiscreteGaussian(1.0), 10)
    with pytest.raises(InvalidInput):
        shuffling_attack(Gaussian(1.0), 0)
