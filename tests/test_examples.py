"""Every script in examples/ runs as it is, without a display, and prints something."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


def run(script: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    environment.pop("DISPLAY", None)
    return subprocess.run(
        [sys.executable, str(script)],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )


def check(script: Path, folder: Path) -> None:
    finished = run(script, folder)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.strip(), f"{script.name} printed nothing"


def test_there_are_examples() -> None:
    assert EXAMPLES, "examples/ has no scripts"  # an empty parametrisation below would pass silently


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.stem)
def test_example_runs_and_prints(script: Path, tmp_path: Path) -> None:
    check(script, tmp_path)


@pytest.mark.parametrize("source", ["raise SystemExit(3)", "pass"], ids=["fails", "silent"])
def test_a_broken_example_is_caught(source: str, tmp_path: Path) -> None:
    script = tmp_path / "broken.py"
    script.write_text(source, encoding="utf-8")
    with pytest.raises(AssertionError):
        check(script, tmp_path)
