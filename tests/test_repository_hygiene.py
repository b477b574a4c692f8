"""What the repository says holds anywhere: no path of one machine, and the README's code runs as printed."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOT_OURS = {".git", ".venv", "build", "dist", "site", "out", "__pycache__"}

# Written with character classes, so that no pattern matches the line it stands on.
FORBIDDEN = {
    "a path of one machine": re.compile(r"(?<![\w.])/(?:root|home|work|Users)/|\b[A-Z]:\\Users\\"),
    "a package index or registry": re.compile(
        r"pypi\.org|python[h]osted|arti[f]actory|ana[c]onda\.org|docker\.io|gh[c]r\.io|index[-_]url|find[-_]links",
        re.IGNORECASE,
    ),
}
VAGUE = {"utils.py", "util.py", "helpers.py", "helper.py", "misc.py", "common.py"}


def files_of_the_repository() -> list[Path]:
    """The tracked files; where git tracks none (an unpacked sdist), all that are not built."""
    try:
        listed = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True, stderr=subprocess.DEVNULL)
        tracked = [ROOT / name for name in listed.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        tracked = []
    return [path for path in tracked or walk(ROOT) if path.is_file()]


def walk(folder: Path) -> Iterator[Path]:
    for here, folders, names in os.walk(folder):
        folders[:] = [
            name
            for name in folders
            if name not in NOT_OURS and not name.endswith((".egg-info", "_cache")) and name != ".hypothesis"
        ]
        yield from (Path(here, name) for name in names)


def text_of(path: Path) -> str | None:
    """The text of a file, or None for a binary one."""
    data = path.read_bytes()
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def findings(text: str) -> list[str]:
    return [
        f"line {number}: {what}"
        for number, line in enumerate(text.splitlines(), 1)
        for what, pattern in FORBIDDEN.items()
        if pattern.search(line)
    ]


def test_no_file_names_a_machine_or_a_registry() -> None:
    files = files_of_the_repository()
    assert ROOT / "pyproject.toml" in files
    found = [f"{path.relative_to(ROOT)}, {finding}" for path in files for finding in findings(text_of(path) or "")]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "line",
    [
        "open('/" + "root/data.csv')",
        "cd /" + "home/someone/privamp",
        "/" + "work/main",
        "pip install --index" + "-url somewhere privamp",
        "see pypi" + ".org",
    ],
)
def test_a_forbidden_line_is_caught(line: str) -> None:
    assert findings(f"fine\n{line}\n")


@pytest.mark.parametrize("line", ["docs/home/page.md", "and/or", "src/work/sums.py", "the work/rest balance"])
def test_a_harmless_line_passes(line: str) -> None:
    assert not findings(line)


def badly_named(name: str, source: str) -> bool:
    """Whether pytest would miss the tests in this file, or the name says nothing."""
    holds_tests = bool(re.search(r"^\s*(?:async )?def test_|^class Test|^Test\w+ = ", source, re.MULTILINE))
    if name in VAGUE or re.fullmatch(r"[a-z0-9_]+\.py", name) is None:
        return True
    return holds_tests != name.startswith("test_")


def test_test_files_are_named_so_that_they_run() -> None:
    folder = ROOT / "tests"
    tests = [path for path in files_of_the_repository() if path.suffix == ".py" and folder in path.parents]
    bad = [str(path.relative_to(ROOT)) for path in tests if badly_named(path.name, text_of(path) or "")]
    assert tests
    assert not bad, f"not test_*.py though they hold tests, the other way round, or a vague name: {bad}"


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("poisson_test.py", "def test_rate(): ..."),
        ("test_empty.py", "x = 1"),
        ("utils.py", ""),
        ("test_Poisson.py", "def test_rate(): ..."),
    ],
)
def test_a_bad_test_file_name_is_caught(name: str, source: str) -> None:
    assert badly_named(name, source)


def blocks(text: str, *languages: str) -> list[tuple[int, str]]:
    """(first line number, code) of every fenced block in one of `languages`."""
    fence = re.compile(r"^([ \t]*)```(\w+)[^\n]*\n(.*?)^\1```[ \t]*$", re.MULTILINE | re.DOTALL)
    return [
        (text.count("\n", 0, match.start(3)) + 1, re.sub(rf"^{match[1]}", "", match[3], flags=re.MULTILINE))
        for match in fence.finditer(text)
        if match[2] in languages
    ]


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def folder_of_a_reader(tmp_path: Path) -> Path:
    """Where a page's commands run: what they write stays out of the repository, examples/ is at hand."""
    if (ROOT / "examples").is_dir():
        built = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=built)
    return tmp_path


def run_python_blocks(text: str, page: str) -> int:
    namespace: dict[str, object] = {"__name__": "__main__"}
    found = blocks(text, "python")
    for line, code in found:  # the padding makes a traceback name the page's own line
        exec(compile("\n" * (line - 1) + code, page, "exec"), namespace)
    return len(found)


PAGES = ("README.md", "docs/index.md", "docs/guide.md", "docs/ledger.md", "docs/panel.md", "docs/importance_guide.md")
PAGES += ("docs/surveys.md",)


@pytest.mark.parametrize("page", [page for page in PAGES if (ROOT / page).exists()])
def test_python_blocks_run_as_printed(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(folder_of_a_reader(tmp_path))
    assert run_python_blocks(read(page), page), f"{page} shows no ```python block"


def privamp_blocks(text: str) -> list[tuple[int, str]]:
    """The shell blocks whose first command is privamp."""
    return [
        (line, code) for line, code in blocks(text, "sh", "bash") if re.match(r"(?:\s*(?:#[^\n]*)?\n)*privamp ", code)
    ]


def environment_with_privamp(folder: Path) -> dict[str, str]:
    """An environment whose `privamp` is this interpreter's: the console script, else `python -m privamp`."""
    scripts = Path(sys.executable).parent
    if not (scripts / "privamp").exists():
        scripts = folder / "bin"
        scripts.mkdir()
        shim = scripts / "privamp"
        shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m privamp "$@"\n', encoding="utf-8")
        shim.chmod(0o755)
    return {**os.environ, "MPLBACKEND": "Agg", "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}


def test_readme_commands_run_as_printed(tmp_path: Path) -> None:
    shown = privamp_blocks(read("README.md"))
    assert shown, "README.md shows no ```sh block that starts with `privamp `"
    environment = environment_with_privamp(tmp_path)
    folder = folder_of_a_reader(tmp_path)
    rows = "".join(f"{20_000 + 7 * number},{('north', 'south')[number % 2]}\n" for number in range(2_000))
    (folder / "people.csv").write_text(f"income,region\n{rows}")  # as its Python block writes it, smaller
    for line, code in shown:
        finished = subprocess.run(
            ["sh", "-eu", "-c", code],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert finished.returncode == 0, f"README.md line {line}: {code}{finished.stdout}{finished.stderr}"


def test_blocks_are_found_and_their_errors_surface() -> None:
    page = "text\n```python\nx = 1\n```\n\n```sh\n# why\nprivamp demo\n```\n```sh\nmake test\n```\n"
    assert blocks(page, "python") == [(3, "x = 1\n")]
    assert privamp_blocks(page) == [(7, "# why\nprivamp demo\n")]
    with pytest.raises(AssertionError):
        run_python_blocks("```python\nx = 1\n```\n```python\nassert x == 2\n```\n", "page")
