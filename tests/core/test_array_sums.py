"""Sums of arrays over a sample: rows are bounded by what the mechanism declares, whatever they are."""

import math

import numpy as np
import pytest

from privamp import (
    DiscreteGaussian,
    DiscreteLaplace,
    ExactLaplace,
    Gaussian,
    GeometricCount,
    InvalidInput,
    Joint,
    Key,
    Laplace,
    Neighbors,
    NormNoise,
    Poisson,
    PureFilter,
    WithoutReplacement,
    WithReplacement,
)
from privamp.amplification import CLAIMED, DECLARED
from privamp.core.sample import Drawn
from privamp.core.tape import Tape, taping
from privamp.testing import seeded_key, seeded_stream

RO = Neighbors.REPLACE_ONE


def before_noise(mechanism, rows, design=None, **options):
    design = design or Poisson(1.0)
    sample = design.draw(len(rows), seeded_key(3))
    with taping(Tape(seeded_stream(2))) as tape:
        sample.release(mechanism, rows, **options)
    return tape.taken[0].value, sample


def test_a_column_of_incomes_is_clipped_to_the_declared_sensitivity():
    incomes = np.full(100, 50_000)
    value, sample = before_noise(DiscreteLaplace(scale=2), incomes)
    assert value == 100
    assert DECLARED not in sample.guarantee().assumes
    assert before_noise(Laplace(2.0, sensitivity=10.0), -incomes * 1.0)[0] == -1000.0


def test_functions_are_trusted_and_the_guarantee_says_so():
    sample = Poisson(0.5).draw(10, seeded_key(5))
    sample.release(Laplace(2.0), lambda drawn: 1e6)
    assert DECLARED in sample.guarantee().assumes


@pytest.mark.parametrize(
    ("mechanism", "p"),
    [
        (Laplace(1.0, 2.0), 1.0),
        (Gaussian(1.0, 2.0), 2.0),
        (NormNoise(1.0, 3, 4.0, 2.0), 4.0),
        (NormNoise(1.0, 3, math.inf, 2.0), math.inf),
    ],
)
def test_rows_are_clipped_in_the_mechanisms_own_norm(mechanism, p):
    for row in np.random.default_rng(0).normal(size=(40, 3)) * 5:
        value, _ = before_noise(mechanism, row[None])
        size = np.linalg.norm(row, ord=p)
        assert np.linalg.norm(value, ord=p) <= 2.0
        assert np.allclose(value, row * min(1.0, 2.0 / size), rtol=1e-9)


@pytest.mark.parametrize("kind", [np.int8, np.int64, np.uint64, bool])
def test_whole_rows_at_the_sensitivity_are_not_touched(kind):
    one_hot = np.eye(4)[[0, 1, 1, 2, 3]].astype(kind)
    assert before_noise(DiscreteLaplace(2), one_hot)[0].tolist() == [1, 2, 1, 1]
    assert before_noise(DiscreteGaussian(2.0, math.sqrt(2.0), dimension=4), one_hot)[0].tolist() == [1, 2, 1, 1]
    pairs = np.ones((3, 2), kind)  # of l2 norm sqrt(2), and l1 norm 2
    assert before_noise(DiscreteGaussian(2.0, 1.5, dimension=2), pairs)[0].tolist() == [3, 3]
    assert before_noise(DiscreteLaplace(2, 2), pairs)[0].tolist() == [3, 3]
    assert before_noise(DiscreteLaplace(2, 1), pairs)[0].tolist() == [0, 0]


def test_replaced_rows_lie_no_farther_apart_than_declared():
    design = WithoutReplacement(4, 4)
    for rows, center, total in [
        ([0.0, 1.0, 0.25, 9.0], 0.5, 2.25),
        ([-7.0, 0.5, math.nan, math.inf], 0.0, 0.5),
        ([100.0, 103.0, 100.5, -math.inf], 100.0, 100.0 + 100.5 + 100.5 + 99.5),
    ]:
        assert before_noise(Laplace(1.0, 1.0, RO), rows, design, center=center)[0] == total
    owns = np.array([True, False, True, True])
    assert before_noise(GeometricCount(1.0, RO), owns, design)[0] == 3
    assert before_noise(DiscreteLaplace(1, 1, RO), owns.astype(int) * 7, design, center=0.5)[0] == 3
    assert before_noise(DiscreteLaplace(1, 4, RO), [5, -5, 1, 0], design, center=0)[0] == 1
    vectors = np.array([[9.0, 1.0], [1.0, 1.0], [2.0, 1.0], [1.0, -3.0]])
    moved = before_noise(Gaussian(1.0, 2.0, RO), vectors, design, center=[1.0, 1.0])[0]
    assert np.allclose(moved, [2 + 1 + 2 + 1, 1 + 1 + 1 + 0])
    with pytest.raises(InvalidInput, match="center="):
        design.draw(4).release(Laplace(1.0, 1.0, RO), np.ones(4))
    with pytest.raises(InvalidInput, match="omit it"):
        Poisson(0.5).draw(4).release(Laplace(1.0), np.ones(4), center=0.5)


def test_copies_and_order_do_not_matter_to_the_last_bit():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(5000, 3)) * 10.0 ** rng.integers(-9, 3, (5000, 1))
    bound = Gaussian(1.0, 3.0).row_bound
    counts = rng.integers(1, 900, 5000)
    drawn = Drawn(np.arange(5000), counts, np.ones(5000))
    order = rng.permutation(5000)
    again = Drawn(np.arange(5000), counts[order], np.ones(5000))
    assert bound.total(rows, drawn).tolist() == bound.total(rows[order], again).tolist()
    spread = np.repeat(rows, counts % 7 + 1, axis=0)
    one = Drawn(np.arange(5000), counts % 7 + 1, np.ones(5000))
    many = Drawn(np.arange(len(spread)), np.ones(len(spread), dtype=np.int64), np.ones(len(spread)))
    assert bound.total(rows, one).tolist() == bound.total(spread, many).tolist()


def test_whole_sums_do_not_wrap_around():
    value, _ = before_noise(DiscreteLaplace(2.0**40, 2**53), np.full(4096, 2**60), WithReplacement(4096, 4096))
    assert value == 2**62  # cut there, as whole numbers are


@pytest.mark.parametrize(
    ("odd", "counts_as"),
    [
        (math.nan, 0.0),
        (math.inf, 1.0),
        (-math.inf, -1.0),
        (10**30, 1.0),
        (-(10**400), -1.0),
        ("secret", 0.0),
        (None, 0.0),
        ([1.0], 0.0),
        (1j, 0.0),
    ],
)
def test_every_entry_has_an_answer(odd, counts_as):
    for mechanism in (Laplace(1.0), ExactLaplace(1.0)):
        value, _ = before_noise(mechanism, [0.25, odd, 0.5])
        unit = mechanism.grid if isinstance(mechanism, ExactLaplace) else 1.0
        assert value * unit == 0.75 + counts_as


def test_masked_entries_are_missing():
    column = np.ma.MaskedArray([1.0, 1.0, 1.0], mask=[False, True, False])
    assert before_noise(Laplace(1.0), column)[0] == 2.0
    assert before_noise(DiscreteLaplace(1), np.ma.MaskedArray([1, 1], mask=[True, False]))[0] == 1


def test_what_is_public_is_refused_before_anything_is_written_down():
    sample = Poisson(0.5).draw(4, seeded_key(6))
    for mechanism, rows, words in [
        (Laplace(1.0), np.array(["a", "b", "c", "d"]), "numbers"),
        (Laplace(1.0), np.array(["2020-01-01"] * 4, dtype="M8[D]"), "numbers"),
        (Laplace(1.0), np.ones(4, complex), "numbers"),
        (Laplace(1.0), [[1, 2], [3], [4], [5]], "same number of entries"),
        (Laplace(1.0), np.ones(3), "one row per record"),
        (DiscreteLaplace(1), np.ones(4), "whole numbers"),
        (NormNoise(1.0, 3), np.ones((4, 2)), "3 long"),
        (NormNoise(1.0, 3), np.ones((4, 2, 3)), "3 long"),
        (GeometricCount(1.0), np.ones((4, 2), int), "one number"),
        (Joint([Laplace(1.0)] * 2), np.ones(4), "does not declare"),
    ]:
        with pytest.raises(InvalidInput, match=words):
            sample.release(mechanism, rows)
    assert sample.ledger.entries == ()


@pytest.mark.parametrize("odd", [None, 7.0, "x", {}])
def test_one_entry_among_rows_does_not_turn_a_list_into_a_column(odd):
    rows = [[1.0, 0.0], [0.5, 0.5]]
    with pytest.raises(InvalidInput, match="same number of entries"):
        before_noise(Laplace(1.0), [*rows, odd])  # it was a column of zeros, without the other records


def test_an_array_of_objects_keeps_its_shape_whatever_is_in_it():
    lists = np.empty(1, dtype=object)
    lists[0] = [1.0, 2.0]
    assert before_noise(Laplace(1.0), lists)[0] == 0.0  # it was refused when all entries were lists


@pytest.mark.parametrize("odd", [True, 2.5, None])
def test_a_list_has_no_middle_of_its_own(odd):
    with pytest.raises(InvalidInput, match="center"):
        before_noise(Laplace(1.0, neighbors=RO), [True, False, odd], WithoutReplacement(3, 3))
    assert before_noise(Laplace(1.0, neighbors=RO), np.array([True, False, True]), WithoutReplacement(3, 3))[0] == 2.0


@pytest.mark.filterwarnings("ignore:overflow")  # of the noisy number
@pytest.mark.parametrize("mechanism", [Laplace(1e308, 1e308), Gaussian(1e308, 1e308)])
def test_a_total_beyond_the_doubles_is_cut_and_no_error(mechanism):
    largest = np.finfo(np.float64).max
    assert before_noise(mechanism, np.full(3, 1e308))[0] == largest
    assert before_noise(mechanism, np.full(3, -1e308))[0] == -largest


@pytest.mark.parametrize(
    "bound", [lambda s, **o: s.declare([Laplace(2.0)], **o), lambda s, **o: s.limit(PureFilter(1.0), **o)]
)
def test_what_is_certified_before_a_function_is_released_says_so(bound):
    def sample():
        return Poisson(0.5).draw(10, Key.generate())

    early = bound(sample()).guarantee()
    assert {DECLARED, CLAIMED} <= set(early.assumes)  # functions may come: both were missing
    strict = bound(sample(), functions=False)
    assert not {DECLARED, CLAIMED} & set(strict.guarantee().assumes)
    with pytest.raises(InvalidInput, match="functions=False"):
        strict.release(Laplace(2.0), lambda drawn: 0.0)
    with pytest.raises(InvalidInput, match="functions=False"):
        strict.run(Laplace(2.0), lambda drawn, stream: 0.0)
    strict.release(Laplace(2.0), np.ones(10))
    assert not {DECLARED, CLAIMED} & set(strict.guarantee().assumes)


def test_a_plan_used_up_by_arrays_trusts_nobody():
    sample = Poisson(0.5).draw(10, Key.generate()).declare([Laplace(2.0)])
    sample.release(Laplace(2.0), np.ones(10))
    assert not {DECLARED, CLAIMED} & set(sample.guarantee().assumes)
