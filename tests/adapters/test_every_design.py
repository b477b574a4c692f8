"""Batches by every design and by every schedule, the same that the plan draws; only importance rules are refused."""

from importlib.util import find_spec

import numpy as np
import pytest

from every_kind import DESIGNS, SCHEDULES
from privamp import (
    ImportanceSampling,
    InvalidInput,
    Laplace,
    Neighbors,
    NoTheorem,
    Poisson,
    PureDP,
    Rounds,
)
from privamp.adapters.batches import KeyedBatches
from privamp.testing import seeded_key

NOISE = Laplace(3.0)


def drawn(plan, population):
    """The batches as a trainer gets them, and as the plan draws them."""
    ours = KeyedBatches(plan, population, NOISE, key=seeded_key(3))
    batches = list(ours.take(plan.steps))
    if find_spec("torch") is not None:
        from privamp.adapters.torch import KeyedBatchSampler

        sampler = KeyedBatchSampler(plan, population, NOISE, key=seeded_key(3))
        assert [np.asarray(batch, dtype=np.int64).tolist() for batch in sampler] == [b.tolist() for b in batches]
        assert sampler.guarantee() == ours.guarantee()
    return ours, batches, [np.repeat(d.positions, d.counts) for d in plan.draw(population, seeded_key(3))]


@pytest.mark.filterwarnings("ignore::privamp.errors.DegradingDesign")
@pytest.mark.parametrize("name", sorted(DESIGNS.keys() - {"ImportanceSampling"}))
def test_rounds_of_every_design(name):
    for at, (design, population) in enumerate(DESIGNS[name].small_cases()):
        if at in (2, 7):
            if name == "ClusterBySize" and design.min_size == 0:  # no theorem: refused before anything is drawn
                with pytest.raises(NoTheorem, match="min_size"):
                    KeyedBatches(Rounds(design, 2), population, NOISE)
                continue
            ours, batches, theirs = drawn(Rounds(design, 2), population)
            assert all(np.array_equal(a, b) for a, b in zip(batches, theirs, strict=True))
            assert ours.guarantee().steps == 2


@pytest.mark.filterwarnings("ignore::privamp.errors.DegradingDesign")
@pytest.mark.parametrize("name", SCHEDULES)
def test_every_schedule(name):
    for at, (plan, population) in enumerate(SCHEDULES[name].small_cases()):
        if at in (2, 7):
            _, batches, theirs = drawn(plan, population)
            assert all(np.array_equal(a, b) for a, b in zip(batches, theirs, strict=True))


def test_importance_rules_are_refused():
    design, population = next(iter(ImportanceSampling.small_cases()))
    with pytest.raises(InvalidInput, match="do not support"):
        KeyedBatches(Rounds(design, 2), population, NOISE)


def test_the_lists_are_not_empty():
    assert {"Poisson", "Stratified", "SystematicPPS", "SharedRate"} <= DESIGNS.keys()
    assert SCHEDULES.keys() == {"Rounds", "BallsInBins", "CyclicPoisson"}


def test_what_no_theorem_covers_is_not_drawn():
    with pytest.raises(NoTheorem):
        KeyedBatches(Rounds(Poisson(0.5), 2), 9, PureDP(1.0, Neighbors.REPLACE_ONE))
