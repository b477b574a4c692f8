"""JAX Privacy itself: its strategies and ours, by law and by event."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from privamp import (
    BallsInBins,
    CyclicPoisson,
    Gaussian,
    InvalidInput,
    Key,
    Neighbors,
    Poisson,
    Population,
    Rounds,
    TruncatedPoisson,
    WithoutReplacement,
    WithReplacement,
    amplify,
)

theirs = pytest.importorskip("jax_privacy.batch_selection", reason="the adapter of JAX Privacy needs jax-privacy")

from dp_accounting import UnsupportedEventError  # noqa: E402
from dp_accounting.dp_event import GaussianDpEvent  # noqa: E402

from privamp.adapters.dp_accounting import GuaranteeAccountant, NeighboringRelation  # noqa: E402
from privamp.adapters.jax_privacy import KeyedSelection, plan_of  # noqa: E402
from privamp.testing import seeded_key  # noqa: E402

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
INDEPENDENT = theirs.PartitionType.INDEPENDENT
PLANS = [
    (theirs.CyclicPoissonSampling(0.25, 2), AR, Rounds(Poisson(0.25), 2)),
    (theirs.CyclicPoissonSampling(0.5, 2, truncated_batch_size=2), AR, Rounds(TruncatedPoisson(0.5, 2, 2, 4), 2)),
    (theirs.CyclicPoissonSampling(0.5, 2, truncated_batch_size=2), RO, Rounds(TruncatedPoisson(0.5, 2, 3, 3), 2)),
    (theirs.CyclicPoissonSampling(0.5, 2, cycle_length=2, partition_type=INDEPENDENT), AR, CyclicPoisson(0.25, 2, 2)),
    (theirs.BallsInBinsSampling(2, 2), AR, BallsInBins(2)),
    (theirs.FixedBatchSampling(2, 2), RO, Rounds(WithoutReplacement(2, 3), 2)),
    (theirs.FixedBatchSampling(2, 2, replace=True), RO, Rounds(WithReplacement(2, 3), 2)),
]


@pytest.mark.parametrize(("strategy", "neighbors", "plan"), PLANS)
def test_their_strategies_draw_by_the_law_of_the_plan(strategy, neighbors, plan):
    """Chi-square-like: every meeting of three examples with two rounds, 4000 times; 7 standard deviations are 1e-11."""
    assert plan_of(strategy, 3, neighbors) == plan
    law = Counter()
    for meetings, chance in plan.law(Population(3)):
        law[meetings] += chance
    rng, runs = np.random.default_rng(1), 4000
    seen = Counter()
    for _ in range(runs):
        seen[tuple(tuple(sorted(int(i) for i in batch)) for batch in strategy.batch_iterator(3, rng))] += 1
    assert seen.keys() <= law.keys()
    for meetings, chance in law.items():
        mean = runs * float(chance)
        assert abs(seen[meetings] - mean) <= 7 * (mean * (1 - float(chance))) ** 0.5 + 7
    wrong = max(law, key=law.get)  # the twin: a sampler that never draws the likeliest meeting is caught
    assert runs * law[wrong] > 7 * (runs * law[wrong] * (1 - law[wrong])) ** Fraction(1, 2) + 7


def test_a_rate_of_single_precision_is_not_rounded_down():
    rate = np.float32(0.1)
    strategy = theirs.CyclicPoissonSampling(rate, 6, cycle_length=3, partition_type=INDEPENDENT)
    assert plan_of(strategy, 3, AR) == CyclicPoisson(float(rate) / 3, 3, 6)


def test_fixed_batches_under_add_remove_cover_a_record_less():
    assert plan_of(theirs.FixedBatchSampling(2, 5), 10, AR) == Rounds(WithoutReplacement(2, 9), 5)


@pytest.mark.parametrize(
    ("strategy", "neighbors", "words"),
    [
        (theirs.BMinSepSampling(0.1, 5, 2), AR, "no theorem for BMinSepSampling"),
        (theirs.CyclicPoissonSampling(0.5, 4, cycle_length=2), AR, "equal split moves other records"),
        (theirs.CyclicPoissonSampling(0.5, 4, cycle_length=2, partition_type=INDEPENDENT), RO, "add-remove"),
        (theirs.CyclicPoissonSampling(0.5, 4, truncated_batch_size=2, cycle_length=2), AR, "truncated batches"),
        (theirs.BallsInBinsSampling(4, 2), AR, "drawn only once"),
        (theirs.FixedBatchSampling(20, 2), RO, "size must be"),
    ],
)
def test_what_is_not_certified_is_said(strategy, neighbors, words):
    with pytest.raises(InvalidInput, match=words):
        plan_of(strategy, 10, neighbors)


def test_a_keyed_strategy_draws_its_plan_once():
    plan = Rounds(WithReplacement(3, 10), 4)
    strategy = KeyedSelection(plan, 10, Gaussian(2.0), key=seeded_key(1))
    assert isinstance(strategy, theirs.BatchSelectionStrategy)
    drawn = [np.repeat(d.positions, d.counts).tolist() for d in plan.draw(10, seeded_key(1))]
    batches = list(strategy.batch_iterator(10))
    assert [batch.tolist() for batch in batches] == drawn
    assert theirs.pad_to_multiple_of(batches[0], 4).size == 4
    with pytest.raises(InvalidInput, match="already being drawn"):
        strategy.batch_iterator(10)
    fresh = KeyedSelection(plan, 10, Gaussian(2.0))
    with pytest.raises(InvalidInput, match="omit rng"):
        fresh.batch_iterator(10, rng=0)
    with pytest.raises(InvalidInput, match="must be that of the population"):
        fresh.batch_iterator(11)


@pytest.mark.parametrize("plan", [Rounds(WithoutReplacement(3, 10), 1), CyclicPoisson(0.25, 2, 2)])
def test_the_event_is_the_plans_guarantee_and_counts_once(plan):
    key = Key.generate()
    strategy = KeyedSelection(plan, 10, Gaussian(2.0), key=key)
    relation = NeighboringRelation[{"add-remove": "ADD_OR_REMOVE_ONE", "replace-one": "REPLACE_ONE"}[plan.natural.kind]]
    accountant = GuaranteeAccountant(relation).compose(strategy.event())
    assert accountant.get_epsilon(1e-5) == amplify(Gaussian(2.0), plan).epsilon(1e-5)
    assert accountant.supports(GaussianDpEvent(8.0))
    with pytest.raises(UnsupportedEventError, match="about the same sample"):
        accountant.compose(strategy.event())
    with pytest.raises(InvalidInput, match="fresh key"):
        KeyedSelection(plan, 10, Gaussian(2.0), key=key)


def test_execution_plans_take_it():
    from jax_privacy.experimental.execution_plan import DPExecutionPlan

    assert {"batch_selection_strategy", "dp_event"} <= DPExecutionPlan.__dataclass_fields__.keys()


def test_short_numbers_of_examples_do_not_overflow():
    """No example less one was 255 of them in NumPy's uint8."""
    fixed, capped = theirs.FixedBatchSampling(5, 3), theirs.CyclicPoissonSampling(0.1, 3, truncated_batch_size=5)
    with pytest.raises(InvalidInput, match="num_examples must be a whole number of at least 1"):
        plan_of(fixed, np.uint8(0), AR)
    assert plan_of(fixed, np.uint8(200), AR) == plan_of(fixed, 200, AR)
    assert plan_of(capped, np.int8(127), AR) == plan_of(capped, 127, AR)


def test_numbers_of_jax_count_by_their_value():
    """In JAX's single precision a sampled Gaussian would be certified with too small an epsilon."""
    jnp = pytest.importorskip("jax.numpy")
    noise, rate = jnp.float32(1.1), jnp.float32(0.1)
    plan = plan_of(theirs.CyclicPoissonSampling(rate, 3), 100, AR)
    assert plan == plan_of(theirs.CyclicPoissonSampling(float(rate), 3), 100, AR)
    assert Gaussian(noise) == Gaussian(float(noise))
    assert type(Gaussian(noise).sigma) is float
