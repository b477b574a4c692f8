"""Private choice among settings: the theorem against exact laws, and the loop."""

import math
from itertools import product

import numpy as np
import pytest

from privamp import Poisson, Rounds, amplify
from privamp.errors import InvalidInput
from privamp.mechanisms.gaussian import Gaussian
from privamp.testing import seeded_key
from privamp.torch import choice_price, private_choice
from privamp.torch.choosing import chosen_loss

LAWS = [  # of a run's outcome, worst score first, on two neighbouring data sets
    ((0.5, 0.5), (0.4, 0.6)),
    ((0.9, 0.1), (0.99, 0.01)),
    ((0.2, 0.3, 0.5), (0.3, 0.3, 0.4)),
    ((0.6, 0.3, 0.1), (0.75, 0.2, 0.05)),
    ((0.999, 0.001), (0.99, 0.01)),
    ((0.6999, 0.0001, 0.3), (0.8997, 0.0003, 0.1)),  # second best: three times as likely, and the best a third
]
ORDERS = (1.5, 2.0, 4.0, 16.0)
MEANS = (1.0, 2.0, 10.0, 100.0)


def best(law, mean):
    """The law of the best of a geometric number of runs: P[best <= y] = g F/(1 - (1-g) F)."""
    g, below = 1.0 / mean, np.concatenate([[0.0], np.cumsum(law)])
    below[-1] = 1.0
    return np.diff(g * below / (1.0 - (1.0 - g) * below))


def renyi(p, q, order):
    return max(
        math.log(np.sum(np.asarray(a) ** order * np.asarray(b) ** (1 - order))) / (order - 1)
        for a, b in ((p, q), (q, p))
    )


def worst_excess(bound):
    """How far the exact divergence of the best run lies above a bound."""
    return max(
        renyi(best(p, mean), best(q, mean), order) - bound(renyi(p, q, order), renyi(p, q, other), order, other, mean)
        for (p, q), order, other, mean in product(LAWS, ORDERS, ORDERS, MEANS)
    )


def test_the_theorem_covers_the_exact_laws():
    assert worst_excess(chosen_loss) <= 1e-9


@pytest.mark.parametrize(
    "wrong",
    [
        lambda one, other, order, second, mean: one,  # selection is free
        lambda one, other, order, second, mean: one + math.log(mean) / (order - 1.0),  # no term of the second order
        lambda one, other, order, second, mean: one * (1 + 1 / order),
    ],
)
def test_forgotten_terms_are_caught(wrong):
    assert worst_excess(wrong) > 1e-3


def test_a_price_is_that_of_the_formula_and_below_composition_for_many_settings():
    run = amplify(Gaussian(4.0), Rounds(Poisson(0.05), 50))
    price = choice_price(run, settings=100, mean_runs=10.0, delta=1e-5)
    assert price.one_run == run.epsilon(1e-5) < price.random_stopping < price.composed
    loss = {order: run.renyi(order) for order in (16.0, 32.0, 64.0)}
    by_hand = min(
        chosen_loss(loss[a], loss[b], a, b, 10.0) + math.log1p(-1 / a) - (math.log(1e-5) + math.log(a)) / (a - 1)
        for a, b in product(loss, loss)
    )
    assert price.random_stopping <= by_hand * (1 + 1e-6)
    assert f"{price.random_stopping:.4g}" in str(price)


@pytest.mark.parametrize("mean", MEANS)
def test_a_choice_costs_no_less_than_one_run_and_more_runs_cost_more(mean):
    assert chosen_loss(0.3, 0.4, 4.0, 8.0, mean) >= 0.3 + 2 * 7 / 8 * 0.4
    assert chosen_loss(0.3, 0.4, 4.0, 8.0, 2 * mean) > chosen_loss(0.3, 0.4, 4.0, 8.0, mean)


def test_the_number_of_runs_is_geometric_and_the_best_is_kept():
    counts, chosen = [], []
    for seed in range(400):
        seen = []

        def train(setting, key, seen=seen):
            score = key.secret_bytes()[0] + 1000 * setting
            seen.append((score, setting))
            return score, f"model {setting}"

        found = private_choice([0, 1, 2], train, mean_runs=4.0, key=seeded_key(seed))
        assert (found.score, found.setting) == max(seen)
        assert found.result == f"model {found.setting}"
        counts.append(len(seen))
        chosen += [setting for _, setting in seen]
    assert np.mean(counts) == pytest.approx(4.0, abs=6 * math.sqrt(12 / 400))
    assert np.mean(np.array(counts) == 1) == pytest.approx(0.25, abs=6 * math.sqrt(0.1875 / 400))
    assert np.bincount(chosen) / len(chosen) == pytest.approx([1 / 3] * 3, abs=0.07)


def test_a_score_that_is_no_number_loses_and_the_key_decides():
    def train(setting, key):
        return (math.nan, "broken") if setting == "a" else (0.0, key)

    found = [private_choice(["a", "b"], train, mean_runs=30.0, key=seeded_key(3)) for _ in range(2)]
    assert found[0].setting == "b"
    assert found[0].result == found[1].result


def test_bad_input_is_one_sentence():
    with pytest.raises(InvalidInput, match="mean_runs"):
        private_choice([1], lambda s, k: (0.0, None), mean_runs=0.5)
    with pytest.raises(InvalidInput, match="at least one"):
        private_choice([], lambda s, k: (0.0, None), mean_runs=2.0)
    with pytest.raises(InvalidInput, match="settings"):
        choice_price(amplify(Gaussian(1.0), Poisson(0.1)), settings=0, mean_runs=2.0, delta=1e-5)
