"""Whatever a job or an engine needs to know of a design, it asks the design: nobody outside keeps a list of designs."""

import ast
import inspect
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

import privamp
from privamp.core.design import Design
from privamp.core.schedule import Schedule

PACKAGE = Path(privamp.__file__).parent
OWN_ROOMS = ("designs", "schedules")
TESTS = ("isinstance", "issubclass")

# (file, class) → the reason. An entry that is used no more must go.
EXCEPTIONS: dict[tuple[str, str], str] = {
    ("accounting/gaussian_rounds.py", "WithoutReplacement"): "a theorem about rounds of exactly this design",
    ("accounting/gaussian_rounds.py", "WithReplacement"): "a theorem about rounds of exactly this design",
    ("adapters/dp_accounting.py", "Poisson"): "dp-accounting has an event for exactly this design",
    ("adapters/batches.py", "Rounds"): "rounds of a design are drawn when they are asked for, all others at once",
}


@cache
def kinds() -> set[str]:
    """The names of all designs and schedules, abstract ones too, but for the two nouns themselves."""
    found = set()
    for room in OWN_ROOMS:
        package = import_module(f"privamp.{room}")
        for info in iter_modules(package.__path__):
            for kind in vars(import_module(f"privamp.{room}.{info.name}")).values():
                if inspect.isclass(kind) and issubclass(kind, (Design, Schedule)):
                    found.add(kind.__name__)
    return found - {"Design", "Schedule"}


def lists_of_designs(source: str, names: set[str]) -> list[tuple[int, str]]:
    """(line, class) wherever something is compared with a class of `names`, or several of them are listed."""
    tree, found = ast.parse(source), []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in TESTS and len(node.args) == 2:
            where = node.args[1]
        elif isinstance(node, ast.Compare) and "type(" in ast.unparse(node.left):
            where = ast.Tuple(node.comparators)
        elif isinstance(node, ast.MatchClass):
            where = node.cls
        elif isinstance(node, (ast.Tuple, ast.List, ast.Set)) and all(isinstance(e, ast.Name) for e in node.elts):
            where = node if len(node.elts) > 1 else ast.Tuple([])
        else:
            continue
        used = {part.id for part in ast.walk(where) if isinstance(part, ast.Name)} & names
        used |= {part.attr for part in ast.walk(where) if isinstance(part, ast.Attribute)} & names
        found += [(node.lineno, name) for name in sorted(used)]
    return sorted(set(found))


@cache
def all_lists() -> dict[tuple[str, str], int]:
    names, found = kinds(), {}
    for path in sorted(PACKAGE.rglob("*.py")):
        file = path.relative_to(PACKAGE).as_posix()
        if file.partition("/")[0] not in OWN_ROOMS:
            for line, name in lists_of_designs(path.read_text(encoding="utf-8"), names):
                found[file, name] = line
    return found


def test_nobody_outside_keeps_a_list_of_designs():
    new = {f"{file}:{line} asks whether a design is {name}" for (file, name), line in all_lists().items()
           if (file, name) not in EXCEPTIONS}  # fmt: skip
    assert not new, "let Design answer it instead:\n" + "\n".join(sorted(new))


def test_no_exception_outlives_its_use():
    assert EXCEPTIONS.keys() <= all_lists().keys()


@pytest.mark.parametrize(
    "source",
    [
        "isinstance(design, Poisson)",
        "isinstance(design, (Clustered, FixedSize))",
        "isinstance(design, poisson.Poisson | int)",
        "issubclass(kind, Poisson)",
        "type(design) is Poisson",
        "type(design) in (Poisson, int)",
        "{type(part) for part in parts} == {Poisson}",
        "KNOWN = (Poisson, Systematic)",
        "match design:\n    case Poisson(rate=q):\n        pass",
    ],
)
def test_a_list_is_noticed(source):
    assert {name for _, name in lists_of_designs(source, kinds())}


@pytest.mark.parametrize("source", ["Poisson(0.1)", "isinstance(x, Design)", "isinstance(part.equal_chances, Coins)"])
def test_using_a_design_is_no_list(source):
    assert not lists_of_designs(source, kinds())
