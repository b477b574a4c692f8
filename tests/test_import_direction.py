"""Imports run left to right only, so that every room can be read knowing only the rooms to its left."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "privamp"

# Left to right. A room may import every room in an earlier line; rooms on one line may not import each other.
ORDER = (
    ("errors",),
    ("extras",),
    ("validation", "atomic_files", "proofs"),
    ("numerics",),
    ("chance",),
    ("core",),
    ("rules",),
    ("mechanisms", "designs"),
    ("schedules",),
    ("accounting",),
    ("datasets",),
    ("amplification",),
    ("calibration",),
    ("verify", "tables"),
    ("engines",),
    ("sums",),
    ("queries", "kmeans", "survey", "bootstrap", "sgd", "torch", "adapters"),
    ("spark",),
    ("spec",),
    ("report",),
    ("papers",),
    ("audits",),
    ("app",),
    ("cli",),
)
POSITION = {room: position for position, line in enumerate(ORDER) for room in line}

# Outside the order: what each may import.
APART = {
    "testing": {room for room, position in POSITION.items() if position <= POSITION["core"]},
    "__main__": {"cli"},
}

# Seeds must not reach a room that releases anything; the verifiers draw made-up data, reproducibly.
MAY_IMPORT_TESTING = {"verify", "audits"}

# (file, imported room) → the reason.
EXCEPTIONS = {
    ("core/sample.py", "amplification"): "a sample certifies itself",
    ("core/guarantee.py", "amplification"): "a certificate is recomputed from its claims",
    ("core/release.py", "report"): "a release shows and draws itself",
    ("core/guarantee.py", "report"): "a guarantee shows and draws itself",
    ("core/design.py", "report"): "a design shows itself",
    ("survey/planning.py", "report"): "a plan shows and draws itself",
    ("survey/allocation.py", "report"): "an allocation shows and draws itself",
    ("bootstrap/planning.py", "report"): "a plan shows itself",
    ("queries/plan.py", "report"): "a plan shows itself",
    ("torch/plan.py", "report"): "a plan shows itself",
    ("torch/bands.py", "report"): "a plan shows and draws itself",
    ("core/guarantee.py", "accounting"): "a guarantee states itself in other currencies",
}


def absolute(file: str, module: str | None, level: int) -> list[str]:
    """The dotted name that an import in `file` means; `level` counts its leading dots."""
    named = module.split(".") if module else []
    if level == 0:
        return named
    package = ["privamp", *Path(file).parts[:-1]]
    return package[: len(package) - level + 1] + named


def imported_modules(file: str, source: str) -> Iterator[tuple[int, list[str]]]:
    """(line, dotted name) of every import in `source`, also in functions and under TYPE_CHECKING."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name.split(".")
        elif isinstance(node, ast.ImportFrom):
            base = absolute(file, node.module, node.level)
            for alias in node.names:
                yield node.lineno, [*base, alias.name]
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if called in ("import_module", "__import__") and isinstance(node.args[0].value, str):
                name = node.args[0].value
                level = len(name) - len(name.lstrip("."))
                yield node.lineno, absolute(file, name.lstrip("."), level)


def may_import(importer: str, imported: str) -> bool:
    if importer in APART:
        return imported in APART[importer]
    if imported == "testing":
        return importer in MAY_IMPORT_TESTING
    return imported in POSITION and importer in POSITION and POSITION[imported] < POSITION[importer]


@cache
def wrong_imports(file: str, source: str) -> list[tuple[str, str]]:
    """(imported room, message) for each import in `file` that runs the wrong way."""
    importer = Path(file).parts[0].removesuffix(".py")
    wrong = []
    for line, name in imported_modules(file, source):
        where = f"{file}:{line} imports {'.'.join(name)}"
        if name[0] != "privamp":
            continue
        imported = name[1] if len(name) > 1 else ""
        if imported == importer or (imported.startswith("__") and imported != "__main__"):
            continue  # its own room, or privamp.__version__
        if imported not in POSITION and imported not in APART:
            wrong.append((imported, f"{where}: import it from its room instead"))
        elif not may_import(importer, imported):
            wrong.append((imported, f"{where}: {imported} is not to the left of {importer}"))
    return wrong


def source_files() -> dict[str, str]:
    return {
        path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(PACKAGE.rglob("*.py"))
        if path != PACKAGE / "__init__.py"  # the front door names every room, lazily
    }


def test_every_file_has_a_place_in_the_order() -> None:
    rooms = {Path(file).parts[0].removesuffix(".py") for file in source_files()}
    assert rooms
    assert rooms <= POSITION.keys() | APART.keys(), "give the new room a place in ORDER"


def test_imports_run_left_to_right() -> None:
    messages = [
        message
        for file, source in source_files().items()
        for room, message in wrong_imports(file, source)
        if (file, room) not in EXCEPTIONS
    ]
    assert not messages, "\n".join(messages)


def test_no_exception_outlives_its_use() -> None:
    used = {(file, room) for file, source in source_files().items() for room, _ in wrong_imports(file, source)}
    assert EXCEPTIONS.keys() <= used


@pytest.mark.parametrize(
    ("file", "source", "caught"),
    [
        ("core/design.py", "from ..designs.poisson import Poisson", "designs"),
        ("core/design.py", "from .. import designs", "designs"),
        ("core/design.py", "import privamp.designs.poisson", "designs"),
        ("core/design.py", "from privamp.designs import poisson", "designs"),
        ("core/design.py", "def late():\n    from ..accounting.joint import Joint", "accounting"),
        ("core/design.py", "if TYPE_CHECKING:\n    from ..cli import main", "cli"),
        ("core/design.py", "importlib.import_module('privamp.verify')", "verify"),
        ("core/__init__.py", "from ..designs import poisson", "designs"),
        ("designs/poisson.py", "from ..mechanisms.laplace import Laplace", "mechanisms"),
        ("mechanisms/laplace.py", "from ..designs.poisson import Poisson", "designs"),
        ("verify/exact.py", "from ..engines import local", "engines"),
        ("engines/local.py", "from ..sums import private_sum", "sums"),
        ("amplification.py", "from .calibration import calibrate", "calibration"),
        ("errors.py", "from .validation import whole", "validation"),
        ("spec.py", "from .report import table", "report"),
        ("testing.py", "from .designs.poisson import Poisson", "designs"),
        ("cli/main.py", "from ..testing import seeded", "testing"),
        ("designs/poisson.py", "def late():\n    from ..testing import seeded", "testing"),
        ("engines/local.py", "from ..testing import seeded", "testing"),
        ("cli/main.py", "from .. import Poisson", "Poisson"),
        ("cli/main.py", "import privamp", ""),
    ],
)
def test_a_wrong_import_is_caught(file: str, source: str, caught: str) -> None:
    assert [room for room, _ in wrong_imports(file, source)] == [caught]


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("core/design.py", "from .sample import Sample"),
        ("core/design.py", "from ..chance.keys import Key"),
        ("numerics/roots.py", "from ..errors import InvalidInput"),
        ("designs/poisson.py", "from privamp.core.design import Design"),
        ("calibration.py", "from .amplification import amplify"),
        ("verify/exact.py", "from .. import amplification"),
        ("report/table.py", "from ..spec import parse"),
        ("cli/main.py", "from .. import __version__, papers, report, spec"),
        ("testing.py", "from .chance.stream import Stream"),
        ("verify/checks.py", "from ..testing import seeded"),
        ("__main__.py", "from .cli import main"),
        ("errors.py", "import numpy.typing"),
    ],
)
def test_a_right_import_passes(file: str, source: str) -> None:
    assert wrong_imports(file, source) == []
