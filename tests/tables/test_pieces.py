"""Pieces of a file: as many as there are threads, bounded in bytes, and the same rows however they are read."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
from pyarrow import dataset, parquet  # noqa: E402

from privamp import Poisson, WithoutReplacement  # noqa: E402
from privamp.engines import local  # noqa: E402
from privamp.errors import InvalidInput  # noqa: E402
from privamp.tables import parquet_rows, pieces, sources  # noqa: E402
from privamp.testing import seeded_key  # noqa: E402

KEY = seeded_key(9)
N = 3000
DATA = pa.table({
    "id": np.arange(N), "x": np.linspace(-1, 1, N), "a.b": np.arange(N) % 7,
    "kind": pa.array(["u", None, "w"] * (N // 3)).dictionary_encode(),
    "text": [f"t{k % 11}" * (k % 5) for k in range(N)], "list": [[1.0] * (k % 4) for k in range(N)],
    "part": [{"b": k} for k in range(N)],
})  # fmt: skip


def rows_of(found, columns=DATA.column_names):
    return pa.Table.from_batches([batch for piece in found for batch in piece.batches(columns)])


def test_a_file_of_small_row_groups_makes_a_piece_for_every_thread(tmp_path):
    parquet.write_table(DATA, tmp_path / "a.parquet", row_group_size=N // 20)
    source = sources.files(tmp_path)
    assert len(source.pieces) == 1
    for threads in (2, 3, 16, 20):
        several = source.divided(threads)
        assert len(several.pieces) >= threads
        assert several.rows == N
        assert rows_of(several.pieces).equals(DATA)
    assert len(source.divided(99).pieces) == 20


def test_one_large_row_group_among_small_ones_leaves_enough_pieces(tmp_path):
    with parquet.ParquetWriter(tmp_path / "a.parquet", DATA.schema) as writer:
        writer.write_table(DATA.slice(0, 2900))
        for start in range(2900, N, 10):
            writer.write_table(DATA.slice(start, 10))
    several = sources.files(tmp_path).divided(8).pieces
    assert len(several) >= 8
    assert rows_of(several).equals(DATA)


def test_a_table_in_memory_is_divided_too(monkeypatch):
    monkeypatch.setattr(pieces, "BATCH", 100)
    several = sources.table(DATA).divided(4)
    assert len(several.pieces) == 4
    assert several.rows == N


@pytest.mark.parametrize("columns", [["x"], ["text", "a.b"], DATA.column_names, ["region", "id"], ["region"]], ids=str)
def test_rows_are_the_same_by_a_data_set_decoded_and_streamed(tmp_path, monkeypatch, columns):
    for region in ("n", "s"):
        (tmp_path / f"region={region}").mkdir()
        half = DATA.slice(0, N // 2) if region == "n" else DATA.slice(N // 2)
        parquet.write_table(half, tmp_path / f"region={region}" / "a.parquet", row_group_size=400)
    monkeypatch.setattr(parquet_rows, "_STREAMED", 1000)
    monkeypatch.setattr(parquet_rows, "_FEWEST", 64)
    source = sources.files(tmp_path)
    expected = dataset.dataset(tmp_path, partitioning="hive").to_table(columns=columns)
    assert all(piece.is_plain for piece in source.pieces)
    streamed = [part for piece in source.pieces for part in piece.held(columns, use_threads=True)]
    assert rows_of(source.pieces, columns).cast(expected.schema).equals(expected)
    assert rows_of(streamed, columns).cast(expected.schema).equals(expected)
    assert len(streamed) > 8 or columns == ["region"]


def test_streamed_batches_are_bounded_in_bytes(tmp_path, monkeypatch):
    wide = pa.table({f"x{k}": np.arange(N) / 3.0 for k in range(20)})
    parquet.write_table(wide, tmp_path / "a.parquet", use_dictionary=False, compression="none")
    monkeypatch.setattr(parquet_rows, "_STREAMED", 16_000)
    monkeypatch.setattr(parquet_rows, "_FEWEST", 1)
    monkeypatch.setattr(pieces, "_LARGE", 100_000)
    [piece] = sources.files(tmp_path).pieces
    assert piece.is_large(wide.column_names)
    assert not piece.is_large(["x3"])  # 24,000 bytes
    sizes = [part.fragment.data.nbytes for part in piece.held(wide.column_names)]
    assert max(sizes) <= 16_200  # and whether entries are missing, a bit each
    assert sum(sizes) >= 20 * 8 * N


@pytest.mark.parametrize("design", [Poisson(0.2), WithoutReplacement(300, N)], ids=str)
@pytest.mark.parametrize("id", ["id", None], ids=["ids", "places"])
def test_one_row_group_is_shared_by_threads_and_gives_the_same_sample(tmp_path, monkeypatch, design, id):
    parquet.write_table(DATA, tmp_path / "a.parquet")
    expected = local.sample(tmp_path, design, key=KEY, id=id, threads=1)
    for name, value in (("BATCH", 200), ("_LARGE", 1 << 27)):
        monkeypatch.setattr(pieces, name, value)
    monkeypatch.setattr("privamp.engines.reading.BATCH", 200)
    assert local.sample(tmp_path, design, key=KEY, id=id, threads=3).equals(expected)
    monkeypatch.setattr(pieces, "_LARGE", 1)
    assert local.sample(tmp_path, design, key=KEY, id=id, threads=1).equals(expected)


@pytest.mark.parametrize("columns", [None, ["text", "x"], ["id"], []], ids=str)
@pytest.mark.parametrize("design", [Poisson(0.2), WithoutReplacement(300, N), Poisson(0.0)], ids=str)
@pytest.mark.parametrize("room", [0, 40_000, 1 << 26], ids=lambda room: f"{room} bytes ahead")
def test_what_is_read_ahead_changes_nothing(tmp_path, monkeypatch, design, columns, room):
    """Columns read before the draw is decided, and those that the first pass keeps for the second."""
    parquet.write_table(DATA, tmp_path / "a.parquet", row_group_size=2000)
    expected = local.sample(tmp_path, design, key=KEY, id="id", threads=1, columns=columns)
    decoded = []
    real = parquet.ParquetFile.read_row_groups
    monkeypatch.setattr(
        parquet.ParquetFile, "read_row_groups", lambda file, groups, names, **options: decoded.extend(names)
        or real(file, groups, names, **options),
    )  # fmt: skip
    for name, value in (("_AHEAD", room), ("BATCH", 300)):
        monkeypatch.setattr(f"privamp.engines.reading.{name}", value)
    for threads in (2, 9):
        decoded.clear()
        assert local.sample(tmp_path, design, key=KEY, id="id", threads=threads, columns=columns).equals(expected)
        assert decoded.count("id") == (
            4 if not room and columns in (None, ["id"]) and isinstance(design, WithoutReplacement) else 2
        )
        assert all(decoded.count(name) <= 2 for name in decoded if name != "id")  # in each of two row groups
    assert expected.num_rows == expected["privamp_count"].length() > 100 or design == Poisson(0.0)


def test_a_column_that_cannot_be_read_stops_all_threads(tmp_path):
    parquet.write_table(DATA, tmp_path / "a.parquet", use_dictionary=False, compression="none")
    place = parquet.read_metadata(tmp_path / "a.parquet").row_group(0).column(1).data_page_offset
    data = bytearray((tmp_path / "a.parquet").read_bytes())
    data[place : place + 40] = b"\xff" * 40
    (tmp_path / "a.parquet").write_bytes(data)
    for threads in (1, 2, 9):
        with pytest.raises(InvalidInput, match="corrupt, truncated"):
            local.sample(tmp_path, Poisson(0.2), key=KEY, id="id", threads=threads)
        assert local.sample(tmp_path, Poisson(0.2), key=KEY, id="id", threads=threads, columns=["text"]).num_rows


@pytest.mark.parametrize("design", [Poisson(0.9), Poisson(0.01), WithoutReplacement(2900, N)], ids=str)
def test_rows_that_are_too_many_to_be_held_are_streamed(tmp_path, monkeypatch, design):
    parquet.write_table(DATA, tmp_path / "a.parquet")
    expected = local.sample(tmp_path, design, key=KEY, id="id", threads=1)
    streamed = []
    real = parquet_rows.streamed
    monkeypatch.setattr(parquet_rows, "streamed", lambda *given, **more: streamed.append(1) or real(*given, **more))
    for name, value in (("parquet_rows._STREAMED", 3000), ("parquet_rows._FEWEST", 64), ("pieces._LARGE", 80_000)):
        monkeypatch.setattr(f"privamp.tables.{name}", value)
    monkeypatch.setattr(pieces, "_may_be_large", lambda group: True)
    for threads in (1, 3):
        assert local.sample(tmp_path, design, key=KEY, id="id", threads=threads).equals(expected)
    assert len(streamed) == (0 if design == Poisson(0.01) else 2)


PEAK = """
import pyarrow as pa
from privamp import ExactLaplace, Poisson
from privamp.engines import local
from privamp.testing import seeded_key
people = local.draw("wide.parquet", Poisson(0.01), key=seeded_key(1), threads=2)
{}
print(pa.default_memory_pool().max_memory())
"""
ONE_SUM = 'people.release_sum(ExactLaplace(scale=1.0, sensitivity=1.0), "x7")'
ALL_ROWS = "list(people.reveal_secret())"
HELD = 'import pyarrow.parquet; pyarrow.parquet.read_table("wide.parquet")'


def test_a_wide_row_group_is_never_held_as_a_whole(tmp_path):
    """100 columns of 8 bytes: a sum of one needs little more than that column, a sample of all little more than one."""
    rows = 60_000
    wide = pa.table({f"x{k}": np.random.default_rng(k).normal(size=rows) for k in range(100)})
    parquet.write_table(wide, tmp_path / "wide.parquet")

    def peak(work):
        code = [sys.executable, "-c", PEAK.format(work)]
        return int(subprocess.run(code, cwd=tmp_path, check=True, capture_output=True, text=True).stdout)

    assert peak(ONE_SUM) < 12 * 8 * rows
    assert peak(ALL_ROWS) < 25 * 8 * rows
    assert peak(HELD) > 100 * 8 * rows  # the check can fail


@pytest.mark.parametrize("is_plain", [True, False])
def test_rows_at_positions_are_those_of_all_rows(tmp_path, is_plain):
    (tmp_path / "region=n").mkdir()
    parquet.write_table(DATA, tmp_path / "region=n" / "a.parquet", row_group_size=700)
    (piece,) = sources.files(tmp_path).pieces
    columns = ["part", "region", "kind", "a.b", "list", "x", "text", "id"]
    expected = rows_of([piece], columns)
    piece = replace(piece, is_plain=is_plain)
    for each in (piece, piece.in_memory(columns)):
        assert rows_of([each], columns).equals(expected)
        for positions in ([0], [699, 700], [1400, 2099, 2999], [2100], list(range(0, N, 7)), list(range(N))):
            found = pa.table(each.taken(columns, np.array(positions))).select(columns)
            assert found.combine_chunks().equals(expected.take(positions).combine_chunks())


def test_rows_of_one_row_group_stay_together_whatever_the_piece(tmp_path):
    """A row group of a sample's file ends where batches do, so files are the same for any number of threads."""
    parquet.write_table(DATA, tmp_path / "a.parquet", row_group_size=700)
    (piece,) = sources.files(tmp_path).pieces
    assert piece.parts(np.array([0, 699, 700, 2100, 2999])) == [slice(0, 2), slice(2, 3), slice(3, 4), slice(4, 5)]
    assert piece.parts(np.array([1400])) == [slice(0, 1)]
    assert piece.in_memory(["x"]).parts(np.array([0, 2999])) == [slice(0, 2)]
    sizes = [
        [batch.num_rows for batch in local.draw(tmp_path, Poisson(0.2), key=KEY, id=id, threads=threads)._rows()]
        for threads in (1, 3, 9) for id in (None, "id")
    ]  # fmt: skip
    assert sizes[::2] == [sizes[0]] * 3
    assert sizes[1::2] == [sizes[1]] * 3
    assert len(sizes[0]) == len(sizes[1]) == 5


def test_row_groups_without_a_chosen_row_are_not_decoded_and_one_column_at_a_time(tmp_path, monkeypatch):
    parquet.write_table(DATA.select(["id", "x"]), tmp_path / "a.parquet", row_group_size=1000)
    asked, real = [], parquet.ParquetFile.read_row_groups

    def read_row_groups(self, groups, columns, **options):
        asked.append((groups, columns))
        return real(self, groups, columns, **options)

    monkeypatch.setattr(parquet.ParquetFile, "read_row_groups", read_row_groups)
    (piece,) = sources.files(tmp_path / "a.parquet").pieces
    assert piece.taken(["id", "x"], np.array([3, 2500]))["id"].to_pylist() == [3, 2500]
    assert asked == [([0, 2], ["id"]), ([0, 2], ["x"])]
    asked.clear()
    assert piece.taken(["id"], np.array([1999]))["id"].to_pylist() == [1999]
    assert asked == [([1], ["id"])]
