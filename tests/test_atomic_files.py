"""Files appear whole or not at all, in one way for all of privamp."""

import re
import stat
from pathlib import Path

import pytest

from privamp import InvalidInput
from privamp.atomic_files import draft_of, write_atomically

PACKAGE = Path(__file__).parents[1] / "src" / "privamp"


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.csv"
    write_atomically(path, b"old")
    with pytest.raises(TypeError), draft_of(path) as draft:
        draft.write_bytes(b"half" + None)
    with pytest.raises(FileNotFoundError), draft_of(path) as draft:
        draft.unlink()
    assert path.read_bytes() == b"old"
    assert [*tmp_path.iterdir()] == [path]


def test_a_private_file_is_its_owner_s_from_the_start(tmp_path):
    with draft_of(tmp_path / "a.key", private=True) as draft:
        assert stat.S_IMODE(draft.stat().st_mode) == 0o600
        assert draft.suffix == ".key"
    assert stat.S_IMODE((tmp_path / "a.key").stat().st_mode) == 0o600


def test_a_folder_that_is_missing_or_in_the_way_is_named(tmp_path):
    with pytest.raises(InvalidInput, match="must exist"):
        write_atomically(tmp_path / "none" / "x.html", b"")
    with pytest.raises(InvalidInput, match="must be a file"):
        write_atomically(tmp_path, b"")


def test_a_file_that_has_just_come_is_not_replaced_unless_that_was_asked_for(tmp_path):
    path = tmp_path / "sample.csv"

    def late():
        with draft_of(path, over=False) as draft:
            draft.write_text("second")
            path.write_text("first")  # of a program that was quicker

    with pytest.raises(FileExistsError):
        late()
    assert [file.name for file in tmp_path.iterdir()] == ["sample.csv"]
    assert path.read_text() == "first"
    with draft_of(path) as draft:
        draft.write_text("third")
    assert path.read_text() == "third"


def test_nobody_else_moves_files_into_place():
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if re.search(r"os\.(replace|rename)\(|tempfile\.mkstemp|os\.fsync\(folder", path.read_text(encoding="utf-8"))
    }
    assert found == {"atomic_files.py"}
