"""Batches by key for other trainers: fresh rounds only, certified as a whole, paid for beforehand."""

import copy
import pickle

import numpy as np
import pytest

from privamp import (
    BallsInBins,
    Budget,
    BudgetExceeded,
    Claim,
    CyclicPoisson,
    Gaussian,
    ImportanceSampling,
    InvalidInput,
    Key,
    Laplace,
    LinearProfile,
    Named,
    Poisson,
    Population,
    Rounds,
    Stratified,
    TruncatedPoisson,
    WithoutReplacement,
    WithReplacement,
    amplify,
    compose,
    privacy_constrained,
)
from privamp.adapters.batches import BATCHES, KeyedBatches
from privamp.testing import seeded_key

NOISE = Gaussian(2.0)
STRATA = Population(40, stratum=["a"] * 10 + ["b"] * 30)
PLANS = {
    "poisson": (Rounds(Poisson(0.3), 6), 40),
    "truncated": (Rounds(TruncatedPoisson(0.3, 9, at_least=30), 6), 40),
    "without replacement": (Rounds(WithoutReplacement(5, 40), 6), 40),
    "with replacement": (Rounds(WithReplacement(5, 40), 6), 40),
    "strata": (Rounds(Stratified({"a": WithoutReplacement(2, 10), "b": WithoutReplacement(3, 30)}), 6), STRATA),
    "balls in bins": (BallsInBins(3, epochs=2), 40),
    "cyclic": (CyclicPoisson(0.2, 3, 6), 40),
}


@pytest.mark.parametrize("name", PLANS)
def test_the_rounds_are_those_of_the_plan(name):
    plan, population = PLANS[name]
    key = seeded_key(7)
    batches = KeyedBatches(plan, population, NOISE, key=key)
    ours = [*batches.take(4), *batches.take(2)]  # two epochs: the second goes on
    theirs = [np.repeat(d.positions, d.counts) for d in plan.draw(population, key)]
    assert all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))
    assert len({tuple(batch) for batch in ours}) > 3
    with pytest.raises(InvalidInput, match="no guarantee covers another one"):
        next(batches.take(1))
    told = batches.guarantee()
    assert told.claims == (amplify(NOISE, plan).claims or (Claim(NOISE, plan, told.neighbors),))
    assert BATCHES in told.assumes
    assert not told.is_private


def test_a_key_draws_batches_once():
    key, plan = Key.generate(), Rounds(Poisson(0.5), 3)
    first = KeyedBatches(plan, 20, NOISE, key=key)
    with pytest.raises(InvalidInput, match="fresh key"):
        KeyedBatches(plan, 20, NOISE, key=key)
    with pytest.raises(InvalidInput, match="fresh key"):
        KeyedBatches(BallsInBins(3), 20, NOISE, key=key)
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(InvalidInput, match="secret"):
            copied(first)
    with pytest.raises(InvalidInput, match="about the same sample"):
        compose(first.guarantee(), 2)


def test_a_child_process_draws_nothing(monkeypatch):
    batches = KeyedBatches(Rounds(Poisson(0.5), 3), 20, NOISE)
    monkeypatch.setattr("os.getpid", lambda: -1)
    with pytest.raises(InvalidInput, match="process"):
        next(batches.take(1))


def test_a_budget_pays_for_the_whole_plan_beforehand(tmp_path):
    budget = Budget.create(tmp_path / "b.db", epsilon=1.0, population="people")
    plan, key = Rounds(Poisson(0.5), 2), Key.generate()
    with pytest.raises(BudgetExceeded):
        KeyedBatches(plan, 20, Laplace(0.5), key=key, budget=budget)
    assert budget.log() == []
    KeyedBatches(plan, 20, Laplace(9.0), key=key, budget=budget)  # the key is as fresh as before
    (entry,) = budget.log()
    assert entry.state == "answered"


@pytest.mark.parametrize(
    ("plan", "noise", "words"),
    [
        (Poisson(0.5), NOISE, "Rounds"),
        (Rounds(Poisson(0.5), 2), 1.0, "mechanism"),
        (
            Rounds(ImportanceSampling(privacy_constrained(LinearProfile(Named("n", "1", np.abs)), epsilon=1.0)), 2),
            Laplace(1.0),
            "weighted records",
        ),
    ],
)
def test_what_is_not_certified_is_refused(plan, noise, words):
    with pytest.raises(InvalidInput, match=words):
        KeyedBatches(plan, 20, noise)
