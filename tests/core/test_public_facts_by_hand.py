"""Bounds, ids, relations, populations, influences and bins: each against its rule, written out."""

import math
import uuid
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from privamp import (
    Infeasible,
    Influence,
    InvalidInput,
    Laplace,
    LinearProfile,
    Neighbors,
    NoTheorem,
    Poisson,
    Population,
    Stratified,
    privacy_constrained,
)
from privamp.chance.keyed import keyed_numbers
from privamp.chance.keys import Key
from privamp.core.bounds import is_number, is_pair, pair_of, pairs_by_name, pairs_of
from privamp.core.ids import id_array
from privamp.core.neighbors import check_relation
from privamp.core.population import Batch, column_of, label_by
from privamp.core.schedule import OneOf, everybody_once, uniform_bins
from privamp.testing import seeded_key

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE


# --- bounds


def test_bounds_in_all_their_forms():
    assert (pair_of((0, 100)), pair_of(5), pair_of(np.float64(0.5))) == ((0.0, 100.0), (-5.0, 5.0), (-0.5, 0.5))
    assert [is_number(b) for b in (3, 2.5, np.array(1.0), np.array([1.0]), (1, 2), None)] == [True] * 3 + [False] * 3
    assert [is_pair(b) for b in ((1, 2), [1.0, 2.0], (1, 2, 3), [(1, 2), (3, 4)], 5)] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert pairs_of(2.0, 3) == ((-2.0, 2.0),) * 3
    assert pairs_of((0, 1), 2) == ((0.0, 1.0),) * 2
    assert pairs_of([(0, 1), (2, 5)], 2) == ((0.0, 1.0), (2.0, 5.0))
    assert pairs_of(np.array([[0, 1], [2, 5], [3, 9]]), 3)[2] == (3.0, 9.0)
    assert pairs_by_name({"a": (0, 1), "b": 2, "c": 9}, ["b", "a"]) == ((-2.0, 2.0), (0.0, 1.0))
    assert pairs_by_name((0, 1), ["b", "a"]) == ((0.0, 1.0),) * 2


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: pair_of(None), "bounds must be two public numbers .* got none instead"),
        (lambda: pair_of(None, "limits"), "limits must be two public numbers"),
        (lambda: pair_of(0.0), "bounds must be a finite number above 0"),
        (lambda: pair_of((1, 2, 3)), r"bounds must be two numbers \(lowest, highest\), got \(1, 2, 3\)"),
        (lambda: pair_of((1, 1)), "bounds must be finite with the lowest below the highest"),
        (lambda: pair_of((-math.inf, 1)), "bounds must be finite"),
        (lambda: pair_of((1, math.inf)), "bounds must be finite"),
        (lambda: pairs_of([(0, 1)], 2), "one pair for each of the 2 columns, got 1 pairs instead"),
        (lambda: pairs_of([(0, 1)] * 3, 2), "one pair for each of the 2 columns, got 3 pairs instead"),
        (lambda: pairs_by_name({"a": (0, 1)}, ["a", "b", "c"]), "bounds must name every stratum, got nothing for 'b'"),
    ],
)
def test_bounds_that_are_refused(call, match):
    with pytest.raises(InvalidInput, match=match):
        call()


# --- ids


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (range(3), [0, 1, 2]),
        (np.array([3, 1], dtype=np.int8), [3, 1]),
        (np.array([2**64 - 1, 0], dtype=np.uint64), [2**64 - 1, 0]),
        ([2**64 - 1, 5], [2**64 - 1, 5]),
        ([np.int64(4), np.int32(5)], [4, 5]),
        ([Decimal(7), Decimal(2)], [7, 2]),
        (["a", "", "ä"], ["a", "", "ä"]),
        (np.array(["x", "yy"]), ["x", "yy"]),
        ([uuid.UUID(int=1)], ["00000000-0000-0000-0000-000000000001"]),
        ([], []),
        (iter((1, 2)), [1, 2]),
    ],
)
def test_ids_that_mean_one_thing(given, expected):
    found = id_array(given)
    assert found.tolist() == expected
    assert found.dtype == (object if expected and isinstance(expected[0], str) else np.uint64)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (np.zeros((2, 2), int), "ids must be one-dimensional, got 2 dimensions instead"),
        (np.array([1.0]), "got an array of float64 instead; cast it first"),
        (np.array([-1, 3]), "give negative ids as text"),
        ([-1], "got some outside; give them as text"),
        ([2**64], "got some outside; give them as text"),
        ([Decimal("1.0")], "got decimals with places instead"),
        ([Decimal("1E+2")], "got decimals with places instead"),
        (["a\0"], "must not end with a NUL character"),
        ([True], "got some of type bool instead; turn all of them"),
        ([1.0], "got some of type float instead"),
        ([1, None], "but some are missing; fill them first"),
        ([1, "a"], "got int and str mixed instead"),
    ],
)
def test_ids_that_are_refused(given, match):
    with pytest.raises(InvalidInput, match=match):
        id_array(given)


# --- relations and populations


def test_relations_are_checked_and_named():
    assert (Neighbors.parse("add-remove"), Neighbors.parse("replace-one")) == (AR, RO)
    person = RO.for_person(3)
    assert (person.unit, person.records, person.per_record) == ("person", 3, RO)
    assert AR.for_person(1) is AR
    assert str(Neighbors("replace-one", "person", 2, "within stratum")).endswith(
        "replace-one within stratum (a person with up to 2 records)"
    )
    for bad, match in (
        ({"kind": "swap"}, "neighbors must be one of add-remove, replace-one"),
        ({"kind": "add-remove", "unit": "house"}, "unit must be one of record, person"),
        ({"kind": "add-remove", "records": 2}, "records must be a whole number from 1 to 1"),
        ({"kind": "add-remove", "unit": "person", "records": 0}, "records must be a whole number of at least 1"),
        (
            {"kind": "add-remove", "scope": "within stratum"},
            "belongs to replace-one, got 'within stratum' with add-rem",
        ),
        ({"kind": "replace-one", "scope": "here"}, "scope must be one of"),
    ):
        with pytest.raises(InvalidInput, match=match):
            Neighbors(**bad)
    with pytest.raises(InvalidInput, match="records_per_person must be a whole number of at least 1"):
        AR.for_person(0)
    with pytest.raises(InvalidInput, match=r"must be Neighbors\.ADD_REMOVE or .*, got 'add-remove' instead"):
        check_relation("add-remove")


def test_a_population_in_batches(monkeypatch):
    monkeypatch.setattr("privamp.core.population._BATCH", 4)
    people = Population(np.arange(10, 20), "some", x=np.arange(10) * 2)
    found = people.batches()
    assert [batch.offset for batch in found] == [0, 4, 8]
    assert [batch.ids.tolist() for batch in found] == [[10, 11, 12, 13], [14, 15, 16, 17], [18, 19]]
    assert [batch.positions.tolist() for batch in found][1] == [4, 5, 6, 7]
    assert found[1].at(np.array([0, 3])).tolist() == [4, 7]
    assert found[2].column("x").tolist() == [16, 18]
    assert people.batch(3, 5).ids.tolist() == [13, 14]
    assert [batch.ids.size for batch in Population(0).batches()] == [0]
    assert [len(Population(n).batches()) for n in (4, 5, 8)] == [1, 2, 2]
    with pytest.raises(InvalidInput, match=r"needs a column 'y' for every record; give it as Population\(ids, y=…\)"):
        Batch(np.zeros(1)).column("y")
    assert Population.of(people) is people
    assert (Population.of(7).size, Population.of(7).label, people.label) == (7, "population", "some")


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (-1, "a size of at least 0, got -1 instead"),
        ([1, 1], "ids must be unique, but some repeat"),
        (["a", "b", "a"], "ids must be unique, but some repeat"),
        ("abc", "a population needs ids, got a str instead"),
        ({"a": 1}, "a population needs ids, got a dict instead"),
        (np.ma.masked_array([1, 2], [False, True]), "some ids are masked; fill them first"),
        (True, "."),
    ],
)
def test_populations_that_are_refused(given, match):
    with pytest.raises((InvalidInput, TypeError), match=match):
        Population(given)


def test_columns_have_one_value_for_each_record():
    for values in ([1.0], [1.0, 2.0, 3.0]):
        with pytest.raises(InvalidInput, match="column 'x' needs one value per record, in the order of the ids"):
            Population(2, x=values)
    assert Population(2, x=np.ones((2, 3))).columns["x"].shape == (2, 3)
    assert Population(np.ma.masked_array([1, 2], [False, False])).ids.tolist() == [1, 2]


def test_entries_of_a_column_stay_what_they_are():
    assert column_of([1, 2.5]).tolist() == [1.0, 2.5]
    assert column_of(["a", "b\0"]).tolist() == ["a", "b"]
    assert column_of(["a", 1, None]).tolist() == ["a", 1, None]
    mixed = column_of([2**53 + 1, 0.5])
    assert mixed.dtype == object
    assert mixed.tolist() == [2**53 + 1, 0.5]
    assert column_of([2**53, 0.5]).dtype == np.float64
    assert column_of([[1.0], [2.0, 3.0]]).dtype == object
    assert column_of([np.float32(0.5), None]).tolist() == [0.5, None]
    assert column_of(np.ma.masked_array([3, 4], [False, True])).tolist() == [3, 0]
    assert column_of(np.ma.masked_array(["a", "b"], [False, True])).tolist() == ["a", ""]
    assert type(column_of(np.array([np.int64(5), "a"], dtype=object)).tolist()[0]) is int


def test_a_stored_key_needs_a_label():
    kept, fresh = Key.from_bytes(bytes(32)), Key.generate()
    assert [label_by(fresh, label) for label in (None, "a", " ")] == ["population", "a", " "]
    assert label_by(kept, "a") == "a"
    for label in (None, "", " "):
        with pytest.raises(InvalidInput, match="a stored key needs a population with a label"):
            label_by(kept, label)


# --- influences


def test_influences_are_rounded_up_by_their_margin():
    for u in (0.0, 1e-3, 0.7, 5.0, 1e6):
        pure, gaussian = Influence("pure", 0.1, 0.3), Influence("gaussian", 0.1, 0.3)
        exact = Fraction(0.1) + Fraction(0.3) * Fraction(u)
        assert exact <= Fraction(float(pure.at(u))) <= exact * (1 + Fraction(12, 2**52))
        square = Fraction(0.1) ** 2 + (Fraction(0.3) * Fraction(u)) ** 2
        assert square <= Fraction(float(gaussian.at(u))) ** 2 <= square * (1 + Fraction(24, 2**52))
        assert Fraction(float(pure.at(u))) >= exact * (1 + Fraction(4, 2**52))
        assert Fraction(float(gaussian.at(u))) ** 2 >= square * (1 + Fraction(8, 2**52))


@pytest.mark.parametrize("kind", ["pure", "gaussian"])
@pytest.mark.parametrize("value", [0.1, 0.100001, 0.2, 1.0, 77.0])
def test_the_norm_of_an_influence_is_the_largest_that_keeps_it(kind, value):
    one = Influence(kind, 0.1 * (1 - 2.0**-45), 0.3)
    u = one.norm_at(value)
    assert u >= 0.0
    assert float(one.at(u)) <= value
    left = value - 0.1 if kind == "pure" else math.sqrt(max(value**2 - 0.01, 0.0))
    assert u == pytest.approx(left / 0.3, rel=1e-6, abs=1e-6)
    assert float(one.at(u * (1 + 1e-13) + 1e-13)) > value or value < 0.11


def test_norms_of_influences_without_an_answer():
    for kind in ("pure", "gaussian"):
        assert Influence(kind, 0.5, 0.3).norm_at(0.4) == -math.inf
        assert Influence(kind, 0.5, 0.0).norm_at(0.6) == math.inf
    with pytest.raises(Infeasible, match="even a record of norm 0 has more influence than the rule allows"):
        privacy_constrained(LinearProfile(Influence("pure", 2.0, 1.0)), 1.0).weights([[1.0]])


def test_influences_of_several_releases():
    pure = [Influence("pure", 0.1, 0.2, is_exact=True), Influence("pure", 0.3, 0.4, is_exact=True)]
    both = Influence.total(pure)
    assert (both.per_record, both.per_norm, both.is_exact) == (pytest.approx(0.4), pytest.approx(0.6), False)
    assert pure[0] + pure[1] == both
    gaussian = [Influence("gaussian", 3.0, 5.0, is_exact=True), Influence("gaussian", 4.0, 12.0, is_exact=True)]
    assert Influence.total(gaussian) == Influence("gaussian", 5.0, 13.0, is_exact=True)
    assert Influence.total(pure[:1]) is pure[0]
    assert pure[0].repeated(1) is pure[0]
    assert pure[0].repeated(10) == Influence.total([pure[0]] * 10)
    assert gaussian[0].repeated(4) == Influence("gaussian", 6.0, 10.0, is_exact=True)
    for other in (Influence("gaussian", 0.1, 0.2), Influence("pure", 0.1, 0.2, p=1.0)):
        with pytest.raises(NoTheorem, match="can be added only if they have one kind and one norm"):
            Influence.total([pure[0], other])
    with pytest.raises(InvalidInput, match="times must be a whole number of at least 1"):
        pure[0].repeated(0)


def test_influences_in_other_norms_and_covered_ones():
    one = Influence("pure", 0.1, 0.2, p=1.0)
    l2 = one.in_l2(9)
    assert (l2.p, l2.per_record) == (2.0, 0.1)
    assert 0.6 <= l2.per_norm <= 0.6 * (1 + 2.0**-50)
    assert Influence("pure", 0.1, 0.2, p=1.5).in_l2(16).per_norm == pytest.approx(0.2 * 16 ** (1 / 1.5 - 0.5))
    for p in (2.0, 3.0, math.inf):
        assert Influence("pure", 0.1, 0.2, p=p).in_l2(None) == Influence("pure", 0.1, 0.2, p=2.0)
    with pytest.raises(NoTheorem, match="an influence in the 1-norm needs the dimension"):
        one.in_l2(None)
    assert one.is_covered_by(one)
    assert Influence("pure", 0.1, 0.2, p=2.0).is_covered_by(one)
    assert not one.is_covered_by(Influence("pure", 0.1, 0.2, p=2.0))
    assert not one.is_covered_by(Influence("gaussian", 0.1, 0.2, p=1.0))
    for record, norm in ((1.0 + 2.0**-52, 1.0), (1.0, 1.0 + 2.0**-52)):
        assert Influence("pure", 0.1 * record, 0.2 * norm, p=1.0).is_covered_by(one)
    for record, norm in ((1.0 + 2.0**-49, 1.0), (1.0, 1.0 + 2.0**-49)):
        assert not Influence("pure", 0.1 * record, 0.2 * norm, p=1.0).is_covered_by(one)


# --- bins


@pytest.mark.parametrize("bins", [1, 3, 1000, 2**32])
def test_bins_are_remainders_of_keyed_numbers(bins):
    ids = np.arange(500, dtype=np.uint64)
    numbers = keyed_numbers(seeded_key(3), ids).tolist()
    assert uniform_bins(seeded_key(3), ids, bins).tolist() == [number % bins for number in numbers]
    for bad in (0, 2**32 + 1):
        with pytest.raises(InvalidInput, match=r"bins must be a whole number from 1 to 4294967296"):
            uniform_bins(seeded_key(3), ids, bad)
        with pytest.raises(InvalidInput, match=r"rounds must be a whole number from 1 to 4294967296"):
            OneOf(bad)


def test_numbers_of_an_incomplete_turn_are_drawn_again(monkeypatch):
    """2^64 - 1 is the only number beyond the last whole turn of 3, and 2^64 - 2 is none."""
    late = {0: [2**64 - 1, 2**64 - 2, 7, 2**64 - 1], 1: [2**64 - 1, 5], 2: [2**64 - 4]}
    asked = []

    def numbers(key, ids, stage=0):
        asked.append((stage, ids.tolist()))
        return np.array(late[stage], dtype=np.uint64)

    monkeypatch.setattr("privamp.core.schedule.keyed_numbers", numbers)
    found = uniform_bins(seeded_key(3), np.arange(4, dtype=np.uint64), 3)
    assert found.tolist() == [(2**64 - 4) % 3, (2**64 - 2) % 3, 7 % 3, 5 % 3]
    assert asked == [(0, [0, 1, 2, 3]), (1, [0, 3]), (2, [0])]
    once = everybody_once(np.array([4, 9]))
    assert (once.positions.tolist(), once.counts.tolist(), once.weights.tolist()) == ([4, 9], [1, 1], [1.0, 1.0])


def test_a_design_answers_for_its_parts():
    design = Stratified({"a": Poisson(0.25), "b": Poisson(0.5)})
    assert [name for name, _ in design.parts] == ["a", "b"]
    assert Poisson(0.25).subkey(seeded_key(1), "x", 2) == seeded_key(1).subkey(Poisson(0.25).identity, "x", 2)
    assert LinearProfile.of(Laplace(2.0)).influence.per_norm == 0.5
