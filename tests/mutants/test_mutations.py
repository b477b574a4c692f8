"""The mutations themselves: each kind is made, texts are left alone, and a mutant is found again by its line."""

import shutil
import subprocess
import sys

import pytest
import run
from mutations import is_python, mutations

SOURCE = b'''"""Docs with 1 + 1."""

@decorated(slots=True)
def bound(low: int = 3, high=0.5) -> float:
    """Not 2 < 3."""
    if low >= high and not low:
        raise ValueError("1 + " + str(low - 1))
    return -max(low, high) * 2 + (  # a - b
        low
    )


class Told:
    def __repr__(self):
        return 1 + 2
'''


def changed():
    return {after for one in mutations(SOURCE) for _, after in [one.lines(SOURCE)]}


@pytest.mark.parametrize(
    "line",
    [
        "if low > high and not low:",
        "if low >= high or not low:",
        "if low >= high and low:",
        "if (not (low >= high and not low)):",
        "if high >= high and not low:",
        "return +max(low, high) * 2 + ( # a - b",
        "return -min(low, high) * 2 + ( # a - b",
        "return -max(low, high) / 2 + ( # a - b",
        "return -max(low, high) * 3 + ( # a - b",
        "return -max(low, high) * 2 - ( # a - b",
        "def bound(low: int = 4, high=0.5) -> float:",
        "def bound(low: int = 3, high=1.0) -> float:",
    ],
)
def test_every_kind_is_made(line):
    assert line in changed()


def test_texts_errors_decorators_and_printing_are_left_alone():
    assert not any(word in line for line in changed() for word in ("Docs", "Not 2", "raise", "slots", "return 1"))
    assert {one.scope for one in mutations(SOURCE)} == {"bound"}


def test_a_name_becomes_one_that_is_known():
    """An unknown one would stop at once and say nothing about the tests."""
    found = [one.becomes for one in mutations(b"def f(floor, x):\n    return min(floor, math.floor(x))\n")]
    assert found == ["max", "ceil"]


def test_a_mutant_changes_one_line_and_is_python():
    for one in mutations(SOURCE):
        before, after = SOURCE.splitlines(), one.applied(SOURCE).splitlines()
        assert is_python(one.applied(SOURCE))
        assert len(before) == len(after)
        (place,) = [i for i, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
        assert place + 1 == one.line_number(SOURCE)


def test_the_seed_decides_and_every_kind_has_its_share():
    first, again, other = (run.chosen("sums", 40, seed) for seed in (1, 1, 2))
    assert [m.key for m in first] == [m.key for m in again] != [m.key for m in other]
    assert {m.mutation.kind for m in first} == {"operator", "comparison", "constant", "branch", "name"}


@pytest.mark.parametrize("name", ["equivalent.toml", "survivors.toml"])
def test_listed_mutants_are_mutants_of_today_with_a_reason(name):
    known = run.known_equivalents(run.KNOWN.with_name(name))
    rooms = {path.split("/")[2] for path, *_ in known}
    today = {mutant.key for room in rooms for mutant in run.mutants_of(room)}
    assert known.keys() <= today
    assert all(len(reason) > 20 for reason in known.values())


TINY = """def bound(x):
    return 0 if x < 1 else 2

def never(x):
    return x + 1
"""


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A checkout with one room, in which one of two functions is tested."""
    monkeypatch.setitem(run.ROOMS, "tiny", ("src/tiny", "tests/tiny"))
    for folder in ("src/tiny", "tests/tiny", "kept"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copytree(run.HOME / "tests/mutants", tmp_path / "tests/mutants")
    (tmp_path / "src/tiny/__init__.py").write_text(TINY)
    (tmp_path / "tests/tiny/test_tiny.py").write_text("import tiny\n\ndef test():\n    assert tiny.bound(5) == 2\n")
    (tmp_path / "tests/tiny/test_else.py").write_text("def test():\n    assert True\n")
    return tmp_path


def test_a_failing_test_kills_and_a_passing_one_does_not(tiny):
    reached = run.drawn_map("tiny", tiny, tiny / "kept")
    became = {"return 0 if x <= 1 else 2": "survived", "return 0 if x < 1 else 3": "killed", "return x - 1": "survived"}
    mutants = [mutant for mutant in run.mutants_of("tiny", tiny) if mutant.after in became]
    assert {mutant.after: run.tried(mutant, reached, tiny, 60)[0] for mutant in mutants} == became
    assert (tiny / "src/tiny/__init__.py").read_text() == TINY
    assert run.is_tried_at_all("tiny", reached, tiny, 60)


def test_only_tests_that_enter_the_changed_function_run(tiny):
    reached = run.drawn_map("tiny", tiny, tiny / "kept")
    by_scope = {mutant.mutation.scope: run.in_order(mutant, reached, tiny) for mutant in run.mutants_of("tiny", tiny)}
    assert by_scope == {"bound": ["tests/tiny/test_tiny.py::test"], "never": []}


def test_a_shared_fixture_counts_for_every_test_that_uses_it(tiny):
    text = "import pytest, tiny\n\n@pytest.fixture(scope='module')\ndef made():\n    return tiny.never(1)\n"
    both = "\n".join(f"def test_{name}(made):\n    assert made == 2\n" for name in ("one", "two"))
    (tiny / "tests/tiny/test_else.py").write_text(f"{text}\n{both}")
    reached = run.drawn_map("tiny", tiny, tiny / "kept")
    never = next(mutant for mutant in run.mutants_of("tiny", tiny) if mutant.mutation.scope == "never")
    assert sorted(run.in_order(never, reached, tiny)) == [f"tests/tiny/test_else.py::test_{n}" for n in ("one", "two")]


def test_a_map_is_drawn_anew_when_a_test_has_changed(tiny):
    first = run.drawn_map("tiny", tiny, tiny / "kept")
    (tiny / "tests/tiny/test_else.py").write_text("import tiny\n\ndef test_new():\n    assert tiny.never(1) == 2\n")
    assert run.drawn_map("tiny", tiny, tiny / "kept").keys() != first.keys()


def test_only_files_that_have_changed_are_drawn_again(tiny, monkeypatch):
    first, drawn, real = run.drawn_map("tiny", tiny, tiny / "kept"), [], run._draw
    monkeypatch.setattr(run, "_draw", lambda tests, *rest: drawn.append(tests) or real(tests, *rest))
    assert run.drawn_map("tiny", tiny, tiny / "kept") == first
    (tiny / "tests/tiny/test_else.py").write_text("def test_new():\n    assert True\n")
    assert "tests/tiny/test_else.py::test_new" in run.drawn_map("tiny", tiny, tiny / "kept")
    assert drawn == [["tests/tiny/test_else.py"]]
    (tiny / "src/tiny/__init__.py").write_text(TINY + "\n")
    run.drawn_map("tiny", tiny, tiny / "kept")
    assert len(drawn[1]) == 2


def test_the_first_tests_are_those_within_the_time():
    reached = {name: {"seconds": seconds} for name, seconds in (("a", 1.0), ("b", 2.0), ("c", 0.5))}
    assert run.first_of(["a", "b", "c"], reached, 3.0) == ["a", "b"]
    assert run.first_of(["a", "b", "c"], reached, 3.5) == ["a", "b", "c"]
    assert run.first_of(["a", "b", "c"], reached, 0.5) == ["a"]  # one at least


def test_without_a_map_the_files_that_name_the_change_are_tried(tiny):
    by_scope = {mutant.mutation.scope: run.named_first(mutant, tiny) for mutant in run.mutants_of("tiny", tiny)}
    everything = ["tests/tiny/test_else.py", "tests/tiny/test_tiny.py"]
    assert by_scope == {"bound": ["tests/tiny/test_tiny.py"], "never": everything}
    became = {"return 0 if x <= 1 else 2": "survived", "return 0 if x < 1 else 3": "killed", "return x - 1": "survived"}
    mutants = [mutant for mutant in run.mutants_of("tiny", tiny) if mutant.after in became]
    assert {mutant.after: run.tried_by_name(mutant, tiny, 60)[0] for mutant in mutants} == became
    (tiny / "tests/tiny/test_tiny.py").write_text(
        "import tiny\n\ndef test():\n    tiny.bound\n    while True:\n        pass\n"
    )
    assert run.tried_by_name(mutants[0], tiny, 2) == ("survived", "1 files name it, not all in 2 s")


def test_a_room_whose_tests_fail_unchanged_is_told(tiny):
    (tiny / "tests/tiny/test_else.py").write_text("def test():\n    assert False\n")
    with pytest.raises(SystemExit, match="fail without any change"):
        run.drawn_map("tiny", tiny, tiny / "kept")
    assert not list((tiny / "kept").iterdir())


def test_a_mutant_that_never_ends_is_out_of_time(tiny, monkeypatch):
    reached = run.drawn_map("tiny", tiny, tiny / "kept")
    (tiny / "tests/tiny/test_tiny.py").write_text("def test():\n    while True:\n        pass\n")
    assert run.tried(run.mutants_of("tiny", tiny)[0], reached, tiny, 2)[0] == "out of time"


def test_the_rooms_are_there():
    for source, tests in run.ROOMS.values():
        assert (run.HOME / source).is_dir()
        assert (run.HOME / tests).is_dir()
    assert subprocess.run([sys.executable, run.__file__, "--help"], capture_output=True, check=False).returncode == 0
