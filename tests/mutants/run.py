"""Try random mutations of the rooms that decide privacy, each against the tests of its own room.

    python tests/mutants/run.py --rooms numerics chance --count 10 --seed 1

A mutant runs in a copy of the checkout, never in the checkout. The room's tests run once unchanged, which must pass,
and shows which of them enter which function (reach.py). A mutant then meets only the tests that enter what is changed,
with -x, quick ones first, and of these the files that name what is changed. `--maps` keeps what reaches what for the
next run, file by file, as long as sources and that test file stay the same. With `--most 20` a mutant meets only the
first of these tests, 20 seconds of them: what they do not kill counts as a survivor, so the rate is a lower bound. So
it is with `--named 20`, which draws no map: a mutant meets the files that name what is changed for 20 seconds. Seed,
room and count decide the mutations. Mutants in equivalent.toml, which change nothing that can be observed, are counted
apart; so is one that is out of time: it takes
half a minute more than five times what its tests take, or more than `--seconds`.
"""

import argparse
import json
import math
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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from itertools import accumulate, count
from pathlib import Path
from signal import SIGKILL, SIGTERM, signal
from typing import Any

from mutations import Mutation, is_python, mutations

HOME = Path(__file__).resolve().parents[2]
KNOWN = Path(__file__).with_name("equivalent.toml")
LEFT_OUT = shutil.ignore_patterns(".git", ".venv*", ".*_cache", "__pycache__", "*.egg-info", "site", "dist", "build")
PYTEST = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "reach", "-m", "not slow", "--tb=no", "-rfE")
CLOCK = count(1)
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
    source: bytes

    @property
    def changed(self) -> bytes:
        """The whole file with the change."""
        return self.mutation.applied(self.source)

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What equivalent.toml knows it by: lines move, so their numbers do not count."""
        return self.path, self.mutation.scope, self.before, self.after

    def __str__(self) -> str:
        scope = self.mutation.scope or "the module"
        return f"{self.path}:{self.line} in {scope}\n    - {self.before}\n    + {self.after}"


def mutants_of(room: str, home: Path = HOME) -> list[Mutant]:
    """Every mutant of a room; a few are no Python."""
    found = []
    folder, _ = ROOMS[room]
    others = set((home / folder).glob(OF_OTHERS.get(room, "")) if room in OF_OTHERS else ())
    for path in sorted(set((home / folder).rglob("*.py")) - others):
        source = path.read_bytes()
        for mutation in mutations(source):
            name = path.relative_to(home).as_posix()
            line = mutation.line_number(source)
            found.append(Mutant(room, name, mutation, *mutation.lines(source), line, source))
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
        one = kinds[dice.choice(sorted(kind for kind in kinds if kinds[kind]))].pop()
        found += [one] if is_python(one.changed) else []
    return found


Map = dict[str, dict[str, Any]]  # by test: "seconds" and the functions that it "enters"


def drawn_map(room: str, copy: Path, kept: Path, without: Sequence[str] = ()) -> Map:
    """Which functions the room's tests enter; read from the folder `kept` for test files that are as they were."""
    source, tests = ROOMS[room]
    files = sorted((copy / tests).rglob("test_*.py"))
    files = [file for file in files if not any(name in file.name for name in without)]
    shared = [file.relative_to(copy) for file in (copy / tests).rglob("*.py") if not file.name.startswith("test_")]
    common = _digest(copy, "src", "tests/support", "conftest.py", *map(str, shared))
    places = {file: kept / f"{room}-{file.stem}-{common}-{_digest(file)}.json" for file in files}
    missing = [file for file, place in places.items() if not place.exists()]
    if missing:
        drawn = _draw([str(file.relative_to(copy)) for file in missing], copy, source)
        for file in missing:
            start = f"{file.relative_to(copy).as_posix()}::"
            places[file].write_text(json.dumps({test: one for test, one in drawn.items() if test.startswith(start)}))
    return {test: one for place in places.values() for test, one in json.loads(place.read_text()).items()}


def _draw(tests: list[str], copy: Path, source: str) -> Map:
    with tempfile.TemporaryDirectory() as folder:
        to = Path(folder) / "map.json"
        rc, text = _run([*PYTEST, *tests], copy, 3600, {"REACH_MAP": str(to), "REACH_SOURCE": str(copy / source)})
        if rc not in (0, 5):  # 5: all tests of these files are slow, or skipped
            sys.exit(f"{', '.join(tests)} fail without any change:\n{text[-2000:]}")
        drawn: Map = json.loads(to.read_text())
        return drawn


def _digest(folder: Path, *names: str) -> str:
    roots = [folder / name for name in names] or [folder]
    files = sorted({path for root in roots for path in [root, *root.rglob("*")] if path.is_file()})
    texts = (path.read_bytes() for path in files if path.suffix != ".pyc")
    return sha256(b"\0".join(sha256(text).digest() for text in texts)).hexdigest()[:16]


def that_reach(mutant: Mutant, reached: Map) -> list[str]:
    """The tests that enter the changed function, or the one around it, since a compiled one is not seen to be entered.

    For code outside functions, those that enter its file, or all.
    """
    place, scope = f"{mutant.path}::", mutant.mutation.scope
    while scope and not _is_class(scope):
        inside = [test for test, one in reached.items() if f"{place}{scope}" in one["enters"]]
        scope = scope.rpartition(".")[0]
        if inside or _is_class(scope) or not scope:
            return inside
    return [t for t, one in reached.items() if any(name.startswith(place) for name in one["enters"])] or list(reached)


def _is_class(scope: str) -> bool:
    return scope.rpartition(".")[2].lstrip("_")[:1].isupper()


def in_order(mutant: Mutant, reached: Map, home: Path) -> list[str]:
    """The tests that reach it: quick ones first, then files that name the changed function or its file most often."""
    words = {*mutant.mutation.scope.split("."), Path(mutant.path).stem} - {""}
    tests = that_reach(mutant, reached)
    texts = {file: (home / file).read_text() for file in {test.partition("::")[0] for test in tests}}
    named = {file: sum(text.count(word.strip("_")) for word in words) for file, text in texts.items()}

    def place(test: str) -> tuple[bool, int, str, float]:
        file, seconds = test.partition("::")[0], reached[test]["seconds"]
        return seconds > 1, -named[file], file, seconds

    return sorted(tests, key=place)


def first_of(tests: list[str], reached: Map, most: float) -> list[str]:
    """The first tests that take no more seconds than this together; one at least."""
    spent = list(accumulate(reached[test]["seconds"] for test in tests))
    return [test for test, all_so_far in zip(tests, spent, strict=True) if all_so_far <= most] or tests[:1]


def tried(mutant: Mutant, reached: Map, copy: Path, seconds: int, most: float = math.inf) -> tuple[str, str]:
    """killed, survived or out of time, and the test that failed; by tests that take `most` seconds together."""
    entering = in_order(mutant, reached, copy)
    tests = first_of(entering, reached, most)
    if not tests:
        return "survived", "no test enters it"
    limit = min(seconds, 30 + 5 * math.ceil(sum(reached[test]["seconds"] for test in tests)))
    chosen_tests = copy.parent / "chosen.json"
    chosen_tests.write_text(json.dumps(tests))
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    with _changed(copy / mutant.path, mutant.changed):
        rc, text = _run([*PYTEST, "-x", *files], copy, limit, {"REACH_TESTS": str(chosen_tests)})
    failed = [line for line in text.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if rc in (-9, -24, 137, 152):
        return "out of time", f"after {limit} s of processor time"
    if rc == 5:
        sys.exit(f"no test ran:\n{text[-2000:]}")
    if rc == 0:
        return "survived", f"{len(entering)} tests enter it, {len(tests)} were tried"
    return "killed", failed[0][:150] if failed else text[-150:]


def named_first(mutant: Mutant, home: Path) -> list[str]:
    """The room's test files that name the changed file or function, first those with most of it; all if none does."""
    words = {*mutant.mutation.scope.split("."), Path(mutant.path).stem} - {"", "__init__", "__post_init__"}
    texts = {file: file.read_text() for file in sorted((home / ROOMS[mutant.room][1]).rglob("test_*.py"))}
    counts = [{file: text.count(word.strip("_")) for file, text in texts.items()} for word in words]
    # a word in few files says more
    named = {file: sum(of_word[file] / max(sum(of_word.values()), 1) for of_word in counts) for file in texts}
    files = [file for file in sorted(named, key=lambda file: -named[file]) if named[file]] or list(named)
    return [file.relative_to(home).as_posix() for file in files]


def tried_by_name(mutant: Mutant, copy: Path, seconds: int) -> tuple[str, str]:
    """killed or survived, by what the files that name it do in `seconds` of processor time."""
    files = named_first(mutant, copy)
    with _changed(copy / mutant.path, mutant.changed):
        rc, text = _run([*PYTEST, "-x", *files], copy, seconds, {})
    failed = [line for line in text.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if rc in (0, 5, -9, -24, 137, 152):
        return "survived", f"{len(files)} files name it" + (f", not all in {seconds} s" if rc not in (0, 5) else "")
    return "killed", failed[0][:150] if failed else text[-150:]


@contextmanager
def _changed(target: Path, text: bytes) -> Iterator[None]:
    """The file with another text; its bytecode is told by a time that no version before had."""
    original, then = target.read_bytes(), target.stat().st_mtime
    target.write_bytes(text)
    os.utime(target, times=(next(CLOCK),) * 2)
    try:
        yield
    finally:
        target.write_bytes(original)
        os.utime(target, times=(then, then))


def _run(command: Sequence[str], folder: Path, seconds: int, places: dict[str, str]) -> tuple[int, str]:
    """The exit code and what was printed; a process that waits for ever is stopped too."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))

    found = {"PYTHONPATH": f"{folder / 'src'}{os.pathsep}{folder / 'tests/mutants'}", "OPENBLAS_NUM_THREADS": "1"}
    surroundings = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | found | places
    with tempfile.TemporaryFile("w+") as printed:
        options = {"cwd": folder, "env": surroundings, "preexec_fn": limit, "process_group": 0}
        child = subprocess.Popen(command, stdout=printed, stderr=subprocess.STDOUT, **options)
        try:
            rc = child.wait(timeout=30 * seconds)  # others may need the processor too
        except subprocess.TimeoutExpired:
            rc = -SIGKILL
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, SIGKILL)
            child.wait()
        printed.seek(0)
        return rc, printed.read()


def is_tried_at_all(room: str, reached: Map, copy: Path, seconds: int) -> bool:
    """Whether a file that cannot be imported fails the room's tests: otherwise the copy is not what is tested."""
    path = f"{ROOMS[room][0]}/__init__.py"
    broken = Mutation("planted", 0, 0, 'raise RuntimeError("planted")\n', "")
    planted = Mutant(room, path, broken, "", "", 1, (copy / path).read_bytes())
    return tried(planted, reached, copy, seconds)[0] == "killed"


def known_equivalents(path: Path = KNOWN) -> dict[tuple[str, str, str, str], str]:
    """The reason for each mutant that changes nothing."""
    rows = tomllib.loads(path.read_text()).get("mutant", [])
    return {(row["path"], row["scope"], row["before"], row["after"]): row["because"] for row in rows}


def results(
    mutants: Sequence[Mutant],
    seconds: int,
    maps: Path | None = None,
    without: Sequence[str] = (),
    most: float = math.inf,
    named: int = 0,
) -> Iterator[tuple[Mutant, str, str]]:
    """Each mutant with what became of it."""
    equivalents = known_equivalents()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(HOME, copy, ignore=LEFT_OUT, symlinks=True)
        for room in dict.fromkeys(m.room for m in mutants):
            if named:
                yield from _by_name([m for m in mutants if m.room == room], equivalents, copy, named)
                continue
            reached = drawn_map(room, copy, maps or Path(folder), without)
            if not is_tried_at_all(room, reached, copy, seconds):
                sys.exit(f"the tests of {room} pass although it cannot be imported: they do not test the copy")
            for mutant in (m for m in mutants if m.room == room):
                if mutant.key in equivalents:
                    yield mutant, "equivalent", equivalents[mutant.key]
                else:
                    yield mutant, *tried(mutant, reached, copy, seconds, most)


def _by_name(
    mutants: Sequence[Mutant], equivalents: Mapping[Any, str], copy: Path, seconds: int
) -> Iterator[tuple[Mutant, str, str]]:
    for mutant in mutants:
        known = equivalents.get(mutant.key)
        yield mutant, *(("equivalent", known) if known else tried_by_name(mutant, copy, seconds))


def main() -> None:
    """Print what became of each mutant, then the counts and the survivors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rooms", nargs="+", choices=ROOMS, default=list(ROOMS))
    parser.add_argument("--count", type=int, default=10, help="mutants of each room (default 10)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=600, help="processor time for one mutant (default 600)")
    parser.add_argument("--only", default="", help="only mutants of files whose path contains this text")
    parser.add_argument("--maps", type=Path, help="a folder that keeps which tests reach what")
    parser.add_argument("--most", type=float, default=math.inf, help="only tests that take so many seconds together")
    parser.add_argument(
        "--named", type=int, default=0, help="draw no map: so many seconds of files that name the change"
    )
    parser.add_argument("--without", nargs="+", default=[], help="leave out test files with these names, as slow ones")
    given = parser.parse_args()
    signal(SIGTERM, lambda *_: sys.exit("stopped"))  # a test run that is under way ends too
    rooms = [room for room in given.rooms if find_spec(NEEDS.get(room, "ast"))]
    for room in sorted(set(given.rooms) - set(rooms)):
        print(f"{room}: skipped, it needs {NEEDS[room]}")
    mutants = [m for room in rooms for m in chosen(room, given.count, given.seed) if given.only in m.path]
    counts: dict[str, Counter[str]] = {room: Counter() for room in rooms}
    rest = []
    for mutant, became, what in results(mutants, given.seconds, given.maps, given.without, given.most, given.named):
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
