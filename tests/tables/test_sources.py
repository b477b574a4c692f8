"""Files by pattern and address, files whose columns differ in order or width, and pieces bounded in bytes."""

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
from pyarrow import csv, parquet  # noqa: E402

from privamp import ExactLaplace, InvalidInput, Poisson, WithoutReplacement  # noqa: E402
from privamp.engines import local  # noqa: E402
from privamp.tables import pieces, sources  # noqa: E402
from privamp.testing import seeded_key  # noqa: E402

KEY = seeded_key(4)


def people(start, count, **types):
    ids = pa.array(range(start, start + count), types.get("id", pa.int64()))
    return pa.table({"id": ids, "x": pa.array(np.arange(count) / 7.0), "w": pa.array(np.arange(count), pa.int64())})


@pytest.fixture
def folder(tmp_path):
    parquet.write_table(people(0, 500), tmp_path / "a.parquet")
    parquet.write_table(people(500, 500), tmp_path / "b.parquet")
    return tmp_path


def kept(source):
    return local.sample(source, Poisson(0.3), key=KEY, id="id", label="people").to_pydict()


def test_a_pattern_and_an_address_name_the_same_files_as_the_folder(folder):
    assert kept(str(folder / "*.parquet")) == kept(folder)
    assert kept(folder.as_uri()) == kept(folder)
    assert kept([str(folder / "[a].parquet"), (folder / "b.parquet").as_uri()]) == kept(folder)


def test_a_name_with_brackets_is_a_name_where_it_exists(tmp_path):
    parquet.write_table(people(0, 10), tmp_path / "part[1].parquet")
    assert sources.files(tmp_path / "part[1].parquet").rows == 10


@pytest.mark.parametrize(
    ("path", "rule"),
    [("*.nothing", "no file matches"),
     ("file://elsewhere/x.parquet", "another machine"), ("file://[x/y.parquet", "another machine"),
     ("http://[x", "not on this machine|not an address|another package")],
)  # fmt: skip
def test_addresses_that_are_not_read(tmp_path, path, rule):
    with pytest.raises(InvalidInput, match=rule):
        sources.files(path if "://" in path else str(tmp_path / path))


def test_an_address_is_never_cut_to_the_name_of_another_file(tmp_path):
    (tmp_path / "people").mkdir()
    parquet.write_table(people(0, 10), tmp_path / "people" / "part.parquet")
    for mark in "?#":
        parquet.write_table(people(0, 20), tmp_path / f"people{mark}2.parquet")
        with pytest.raises(InvalidInput, match="%3F or %23"):
            sources.files(f"file://{tmp_path}/people{mark}2.parquet")
        assert sources.files((tmp_path / f"people{mark}2.parquet").as_uri()).rows == 20


@pytest.mark.parametrize("name", ["a b.parquet", "a%20b.parquet", "é漢.parquet", "100%.parquet", "a:b;c&d.parquet"])
def test_addresses_and_paths_of_odd_names(tmp_path, name):
    parquet.write_table(people(0, 10), tmp_path / name)
    address = (tmp_path / name).as_uri()
    for path in (tmp_path / name, address, address.replace("file://", "FILE://localhost"), address[:5] + address[7:]):
        assert sources.files(path).rows == 10


def test_a_pattern_that_names_a_file_twice_is_refused(folder):
    with pytest.raises(InvalidInput, match="twice"):
        kept([str(folder / "*.parquet"), str(folder / "a.parquet")])


def test_files_may_differ_in_the_order_of_columns_and_the_width_of_whole_numbers(folder):
    same = kept(folder)
    other = people(500, 500, id=pa.int32())
    parquet.write_table(other.select(["w", "x", "id"]), folder / "b.parquet")
    assert kept(folder) == same
    assert sources.files(folder).schema.field("id").type == pa.int64()


def test_narrow_first_and_wide_later_loses_no_digit(tmp_path):
    parquet.write_table(people(0, 10, id=pa.int8()), tmp_path / "a.parquet")
    parquet.write_table(people(2**40, 10), tmp_path / "b.parquet")
    found = local.sample(tmp_path, Poisson(1.0), key=KEY, id="id", label="people").to_pydict()["id"]
    assert found == [*range(10), *range(2**40, 2**40 + 10)]


@pytest.mark.parametrize("kind", [pa.uint64(), pa.float64(), pa.string()])
def test_other_differences_of_types_are_refused(folder, kind):
    other = people(500, 500)
    parquet.write_table(other.set_column(2, "w", other["w"].cast(kind)), folder / "b.parquet")
    with pytest.raises(InvalidInput, match="other columns or types"):
        sources.files(folder)


def test_pieces_are_bounded_in_bytes(tmp_path, monkeypatch):
    parquet.write_table(people(0, 4000), tmp_path / "a.parquet", row_group_size=500)
    assert len(sources.files(tmp_path).pieces) == 1
    monkeypatch.setattr(pieces, "_BYTES", 3 * 12_000)
    assert 3 <= len(sources.files(tmp_path).pieces) <= 8
    assert sources.files(tmp_path).rows == 4000


def test_a_sum_reads_only_its_columns(folder, monkeypatch):
    read = []
    real = parquet.ParquetFile.read_row_groups

    def recorded(self, groups, columns, **options):
        read.extend(columns)
        return real(self, groups, columns, **options)

    noise = ExactLaplace(scale=1e-3, sensitivity=1.0)
    everything = local.draw(folder, Poisson(0.3), key=KEY, id="id", label="people")
    monkeypatch.setattr(parquet.ParquetFile, "read_row_groups", recorded)
    answer = everything.release_sum(noise, "x")
    assert set(read) == {"id", "x"}
    rows = local.sample(folder, Poisson(0.3), key=KEY, id="id", label="people").to_pydict()
    assert abs(answer - np.minimum(rows["x"], 1.0).sum()) < 0.1


@pytest.mark.parametrize("out", ["file:b.parquet", "FILE:///b.parquet"])
def test_a_sample_is_not_written_to_an_address_and_read_from_another_file(folder, monkeypatch, out):
    monkeypatch.chdir(folder)
    with pytest.raises(InvalidInput, match="omit file://"):
        local.write("a.parquet", Poisson(0.5), out, key=KEY, id="id", overwrite=True)


def test_weights_and_counts_are_summed_like_columns_of_the_data(folder, tmp_path_factory):
    drawn = {"key": KEY, "id": "id", "label": "people"}
    out = tmp_path_factory.mktemp("out") / "sample.parquet"
    size = len(kept(folder)["id"])
    for design in (Poisson(0.3), WithoutReplacement(size, 1000)):
        for draw in (local.draw, lambda *a, **k: local.write(*a, out, overwrite=True, **k)):
            for columns in ("privamp_weight", ["privamp_count", "privamp_weight"]):
                answer = draw(folder, design, **drawn).release_sum(ExactLaplace(1e-3, 3.0), columns)
                assert abs(np.ravel(answer)[-1] - size) < 0.1
    sample = local.draw(folder, Poisson(0.3), key=KEY, id="id", label="no column")
    with pytest.raises(InvalidInput, match="at least one column"):
        sample.release_sum(ExactLaplace(1e-3, 1.0), [])
    assert not sample.ledger.entries


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("as_text", [True, False])
def test_records_behind_a_linked_folder_are_not_lost(tmp_path, kind, as_text):
    write = csv.write_csv if kind == "csv" else parquet.write_table
    for place in ("people/region=north", "elsewhere"):
        (tmp_path / place).mkdir(parents=True)
    write(people(0, 10), tmp_path / "people" / "region=north" / f"a.{kind}")
    write(people(10, 5), tmp_path / "elsewhere" / f"a.{kind}")
    (tmp_path / "people" / "region=south").symlink_to(tmp_path / "elsewhere")
    found = sources.files(tmp_path / "people", as_text=as_text)
    regions = [r for piece in found.pieces for b in piece.batches(["region"]) for r in b.column(0).to_pylist()]
    assert regions == ["north"] * 10 + ["south"] * 5


def test_a_folder_that_links_to_itself_is_refused(tmp_path):
    csv.write_csv(people(0, 10), tmp_path / "a.csv")
    (tmp_path / "again").symlink_to(tmp_path)
    with pytest.raises(InvalidInput, match="given twice"):
        sources.files(tmp_path, as_text=True)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_column_of_a_file_that_its_folder_names_too_is_that_of_the_folder(tmp_path, kind):
    """As Spark, Hive and Arrow read it, whatever the kind of the files."""
    (tmp_path / "region=north").mkdir()
    table = pa.table({"id": ["1", "2"], "region": pa.array(["south", "west"], pa.large_string())})
    write = csv.write_csv if kind == "csv" else parquet.write_table
    write(table, tmp_path / "region=north" / f"a.{kind}")
    [piece] = sources.files(tmp_path, as_text=True).pieces
    [batch] = piece.batches(["region", "id"])
    assert batch.to_pydict() == {"region": ["north", "north"], "id": ["1", "2"]}


@pytest.mark.parametrize("as_text", [True, False])
def test_a_link_to_a_file_that_is_not_there_is_not_passed_over(folder, as_text):
    """As in a folder of which git-annex has fetched some files only."""
    (folder / "_part.parquet").symlink_to(folder / "hidden")
    assert sources.files(folder, as_text=as_text).rows == 1000
    (folder / "c.parquet").symlink_to(folder / "not fetched")
    with pytest.raises(InvalidInput, match=r"c\.parquet' is a link to what is not there, so records are missing"):
        sources.files(folder, as_text=as_text)
