"""Every page about an adapter shows code that runs with the real library, and every adapter is short."""

import ast
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("dp_accounting", "torch", "opacus", "opendp", "jax_privacy")  # named as what they need
LIBRARIES = {"dp-accounting", "opacus", "torch", "opendp", "jax-privacy"}


def blocks_of(page):
    text = (ROOT / "docs" / "adapters" / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_the_page_shows_ten_statements_at_most(page):
    """Imports and lines that only continue a call are not counted."""
    (code,) = blocks_of(page)
    found = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.stmt)]
    assert 1 < sum(not isinstance(node, (ast.Import, ast.ImportFrom)) for node in found) <= 10


@pytest.mark.filterwarnings("ignore")  # of the other libraries
@pytest.mark.parametrize("page", PAGES)
def test_the_page_runs(page, capsys):
    if find_spec(page) is None:
        pytest.skip(f"docs/adapters/{page}.md needs {page}, which is not installed")
    blocks = blocks_of(page)
    assert blocks
    for code in blocks:
        exec(compile(code, f"docs/adapters/{page}.md", "exec"), {"__name__": page})
    assert capsys.readouterr().out.strip()


def test_every_page_is_run():
    assert {path.stem for path in (ROOT / "docs" / "adapters").glob("*.md")} == {*PAGES, "index"}


def test_adapters_are_short():
    lengths = {path.name: len(path.read_text().splitlines()) for path in (ROOT / "src/privamp/adapters").glob("*.py")}
    assert lengths
    assert not {name: length for name, length in lengths.items() if length > 150}


def test_nothing_but_an_adapter_imports_an_adapter():
    files = [path for path in (ROOT / "src/privamp").rglob("*.py") if path.parent.name != "adapters"]
    assert not [path for path in files if re.search(r"import.*adapters|from.*adapters", path.read_text())]


def test_versions_that_were_tested_are_named():
    from privamp.adapters.peers import TESTED

    assert TESTED.keys() == LIBRARIES
    index = (ROOT / "docs" / "adapters" / "index.md").read_text(encoding="utf-8")
    rows = {line.partition("[")[2].partition("]")[0].lower(): line for line in index.splitlines() if "[" in line}
    names = {"torch": "pytorch", "jax-privacy": "jax privacy"}
    assert all(f"| {version} |" in rows[names.get(library, library)] for library, version in TESTED.items())


@pytest.mark.parametrize("library", sorted(LIBRARIES))
def test_what_is_installed_is_what_was_tested(library):
    """Another version may mean something else by the same names: read its changes, then change TESTED and the pages."""
    from importlib.metadata import PackageNotFoundError, version

    from privamp.adapters.peers import TESTED

    try:
        found = version(library)
    except PackageNotFoundError:
        pytest.skip(f"{library} is not installed")
    assert f"{found}.".startswith(f"{TESTED[library]}."), found
