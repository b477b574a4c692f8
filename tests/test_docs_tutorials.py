"""Every notebook of the tutorials runs, and shows the numbers that are stored in it.

Pictures are not compared. What depends on a fresh key or on the version of torch is tagged `varies`: it must run.
"""

import json
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

from scripts import script

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "tutorials"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
MOST_BYTES = 300_000
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")
NEEDS = {"opacus_user": "opacus"}


def read(path: Path) -> dict[str, Any]:
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return notebook


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def text_of(outputs: list[dict[str, Any]]) -> str:
    """What a reader sees: HTML where there is some, without the lines of its pictures, or else text."""
    shown = []
    for output in outputs:
        data = output.get("data", {"text/plain": output.get("text", [])})
        shown.append("picture" if "image/png" in data else "".join(data.get("text/html", data["text/plain"])))
    return re.sub(r'points="[^"]*"', "", "\n".join(shown))


def is_close(stored: str, now: str) -> bool:
    """Whole numbers are equal; others differ by one unit of their last digit at most, which rounding may decide."""
    stored, now = stored.replace(",", ""), now.replace(",", "")
    if "." not in stored and "e" not in stored:
        return stored == now
    digits, _, power = stored.partition("e")
    unit = 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))
    return abs(float(stored) - float(now)) <= 1.01 * unit


def differences(stored: str, now: str) -> list[str]:
    """Where what is shown now is not what is stored."""
    if NUMBER.sub("#", stored) != NUMBER.sub("#", now):
        return [f"stored:\n{stored}\nnow:\n{now}"]
    pairs = zip(NUMBER.findall(stored), NUMBER.findall(now), strict=True)
    return [f"{before} is stored, {after} is shown now" for before, after in pairs if not is_close(before, after)]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_is_stored(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if path.stem in NEEDS:
        pytest.importorskip(NEEDS[path.stem], reason=f"{path.name} needs pip install 'privamp[{NEEDS[path.stem]}]'")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    cells = code_cells(read(path))
    with warnings.catch_warnings():
        if path.stem in NEEDS:
            warnings.simplefilter("ignore")  # those of another library
        found = script("docs/tutorials/execute.py").outputs_of(read(path))
    for cell, now in zip(cells, found, strict=True):
        stored = cell["outputs"]
        assert [output["output_type"] for output in stored] == [output["output_type"] for output in now], cell["source"]
        if "varies" not in cell["metadata"].get("tags", ()):
            assert not differences(text_of(stored), text_of(now)), "run docs/tutorials/execute.py where this is meant"


def test_the_five_notebooks_are_small_and_whole() -> None:
    assert len(NOTEBOOKS) == 5
    for path in NOTEBOOKS:
        notebook = read(path)
        assert path.stat().st_size < MOST_BYTES, path.name
        assert notebook["nbformat"] == 4
        assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
        numbers = [cell["execution_count"] for cell in code_cells(notebook)]
        assert numbers == list(range(1, len(numbers) + 1)), f"{path.name} was not run from top to bottom"
        assert str(Path.home()) not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("stored", "now", "is_same"),
    [
        ("epsilon 0.3639 of 5,000", "epsilon 0.3640 of 5,000", True),
        ("epsilon 0.3639", "epsilon 0.3642", False),
        ("5,000 people", "5,001 people", False),
        ("delta 1.23e-06", "delta 1.22e-06", True),
        ("delta 1.23e-06", "delta 1.23e-07", False),
        ("answered", "refused", False),
    ],
)
def test_a_number_that_differs_is_caught(stored: str, now: str, is_same: bool) -> None:
    assert (not differences(stored, now)) == is_same


def test_an_error_in_a_cell_is_raised_and_the_folder_is_left() -> None:
    here = Path.cwd()
    with pytest.raises(ZeroDivisionError):
        script("docs/tutorials/execute.py").outputs_of({"cells": [{"cell_type": "code", "source": ["1 / 0"]}]})
    assert Path.cwd() == here


def test_a_page_of_the_site_has_text_code_and_outputs() -> None:
    pytest.importorskip("mkdocs", reason="mkdocs is part of the extra [docs]")
    hook = script("docs/notebooks.py")
    for path in NOTEBOOKS:
        page = hook.page_of(path.read_text(encoding="utf-8"), path.name)
        assert page.startswith("# ")
        assert page.count("```python\n") == len(code_cells(read(path)))
        assert f"]({path.name})" in page
        blocks = re.findall(r'^<div class="notebook-output">.*', page, re.M)
        assert blocks
        assert all(block.endswith("</div>") for block in blocks)
