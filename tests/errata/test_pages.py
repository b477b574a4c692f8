"""What the documentation prints is run, and every test an erratum names exists."""

import re
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OTHERS = ("persons", "reproductions")
PAGES = [*sorted((ROOT / "docs" / "designs").glob("*.md")), *(ROOT / "docs" / f"{name}.md" for name in OTHERS)]


def python_blocks(text: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_numbers_of_a_design_page(page: Path) -> None:
    shown = python_blocks(page.read_text(encoding="utf-8"))
    assert shown
    for code in shown:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # designs that degrade warn, as their pages say
            exec(compile(code, str(page), "exec"), {"__name__": page.stem})


def test_extending_shows_the_example_as_it_is() -> None:
    shown = python_blocks((ROOT / "docs" / "extending.md").read_text(encoding="utf-8"))
    assert shown[0] == (ROOT / "examples" / "truncated_poisson.py").read_text(encoding="utf-8")


def test_every_erratum_names_tests_that_exist() -> None:
    page = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
    written = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    items = re.split(r"^## ", page, flags=re.MULTILINE)[1:]
    for item in items:
        named = re.findall(r"`(test_\w+)`", item)
        assert named, item.splitlines()[0]
        for name in named:
            assert f"def {name}(" in written, name
