"""The script that compares accuracy with and without banded noise, on a tiny task."""

import json
import sys

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed (make test-torch)")

from scripts import ROOT, script


@pytest.fixture
def bands(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    module = script("benchmarks/bands_accuracy.py")
    tiny = module.Task("mnist", "mlp", 200, 20, 20, (0.05, 0.1))
    monkeypatch.setattr(module, "SMALL", {"mnist": tiny})
    yield module
    for name in ("bands_tasks", "dpis_comparison", "kept_runs"):
        sys.modules.pop(name, None)


@pytest.fixture
def arguments(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {}
    for name, n in (("train", 200), ("test", 40)):
        arrays |= {f"X_{name}": rng.integers(0, 256, (n, 28, 28), np.uint8), f"y_{name}": rng.integers(0, 10, n)}
    np.savez(tmp_path / "mnist.npz", **arrays)
    asked = ["--folder", str(tmp_path), "--save", str(tmp_path / "runs.jsonl"), "--epsilon", "8", "--seeds", "2"]
    return [*asked, "--row", "DP-SGD", "banded", "balls in bins"]


def saved(tmp_path):
    return [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text(encoding="utf-8").splitlines()]


def test_every_row_has_the_same_runs_and_a_second_call_makes_none(bands, arguments, tmp_path, capsys):
    bands.main(arguments)
    runs = [run for run in saved(tmp_path) if "row" in run]
    by_row = {row: {(r["learning_rate"], r["seed"]) for r in runs if r["row"] == row} for row in arguments[-3:]}
    assert all({(rate, seed) for rate in (0.05, 0.1) for seed in (1, 2)} <= found for found in by_row.values())
    assert {run["bands"] for run in runs if run["row"] == "banded"} != {1}
    table = capsys.readouterr().out
    assert "| banded − DP-SGD |" in table
    assert "| banded − DP-SGD, twice the learning rate |" in table
    before = len(saved(tmp_path))
    bands.main(arguments)
    assert len(saved(tmp_path)) == before
    assert capsys.readouterr().out == table


def test_the_learning_rate_is_chosen_on_one_half_and_printed_on_the_other(bands, arguments, tmp_path, capsys):
    """Planted runs: the learning rate that would win on the printed half loses on the half that chooses."""
    options = bands.parsed(arguments)
    grid = bands.Grid(options)
    for name, cell in grid.whole():
        is_first = cell.learning_rate == 0.05
        found = {"chosen_by": 60.0 if is_first else 50.0, "accuracy": 40.0 if is_first else 90.0}
        found["accuracy"] += cell.seed + (cell.row == "banded") * cell.seed  # apart by 1 and 2
        grid.kept.add(cell.asked, {"task": name, **found, "seconds": 0.0})
    bands.tell(grid)
    lines = {line.split("|")[1].strip(): line for line in capsys.readouterr().out.splitlines() if "|" in line}
    assert "41.50 ± 0.50 (0.05)" in lines["DP-SGD"]
    assert "91.50 ± 0.50 (0.1)" in lines["DP-SGD, twice the learning rate"]
    assert "+1.50 ± 0.50" in lines["banded − DP-SGD"]
    assert "+1.50 ± 0.50" in lines["banded − DP-SGD, both at twice the learning rate of DP-SGD"]


def test_a_line_cut_off_by_a_crash_is_made_again(bands, tmp_path):
    path = tmp_path / "some.jsonl"
    kept = bands.KeptRuns(path)
    kept.add({"seed": 1, "rates": (0.1, 0.2)}, {"accuracy": 5.0})
    kept.add({"seed": 2, "rates": (0.1, 0.2)}, {"accuracy": 6.0})
    path.write_text(path.read_text(encoding="utf-8")[:-6], encoding="utf-8")
    again = bands.KeptRuns(path)
    assert again.found({"seed": 1, "rates": (0.1, 0.2)}) == {"seed": 1, "rates": [0.1, 0.2], "accuracy": 5.0}
    assert again.found({"seed": 2}) is None
    again.add({"seed": 3}, {"accuracy": 7.0})
    assert bands.KeptRuns(path).found({"seed": 3}) == {"seed": 3, "accuracy": 7.0}
