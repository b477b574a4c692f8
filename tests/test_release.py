"""What a release says of itself is the same everywhere."""

import re
import tomllib
from pathlib import Path

import pytest

from privamp import __version__

ROOT = Path(__file__).parents[1]


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_version_and_date_agree():
    citation, changelog = text("CITATION.cff"), text("CHANGELOG.md")
    released = re.search(r"^date-released: (\S+)$", citation, re.MULTILINE)
    assert f"\nversion: {__version__}\n" in citation
    assert released
    newest = re.search(r"^## \[([^\]]+)\](?: - (\S+))?$", changelog, re.MULTILINE)
    assert newest
    assert newest.groups() == ("Unreleased", None) or newest.groups() == (__version__, released[1])
    assert "### Guarantees changed" in changelog


def test_supported_pythons_agree():
    known = re.search(r"^PYTHONS \?= (.*)$", text("Makefile"), re.MULTILINE)
    assert known
    wanted = known[1].split()
    classifiers = tomllib.loads(text("pyproject.toml"))["project"]["classifiers"]
    assert [c.rsplit(" ", 1)[1] for c in classifiers if re.search(r":: 3\.\d+$", c)] == wanted
    assert re.findall(r'"(3\.\d+)"', text(".github/workflows/checks.yml")) == wanted


def test_the_workflow_only_calls_the_checks():
    runs = re.findall(r"^\s*- run: (.*)$", text(".github/workflows/checks.yml"), re.MULTILINE)
    assert runs == [".ci/run"]


@pytest.mark.parametrize("page", sorted((ROOT / "docs/decisions").glob("*.md")), ids=lambda page: page.stem)
def test_every_decision_is_listed_and_says_why(page):
    if page.name != "index.md":
        assert f"({page.name})" in text("docs/decisions/index.md")
        assert all(f"**{word}.**" in page.read_text(encoding="utf-8") for word in ("Decision", "Why", "Cost"))
