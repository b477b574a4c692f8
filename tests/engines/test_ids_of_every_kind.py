"""The same people, key, design and label are the same sample, whatever type and library the ids come in."""

import decimal
import time
import tracemalloc
import uuid

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from privamp import ConditionalPoisson, Poisson, Population
from privamp.chance.keyed import keyed_pairs
from privamp.engines import local
from privamp.errors import InvalidInput
from privamp.testing import seeded_key

KEY = seeded_key(12)
DESIGN = Poisson(0.2)
NUMBERS = [7 * k + 3 for k in range(300)]
TEXTS = [f"{n:05d}" for n in NUMBERS]
UUIDS = [uuid.UUID(int=n) for n in NUMBERS]


def in_memory(ids):
    """Which records Design.draw keeps, by their place."""
    sample = DESIGN.draw(Population(ids), KEY)
    return sorted(sample._drawn.positions.tolist())


def of_frame(make):
    """Which records the local engine keeps, by a column that says their place."""
    kept = local.sample(make(), DESIGN, key=KEY, id="id")
    if hasattr(kept, "to_arrow_table"):
        kept = kept.to_arrow_table()
    column = kept["place"]
    return sorted(column.to_pylist() if hasattr(column, "to_pylist") else column.to_list())


def arrow(values, kind=None):
    return pa.table({"id": pa.array(values, kind), "place": range(len(values))})


def pandas(values, dtype=None):
    pd = pytest.importorskip("pandas")
    return pd.DataFrame({"id": pd.Series(values, dtype=dtype), "place": range(len(values))})


def polars(values, *dtype):
    pl = pytest.importorskip("polars")
    kinds = {"Decimal": pl.Decimal(20, 0), "Categorical": pl.Categorical, "Float64": pl.Float64, "UInt16": pl.UInt16}
    column = pl.Series(values)
    for name in dtype:
        column = column.cast(kinds[name])
    return pl.DataFrame({"id": column, "place": range(len(values))})


def duckdb(kind, what="i * 7 + 3"):
    db = pytest.importorskip("duckdb")
    return db.sql(f"select ({what})::{kind} as id, i as place from range(300) t(i) order by i")


def run_lengths(values):
    ends = pa.array(np.arange(1, len(values) + 1, dtype=np.int32))
    return pa.table({"id": pa.RunEndEncodedArray.from_arrays(ends, pa.array(values)), "place": range(len(values))})


def uuid_column():
    storage = pa.array([value.bytes for value in UUIDS], pa.binary(16))
    return pa.table({"id": pa.ExtensionArray.from_storage(pa.uuid(), storage), "place": range(len(UUIDS))})


@pytest.mark.parametrize(
    "make",
    [
        lambda: arrow(NUMBERS, pa.uint16()),
        lambda: arrow(NUMBERS).set_column(0, "id", pa.array(NUMBERS).dictionary_encode()),
        lambda: arrow([decimal.Decimal(n) for n in NUMBERS], pa.decimal128(20, 0)),
        lambda: run_lengths(NUMBERS),
        lambda: pandas(NUMBERS),
        lambda: pandas(NUMBERS, "category"),
        lambda: pandas(NUMBERS, "Int64"),
        lambda: pandas(NUMBERS, object),
        lambda: pandas([decimal.Decimal(n) for n in NUMBERS]),
        lambda: polars(NUMBERS, "UInt16"),
        lambda: polars(NUMBERS, "Decimal"),
        lambda: duckdb("BIGINT"),
        lambda: duckdb("HUGEINT"),
        lambda: duckdb("UHUGEINT"),
        lambda: duckdb("DECIMAL(18, 0)"),
    ],
)
def test_whole_numbers_of_every_type_draw_one_sample(make):
    assert of_frame(make) == in_memory(NUMBERS)


@pytest.mark.parametrize(
    "make",
    [
        lambda: arrow(TEXTS),
        lambda: arrow(TEXTS, pa.string_view()),
        lambda: arrow(TEXTS, pa.large_string()),
        lambda: pandas(TEXTS),
        lambda: pandas(TEXTS, "category"),
        lambda: polars(TEXTS, "Categorical"),
        lambda: duckdb("VARCHAR", "lpad((i * 7 + 3)::varchar, 5, '0')"),
    ],
)
def test_text_of_every_type_draws_one_sample_and_leading_zeros_count(make):
    assert of_frame(make) == in_memory(TEXTS)
    assert in_memory(TEXTS) not in (in_memory(NUMBERS), in_memory([str(n) for n in NUMBERS]))


@pytest.mark.parametrize(
    "make",
    [uuid_column, lambda: pandas(UUIDS), lambda: duckdb("UUID", "'0000000000000000000000' || printf('%010x', i*7+3)")],
)
def test_uuids_draw_by_their_usual_text(make):
    assert of_frame(make) == in_memory(UUIDS) == in_memory([str(value) for value in UUIDS])


@pytest.mark.parametrize(
    "make",
    [
        lambda: pandas([float(n) for n in NUMBERS]),
        lambda: polars(NUMBERS, "Float64"),
        lambda: duckdb("DOUBLE"),
        lambda: duckdb("DECIMAL(18, 2)"),
        lambda: arrow([str(n).encode() for n in NUMBERS]),
        lambda: arrow([True, False]),
        lambda: arrow(NUMBERS, pa.timestamp("s")),
        lambda: pandas([1, "2"]),
        lambda: arrow([decimal.Decimal(2**64), decimal.Decimal(1)]),
        lambda: arrow([decimal.Decimal(-1), decimal.Decimal(1)]),
    ],
)
def test_what_could_be_read_in_two_ways_is_refused_without_a_value(make):
    with pytest.raises(InvalidInput, match=r"whole numbers or text|one type|cast it to text") as caught:
        of_frame(make)
    assert not any(str(n) in str(caught.value) for n in (*NUMBERS[20:], 2**64))


@pytest.mark.parametrize(
    "ids",
    [
        np.array(NUMBERS, dtype=np.int16),
        np.array(NUMBERS, dtype=object),
        [np.int64(n) for n in NUMBERS],
        pa.array(NUMBERS),
        pa.chunked_array([NUMBERS[:9], NUMBERS[9:]]),
        [decimal.Decimal(n) for n in NUMBERS],
        (n for n in NUMBERS),
    ],
)
def test_a_population_takes_the_same_numbers(ids):
    assert in_memory(ids) == in_memory(NUMBERS)


@pytest.mark.parametrize("ids", [np.array(TEXTS), np.array(TEXTS, dtype=object), pa.array(TEXTS), tuple(TEXTS)])
def test_a_population_takes_the_same_texts(ids):
    assert in_memory(ids) == in_memory(TEXTS)


@pytest.mark.parametrize("ids", [[1, "2"], [1.0, 2.0], [True, False], [b"a"], ["a", None], [2**64], [-1], ["a", "a\0"]])
def test_a_population_refuses_what_is_ambiguous(ids):
    with pytest.raises(InvalidInput, match=r"ids? must|needs an id"):
        Population(ids)


def test_ids_up_to_the_last_64_bit_number():
    frame = arrow([2**63, 2**64 - 1, 5], pa.uint64())
    assert Population([2**63, 2**64 - 1, 5]).ids.tolist() == [2**63, 2**64 - 1, 5]
    assert of_frame(lambda: frame) == in_memory([2**63, 2**64 - 1, 5])


def test_one_long_id_costs_its_own_length_and_draws_as_ever():
    long = "x" * 10**6
    tracemalloc.start()
    population = Population([long, *TEXTS])
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 5e6  # as fixed-width text: 1.2 GB
    begun = time.perf_counter()
    keyed_pairs(KEY, population.ids)
    assert time.perf_counter() - begun < 1.0  # block by block in Python: 11 s


def test_a_long_text_has_the_number_of_its_blocks():
    """The slow way, block by block, over lengths around the border where the quick one begins."""
    from privamp.chance import keyed_text
    from privamp.chance.texts import Texts

    texts = Texts.of(np.array(["y" * n for n in (*range(0, 40, 7), *range(1000, 1060))] + ["é" * 600], dtype=object))
    quick = keyed_text.text_blocks(bytes(32), 5, texts)
    before, keyed_text._LONG = keyed_text._LONG, 10**9
    try:
        slow = keyed_text.text_blocks(bytes(32), 5, texts)
    finally:
        keyed_text._LONG = before
    assert np.array_equal(quick, slow)


@pytest.mark.parametrize("odd", ["00007", " 7", "-7"])
def test_a_csv_file_writes_whole_numbers_in_one_way(tmp_path, odd):
    path = tmp_path / "people.csv"
    path.write_text("id,place\n" + "".join(f"{n},{at}\n" for at, n in enumerate(NUMBERS)))
    kept = local.sample(path, DESIGN, key=KEY, id="id")
    assert kept.schema.field("id").type == pa.int64()
    assert kept["place"].to_pylist() == in_memory(NUMBERS)
    path.write_text(path.read_text() + f"{odd},300\n")
    with pytest.raises(InvalidInput, match="without leading zeros") as caught:
        local.sample(path, DESIGN, key=KEY, id="id")
    assert "-7" not in str(caught.value)


def of_raw_bytes(*texts):
    """A column of text whose bytes nobody checked, as a Parquet file may hold it."""
    ends = np.cumsum([0, *map(len, texts)]).astype(np.int32)
    return pa.Array.from_buffers(pa.string(), len(texts), [None, *map(pa.py_buffer, (ends, b"".join(texts)))])


@pytest.mark.parametrize("odd", [(b"\xff",), (b"\xed\xb3\xbf",), (b"\xff", b"\xed\xb3\xbf")])
def test_ids_that_are_not_utf8_are_refused_as_two_may_be_one_string(tmp_path, odd):
    people = pa.table({"id": of_raw_bytes(b"a", b"b", *odd), "odds": [1.0] * (2 + len(odd))})
    parquet.write_table(people, tmp_path / "people.parquet")
    for design in (DESIGN, ConditionalPoisson(1, 2, 1.0, 2.0)):
        with pytest.raises(InvalidInput, match="not UTF-8"):
            local.sample(tmp_path / "people.parquet", design, key=KEY, id="id")
