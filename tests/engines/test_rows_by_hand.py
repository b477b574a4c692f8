"""Numbers from rows, and what a sum, a kernel and a frame refuse: one by one, in plain Python."""

import math

import numpy as np
import pyarrow as pa
import pytest

from privamp import (
    ExactGaussian,
    ExactLaplace,
    ImportanceSampling,
    InvalidInput,
    Laplace,
    LinearProfile,
    Named,
    NormNoise,
    Poisson,
    Stratified,
    WithoutReplacement,
    privacy_constrained,
)
from privamp.core.identity import VERSION
from privamp.engines import frames
from privamp.engines.earlier import drawn_before
from privamp.engines.kernel import COUNT, WEIGHT, Chosen, Kernel
from privamp.engines.options import SparkOptions, TableOptions, WriteOptions
from privamp.engines.row_numbers import lengths_of, numbers, of_lists, raw_numbers
from privamp.engines.stored_sample import StoredSample, drawn_of, list_width, whole_total
from privamp.testing import seeded_key

KEY = seeded_key(21)
LISTS = [[1.0, 2.0], None, [], [3.0], [4.0, None], [math.nan, -5.0], [6.0, 7.0, 8.0], [math.inf, 0.5], [9.0, -9.0]]
FREE = pa.list_(pa.float64())
LARGEST = np.finfo(np.float64).max
RULE = privacy_constrained(LinearProfile.of(NormNoise(10.0, 2)), 1.0, radius=4.0)


def batch_of(**columns):
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def plain(value):
    return 0.0 if value is None or math.isnan(value) else min(max(value, -LARGEST), LARGEST)


@pytest.mark.parametrize("start", [0, 1, 4])
@pytest.mark.parametrize("kind", [FREE, pa.large_list(pa.float32()), pa.list_(pa.float64(), 2)], ids=str)
def test_lists_are_read_one_by_one_wherever_a_slice_begins(kind, start):
    lists = [row for row in LISTS if row is None or len(row) == 2] if pa.types.is_fixed_size_list(kind) else LISTS
    column = pa.array(lists, kind).slice(start)
    for width in (1, 2, 3):
        rows = [row if row is not None and len(row) == width else [None] * width for row in lists[start:]]
        found = numbers(batch_of(x=column), ["x"], width)
        top = 3.4028234663852886e38 if kind == pa.large_list(pa.float32()) else LARGEST
        expected = [[min(plain(value), LARGEST if value == math.inf else top) for value in row] for row in rows]
        assert found.tolist() == expected
        raw = raw_numbers(batch_of(x=column), ["x"], width)
        assert np.isnan(raw).tolist() == [[value is None or math.isnan(value) for value in row] for row in rows]
    norm = np.array([max((abs(plain(value)) for value in row or []), default=0.0) for row in lists[start:]])
    norm[norm == LARGEST] = math.inf  # rounded up
    assert np.allclose(lengths_of(batch_of(x=column), ["x"], math.inf), norm, rtol=1e-14)
    sums = [sum(plain(value) for value in row or []) for row in lists[start:]]
    assert of_lists(column, lambda rows: rows.sum(axis=1)) == pytest.approx(sums)


def test_columns_are_read_side_by_side_and_large_whole_numbers_do_not_stop():
    batch = batch_of(a=pa.array([2**53 + 1, None, -3]), b=pa.array([0.5, math.nan, -math.inf]))
    assert numbers(batch, ["a", "b"], 2).tolist() == [[2.0**53, 0.5], [0.0, 0.0], [-3.0, -LARGEST]]
    assert numbers(batch, ["b"], 1).tolist() == [[0.5], [0.0], [-LARGEST]]
    assert raw_numbers(batch, ["b", "a"], 2).tolist()[2] == [-math.inf, -3.0]
    assert lengths_of(batch, ["a"], 1.0) == pytest.approx([2.0**53, 0.0, 3.0])
    lists = batch_of(x=pa.array([[1.0, 2.0]] * 3, FREE), a=batch.column("a"))
    with pytest.raises((InvalidInput, pa.ArrowInvalid, pa.ArrowNotImplementedError)):
        numbers(lists, ["x", "a"], 2)  # lists stand alone


SCHEMA = pa.schema(
    {
        "a": pa.float64(),
        "i": pa.int32(),
        "d": pa.decimal128(9, 2),
        "b": pa.bool_(),
        "n": pa.null(),
        "t": pa.string(),
        "l": FREE,
        "f": pa.list_(pa.int64(), 3),
        "w": pa.list_(pa.string()),
    }
)


def test_widths_of_lists_and_of_numbers():
    assert list_width(SCHEMA, ["a", "i", "d", "b", "n"]) is None
    assert (list_width(SCHEMA, ["l"], 7), list_width(SCHEMA, ["f"]), list_width(SCHEMA, ["f"], 3)) == (7, 3, 3)


@pytest.mark.parametrize(
    ("names", "dimension", "match"),
    [
        (["a", "z"], None, "the sample has no column 'z'"),
        (["l"], None, "the column 'l' holds lists; give their length with dimension="),
        (["f"], 4, "the column 'f' holds lists; give their length with dimension="),
        (["l"], 0, "dimension must be a whole number of at least 1, got 0"),
        (["l", "a"], 2, "the column 'l' must hold numbers to be summed, got list<.*> instead; cast it first"),
        (["w"], 2, "the column 'w' must hold numbers"),
        (["a", "t"], None, "the column 't' must hold numbers to be summed, got string instead"),
        (["a"], 1, "dimension= is only for one column of lists; omit it here"),
    ],
)
def test_sums_of_wrong_columns_are_refused_by_their_types(names, dimension, match):
    with pytest.raises(InvalidInput, match=match):
        list_width(SCHEMA, names, dimension)


def kept(weights, counts, **columns):
    return batch_of(**columns, **{WEIGHT: pa.array(weights, pa.float64()), COUNT: pa.array(counts, pa.int64())})


@pytest.mark.parametrize("noise", [ExactLaplace(2.0, 8.0, 2.0**-10), ExactGaussian(2.0, 8.0, 2.0**-10)])
def test_a_total_is_weight_times_count_times_the_row(noise):
    """In units of 2^-10, each toward zero: exact where weights are halves."""
    u, v, weights, counts = [1.5, None, -2.0], [0.25, 0.5, 3.0], [1.0, 2.5, 1.5], [1, 3, 2]
    batch = kept(weights, counts, u=pa.array(u), v=pa.array(v))
    of_u = sum(w * c * plain(x) for x, w, c in zip(u, weights, counts, strict=True)) * 2**10
    of_v = sum(w * c * x for x, w, c in zip(v, weights, counts, strict=True)) * 2**10
    assert whole_total(batch, noise, "u").shape == ()
    assert abs(whole_total(batch, noise, "u") - of_u) <= 3  # a margin of a rounding per weighted row
    assert whole_total(batch, noise, ["u"]).shape == (1,)
    assert np.all(np.abs(whole_total(batch, noise, ["u", "v"]) - [of_u, of_v]) <= 6)
    lists = kept(weights, counts, x=pa.array([[0.5, 1.0], [9.0], None], FREE))
    assert np.all(np.abs(whole_total(lists, noise, "x", 2) - np.array([0.5, 1.0]) * 2**10) <= 1)
    with pytest.raises(InvalidInput, match="the sample has no column 'z'"):
        whole_total(batch, noise, ["u", "z"])
    with pytest.raises(InvalidInput, match="needs ExactLaplace or ExactGaussian noise, got Laplace instead"):
        whole_total(batch, Laplace(2.0), "u")
    drawn = drawn_of(batch)
    assert (drawn.positions.tolist(), drawn.counts.tolist(), drawn.weights.tolist()) == ([0, 1, 2], counts, weights)


def stored(rows=(), assumes=(), label="some"):
    kernel = Kernel.of(Poisson(0.5), KEY, label=label)
    asked = []

    def read(names=None):
        asked.append(names)
        return iter(rows)

    return StoredSample(kernel, read, pa.schema([("x", pa.float64())]), assumes), asked


def test_a_sum_reads_its_columns_and_a_function_all_of_them():
    noise = ExactLaplace(1e-3, 8.0, 2.0**-19)
    batches = [kept([1.0], [1], x=pa.array([2.0])), kept([3.0, 1.0], [1, 2], x=pa.array([1.0, -4.0]))]
    sample, asked = stored(batches, ("a fact", "a fact"))
    assert sample.release_sum(noise, "x") == pytest.approx(2.0 + 3.0 - 8.0, abs=0.05)
    assert sample.release_sum(noise, ["x"]).shape == (1,)
    seen = sample.run(noise, lambda rows, stream: [batch.num_rows for batch in rows])
    assert asked == [("x",), ("x",), None]
    assert seen == [1, 2]
    assert sample.ledger_id == sample._kernel.subkey.fingerprint.hex()
    assert sample._drawn.positions.size == sample._ids.size == 0  # the rows stay where they are
    assert sample.guarantee().assumes.count("a fact") == 1
    assert [batch.num_rows for batch in sample.reveal_secret()] == [1, 2]
    with pytest.raises(InvalidInput, match="a sum needs at least one column, got none instead; give its name"):
        sample.release_sum(noise, [])


def test_functions_are_trusted_and_sums_are_not():
    noise = ExactLaplace(2.0)
    sums, _ = stored(label="sums")
    sums.release_sum(noise, "x")
    trusted, _ = stored(label="trusted")
    trusted.release(noise, lambda rows: np.zeros(1))
    own, _ = stored(label="own")
    own.run(noise, lambda rows, stream: 0.0)
    assumed = [set(sample.guarantee().assumes) for sample in (sums, trusted, own)]
    assert assumed[0] < assumed[1]
    assert assumed[0] < assumed[2] != assumed[1]


# --- the kernel


def test_facts_are_enough_to_open_a_sample_again():
    design = Stratified({"a": Poisson(0.25), "b": ImportanceSampling(RULE, "u+v")})
    kernel = Kernel.of(design, KEY, id="id", label="people", round=3, reads={"stratum": "region"})
    assert kernel.facts(KEY, "people", 3, None) == {
        "design": repr(design), "identity": design.identity, "identity_version": VERSION, "spec": design.spec,
        "label": "people", "round": 3, "id": "id", "clip": False, "reads": {"stratum": ["region"], "u+v": ["u", "v"]},
        "key_fingerprint": KEY.fingerprint.hex(), "ledger_id": design.subkey(KEY, "people", 3).fingerprint.hex(),
    }  # fmt: skip
    assert kernel.facts(KEY, "people", 3, "mine")["spec"] == "mine"
    assert kernel.uses == ("id", "region", "u", "v")
    assert Kernel.of(design, KEY, reads={"stratum": ["u"]}).uses == ("u", "v")
    assert kernel.designs == (Poisson(0.25), ImportanceSampling(RULE, "u+v"))
    assert kernel.rules == (RULE,)
    assert kernel.key_id == KEY.fingerprint
    assert Kernel.of(Poisson(0.5), KEY).designs == (Poisson(0.5),)


def test_what_a_kernel_refuses():
    with pytest.raises(InvalidInput, match=r"needs a key, got none instead; use Key\.generate"):
        Kernel.of(Poisson(0.5), None)
    with pytest.raises(InvalidInput, match="the design reads no column, not 'x'"):
        Kernel.of(Poisson(0.5), KEY, reads={"x": "a"})
    with pytest.raises(InvalidInput, match=r"the design reads u\+v, not 'a'"):
        Kernel.of(ImportanceSampling(RULE, "u+v"), KEY, reads={"z": "b", "a": "b"})
    free = privacy_constrained(LinearProfile.of(NormNoise(10.0, 2)), 1.0)
    for design in (Poisson(0.5), ImportanceSampling(free, "u")):
        with pytest.raises(InvalidInput, match="clip=True is only for importance sampling by a rule with a radius"):
            Kernel.of(design, KEY, clip=True)
    assert Kernel.of(ImportanceSampling(RULE, "u"), KEY, clip=True).clip


@pytest.mark.parametrize(
    ("names", "match"),
    [
        (["id", "u", "v", COUNT], "the data has a column 'privamp_count' already, which a sample adds"),
        ([WEIGHT, "id", "u", "v"], "the data has a column 'privamp_weight' already"),
        (["id", "u"], "the data has no column 'v'; it has 'id', 'u'$"),
        (["id", "v", "u", "v"], "the data has several columns 'v'; it has 'id', 'v', 'u', 'v'$"),
        (["u", "v"], "the data has no column 'id'"),
        ([*(f"c{k}" for k in range(12)), "v"], "no column 'id'; it has 'c0', .*'c11', …$"),
        ([f"c{k}" for k in range(12)], "no column 'id'; it has 'c0', .*'c11'$"),
    ],
)
def test_columns_must_be_there_once(names, match):
    kernel = Kernel.of(ImportanceSampling(RULE, "u+v"), KEY, id="id")
    with pytest.raises(InvalidInput, match=match):
        kernel.schema(pa.schema([(name, pa.int64()) for name in names]))
    good = kernel.schema(pa.schema([(name, pa.int64()) for name in ("id", "u", "more", "v")]))
    assert good.names == ["id", "u", "more", "v", WEIGHT, COUNT]
    assert good.types[-2:] == [pa.float64(), pa.int64()]


def test_sums_of_a_rule_are_cut_as_it_cuts():
    """Rule: 2-norm, radius 4; its columns, once each, a norm below its own, and a radius up to 1e-12 above."""
    kernel = Kernel.of(ImportanceSampling(RULE, "u+v"), KEY)
    for columns, sensitivity, p in ((["u"], 4.0, 2.0), (["v", "u"], 4.0 * (1 + 0.9e-12), 1.0)):
        kernel.check_sum(columns, sensitivity, p)
    with pytest.raises(InvalidInput, match=r"clipped to 4 in the 2-norm .* got 4 in the 2-norm instead"):
        kernel.check_sum(["u"], 4.0 * (1 + 2.1e-12), 2.0)
    with pytest.raises(InvalidInput, match="got 3 in the 3-norm instead"):
        kernel.check_sum(["u"], 3.0, 3.0)
    for columns in ([], ["u", "u"], ["u", "z"], ["z"]):
        with pytest.raises(InvalidInput, match=r"reads \('u', 'v'\), each once"):
            kernel.check_sum(columns, 1.0, 1.0)
    strata = Kernel.of(Stratified({0: Poisson(0.5), 1: ImportanceSampling(RULE, "u")}), KEY)
    with pytest.raises(InvalidInput, match=r"reads \('u'\), each once"):
        strata.check_sum(["z"], 1.0, 1.0)
    Kernel.of(Stratified({0: Poisson(0.5), 1: Poisson(0.1)}), KEY).check_sum(["z"], 99.0, 3.0)
    own = privacy_constrained(LinearProfile(Named("first", "1", lambda rows: np.abs(rows[:, 0]))), 1.0)
    Kernel.of(ImportanceSampling(own, "u"), KEY).check_sum(["u"], 1e9, 2.0)  # it declares no end


def test_few_parts_are_held_at_a_time():
    class Adding:
        def merge(self, parts):
            held.append(len(list(parts)))
            return sum(parts)

    held = []
    kernel = Kernel(Adding(), KEY)
    assert kernel.folded(iter(range(1, 11)), width=4) == 55
    assert held == [4, 4, 4, 1]  # 1-4; their sum and 5-7; theirs and 8-10; the last one
    held.clear()
    assert kernel.folded(iter(range(1, 18))) == 153
    assert held == [16, 2]


def test_a_row_that_is_found_twice_or_not_at_all_is_noticed():
    chosen = Chosen(np.array([3, 5]), np.array([1, 1]), np.array([1.0, 2.0]))
    chosen.check(2)
    for rows in (0, 1, 3):
        with pytest.raises(InvalidInput, match="did not find the rows that the first one drew"):
            chosen.check(rows)


def test_a_sample_of_another_key_design_or_version_is_not_opened():
    kernel = Kernel.of(Poisson(0.5), KEY, label="people", round=2)
    facts = kernel.facts(KEY, "people", 2, None)
    assert drawn_before(kernel, KEY, facts, "a.parquet") == kernel
    with pytest.raises(InvalidInput, match=r"'a\.parquet' was drawn with another key; give that key"):
        drawn_before(kernel, KEY, {**facts, "key_fingerprint": "00"}, "a.parquet")
    for other in (VERSION + 1, VERSION - 1):
        with pytest.raises(InvalidInput, match=f"identities of version {other}, and this one has version {VERSION}"):
            drawn_before(kernel, KEY, {**facts, "identity_version": other}, "a.parquet")
    with pytest.raises(InvalidInput, match="was drawn with another design; give that design"):
        drawn_before(kernel, KEY, {**facts, "ledger_id": "00"}, "a.parquet")
    old = {name: value for name, value in facts.items() if name != "identity_version"}
    with pytest.raises(InvalidInput, match=r"by an earlier privamp with the design Poisson\(rate=0\.4\)"):
        drawn_before(kernel, KEY, {**old, "design": "Poisson(rate=0.4)"}, "a.parquet")
    text = "Poisson(rate=np.float64(0.5))"
    before = KEY.subkey(text, "people", 2)
    again = drawn_before(kernel, KEY, {**old, "design": text, "ledger_id": before.fingerprint.hex()}, "a.parquet")
    assert again.subkey == before


# --- frames and options


def fake(module, name, **members):
    return type(name, (), {"__module__": module, **members})()


def test_frames_are_known_by_the_library_and_the_name_of_their_class():
    kinds = {
        ("pandas.core.frame", "DataFrame"): "pandas", ("polars.dataframe.frame", "DataFrame"): "polars",
        ("polars.lazyframe.frame", "LazyFrame"): "lazy polars", ("_duckdb", "DuckDBPyRelation"): "duckdb",
        ("duckdb.duckdb", "DuckDBPyRelation"): "duckdb", ("pandas", "Series"): None,
        ("other.pandas", "DataFrame"): None,
    }  # fmt: skip
    assert {pair: frames.kind_of(fake(*pair)) for pair in kinds} == kinds
    assert frames.kind_of(pa.table({"a": [1]})) == "arrow"
    assert frames.kind_of([1]) is None


def test_names_and_rows_of_every_kind_of_frame():
    table = pa.table({"a": [1, 2], "b": ["x", "y"]})
    schema = fake("x", "Schema", names=lambda self: ["p", "q"])
    lazy = fake("polars", "LazyFrame", collect_schema=lambda self: schema, collect=lambda self: "collected")
    relation = fake("duckdb", "DuckDBPyRelation", columns=["u"], to_arrow_table=lambda self: "fetched")
    eager = fake("polars", "DataFrame", columns=["v"])
    assert (frames.names_of(lazy), frames.names_of(relation), frames.names_of(eager)) == (["p", "q"], ["u"], ["v"])
    assert frames.names_of(table) == ["a", "b"]
    assert (frames.held(lazy), frames.held(relation), frames.held(eager)) == ("collected", "fetched", eager)
    assert frames.held(table).equals(table)
    with pytest.raises(InvalidInput, match="the data has no column 'c'; it has 'a', 'b'"):
        frames.as_table(table, ["a", "c", "d"])
    assert frames.as_table(table, ["b"]).equals(table.select(["b"]))
    assert frames.as_table(table, []).num_rows == 2


def test_columns_that_arrow_cannot_take_from_are_made_plain():
    text = pa.chunked_array([pa.array(["x", "y", "y"])])
    ends = pa.RunEndEncodedArray.from_arrays(pa.array([1, 3], pa.int32()), pa.array(["x", "y"]))
    table = pa.table({"n": [1, 2, 3], "view": text.cast(pa.string_view()), "runs": ends})
    found = frames.plain(table)
    assert [str(kind) for kind in found.schema.types] == ["int64", "large_string", "string"]
    assert found.column_names == ["n", "view", "runs"]
    assert found.column("view").to_pylist() == found.column("runs").to_pylist() == ["x", "y", "y"]


def test_a_frame_whose_cells_arrow_cannot_hold_is_refused_without_showing_them():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": ["x", 31337], "b": [1, 2]})
    with pytest.raises(InvalidInput, match="the columns 'a', 'b' must each hold one type that Arrow supports") as told:
        frames.as_table(frame, ["a", "b"])
    assert "31337" not in str(told.value)


@pytest.mark.parametrize("columns", [None, ["b"], []])
@pytest.mark.parametrize("kind", ["arrow", "pandas"])
def test_chosen_rows_of_a_frame_come_back_with_weight_and_count(columns, kind):
    table = pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    chosen = Chosen(np.array([0, 2]), np.array([4, 5]), np.array([0.5, 0.25]))
    expected = [name for name in ("a", "b") if columns is None or name in columns] + [WEIGHT, COUNT]
    if kind == "pandas":
        pytest.importorskip("pandas")
        found = frames.rows_of(table.to_pandas(), chosen, columns, like=table.to_pandas())
        assert list(found.index) == [0, 2]
        rows = pa.Table.from_pandas(found, preserve_index=False)
    else:
        rows = frames.rows_of(table, chosen, columns, like=table)
    assert rows.column_names == expected
    assert rows[WEIGHT].to_pylist() == [0.5, 0.25]
    assert rows[COUNT].to_pylist() == [4, 5]
    assert "b" not in expected or rows["b"].to_pylist() == ["x", "z"]


def test_defaults_are_those_of_the_documentation():
    assert TableOptions() == TableOptions(columns=None, reads=None, clip=False, trust_ids=False, threads=None)
    assert WriteOptions() == WriteOptions(overwrite=False, spec=None, clip=False, trust_ids=False)
    assert SparkOptions() == SparkOptions(reads=None, clip=False, trust_ids=False, driver_records=20_000_000)


def test_places_are_ids_from_the_offset_on():
    kernel = Kernel.of(Poisson(0.5), KEY, label="people")
    rows = batch_of(x=pa.array(range(100, 400)))
    found = [kernel.kept(rows.slice(at, 100), at) for at in (0, 100, 200)]
    together = pa.Table.from_batches(found).column("x").to_pylist()
    assert together == kernel.kept(rows).column("x").to_pylist()
    assert 100 < len(together) < 200
    with pytest.raises(
        InvalidInput, match="WithoutReplacement decides only after all records are read; use two passes"
    ):
        Kernel.of(WithoutReplacement(3, 300), KEY).verdict(rows)
