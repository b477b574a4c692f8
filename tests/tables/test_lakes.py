"""Tables that are more than their files: erased rows must not come back."""

import pyarrow as pa
import pytest
from pyarrow import parquet

from privamp.errors import InvalidInput
from privamp.tables import sources

LOGS = [("_delta_log/0.json", "Delta"), (".hoodie/hoodie.properties", "Hudi"), ("metadata/v1.metadata.json", "Iceberg")]


@pytest.mark.parametrize(("log", "kind"), LOGS)
@pytest.mark.parametrize("part", ["", "data", "data/day=1", "data/day=1/part.parquet"])
def test_the_files_of_a_table_with_a_log_are_refused(tmp_path, log, kind, part):
    place = tmp_path / "data" / "day=1"
    place.mkdir(parents=True)
    parquet.write_table(pa.table({"id": range(10)}), place / "part.parquet")
    assert sources.files(tmp_path / part).rows == 10
    (tmp_path / log).parent.mkdir()
    (tmp_path / log).write_text("{}")
    with pytest.raises(InvalidInput, match=f"is a {kind} table"):
        sources.files(tmp_path / part)


@pytest.mark.parametrize(("log", "kind"), LOGS[:2])
def test_a_folder_of_such_tables_and_a_link_into_one_are_refused(tmp_path, log, kind):
    table = tmp_path / "lake" / "year=1"
    table.mkdir(parents=True)
    parquet.write_table(pa.table({"id": range(10)}), table / "part.parquet")
    (tmp_path / "link.parquet").symlink_to(table / "part.parquet")
    assert [sources.files(tmp_path / name).rows for name in ("lake", "link.parquet")] == [10, 10]
    (table / log).parent.mkdir()
    (table / log).write_text("{}")
    for name in ("lake", "link.parquet"):
        with pytest.raises(InvalidInput, match=f"year=1' is a {kind} table"):
            sources.files(tmp_path / name)


def test_other_folders_are_not_taken_for_a_log(tmp_path):
    """metadata/ above another folder than data/ is not Iceberg's; brackets in a name are no pattern."""
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "a.metadata.json").write_text("{}")
    place = tmp_path / "people[1]"
    place.mkdir()
    parquet.write_table(pa.table({"id": range(10)}), place / "part.parquet")
    assert sources.files(place).rows == 10


def test_an_address_of_such_a_table_is_refused():
    memory = pytest.importorskip("fsspec").filesystem("memory")
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.table({"id": range(10)}), sink)
    memory.pipe("/lake/part.parquet", sink.getvalue().to_pybytes())
    try:
        assert sources.files("memory://lake").rows == 10
        memory.pipe("/lake/_delta_log/0.json", b"{}")
        with pytest.raises(InvalidInput, match="is a Delta table"):
            sources.files("memory://lake/part.parquet")
        memory.mv("/lake", "/lakes/year=1", recursive=True)
        with pytest.raises(InvalidInput, match="memory://lakes/year=1' is a Delta table"):
            sources.files("memory://lakes")
    finally:
        for place in memory.ls("/", detail=False):
            memory.rm(place, recursive=True)
