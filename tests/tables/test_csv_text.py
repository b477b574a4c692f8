"""CSV files as text: Arrow's reader and the one that goes row by row find the same cells, wherever blocks end."""

import random

import numpy as np
import pyarrow as pa
import pytest

from privamp import InvalidInput
from privamp.tables import csv_text
from privamp.tables.csv_text import CsvText

ATOMS = [b"a", b"1", b",", b"\n", b"\r", b'""', b"\r\n", b"\n\n", b" ", b"\xff", b"\xc3\xa4"]
PLAIN = [b"a", b"1", b" ", b'b"', b"\xff", b""]
ODD = [*ATOMS, b'"', b"x,y\n", b""]


def _cell(pick):
    if pick.random() < 0.5:
        return b'"' + b"".join(pick.choices(ATOMS, k=pick.randrange(5))) + b'"' + pick.choice([b"", b"", b"z"])
    return b"".join(pick.choices(PLAIN, k=pick.randrange(4)))


def _file(pick, path):
    width, end = pick.choice([1, 2, 3]), pick.choice([b"\n", b"\r\n", b"\r"])
    head = b",".join(b"c%d" % k for k in range(width))
    rows = [b",".join(_cell(pick) for _ in range(width)) for _ in range(pick.randrange(8))]
    if pick.random() < 0.3:
        rows.append(b"".join(pick.choices(ODD, k=6)))
    path.write_bytes(pick.choice([b"", end, b"\xef\xbb\xbf"]) + end.join([head, *rows]) + pick.choice([b"", end]))
    return CsvText.of(path), list(range(width))


def _cells(batches):
    return [row for batch in batches for row in zip(*batch.to_pydict().values(), strict=True)]


def _disagreements(path, monkeypatch, files=500):
    pick, found, read = random.Random(7), 0, 0
    for _ in range(files):
        file, places = _file(pick, path)
        slow = _cells(file._slow(places, 0))
        monkeypatch.setattr(csv_text, "_BLOCK", pick.choice([1 << 20, 64, 32, 20]))
        found += _cells(file._cells(places)) != slow
        try:
            found += _cells(file._fast(places)) != slow
            read += 1
        except pa.ArrowInvalid:
            pass
    assert read > files / 2
    return found


def test_both_readers_find_the_same_cells_wherever_blocks_end(tmp_path, monkeypatch):
    assert _disagreements(tmp_path / "a.csv", monkeypatch) == 0


def test_blocks_that_end_anywhere_are_found_out(tmp_path, monkeypatch):
    """Arrow drops LF at the start of a block after CR, in quotation marks too."""
    monkeypatch.setattr(csv_text, "_Blocks", lambda stream: stream)
    assert _disagreements(tmp_path / "a.csv", monkeypatch) > 0


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("x,g\n1\n2,b,c\n3,d\n", [("1", None), ("2", "b"), ("3", "d")]),
        ('x,g\n1,"a\n,b"\n2,"say ""no"""\n', [("1", "a\n,b"), ("2", 'say "no"')]),
        ("x,g\n\n1,a\n\n\n2,b\n\n", [("1", "a"), ("2", "b")]),
        ('x,g\n\n"",a\n NA ,null\n', [(None, "a"), (" NA ", "null")]),
        ("\ufeffx,g\r\n1,a\r\n", [("1", "a")]),
        ("x,g\n", []),
        ("x,g", []),
    ],
)
def test_rows_are_read_by_one_rule(tmp_path, text, rows):
    (tmp_path / "a.csv").write_bytes(text.encode())
    file = CsvText.of(tmp_path / "a.csv")
    assert _cells(file.to_batches(list(file.names), 1)) == rows


def test_lines_of_a_single_column_are_records_also_when_empty(tmp_path):
    (tmp_path / "a.csv").write_text("x\n1\n\n\n2\n", encoding="utf-8")
    assert _cells(CsvText.of(tmp_path / "a.csv").to_batches(["x"], 3)) == [("1",), (None,), (None,), ("2",)]


def test_a_long_record_is_read_between_short_ones(tmp_path):
    long = "z" * 5_000_000
    (tmp_path / "a.csv").write_text("x,g\n" + "1,a\n" * 40_000 + f'2,"{long}"\n' + "3,b\n" * 40_000, encoding="utf-8")
    cells = _cells(CsvText.of(tmp_path / "a.csv").to_batches(["g"], 1 << 16))
    assert len(cells) == 80_001
    assert cells[40_000] == (long,)
    assert cells[40_001:] == [("b",)] * 40_000


def test_commands_read_numbers_from_whatever_rows_there_are(tmp_path):
    from privamp.cli.tables import table_of_columns

    (tmp_path / "a.csv").write_bytes(b"x,y\n1,2\n3\n\xff,5,6\n" + b"7," + b"z" * 1_500_000 + b"\n8,9\n")
    names, rows = table_of_columns(tmp_path / "a.csv", None)
    assert names == ["x", "y"]
    expected = [[1, 2], [3, np.nan], [np.nan, 5], [7, np.nan], [8, 9]]
    np.testing.assert_array_equal(rows, expected)


def test_columns_must_be_named(tmp_path):
    for data, sentence in ((b"", "is empty"), (b"\n\n", "is empty"), (b"x,\xff\n1,2\n", "named in UTF-8")):
        (tmp_path / "a.csv").write_bytes(data)
        with pytest.raises(InvalidInput, match=sentence):
            CsvText.of(tmp_path / "a.csv")
