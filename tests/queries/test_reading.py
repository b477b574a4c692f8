"""How a cell is read depends on that cell alone: files that differ by one record, one table from everywhere."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from privamp import Budget, InvalidInput, Poisson, open_table

GREAT = 1e5
BOUNDS = (0, 100)
MEGABYTE = 1 << 20


def found(table, ask):
    return np.round(np.atleast_1d(ask(table).run(epsilon=GREAT).value), 2) + 0.0


def written(path, rows, head="x"):
    path.write_bytes("\n".join([head, *rows, ""]).encode("utf-8", "surrogateescape"))
    return open_table(path)


ONE_RECORD = {  # what is asked, what all others say, what one record says
    "a word among numbers": (lambda t: t.count().by("x", ["01", "2"]), ["01"] * 100 + ["2"] * 50, "Guam"),
    "a word, whole numbers asked": (lambda t: t.count().by("x", [1, 2]), ["01"] * 100 + ["2"] * 50, "Guam"),
    "no value": (lambda t: t.count().by("x", ["1", None]), ["1"] * 100 + ["NA"] * 50, "Guam"),
    "yes and no": (lambda t: t.count().by("x", [True, False]), ["True"] * 100 + ["false"] * 50, "maybe"),
    "yes as text": (lambda t: t.count().by("x", ["True"]), ["True"] * 100, "maybe"),
    "spaces": (lambda t: t.count().by("x", ["50"]), [" 50 "] * 100, "Guam"),
    "a fraction": (lambda t: t.count().by("x", ["1"]), ["1"] * 100, "1.5"),
    "a long number": (lambda t: t.count().by("x", ["1"]), ["1"] * 100, str(2**70)),
    "dates": (lambda t: t.count().by("x", ["2020-01-01"]), ["2020-01-01"] * 100, "soon"),
    "infinities": (lambda t: t.sum("x", BOUNDS), ["inf"] * 50 + ["1"] * 50, "n/k"),
    "hexadecimals": (lambda t: t.sum("x", BOUNDS), ["0x10"] * 50 + ["1"] * 50, "n/k"),
    "beyond the doubles": (lambda t: t.sum("x", BOUNDS), ["1e1000"] * 50 + ["1"] * 50, "n/k"),
    "one as yes": (lambda t: t.proportion("x", 1), ["1"] * 50 + ["0"] * 50, "true"),
    "plus": (lambda t: t.sum("x", BOUNDS), ["+5"] * 50 + ["5"] * 50, "n/k"),
    "a cell that does not end": (lambda t: t.sum("x", BOUNDS), ["1"] * 100, "z" * (3 * MEGABYTE)),
    "too many cells": (lambda t: t.count().by("x", ["1"]), ["1"] * 100, "9,9,9"),
    "no UTF-8": (lambda t: t.count().by("x", ["1"]), ["1"] * 100, "\udcff"),
    "no UTF-8, too many cells": (lambda t: t.count().by("x", ["1"]), ["1"] * 100, "\udcff,\udcff"),
    "late in the file, a word": (lambda t: t.sum("x", (0, 1)), ["1"] * 600_000, "Guam"),
    "late in the file, no UTF-8": (lambda t: t.sum("x", (0, 1)), ["1"] * 600_000, "\udcff"),
}


@pytest.mark.parametrize("late", [True, False], ids=["last", "first"])
@pytest.mark.parametrize("case", ONE_RECORD)
def test_one_record_moves_an_answer_by_no_more_than_itself(tmp_path, case, late):
    ask, others, one = ONE_RECORD[case]
    without = found(written(tmp_path / "a.csv", others), ask)
    beside = found(written(tmp_path / "b.csv", [*others, one] if late else [one, *others]), ask)
    assert np.any(without > 0.4)
    np.testing.assert_allclose(beside, without, atol=0.1)  # no record of the list adds to these answers


def test_a_late_cell_takes_no_budget_without_an_answer(tmp_path):
    budget = Budget.create(tmp_path / "b.db", population="p", epsilon=3.0, delta=1e-6)
    rows = ["1,a"] * 300_000 + ["x", "1,b,c", "\udcff,\udcff", "", "2,a"]
    written(tmp_path / "a.csv", rows, "x,g")
    table = open_table(tmp_path / "a.csv", budget=budget)
    count, mean = table.plan([table.count(), table.mean("x", BOUNDS)]).run(epsilon=1.0)
    assert count.value == pytest.approx(300_004, abs=60)  # an empty line is no record where there are two columns
    assert mean.value == pytest.approx(1.0, abs=0.1)
    assert [entry.state for entry in budget.log()] == ["answered"]


def test_empty_cells_are_missing_in_files_of_every_kind(tmp_path):
    t = written(tmp_path / "a.csv", ["1", "", "2", "", "", '""'])
    assert found(t, lambda t: t.count()) == 6
    np.testing.assert_allclose(found(t, lambda t: t.histogram("x", 1, BOUNDS, missing=True)), [2, 4])
    table = pa.table({"g": ["a", "", None, " ", "b"], "x": [1, 2, 3, 4, 5]})
    parquet.write_table(table, tmp_path / "a.parquet")
    for source in (table, tmp_path / "a.parquet", written_table(tmp_path, table)):
        np.testing.assert_allclose(found(open_table(source), lambda t: t.count().by("g", ["a", None])), [1, 3])


def written_table(folder, table):
    from pyarrow import csv

    csv.write_csv(table, folder / "written.csv")
    return folder / "written.csv"


TABLE = pa.table({
    "whole": pa.array([1, 2, None, 2**53 + 1, -7] * 20),
    "float": pa.array([0.1, float("inf"), None, float("nan"), -1e308] * 20),
    "money": pa.array([0.3, 0.7, None, 1e6, 2.0] * 20).cast(pa.decimal128(12, 2)),
    "flag": pa.array([True, False, None, True, True] * 20),
    "text": pa.array(["1e3", " 1 ", "", "yes", None] * 20),
    "kind": pa.array(["a", "b", None, "a", "c"] * 20).dictionary_encode(),
})  # fmt: skip

ASKED = {
    "sums": lambda t: [t.sum(name, (-10, 10), missing=-3) for name in TABLE.column_names],
    "bins": lambda t: [t.histogram(name, [-9, 0, 0.1, 0.3, 0.7, 5], missing=True) for name in TABLE.column_names],
    "numbers": lambda t: [t.count().by(name, [0, 1, 2, None]) for name in TABLE.column_names if name != "flag"],
    "flags": lambda t: [t.count().by("flag", [True, None]), t.proportion("flag", 0), t.proportion("flag")],
    "texts": lambda t: [t.count().by(name, ["a", "1", None]) for name in ("text", "kind")],
    "whole as text": lambda t: [t.count().by("whole", ["1", "-7", None])],
}


@pytest.mark.parametrize("asked", ASKED)
def test_the_same_table_answers_alike_from_everywhere(tmp_path, asked):
    pd, pl, duckdb = (pytest.importorskip(name) for name in ("pandas", "polars", "duckdb"))
    parquet.write_table(TABLE, tmp_path / "a.parquet", row_group_size=17)
    feather.write_feather(TABLE, tmp_path / "a.feather")
    wide = TABLE.to_pandas()
    wide.to_csv(tmp_path / "pandas.csv", index=False)
    sources = {
        "arrow": TABLE, "parquet": tmp_path / "a.parquet", "feather": tmp_path / "a.feather",
        "csv": written_table(tmp_path, TABLE), "csv of pandas": tmp_path / "pandas.csv", "polars": pl.from_arrow(TABLE),
        "pandas": wide, "pandas of Arrow": TABLE.to_pandas(types_mapper=pd.ArrowDtype),
        "duckdb": duckdb.from_arrow(TABLE),
    }  # fmt: skip
    answers = {}
    for name, source in sources.items():
        t = open_table(source)
        answers[name] = np.concatenate([np.atleast_1d(r.value) for r in t.plan(ASKED[asked](t)).run(epsilon=1e7)])
    if asked == "whole as text":  # pandas writes 1.0, which is another text
        del answers["csv of pandas"]
    for name, answer in answers.items():
        np.testing.assert_allclose(answer, answers["arrow"], atol=0.01, err_msg=name)


def test_columns_of_objects_are_read_cell_by_cell():
    pd = pytest.importorskip("pandas")
    cells = [1, "a", None, float("nan"), True, b"a", b"\xff", 2.5, [1], "\udcff"]
    t = open_table(pd.DataFrame({"x": pd.Series(cells, dtype=object), "y": range(10)}))
    np.testing.assert_allclose(found(t, lambda t: t.count().by("x", ["a", "1", None])), [2, 1, 5])
    assert found(t, lambda t: t.sum("x", (0, 10))) == 4.5
    odd = pd.DataFrame({"s": pd.arrays.SparseArray([0, 1, 2]), "z": [1j, 2j, 3j], "y": [1, 2, 3]})
    assert found(open_table(odd), lambda t: t.sum("s", (0, 10))) == 3
    with pytest.raises(InvalidInput, match=r"no column 'z'.*it has 's', 'y'"):
        open_table(odd).sum("z", (0, 10))


def test_values_find_their_records_as_they_are_written(tmp_path):
    t = written(tmp_path / "a.csv", ["01,True", "02,False", "02,True"], "fips,flag")
    np.testing.assert_allclose(found(t, lambda t: t.count().by("fips", ["01", "02"])), [1, 2])
    np.testing.assert_allclose(found(t, lambda t: t.count().by("fips", [1, 2])), [1, 2])
    np.testing.assert_allclose(found(t, lambda t: t.count().by("flag", ["True", "False"])), [2, 1])
    for folder in ("01", "02"):
        (tmp_path / "hive" / f"fips={folder}").mkdir(parents=True)
        written(tmp_path / "hive" / f"fips={folder}" / "a.csv", ["1", "2"])
    np.testing.assert_allclose(found(open_table(tmp_path / "hive"), lambda t: t.count().by("fips", ["01", "02"])), 2)
    typed = open_table(pa.table({"flag": [True, False, True], "n": [1, 0, 1]}))
    for values in ([True, False], [1, 0], ["True", "False"], ["true", "no"]):
        np.testing.assert_allclose(found(typed, lambda t, v=values: t.count().by("flag", v)), [2, 1])
    np.testing.assert_allclose(found(typed, lambda t: t.count().by("n", [True])), 2)


REFUSED = [
    (lambda t: t.count().by("n", ["01"]), "is not one of those"),
    (lambda t: t.count().by("flag", ["maybe"]), "is not one of those"),
    (lambda t: t.count().by("n", [1, True]), "given once"),
    (lambda t: t.count().by("n", [1, "2"]), "all text, or all numbers"),
    (lambda t: t.count().by("g", ["a", ""]), "write it as None"),
    (lambda t: t.count().by("g", ["a", " a"]), "given once"),
    (lambda t: t.count().by("x", [2**60]), "2\\^53"),
    (lambda t: t.proportion("g", []), "at least one value"),
    (lambda t: t.proportion("g", "a", missing="no"), "True, False or None"),
    (lambda t: t.mean("x", (0, 5e-324)), "another unit"),
    (lambda t: t.sum("x", (-1.7e308, 1.7e308)), "another unit"),
    (lambda t: t.histogram("x", 4, (1.0, 1.0 + 4e-16)), "increasing order"),
    (lambda t: t.quantile("x", [0.5, 0.5], (0, 1)), "must be different"),
    (lambda t: t.count().weighing(1e308), "weight"),
]


@pytest.mark.parametrize(("ask", "sentence"), REFUSED)
def test_what_finds_nobody_or_nothing_is_refused(ask, sentence):
    t = open_table(pa.table({"n": [1, 0], "flag": [True, False], "g": ["a", "b"], "x": [0.5, 1.5]}))
    with pytest.raises(InvalidInput, match=sentence):
        ask(t)


def test_names_are_told_apart():
    t = open_table(pa.table({"x": [1000000.5] * 10 + [1000001.5] * 20, "g": [None, "(missing)", "a"] * 10}))
    bins = t.histogram("x", [1000000, 1000001, 1000002]).run(epsilon=GREAT)
    assert bins.names == ("1000000 to 1000001", "1000001 to 1000002")
    assert bins[bins.names[1]].value == pytest.approx(20, abs=0.01)
    assert t.count().by("g", [None, "(missing)"]).run(epsilon=1.0).names == ("((missing))", "(missing)")
    assert t.quantile("x", [0.9999999, 0.5, 0.025], (0, 1)).parts == ("99.99999%", "50%", "2.5%")
    assert t.quantile("x", 0.9, (0, 1)).name == "90% quantile of x"
    assert t.proportion("g", ["a", None]).name == "proportion of g = a or (missing)"


def test_a_file_that_is_named_twice_is_refused(tmp_path):
    (tmp_path / "d").mkdir()
    written(tmp_path / "d" / "a.csv", ["1"] * 50)
    (tmp_path / "link.csv").symlink_to(tmp_path / "d" / "a.csv")
    for other in (tmp_path / "d", tmp_path / "d" / "a.csv", tmp_path / "link.csv"):
        with pytest.raises(InvalidInput, match="would count twice"):
            open_table([tmp_path / "d" / "a.csv", other])


def test_what_can_be_refused_is_refused_before_payment(tmp_path):
    budget = Budget.create(tmp_path / "b.db", population="p", epsilon=3.0, delta=1e-6)
    for ids in ([1, 1], [1, None], [-1, 2]):
        with pytest.raises(InvalidInput, match="id"):
            open_table(pa.table({"id": ids, "x": [1, 2]}), id="id", budget=budget).count().run(epsilon=1.0)
    written(tmp_path / "a.csv", ["1"])
    t = open_table(tmp_path / "a.csv", budget=budget)
    written(tmp_path / "a.csv", ["1"], head="y")
    with pytest.raises(InvalidInput, match="have changed"):
        t.mean("x", (0, 1)).run(epsilon=1.0)
    assert not list(budget.log())


def test_small_and_large_epsilons_are_answered():
    t = open_table(pa.table({"x": [1.0]})).sample(Poisson(1.0))
    assert t.count().run(epsilon=1e-9).noise_error > 1e8
    assert t.count().run(epsilon=1e8).noise_error < 1e-5
    with pytest.raises(InvalidInput, match="rows"):
        open_table(pa.table({"x": [1.0]}), rows=10**30)
