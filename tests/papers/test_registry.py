"""Every entry runs, agrees with its paper but for the errata, and writes all of its files or none."""

import csv
from pathlib import Path

import pytest

from privamp.atomic_files import write_atomically
from privamp.errors import InvalidInput
from privamp.papers.must import order_reverses as must_order_reverses
from privamp.papers.printed import Check, agrees, as_expected
from privamp.papers.registry import Outcome, entries, entry

NAMES = ["must-eta", "must-figure-4", "must-order-reverses", "must-table-s1", "sd-figure-2", "sd-rounding-factor"]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    return {name: entry(name).run(tmp_path_factory.mktemp(name) / "new folder") for name in NAMES}


def test_the_entries_are_found():
    assert set(NAMES) <= set(entries())
    assert all(e.name == name and e.title and e.summary and e.paper for name, e in entries().items())
    with pytest.raises(InvalidInput, match=r"one of .*must-adult.*got 'must-figure-9'"):
        entry("must-figure-9")


@pytest.mark.parametrize("name", NAMES)
def test_the_entry_holds(outcomes: dict[str, Outcome], name: str):
    outcome = outcomes[name]
    assert outcome.ok, outcome.text
    assert "ERRATUM" in outcome.text
    assert " 0 unexpected." in outcome.text
    assert {p.suffix for p in outcome.files} >= {".csv", ".html"}
    assert all(p.stat().st_size > 0 for p in outcome.files)
    assert sorted(p.name for p in outcome.files) == sorted(p.name for p in outcome.files[0].parent.iterdir())


def test_files_are_what_their_endings_say(outcomes: dict[str, Outcome]):
    files = [p for outcome in outcomes.values() for p in outcome.files]
    assert sum(p.suffix == ".png" for p in files) >= 5
    for path in files:
        if path.suffix == ".png":
            assert path.read_bytes().startswith(b"\x89PNG")
        elif path.suffix == ".csv":
            rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
            assert len({len(row) for row in rows}) == 1
        else:
            assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_nothing_is_written_when_a_picture_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def no_picture() -> None:
        raise RuntimeError("no picture today")

    monkeypatch.setattr(must_order_reverses, "curves_picture", no_picture)
    with pytest.raises(RuntimeError, match="no picture"):
        must_order_reverses.run(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_second_run_replaces_the_first(outcomes: dict[str, Outcome]):
    first = outcomes["must-eta"]
    before = {p: p.read_bytes() for p in first.files}
    write_atomically(first.files[0], b"spoiled")
    again = entry("must-eta").run(first.files[0].parent)
    assert {p: p.read_bytes() for p in again.files} == before


@pytest.mark.parametrize(
    ("value", "printed", "agree"),
    [
        (0.0954, "0.095", True),
        (0.0956, "0.095", False),
        (1.2659323e-73, "1.27e-73", True),
        (1.2649e-73, "1.27e-73", False),
        (3.6002355, "3.600", True),
        (3.6006, "3.600", False),
        (0.0, "0", True),
        (1e-300, "0", False),
    ],
)
def test_printed_digits(value: float, printed: str, agree: bool):
    assert agrees(value, printed) is agree


def test_an_erratum_must_still_be_seen():
    right, wrong = Check("a", "1", "1", True), Check("a", "1", "2", False)
    listed, healed = Check("a", "1", "2", False, "slip"), Check("a", "1", "1", True, "slip")
    assert as_expected([right, listed])
    assert not as_expected([wrong])
    assert not as_expected([healed])
    assert [c.verdict.split()[0] for c in (right, wrong, listed, healed)] == ["ok", "DIFFERS", "ERRATUM:", "AGREES,"]
