"""DPIS Figure 1 by accounting, and the comparison script in a nutshell."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from privamp.papers.dpis import figure_1 as dpis_figure_1
from privamp.papers.printed import as_expected

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "dpis_comparison.py"


@pytest.fixture(scope="module")
def found() -> list[dpis_figure_1.Curve]:
    return [dpis_figure_1.curve(4.0)]


def test_figure_1(found, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(dpis_figure_1, "curve", lambda epsilon: replace(found[0], epsilon=epsilon))
    outcome = dpis_figure_1.run(tmp_path)
    assert outcome.ok, outcome.text
    assert {p.suffix for p in outcome.files} == {".csv", ".png", ".html"}


def test_checks_notice_a_schedule_that_saves_nothing(found) -> None:
    """Negative control: constant noise has no second phase."""
    flat = replace(found[0], noises=(found[0].noises[0],) * 10)
    assert not as_expected(dpis_figure_1.checks([flat]))


def test_the_comparison_script(tmp_path) -> None:
    pytest.importorskip("torch", reason="torch is not installed (make test-torch)")
    rng = np.random.default_rng(0)
    arrays = {}
    for name, n in (("train", 2000), ("test", 50)):
        arrays |= {f"X_{name}": rng.integers(0, 256, (n, 28, 28), np.uint8), f"y_{name}": rng.integers(0, 10, n)}
    np.savez(tmp_path / "mnist.npz", **arrays)
    out = tmp_path / "runs.json"
    command = [sys.executable, str(SCRIPT), "--model", "mlp", "--batch", "200", "--steps", "3", "--epsilon", "1"]
    command += ["--seeds", "2", "--folder", str(tmp_path), "--out", str(out), "--device", "cpu"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.count("| 1 |") >= 5
    assert "importance minus DP-SGD, matched rate" in done.stdout
    assert all(len(cell["runs"]) == 2 for cell in json.loads(out.read_text(encoding="utf-8")))
    assert "opacus" in done.stdout.lower()  # its row, or that it is skipped
