"""Persons with several records: at most J are kept, which depends on the person alone, and the guarantee is theirs."""

import numpy as np
import pyarrow as pa
import pytest

from privamp import Budget, Neighbors, Poisson, PureDP, WithoutReplacement, amplify, open_table
from privamp.errors import InvalidInput
from privamp.queries.persons import capped, kept
from privamp.tables import sources
from privamp.testing import seeded_key

GREAT = 1e4
VISITS = pa.table({
    "person": ["a"] * 9 + ["b"] * 2 + ["c"] + ["a"] * 4 + [None, ""] + ["d"] * 5,
    "x": np.arange(23.0),
})  # fmt: skip


def kept_of(persons, most=3, seed=1):
    flags = kept(pa.chunked_array([pa.array(persons, pa.large_string())]), most, seeded_key(seed))
    return np.flatnonzero(flags).tolist()


def test_at_most_so_many_of_everybody_are_kept():
    rows = kept_of(VISITS["person"].to_pylist())
    names = np.array([str(name) for name in VISITS["person"].to_pylist()])[rows].tolist()
    assert {name: names.count(name) for name in names} == {"a": 3, "b": 2, "c": 1, "d": 3, "": 1}
    # an empty name is no person where a table is read


def test_who_else_is_there_changes_nothing():
    """Every person's kept records, by number, with and without all other people and in between them."""
    alone = kept_of(["a"] * 13)
    together = VISITS["person"].to_pylist()
    places = [k for k, name in enumerate(together) if name == "a"]
    assert [places.index(k) for k in kept_of(together) if k in places] == alone


def test_every_record_of_a_person_is_kept_as_often():
    seen = np.zeros(8)
    for seed in range(400):
        seen[kept_of(["a"] * 8, 2, seed)] += 1
    assert np.all(np.abs(seen / 400 - 0.25) < 0.09)


def test_answers_are_about_what_is_kept():
    t = open_table(VISITS, person="person", records=3)
    assert t.count().run(epsilon=GREAT).value == pytest.approx(9, abs=0.1)  # 3 of a, 2 of b, 1 of c, 3 of d
    one = open_table(VISITS, person="person")
    assert one.count().run(epsilon=GREAT).value == pytest.approx(4, abs=0.1)


def test_the_guarantee_is_that_of_a_person():
    relation = Neighbors.ADD_REMOVE.for_person(3)
    t = open_table(VISITS, person="person", records=3).sample(Poisson(0.1))
    chosen = t.median("x", (0, 30), interval=False)
    for question in (t.count(), chosen, t.quantile("x", 0.9, (0, 30))):
        found = question.run(epsilon=1.0)
        assert found.guarantee.neighbors == relation
        assert 0.999 < found.guarantee.epsilon() <= 1.0
        assert any("names the person" in a for a in found.guarantee.assumes)
    inside = t.plan([chosen]).chosen_by(t.plan([chosen]).choice(), 1.0)
    assert amplify(PureDP(inside.epsilon), Poisson(0.1), relation).epsilon() <= 1.0


def test_files_are_read_in_pieces(tmp_path):
    from pyarrow import csv, parquet

    csv.write_csv(VISITS, tmp_path / "a.csv")
    parquet.write_table(VISITS, tmp_path / "a.parquet", row_group_size=4)
    for name in ("a.csv", "a.parquet"):
        t = open_table(tmp_path / name, person="person", records=3)
        assert t.count().run(epsilon=GREAT).value == pytest.approx(9, abs=0.1)
    source = capped(sources.files(tmp_path / "a.parquet"), "person", 3, seeded_key(1))
    rows = [x for piece in source.pieces for batch in piece.batches(["x"]) for x in batch.column("x").to_pylist()]
    assert len(rows) == 9
    assert source.rows == 9


def test_budgets_are_those_of_persons(tmp_path):
    budget = Budget.create(tmp_path / "b.db", population="p", epsilon=1.0, neighbors=Neighbors.ADD_REMOVE.for_person(3))
    open_table(VISITS, person="person", records=3, budget=budget).count().run(epsilon=0.4)
    assert budget.status().spent["epsilon"] == pytest.approx(0.4, abs=1e-6)
    records = Budget.create(tmp_path / "r.db", population="p", epsilon=1.0)
    with pytest.raises(InvalidInput, match="for_person"):
        open_table(VISITS, person="person", records=3, budget=records)
    with pytest.raises(InvalidInput, match="for_person"):
        open_table(VISITS, person="person", records=2, budget=budget)


def test_what_is_refused():
    with pytest.raises(InvalidInput, match="no column 'who'"):
        open_table(VISITS, person="who")
    with pytest.raises(InvalidInput, match="whole numbers or text"):
        open_table(VISITS, person="x")
    with pytest.raises(InvalidInput, match="person='"):
        open_table(VISITS, records=3)
    with pytest.raises(InvalidInput, match="sampled by Poisson"):
        open_table(VISITS, person="person").sample(WithoutReplacement(2, 23))
