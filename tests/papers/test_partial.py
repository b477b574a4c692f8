"""A long run that was stopped goes on with what it had finished, and with nothing made by other code."""

import json
from dataclasses import replace

import pytest

from privamp.papers import partial
from privamp.papers.registry import Outcome, entry


def squares(asked, stop_at=None):
    found = []
    for number in range(4):

        def compute(number=number):
            if number == stop_at:
                raise KeyboardInterrupt
            asked.append(number)
            return [number**2]

        found += partial.part(("square", number), compute)
    return found


@pytest.fixture
def long_entry():
    """An entry whose full run has four parts; `asked` lists those that were computed."""
    asked, stop = [], [2]

    def full(out_dir):
        return Outcome(str(squares(asked, stop[0])), (), True)

    return replace(entry("must-table-s1"), name="long", full=full), asked, stop


def test_a_stopped_run_goes_on(tmp_path, long_entry):
    long, asked, stop = long_entry
    with pytest.raises(KeyboardInterrupt):
        long.reproduce(tmp_path, full=True)
    assert asked == [0, 1]
    assert (tmp_path / "long.partial.json").is_file()
    stop[0] = None
    assert long.reproduce(tmp_path, full=True).text == "[0.0, 1.0, 4.0, 9.0]"
    assert asked == [0, 1, 2, 3]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", ["", "{", "[]", '{"code": "of another time", "parts": {}}', "null"])
def test_parts_of_other_code_are_not_used(tmp_path, long_entry, content):
    long, asked, stop = long_entry
    with pytest.raises(KeyboardInterrupt):
        long.reproduce(tmp_path, full=True)
    file = tmp_path / "long.partial.json"
    kept = json.loads(file.read_text())
    file.write_text(content.replace("{}", json.dumps(kept["parts"])))
    stop[0] = None
    long.reproduce(tmp_path, full=True)
    assert asked == [0, 1, 0, 1, 2, 3]


def test_parts_from_other_data_are_not_used(tmp_path, long_entry, monkeypatch):
    """A data file was replaced between the two runs: their numbers must not be mixed."""
    for folder in ("data", "out"):
        (tmp_path / folder).mkdir()
    file = tmp_path / "data" / "rows.npz"
    file.write_bytes(b"some rows")
    monkeypatch.setenv("PRIVAMP_SHARED", str(tmp_path))
    long, asked, stop = long_entry
    with pytest.raises(KeyboardInterrupt):
        long.reproduce(tmp_path / "out", full=True)
    file.write_bytes(b"other rows")
    stop[0] = None
    long.reproduce(tmp_path / "out", full=True)
    assert asked == [0, 1, 0, 1, 2, 3]


def test_nothing_is_kept_outside_a_long_run(tmp_path):
    asked = []
    assert squares(asked) == squares(asked) == [0.0, 1.0, 4.0, 9.0]
    assert asked == [0, 1, 2, 3] * 2
