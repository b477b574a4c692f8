import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from privamp import MultiStage, Poisson
from privamp.cli.audit import designs as audit
from privamp.cli.demo import job as demo_job
from privamp.papers.printed import Check
from privamp.papers.registry import Entry, Outcome
from privamp.verify.report import Report, Tally


def test_the_demo_tells_one_thing(privamp, tmp_path) -> None:
    result = privamp("demo", "--out", "new/folder")
    assert result.exit_code == 0, result.output
    assert "The one thing to remember" in result.stdout
    assert (tmp_path / "new" / "folder" / "privamp-demo.png").stat().st_size > 10_000


@pytest.mark.parametrize(("command", "extra"), [("demo", "privamp[plots]"), ("train", "privamp[torch]")])
def test_help_shows_the_extra_to_install(privamp, command, extra) -> None:
    assert extra in privamp(command, "--help").stdout  # in brackets, which the formatter could take for markup


def test_the_demo_says_what_is_true(privamp) -> None:
    found = json.loads(privamp("demo", "--json").stdout)
    costs = [row["epsilon_upper"] for row in found["designs"]]
    assert costs == sorted(costs)
    limits = found["epsilon"]
    assert limits["everyone"] < found["designs"][-1]["epsilon_lower"], "the text says 'more than'"
    assert limits["false_claim"] < limits["one_sample"]
    for row in found["designs"]:
        assert abs(row["mean_age"] - found["truth_not_private"]["mean_age"]) < 7 * row["mean_age_error"]
        assert abs(row["seniors"] - found["truth_not_private"]["seniors"]) < 7 * row["seniors_error"]


@pytest.mark.parametrize("design", demo_job.designs(), ids=str)
def test_the_typical_error_is_right(design) -> None:
    """400 draws: their spread is within 20% of the formula, but for one time in 10^7."""
    values = demo_job.synthetic_ages() / 50.0 - 1.0
    sums = []
    for _ in range(400):
        drawn = design.draw(demo_job.PEOPLE).reveal_secret()
        sums.append(float(drawn.counts @ values[drawn.positions]))
    expected = math.sqrt(demo_job.typical_error(design, values) ** 2 - demo_job.SIGMA**2)
    assert np.std(sums) == pytest.approx(expected, rel=0.2)


def test_the_audit_counts(privamp, monkeypatch) -> None:
    monkeypatch.setattr(audit, "all_designs", lambda: [MultiStage, Poisson])  # tests/verify has them all
    result = privamp("audit", "designs", "--checks", "8", "--jobs", "1", "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == 0
    assert {row["design"] for row in found["designs"]} >= {"Poisson", "MultiStage"}
    assert found["ok"] is True
    assert found["checks"] >= 8


def test_a_violation_is_exit_1(privamp, monkeypatch) -> None:
    def check_design(design, *, checks, seed):
        return Report(design.__name__, (Tally("structure", 3, 3, (f"{design.__name__} is [wrong]",)),))

    monkeypatch.setattr("privamp.verify.checks.check_design", check_design)
    result = privamp("audit", "designs", "--jobs", "1")
    assert result.exit_code == 1
    assert "violated: Poisson is [wrong]" in result.stdout
    found = json.loads(privamp("audit", "designs", "--jobs", "1", "--json").stdout)
    assert found["ok"] is False


def test_audit_pieces_add_up() -> None:
    pieces = audit._pieces(4, 100_000)
    assert sum(share for _, share, _ in pieces) * 2 >= 100_000
    assert len({(which, seed) for which, _, seed in pieces}) == len(pieces)
    drawn, fixed = Tally("pure upper bounds", 5, 5), Tally("structure", 3, 3, ("bad",))
    merged = audit._merged([Report("X", (fixed, drawn)), Report("X", (fixed, drawn))])
    assert (merged.comparisons, merged.cases, merged.violations) == (16, 13, ("bad",))


def test_reproductions_are_listed(privamp) -> None:
    names = [entry["name"] for entry in json.loads(privamp("reproduce", "list", "--json").stdout)["entries"]]
    assert "must-table-s1" in names
    assert "must-table-s1" in privamp("reproduce", "list").stdout
    assert privamp("reproduce").stdout == privamp("reproduce", "list").stdout


@pytest.mark.parametrize("ok", [True, False])
def test_a_reproduction(privamp, tmp_path, monkeypatch, ok) -> None:
    def run(folder: Path) -> Outcome:
        (folder / "a.csv").write_text("1")
        return Outcome("ours [1], printed 2", (folder / "a.csv",), ok)

    entry = Entry("a", "paper", "title", "summary", run)
    monkeypatch.setattr("privamp.papers.registry.entries", lambda: {"a": entry})
    result = privamp("reproduce", "a", "--out", "there")
    assert result.exit_code == (0 if ok else 1)
    assert "ours [1], printed 2" in result.stdout
    assert (tmp_path / "there" / "a.csv").exists()
    assert json.loads(privamp("reproduce", "a", "--json").stdout)["ok"] is ok


@pytest.mark.skipif(os.name != "posix", reason="sends a POSIX signal")
def test_ctrl_c_is_exit_130() -> None:
    command = [sys.executable, "-m", "privamp", "audit", "designs", "--checks", "100000", "--jobs", "1"]
    # a shell in the background ignores the signal and its children inherit that: give it back its meaning
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        time.sleep(3.0)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert (process.returncode, out) == (130, ""), err
    assert err == "Error: interrupted; no half-written file was left behind\n"


def test_pieces_of_an_audit_add_up_when_a_theorem_is_missing_in_one() -> None:
    from privamp.cli.audit.designs import _merged
    from privamp.verify.report import Report, Tally

    one = Report("D", (Tally("structure", 3, 3), Tally("pure upper bounds", 10, 10), Tally("alone: T", 4, 0)))
    two = Report("D", (Tally("structure", 3, 3), Tally("pure upper bounds", 5, 5, ("false",))))
    both = _merged([one, two])
    assert {t.kind: (t.comparisons, t.cases) for t in both.tallies} == {
        "structure": (6, 3),
        "pure upper bounds": (15, 15),
        "alone: T": (4, 0),
    }
    assert both.violations == ("false",)


@pytest.mark.parametrize("ok", [True, False])
def test_all_reproductions_on_one_page(privamp, tmp_path, monkeypatch, ok) -> None:
    def run(folder: Path) -> Outcome:
        return Outcome("text", (), ok, (Check("a", "1", "1" if ok else "2", ok),))

    entries = {name: Entry(name, "Paper (P)", "Table", "summary", run) for name in ("a", "b")}
    monkeypatch.setattr("privamp.papers.registry.entries", lambda: entries)
    result = privamp("reproduce", "all", "--report", "there")
    assert result.exit_code == (0 if ok else 1)
    assert (tmp_path / "there" / "index.html").exists()
    told = json.loads(privamp("reproduce", "all", "--report", "there", "--json").stdout)
    assert told["counts"]["agrees"] == (2 if ok else 0)
    assert told["ok"] is ok
    (tmp_path / "file").write_text("not a folder")
    refused = privamp("reproduce", "all", "--report", "file/below")
    assert refused.exit_code == 2
    assert "choose another folder" in refused.output


def test_a_folder_that_cannot_be_written_to_is_told_before_the_work(privamp, tmp_path, monkeypatch) -> None:
    """A read-only folder exists, so that making it does not fail."""

    def run(folder: Path) -> Outcome:
        raise AssertionError("computed before the folder was tried")

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    entries = {"a": Entry("a", "Paper (P)", "Table", "summary", run)}
    monkeypatch.setattr("privamp.papers.registry.entries", lambda: entries)
    monkeypatch.setattr("privamp.atomic_files.check_draft", refuse)
    for asked in (("a", "--out", "."), ("all", "--report", ".")):
        refused = privamp("reproduce", *asked)
        assert refused.exit_code == 2
        assert "Permission denied" in refused.output
        assert "choose another folder" in refused.output
    assert not list(tmp_path.iterdir())
