"""Data files that are missing, damaged or not readable: one sentence that names the file."""

import gzip

import pytest

from privamp import InvalidInput
from privamp.papers.data import shared_file


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("mnist.npz", b""),
        ("mnist.npz", b"no archive"),
        ("adult.csv.gz", b"age,sex\n"),
        ("adult.csv.gz", gzip.compress(b"age,sex\n" * 100, mtime=0)[:-20]),
        ("adult.csv.gz", gzip.compress(b"age,sex\n" * 100, mtime=0)[:-8] + bytes(8)),
    ],
)
def test_a_damaged_file_is_a_sentence(tmp_path, monkeypatch, name, content):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / name).write_bytes(content)
    monkeypatch.setenv("PRIVAMP_SHARED", str(tmp_path))
    with pytest.raises(InvalidInput, match=rf"the data file {name} cannot be read or is damaged"):
        shared_file(name)


def test_a_whole_file_is_taken(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "adult.csv.gz").write_bytes(gzip.compress(b"age,sex\n", mtime=0))
    monkeypatch.setenv("PRIVAMP_SHARED", str(tmp_path))
    assert shared_file("adult.csv.gz").name == "adult.csv.gz"
