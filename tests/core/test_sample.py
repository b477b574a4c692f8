import copy
import logging
import pickle

import numpy as np
import pytest

from privamp import (
    Gaussian,
    InvalidInput,
    Key,
    Laplace,
    MultiStage,
    Neighbors,
    NoTheorem,
    Poisson,
    Population,
    PureDP,
    WithoutReplacement,
    WithReplacement,
)
from privamp.testing import seeded_key

DESIGNS = [
    Poisson(0.3),
    WithoutReplacement(40, 100),
    WithReplacement(40, 100),
    MultiStage([("wor", 50), ("wr", 40)], 100),
]


@pytest.mark.parametrize("design", DESIGNS, ids=str)
def test_one_key_draws_one_sample_in_one_piece_or_in_batches(design):
    population, key = Population(np.arange(100) * 7 + 3), seeded_key(5)
    whole = design.draw(population, key).reveal_secret()
    subkey = design.subkey(key, population.label, 0)
    batches = [design.partial(population.batch(a, a + 17), subkey) for a in range(0, 100, 17)]
    pieces = design.finish(design.merge(reversed(batches)), subkey)
    assert np.array_equal(whole.positions, pieces.positions)
    assert np.array_equal(whole.counts, pieces.counts)
    other = design.draw(population, key, round=1).reveal_secret()
    assert not np.array_equal(np.repeat(whole.positions, whole.counts), np.repeat(other.positions, other.counts))


@pytest.mark.parametrize("design", DESIGNS, ids=str)
def test_a_shuffled_population_gives_the_same_people(design):
    ids = np.array([f"person-{i}" for i in range(100)])
    order = np.random.default_rng(0).permutation(100)
    one = design.draw(Population(ids), seeded_key(1)).reveal_secret()
    two = design.draw(Population(ids[order]), seeded_key(1)).reveal_secret()
    assert sorted(np.repeat(ids[one.positions], one.counts)) == sorted(np.repeat(ids[order][two.positions], two.counts))


def test_the_ledger_composes_inside_and_amplifies_once():
    sample = Poisson(0.1).draw(50, seeded_key(2))
    for _ in range(10):
        sample.release(Laplace(2.0), np.ones(50))
    guarantee = sample.guarantee()
    assert guarantee.epsilon() == pytest.approx(2.7563, abs=1e-4)
    assert not guarantee.is_private
    assert any("odometer" in a for a in guarantee.assumes)


def test_the_same_draw_shares_one_ledger():
    key = Key.generate()
    one, two = Poisson(0.1).draw(50, key), Poisson(0.1).draw(50, key)
    one.release(Laplace(2.0), np.ones(50))
    assert len(two.ledger.entries) == 1
    assert len(Poisson(0.1).draw(50, key, round=1).ledger.entries) == 0


def test_a_declared_plan_is_composed_by_its_loss_distribution_and_must_be_followed():
    plan = [Gaussian(2.0), Laplace(3.0)]
    sample = Poisson(0.1).draw(50, seeded_key(3)).declare(plan)
    sample.release(plan[0], np.ones(50))
    with pytest.raises(InvalidInput, match="declared plan"):
        sample.release(Gaussian(1.0), np.ones(50))
    assert sample.guarantee().epsilon(1e-6) < np.inf
    with pytest.raises(InvalidInput, match="before the first release"):
        sample.declare(plan)


def test_an_adaptive_mixture_of_kinds_has_no_filter():
    sample = Poisson(0.1).draw(50, seeded_key(4))
    sample.release(Gaussian(2.0), np.ones(50))
    sample.release(Laplace(2.0), np.ones(50))
    with pytest.raises(NoTheorem, match="declare the plan"):
        sample.guarantee()


def test_nothing_asked_nothing_lost_and_an_empty_sample_is_no_error():
    sample = Poisson(0.0).draw(10, seeded_key(1))
    assert sample.guarantee().epsilon() == 0.0
    assert np.isfinite(sample.release(Laplace(1.0), np.ones(10)))
    assert Poisson(0.5).draw(0, seeded_key(1)).reveal_secret().counts.size == 0


def test_reprs_logs_and_pickles_hide_what_was_drawn(caplog):
    sample = Poisson(0.5).draw(Population([f"canary-{i}" for i in range(200)]), seeded_key(9))
    with caplog.at_level(logging.DEBUG, logger="privamp"):
        sample.release(Laplace(1.0), np.full(200, 77_777.0))
        drawn = sample.reveal_secret()
    said = caplog.text + repr(sample) + repr(drawn) + str(sample.guarantee()) + repr(Population(["canary-1"]))
    assert "canary" not in said
    assert "77777" not in said
    assert str(drawn.counts.size) not in repr(sample)
    with pytest.raises(InvalidInput):
        pickle.dumps(sample)
    with pytest.raises(InvalidInput):
        copy.deepcopy(sample)


def test_a_sum_needs_one_row_per_record():
    with pytest.raises(InvalidInput, match="one row per record"):
        Poisson(0.5).draw(10).release(Laplace(1.0), np.ones(9))


def test_a_black_box_registers_before_it_refuses():
    sample = WithoutReplacement(2, 10).draw(10)
    with pytest.raises(NoTheorem):
        sample.release(PureDP(1.0, neighbors=Neighbors.REPLACE_ONE), lambda drawn: 1.0)
    assert len(sample.ledger.entries) == 1  # counted as spent: the safe side


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ([1, 1, 2], "unique"),
        (["a", "b", "a"], "unique"),
        ([-1, 2], "give them as text"),
        ([0.5, 1.5], "or text, got some of type float"),
        (np.ones((2, 2), dtype=int), "one-dimensional"),
        (-3, "at least 0"),
    ],
)
def test_bad_populations_are_refused_without_showing_an_id(ids, words):
    with pytest.raises(InvalidInput, match=words):
        Population(ids)


def test_a_population_below_the_declared_size_is_refused():
    with pytest.raises(InvalidInput, match="declares a population of at least 100"):
        WithoutReplacement(10, 100).draw(99)


def test_a_frame_is_not_taken_for_the_names_of_its_columns():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": range(50), "age": range(50)})
    for data in (frame, {"id": [1, 2]}, "people"):
        with pytest.raises(InvalidInput, match="a population needs ids"):
            Poisson(0.5).draw(Population(data))
        with pytest.raises(InvalidInput, match="a population needs ids"):
            Poisson(0.5).draw(data)
    assert Population(frame["id"]).size == 50


def test_masked_values_of_a_population_are_missing():
    column = np.ma.MaskedArray([9.0, 9.0], mask=[True, False])
    assert Population(2, x=column).columns["x"].tolist() == [0.0, 9.0]
    with pytest.raises(InvalidInput, match="masked"):
        Population(np.ma.MaskedArray([1, 2], mask=[True, False]))
