"""Every test that the threat model names exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`((?:[a-z_]+/)?test_[a-z_]+\.py|…)(?:::(\w+))?", PAGE)))
TESTS = ROOT / "tests"
SOURCES = {path.relative_to(TESTS).as_posix(): path.read_text() for path in TESTS.rglob("test_*.py")}


def test_the_page_names_tests():
    assert len(NAMED) > 30


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_a_named_test_is_there(file, name):
    if file != "…":
        assert file in SOURCES
    where = SOURCES.values() if file == "…" else [SOURCES[file]]
    assert not name or any(f"def {name}(" in text for text in where)
