"""With the core's dependencies alone, everything works or says in one sentence what to install.

The optional libraries are blocked by an import hook in a process of its own, so that one installation tests both.
"""

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer

from privamp.cli.application import app
from privamp.errors import InvalidInput, MissingExtra
from privamp.extras import _BROUGHT_BY, missing, need

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "privamp"
CORE = {"numpy", "scipy", "cryptography", "typer", "rich"}
SENTENCE = re.compile(r"^[^\n]* needs [^\n]*; install it with: pip install 'privamp\[\w+\]'$")

BLOCK = f"""
import sys

class Without:
    'A finder of modules that does not find the optional libraries.'

    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in {sorted({*_BROUGHT_BY, "polars", "duckdb"})}:
            return self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path[:] = map(Without, sys.meta_path)
"""


def in_the_core(code: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter in which no optional library can be imported."""
    command = [sys.executable, "-W", "error", "-c", BLOCK + code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=folder)


def test_every_public_name_loads_or_says_what_to_install(tmp_path: Path) -> None:
    code = """
import privamp
from privamp import *
for name in {*privamp.__all__, *privamp._HOME, *privamp._EXTRAS}:
    try:
        getattr(privamp, name)
    except privamp.MissingExtra as error:
        print(name, error, sep=": ")
"""
    run = in_the_core(code, tmp_path)
    assert run.returncode == 0, run.stderr
    said = dict(line.split(": ", 1) for line in run.stdout.splitlines())
    assert said.keys() == {"PrivateKMeans", "Table", "open_table", "spark"}
    assert all(SENTENCE.match(sentence) for sentence in said.values()), said


def test_every_module_of_the_core_imports(tmp_path: Path) -> None:
    code = """
import importlib, pkgutil, privamp
for found in pkgutil.walk_packages(privamp.__path__, "privamp.", onerror=lambda name: None):
    if not found.name.endswith("__main__"):
        try:
            importlib.import_module(found.name)
        except ImportError as error:
            print(found.name)
"""
    run = in_the_core(code, tmp_path)
    assert run.returncode == 0, run.stderr
    needs_more = {
        "privamp.engines", "privamp.queries", "privamp.spark", "privamp.tables.columns", "privamp.tables.sources",
        "privamp.tables.addresses", "privamp.tables.folders",
        "privamp.tables.csv_ids", "privamp.tables.csv_text", "privamp.tables.id_columns",
        "privamp.tables.secret_files", "privamp.kmeans.estimator", "privamp.cli.train.run",
        "privamp.report.notebook_figure", "privamp.tables.parquet_rows", "privamp.tables.pieces",
    }  # fmt: skip
    beyond = ("adapters", "audits.records", "torch", "engines", "queries", "spark", "app.web")
    rooms = tuple(f"privamp.{room}." for room in beyond)
    assert {name for name in run.stdout.split() if not name.startswith(rooms)} == needs_more


JOBS = """
import numpy as np, privamp as pa
from privamp import survey

people = np.linspace(0.0, 1.0, 200)
sample = pa.Poisson(0.5).draw(200, pa.Key.generate())
assert abs(sample.release(pa.Laplace(1.0), people)) < 1e6
assert sample.guarantee().epsilon() < 1.0
assert pa.PrivateSum(bounds=1.0, epsilon=1.0).release(people).guarantee.epsilon() <= 1.0
assert pa.PrivateMean(bounds=1.0, epsilon=1.0).release(people).guarantee.epsilon() <= 1.0
drawn = pa.WithoutReplacement(50, 200).draw(200, pa.Key.generate())
assert survey.estimate(drawn, people, bounds=(0, 1), epsilon=1.0).value is not None
g = pa.compose(pa.amplify(pa.Gaussian(2.0), pa.Poisson(0.1)), 10)
assert pa.Guarantee.from_json(g.to_json()).epsilon(1e-6) == g.epsilon(1e-6)
assert pa.calibrate(pa.Gaussian, pa.Poisson(0.1), epsilon=1.0, delta=1e-6).sigma > 0
try:
    g.pld()
except pa.MissingExtra as error:
    print(error)
"""


def test_the_core_draws_releases_and_certifies_in_memory(tmp_path: Path) -> None:
    run = in_the_core(JOBS, tmp_path)
    assert run.returncode == 0, run.stderr
    assert SENTENCE.match(run.stdout.strip()), run.stdout


POISSON, GAUSSIAN = ("--design", "poisson:rate=0.3"), ("--mechanism", "gaussian:sigma=2")
COMPARE = ("compare", "--size", "40", "--population", "100", *GAUSSIAN)
PLAN = ("people.csv", "--size", "6", "--epsilon", "1")
VALUE = ("--value", "x", "--bounds", "0:1", "--statistic", "mean")
WORKS = [
    ("demo",),
    ("example", "schools"),
    ("amplify", *POISSON, *GAUSSIAN, "--epsilon", "1"),
    COMPARE,
    ("calibrate", *POISSON, "--mechanism", "gaussian:sigma=?", "--epsilon", "1", "--delta", "1e-6"),
    ("sample", "--new-key", "new.key"),
    ("weights", "--epsilon", "1"),
    ("bootstrap", "people.npz", "--column", "x", "--bounds", "0:1", "--epsilon", "1", "--delta", "1e-6"),
    ("verify", "certificate.json"),
    ("theorem", "poisson-1"),
    ("audit", "bounds", "--only", "rate .01"),
    ("reproduce", "list"),
    ("budget", "create", "new.db", "--epsilon", "1", "--population", "people"),
    ("budget", "show", "old.db"),
    ("budget", "log", "old.db"),
    ("budget", "cancel", "old.db", "3", "--population", "people", "--reason", "no power"),
    ("budget", "head", "old.db"),
    ("budget", "verify", "old.db"),
    ("budget", "backup", "old.db", "copy.db"),
    ("budget", "rotate-key", "old.db", "--key", "old.key"),
]
WORKS_AND_TAKES_LONG = [
    ("reproduce", "must-eta", "--out", "."),
    ("audit", "designs", "--checks", "1"),
    ("audit", "release", *POISSON, "--mechanism", "laplace:scale=1", "--trials", "400"),
    ("audit", "workloads", "--trials", "400", "--only", "uniform sum"),
    ("audit", "mistakes"),
]
NEEDS_MORE = [
    (*COMPARE, "--plot", "picture.png"),
    ("weights", "--epsilon", "1", "--plot", "picture.png"),
    ("sample", "people.csv", *POISSON, "--out", "sample.parquet", "--key-file", "old.key"),
    ("bootstrap", "people.csv", "--column", "x", "--bounds", "0:1", "--epsilon", "1"),
    ("query", "people.csv", "--count", "--epsilon", "1"),
    ("kmeans", "people.npz", "--k", "2", "--epsilon", "1", "--radius", "1", "--out", "centres.csv"),
    ("serve", "--check"),
    ("train", "--data", "people.npz", "--model", "mlp", "--epsilon", "1", "--population", "9", "--out", "model.pt"),
    ("reproduce", "must-figure-4", "--out", "."),
    ("survey", "plan", *PLAN),
    ("survey", "draw", *PLAN, "--id", "id", "--out", "drawn.csv"),
    ("survey", "estimate", *PLAN, *VALUE),
    ("survey", "pilot", *PLAN, "--value", "x", "--bounds", "0:1"),
    ("audit", "records"),
    ("audit", "mistakes", "--plot", "picture.png"),
]
COMMANDS = """
import json, numpy as np
from typer.testing import CliRunner
from privamp import Budget, Gaussian
from privamp.cli.application import app

def ask(*arguments):
    found = CliRunner().invoke(app, list(arguments), prog_name="privamp")
    return found.exit_code, found.stdout, found.stderr

people = np.linspace(0.0, 1.0, 20)
np.savez("people.npz", x=people)
open("people.csv", "w").write("id,x\\n" + "".join(f"p{k},{x}\\n" for k, x in enumerate(people)))
ask("budget", "create", "old.db", "--epsilon", "3", "--delta", "1e-6", "--population", "people")
Budget.open("old.db").reserve(Gaussian(5.0))
ask("sample", "--new-key", "old.key")
certificate = ask("amplify", "--design", "poisson:rate=0.3", "--mechanism", "laplace:scale=1", "--json")[1]
open("certificate.json", "w").write(certificate)
for line in open(sys.argv[1]):
    print(json.dumps(ask(*json.loads(line))))
"""


def answers(asked: list[tuple[str, ...]], folder: Path) -> list[tuple[int, str, str]]:
    """(exit code, stdout, stderr) of each command, all in one process without the optional libraries."""
    questions = folder / "questions.jsonl"
    questions.write_text("".join(json.dumps(arguments) + "\n" for arguments in asked), encoding="utf-8")
    run = in_the_core(COMMANDS, folder, str(questions))
    assert run.returncode == 0, run.stderr
    return [tuple(json.loads(line)) for line in run.stdout.splitlines()]


@pytest.mark.parametrize("commands", [WORKS, pytest.param(WORKS_AND_TAKES_LONG, marks=pytest.mark.slow)])
def test_commands_of_the_core_work(tmp_path: Path, commands: list[tuple[str, ...]]) -> None:
    for asked, (code, out, err) in zip(commands, answers(commands, tmp_path), strict=True):
        assert code == 0, (asked, out, err)


def test_other_commands_say_what_to_install_and_leave_nothing(tmp_path: Path) -> None:
    for asked, (code, out, err) in zip(NEEDS_MORE, answers(NEEDS_MORE, tmp_path), strict=True):
        assert code == 2, (asked, out, err)
        assert SENTENCE.match(err.removeprefix("Error: ").strip()), (asked, err)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"questions.jsonl", "people.npz", "people.csv", "old.db", "old.key", "certificate.json"}


def test_every_command_is_asked() -> None:
    def names(group: Any, before: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
        inner = getattr(group, "commands", None)
        if inner is None:
            return {before}
        return set().union(*(names(command, (*before, name)) for name, command in inner.items()))

    migrated = ("budget", "migrate")  # needs a store of the version before: tests/accounting/test_budget_migration.py
    asked = [*WORKS, *WORKS_AND_TAKES_LONG, *NEEDS_MORE, migrated]
    for name in names(typer.main.get_command(app)):
        assert any(arguments[: len(name)] == name for arguments in asked), name


def imported_libraries() -> set[str]:
    """Every top-level module of another project that a file of the package imports, wherever in the file."""
    names: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names.add(node.module.partition(".")[0])
    return names - set(sys.stdlib_module_names) - {"privamp"}


def test_every_library_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {re.match(r"[\w-]+", line)[0] for line in project["dependencies"]} == CORE
    frames = {"polars", "duckdb"}  # bring themselves: their own frames are audited where they are installed
    others = {"fsspec"}  # and the package of a file system; a refusal says what to install
    others |= {"triton", "llvmlite", "py4j"}  # come with torch for CUDA, numba and PySpark
    assert imported_libraries() - CORE - frames - others <= _BROUGHT_BY.keys()
    extras = project["optional-dependencies"]
    assert {extra for _, extra in _BROUGHT_BY.values()} <= extras.keys()
    everything = set(re.findall(r"\w+", extras["all"][0].partition("[")[2]))
    assert everything == {extra for _, extra in _BROUGHT_BY.values()} - {"torch", "opacus", "jax", "spark"}


def test_the_lowest_versions_are_the_ones_that_are_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pinned = dict(re.findall(r"^([\w-]+)==([\d.]+)", (ROOT / "constraints/lowest.txt").read_text(), re.MULTILINE))
    needed = [*project["dependencies"]]
    for extra in ("plots", "tables", "kmeans", "pld", "keyring"):
        needed += project["optional-dependencies"][extra]
    for name, least in (re.fullmatch(r"([\w-]+)>=([\d.]+)", line).groups() for line in needed):
        assert re.fullmatch(rf"{re.escape(least)}(\.0)*", pinned[name]), (name, least, pinned[name])


def test_the_sentence_is_invalid_input_and_an_import_error() -> None:
    with pytest.raises(MissingExtra, match=r"a hat needs bowler; install it with: pip install bowler") as caught:
        need("bowler", "a hat")
    assert isinstance(caught.value, InvalidInput)
    assert isinstance(caught.value, ImportError)


def test_a_broken_library_is_not_called_missing() -> None:
    a_part = ModuleNotFoundError("No module named 'pyarrow.moved'", name="pyarrow.moved")
    assert missing(a_part, "this") is a_part
