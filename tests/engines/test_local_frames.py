"""Frames come back as they came, with the sample that a file would give."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from privamp import ImportanceSampling, Laplace, LinearProfile, Poisson, WithReplacement, privacy_constrained
from privamp.engines import local
from privamp.engines.kernel import COUNT, WEIGHT
from privamp.errors import InvalidInput
from privamp.testing import seeded_key

KEY = seeded_key(4)
N = 500
RNG = np.random.default_rng(2)
DATA = pa.table({"id": RNG.permutation(N * 3)[:N], "x": RNG.uniform(-1, 1, N), "name": [f"n{k}" for k in range(N)]})
RULE = privacy_constrained(LinearProfile.of(Laplace(4.0)), 1.0, radius=1.0)
DESIGNS = [Poisson(0.2), WithReplacement(60, N), ImportanceSampling(RULE, "x")]


def pandas_frame():
    pandas = pytest.importorskip("pandas")
    frame = DATA.to_pandas()
    frame.index = pandas.Index(np.arange(N) * 2 + 1, name="row")
    return frame, lambda found: pa.Table.from_pandas(found, preserve_index=False)


def polars_frame():
    polars = pytest.importorskip("polars")
    return polars.from_arrow(DATA), lambda found: found.to_arrow()


def lazy_frame():
    polars = pytest.importorskip("polars")
    return polars.from_arrow(DATA).lazy(), lambda found: found.collect().to_arrow()


def duckdb_relation():
    duckdb = pytest.importorskip("duckdb")
    return duckdb.from_arrow(DATA), lambda found: found.to_arrow_table()


def arrow_table():
    return DATA, lambda found: found


FRAMES = [arrow_table, pandas_frame, polars_frame, lazy_frame, duckdb_relation]


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: type(design).__name__)
@pytest.mark.parametrize("make", FRAMES, ids=lambda make: make.__name__)
def test_the_same_kind_and_the_same_rows(make, design):
    frame, as_arrow = make()
    found = local.sample(frame, design, key=KEY, id="id")
    assert type(found) is type(frame)
    expected = local.sample(DATA, design, key=KEY, id="id")
    rows = as_arrow(found)
    for column in ("id", "x", "name", WEIGHT, COUNT):
        assert rows[column].to_pylist() == expected[column].to_pylist()
    fewer = as_arrow(local.sample(frame, design, key=KEY, id="id", columns=["name"]))
    assert fewer.column_names == ["name", WEIGHT, COUNT]


def test_pandas_keeps_its_index_and_types():
    frame, _ = pandas_frame()
    frame["name"] = frame["name"].astype("category")
    found = local.sample(frame, Poisson(0.2), key=KEY)
    assert found.index.name == "row"
    assert found.dtypes["name"] == frame.dtypes["name"]
    assert found["x"].equals(frame.loc[found.index, "x"])


@pytest.mark.parametrize("make", FRAMES[:4], ids=lambda make: make.__name__)
def test_places_are_ids_where_rows_have_an_order(make):
    frame, as_arrow = make()
    rows = as_arrow(local.sample(frame, Poisson(0.2), key=KEY))
    assert rows["id"].to_pylist() == local.sample(DATA, Poisson(0.2), key=KEY)["id"].to_pylist()


def test_a_relation_needs_ids(tmp_path):
    relation, _ = duckdb_relation()
    with pytest.raises(InvalidInput, match="no stable order"):
        local.sample(relation, Poisson(0.2), key=KEY)
    with pytest.raises(InvalidInput, match="no stable order"):
        local.write(relation, Poisson(0.2), tmp_path / "out.parquet", key=KEY)


@pytest.mark.parametrize("make", FRAMES, ids=lambda make: make.__name__)
def test_frames_can_be_written_and_drawn_with_a_ledger(make, tmp_path):
    frame, _ = make()
    local.write(frame, Poisson(0.2), tmp_path / "out.parquet", key=KEY, id="id")
    expected = local.sample(DATA, Poisson(0.2), key=KEY, id="id")
    assert parquet.read_table(tmp_path / "out.parquet")["id"].to_pylist() == expected["id"].to_pylist()
    stored = local.draw(frame, Poisson(0.2), key=KEY, id="id")
    assert sum(batch.num_rows for batch in stored.reveal_secret()) == expected.num_rows


def test_bad_frames():
    doubled = pa.concat_tables([DATA, DATA.slice(0, 3)])
    with pytest.raises(InvalidInput, match="some repeat"):
        local.sample(doubled, Poisson(0.2), key=KEY, id="id")
    with pytest.raises(InvalidInput, match="no column 'who'"):
        local.sample(DATA, Poisson(0.2), key=KEY, id="who")
    with pytest.raises(InvalidInput, match="already"):
        local.sample(DATA.append_column(WEIGHT, [np.ones(N)]), Poisson(0.2), key=KEY)
    with pytest.raises(InvalidInput, match="got dict instead"):
        local.sample({"id": [1]}, Poisson(0.2), key=KEY)
    with pytest.raises(InvalidInput, match="got int instead"):
        local.write(7, Poisson(0.2), "out.parquet", key=KEY)


def test_a_column_of_mixed_types_is_refused_without_its_cells():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": [1, "secret word", 3], "x": [1.0, 2.0, 3.0]}, dtype=object)
    with pytest.raises(InvalidInput, match="must each hold one type") as caught:
        local.sample(frame, Poisson(0.5), key=KEY, id="id")
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__
