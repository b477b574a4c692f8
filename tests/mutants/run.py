"""Try random mutations of the rooms that decide privacy, each against the tests of its own room.

    python tests/mutants/run.py --rooms numerics chance --count 10 --seed 1

A mutant runs in a copy of the checkout, never in the checkout. Its room's tests run with -x, those files first that
name what is changed, for at most `--seconds` of processor time. Seed, room and count decide the mutations. Mutants in
equivalent.toml, which change nothing that can be observed, are counted apart; so is one that is out of time, which may
hang or may only have slow tests.
"""

import argparse
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from mutations import Mutation, compiled

HOME = Path(__file__).resolve().parents[2]
KNOWN = Path(__file__).with_name("equivalent.toml")
LEFT_OUT = shutil.ignore_patterns(".git", ".venv*", ".*_cache", "__pycache__", "*.egg-info", "site", "dist", "build")
NEEDS = {"torch": "torch", "spark": "pyspark"}
ROOMS = {
    name: (f"src/privamp/{name}", f"tests/{name}")
    for name in (
        "numerics",
        "chance",
        "core",
        "mechanisms",
        "designs",
        "accounting",
        "rules",
        "sums",
        "kmeans",
        "survey",
        "bootstrap",
        "engines",
        "torch",
    )
}
OF_OTHERS = {"engines": "spark*.py", "torch": "dpis.py"}  # tried by tests/spark and tests/papers


@dataclass(frozen=True)
class Mutant:
    """One changed file of one room."""

    room: str
    path: str
    mutation: Mutation
    before: str
    after: str
    line: int
    changed: bytes

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What equivalent.toml knows it by: lines move, so their numbers do not count."""
        return self.path, self.mutation.scope, self.before, self.after

    def __str__(self) -> str:
        scope = self.mutation.scope or "the module"
        return f"{self.path}:{self.line} in {scope}\n    - {self.before}\n    + {self.after}"


def mutants_of(room: str, home: Path = HOME) -> list[Mutant]:
    """Every mutant of a room."""
    found = []
    folder, _ = ROOMS[room]
    others = set((home / folder).glob(OF_OTHERS.get(room, "")) if room in OF_OTHERS else ())
    for path in sorted(set((home / folder).rglob("*.py")) - others):
        source = path.read_bytes()
        for mutation, changed in compiled(source):
            name = path.relative_to(home).as_posix()
            line = mutation.line_number(source)
            found.append(Mutant(room, name, mutation, *mutation.lines(source), line, changed))
    return found


def chosen(room: str, count: int, seed: int, home: Path = HOME) -> list[Mutant]:
    """`count` of a room's mutants, each kind as likely as another: there are many more constants than names."""
    dice = random.Random(f"{seed} {room}")
    kinds: dict[str, list[Mutant]] = {}
    for mutant in mutants_of(room, home):
        kinds.setdefault(mutant.mutation.kind, []).append(mutant)
    for some in kinds.values():
        dice.shuffle(some)
    found: list[Mutant] = []
    while len(found) < count and any(kinds.values()):
        found.append(kinds[dice.choice(sorted(kind for kind in kinds if kinds[kind]))].pop())
    return found


def in_order(mutant: Mutant, home: Path) -> list[str]:
    """The room's test files, those that name the changed function or its file most often first."""
    words = {*mutant.mutation.scope.split("."), Path(mutant.path).stem} - {""}
    texts = {path: path.read_text() for path in (home / ROOMS[mutant.room][1]).rglob("test_*.py")}
    named = {path: sum(text.count(word.strip("_")) for word in words) for path, text in texts.items()}
    files = sorted(texts, key=lambda path: (-named[path], len(texts[path]), path))
    return [path.relative_to(home).as_posix() for path in files]


def tried(mutant: Mutant, copy: Path, seconds: int) -> tuple[str, str]:
    """killed, survived or out of time, and the test that failed."""
    target = copy / mutant.path
    original = target.read_bytes()
    target.write_bytes(mutant.changed)
    try:
        command = [sys.executable, "-B", "-m", "pytest", "-x", "-p", "no:cacheprovider", "-m", "not slow", "--tb=no"]
        done = _run([*command, *in_order(mutant, copy)], copy, seconds)
    finally:
        target.write_bytes(original)
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if done.returncode in (-9, -24, 137, 152):
        return "out of time", ""
    return ("survived", "") if done.returncode == 0 else ("killed", failed[0][:150] if failed else "no test ran")


def _run(command: Sequence[str], folder: Path, seconds: int) -> subprocess.CompletedProcess[str]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))

    places = {"PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **places}, preexec_fn=limit, capture_output=True, text=True, check=False
    )


def is_tried_at_all(room: str, copy: Path, seconds: int) -> bool:
    """Whether a file that cannot be imported fails the room's tests: otherwise the copy is not what is tested."""
    path = f"{ROOMS[room][0]}/__init__.py"
    broken = b'raise RuntimeError("planted")\n' + (copy / path).read_bytes()
    return tried(Mutant(room, path, Mutation("planted", 0, 0, "", ""), "", "", 1, broken), copy, seconds)[0] == "killed"


def known_equivalents(path: Path = KNOWN) -> dict[tuple[str, str, str, str], str]:
    """The reason for each mutant that changes nothing."""
    rows = tomllib.loads(path.read_text()).get("mutant", [])
    return {(row["path"], row["scope"], row["before"], row["after"]): row["because"] for row in rows}


def results(mutants: Sequence[Mutant], seconds: int) -> Iterator[tuple[Mutant, str, str]]:
    """Each mutant with what became of it."""
    equivalents = known_equivalents()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(HOME, copy, ignore=LEFT_OUT, symlinks=True)
        for room in dict.fromkeys(m.room for m in mutants):
            if not is_tried_at_all(room, copy, seconds):
                sys.exit(f"the tests of {room} pass although it cannot be imported: they do not test the copy")
        for mutant in mutants:
            if mutant.key in equivalents:
                yield mutant, "equivalent", equivalents[mutant.key]
            else:
                yield mutant, *tried(mutant, copy, seconds)


def main() -> None:
    """Print what became of each mutant, then the counts and the survivors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rooms", nargs="+", choices=ROOMS, default=list(ROOMS))
    parser.add_argument("--count", type=int, default=10, help="mutants of each room (default 10)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=600, help="processor time for one mutant (default 600)")
    parser.add_argument("--only", default="", help="only mutants of files whose path contains this text")
    given = parser.parse_args()
    rooms = [room for room in given.rooms if find_spec(NEEDS.get(room, "ast"))]
    for room in sorted(set(given.rooms) - set(rooms)):
        print(f"{room}: skipped, it needs {NEEDS[room]}")
    mutants = [m for room in rooms for m in chosen(room, given.count, given.seed) if given.only in m.path]
    counts: dict[str, Counter[str]] = {room: Counter() for room in rooms}
    rest = []
    for mutant, became, what in results(mutants, given.seconds):
        counts[mutant.room][became] += 1
        print(f"{time.strftime('%H:%M:%S')} {became:12} {mutant.mutation.kind:10} {mutant}\n    {what}", flush=True)
        if became in ("survived", "out of time"):
            rest.append((became, mutant))
    _summary(counts)
    for became, mutant in rest:
        print(f"{became}: {mutant}")


def _summary(counts: dict[str, Counter[str]]) -> None:
    print(f"\n{'room':12} {'mutants':>8} {'killed':>7} {'survived':>9} {'out of time':>12} {'equivalent':>11}")
    for room, one in [*counts.items(), ("all", sum(counts.values(), Counter()))]:
        figures = [sum(one.values()), one["killed"], one["survived"], one["out of time"], one["equivalent"]]
        print("{:12} {:8} {:7} {:9} {:12} {:11}".format(room, *figures))
    total = sum(counts.values(), Counter())
    decided = total["killed"] + total["survived"] + total["out of time"]
    if decided:
        print(f"killed of those not known to be equivalent: {total['killed'] / decided:.1%}")


if __name__ == "__main__":
    main()
