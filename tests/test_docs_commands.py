"""Every command shown in the documentation works when its page is pasted, block by block, into an empty folder."""

import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

from privamp.cli.application import app

DOCS = Path(__file__).parents[1] / "docs"
SLOW = {"audit.md", "importance_guide.md"}  # minutes, and figures of papers that tests/papers makes
TAKES_MINUTES = ("audit designs",)  # tests/verify checks every design


def commands(page: Path) -> list[str]:
    """The lines of a page's shell blocks that call privamp, with continued lines joined."""
    blocks = re.findall(r"^```sh\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    joined = re.sub(r"\\\n\s*", " ", "".join(blocks))
    return [line for line in joined.splitlines() if line.startswith("privamp ")]


PAGES = [page for page in sorted(DOCS.rglob("*.md")) if commands(page)]


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, id=page.name, marks=[pytest.mark.slow] * (page.name in SLOW)) for page in PAGES],
)
def test_commands_work_as_printed(page: Path, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for line in commands(page):
        if line.startswith("privamp train") and find_spec("torch") is None:
            continue
        if line.removeprefix("privamp ").startswith(TAKES_MINUTES):
            continue
        words = shlex.split(line, comments=True)[1:]
        asked, target = (words[:-2], words[-1]) if ">" in words else (words, "")
        result = CliRunner().invoke(app, asked, prog_name="privamp")
        assert result.exit_code == (1 if "--claim" in asked else 0), f"{line}\n{result.output}"
        if target:
            Path(target).write_text(result.stdout, encoding="utf-8")


def test_pages_are_found() -> None:
    assert {"cli.md", "ledger.md"} <= {page.name for page in PAGES}
