"""Arrow's own data sets and scanners, and addresses of fsspec: the sample of the same records in a folder."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, dataset, parquet

import privamp
from privamp import Poisson, WithoutReplacement
from privamp.engines import local
from privamp.errors import InvalidInput
from privamp.tables import sources
from privamp.testing import seeded_key

KEY = seeded_key(3)


def people(first: int, last: int) -> pa.Table:
    return pa.table({"id": range(first, last), "x": np.arange(first, last) % 7.0})


@pytest.fixture
def folder(tmp_path):
    for name, first, last in (("b", 600, 1000), ("a", 0, 600)):
        parquet.write_table(people(first, last), tmp_path / f"{name}.parquet", row_group_size=100)
    return tmp_path


def kept(source, design=None, id="id"):
    drawn = local.sample(source, design or Poisson(0.3), key=KEY, id=id, label="people")
    return drawn.drop_columns([] if id else ["id"]).to_pydict()


@pytest.mark.parametrize("design", [Poisson(0.3), WithoutReplacement(90, 1000)])
@pytest.mark.parametrize("id", ["id", None])
def test_a_data_set_and_its_scanner_give_the_sample_of_the_folder(folder, design, id):
    wanted = kept(folder, design, id)
    whole = dataset.dataset(folder)
    assert len(wanted["x"]) > 50
    assert kept(whole, design, id) == wanted
    assert kept(whole.scanner(), design, id) == wanted
    assert kept(dataset.dataset(parquet.read_table(folder)), design, id) == wanted


def test_the_rows_that_a_filter_leaves_out_are_not_in_the_population(folder):
    some = dataset.dataset(folder).filter(dataset.field("id") >= 500)
    assert set(kept(some, Poisson(1.0))["id"]) == set(range(500, 1000))
    scanner = dataset.dataset(folder).scanner(columns=["id"], filter=dataset.field("id") < 10)
    assert kept(scanner, Poisson(1.0)).keys() == {"id", "privamp_weight", "privamp_count"}
    assert sorted(kept(scanner, Poisson(1.0))["id"]) == list(range(10))


@pytest.mark.parametrize("design", [Poisson(1.0), WithoutReplacement(300, 300)])
def test_a_data_set_of_some_row_groups_has_the_rows_of_these(folder, design):
    whole = dataset.dataset(folder / "a.parquet")
    [file] = whole.get_fragments()
    some = [file.subset(row_group_ids=[5, 1, 3])]
    part = dataset.FileSystemDataset(some, whole.schema, whole.format, whole.filesystem)
    wanted = sorted(part.to_table()["id"].to_pylist())
    assert wanted == [*range(100, 200), *range(300, 400), *range(500, 600)]
    assert sorted(kept(part, design)["id"]) == wanted


def test_folders_of_a_data_set_are_columns(tmp_path):
    for region in ("north", "south"):
        (tmp_path / f"region={region}").mkdir()
        parquet.write_table(people(0, 50), tmp_path / f"region={region}" / "part.parquet")
    found = local.sample(dataset.dataset(tmp_path, partitioning="hive"), Poisson(1.0), key=KEY, label="people")
    assert found["region"].to_pylist() == ["north"] * 50 + ["south"] * 50


def test_what_can_be_scanned_once_is_not_taken_for_empty(folder):
    table = people(0, 100)
    once = dataset.Scanner.from_batches(iter(table.to_batches()), schema=table.schema)
    with pytest.raises(InvalidInput, match="'the scanner' can be read only once"):
        local.sample(once, WithoutReplacement(10, 100), key=KEY, label="people")


def test_one_file_given_twice_and_a_sample_into_its_own_data_are_refused(folder):
    twice = dataset.dataset([str(folder / "a.parquet"), str(folder / "a.parquet")])
    with pytest.raises(InvalidInput, match="given twice"):
        sources.arrow_dataset(twice)
    with pytest.raises(InvalidInput, match="data itself"):
        local.write(dataset.dataset(folder), Poisson(0.5), folder / "a.parquet", key=KEY, label="p", overwrite=True)


def test_a_data_set_of_csv_files_says_that_its_types_are_guessed(tmp_path):
    csv.write_csv(people(0, 30), tmp_path / "a.csv", csv.WriteOptions(delimiter=";"))
    semicolons = dataset.CsvFileFormat(parse_options=csv.ParseOptions(delimiter=";"))
    found = dataset.dataset(tmp_path / "a.csv", format=semicolons)
    assert local.draw(found, Poisson(0.5), key=KEY, id="id", label="people").guarantee is not None
    assert sources.arrow_dataset(found).assumes == (sources.GUESSED,)
    assert sorted(kept(found, Poisson(1.0))["id"]) == list(range(30))
    with pytest.raises(InvalidInput, match="give their path"):
        privamp.open_table(found)
    with pytest.raises(InvalidInput, match="give its data set"):
        privamp.open_table(found.scanner())


def test_a_table_answers_from_a_data_set(folder):
    answer = privamp.open_table(dataset.dataset(folder), key=KEY, population="people").count().run(epsilon=1e4)
    assert abs(float(answer.value) - 1000) < 1


def stored(folder):
    """The folder in the memory of fsspec."""
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    for file in folder.glob("*.parquet"):
        memory.pipe(f"/people/{file.name}", file.read_bytes())
    memory.pipe("/people/_SUCCESS", b"")
    return memory


@pytest.mark.parametrize("design", [Poisson(0.3), WithoutReplacement(90, 1000)])
def test_an_address_of_fsspec_gives_the_sample_of_the_folder(folder, design):
    memory = stored(folder)
    try:
        assert kept("memory://people", design) == kept(folder, design)
        assert kept(["memory://people/b.parquet", str(folder / "a.parquet")], design) != {}
        with pytest.raises(InvalidInput, match="given twice"):
            sources.files(["memory://people", "memory:///people/a.parquet"])
        with pytest.raises(InvalidInput, match="there is no file at"):
            sources.files("memory://nobody")
    finally:
        memory.rm("/people", recursive=True)


def test_a_pattern_at_an_address_gives_the_sample_of_the_files_that_match(folder):
    memory = stored(folder)
    try:
        assert kept("memory://people/*.parquet", Poisson(0.3)) == kept(folder, Poisson(0.3))
        assert kept("memory://people/[a].parquet", Poisson(0.3)) == kept("memory://people/a.parquet", Poisson(0.3))
        memory.pipe("/people/[a].parquet", (folder / "b.parquet").read_bytes())  # a name before a pattern
        assert kept("memory://people/[a].parquet", Poisson(0.3)) == kept("memory://people/b.parquet", Poisson(0.3))
        with pytest.raises(InvalidInput, match="no file matches"):
            sources.files("memory://people/*.csv")
    finally:
        memory.rm("/people", recursive=True)


@pytest.mark.parametrize(
    ("address", "rule"),
    [("nothing://x/y.parquet", "not an address that fsspec can read"), ("local://x.parquet", "give its path alone"),
     ("s3://bucket/x.parquet", "needs another package|cannot be read")],
)  # fmt: skip
def test_addresses_that_fsspec_does_not_read(address, rule):
    pytest.importorskip("fsspec")
    with pytest.raises(InvalidInput, match=rule):
        sources.files(address)
