"""Specs and files written by nobody in their right mind: an answer or a sentence, never a traceback.

A short run every time; `pytest -m slow tests/cli/test_fuzz.py` asks 100,000 specs and 4,000 broken files.
"""

import contextlib
import io
import json
import os
import random
from pathlib import Path

import numpy as np
import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from privamp.cli.application import app

KEYS = ["rate", "size", "population", "wor", "wr", "sigma", "scale", "epsilon", "delta", "sensitivity", "neighbors"]
KEYS += ["categories", "dimension", "p", "speed", ""]
NUMBERS = ["0", "1", "2", "3", "7", "10", "50", "0.1", "0.5", "1e-3", "1e-300", "1e300", "-1", "nan", "inf", "-inf"]
VALUES = [*NUMBERS, "?", "", "add-remove", "replace-one", "[bold]", "１", "1_0", "0x10", "=", "\0"]
FITTING = {
    "rate": ["0", "1e-9", "0.1", "0.5", "1"],
    "size": ["1", "2", "5"],
    "population": ["5", "10", "1000"],
    "wor": ["1", "2", "5"],
    "wr": ["1", "2", "50"],
    "dimension": ["1", "3"],
    "categories": ["2", "10"],
    "delta": ["0", "1e-9", "0.1"],
}
FITTING |= {key: ["1e-3", "0.5", "1", "4", "1e3"] for key in ("sigma", "scale", "epsilon", "sensitivity")}
SENSIBLE = {
    "poisson": ["rate"],
    "wor": ["size", "population"],
    "wr": ["size", "population"],
    "multistage": ["wor", "wr", "population"],
    "gaussian": ["sigma", "sensitivity"],
    "laplace": ["scale", "sensitivity"],
    "discrete-laplace": ["scale"],
    "geometric": ["epsilon"],
    "randomized-response": ["epsilon", "categories"],
    "norm": ["scale", "dimension"],
    "pure": ["epsilon"],
    "approx": ["epsilon", "delta"],
    "poison": ["rate"],
    "": [],
}


@st.composite
def spec(draw, words: list[str]) -> str:
    word = draw(st.sampled_from(words))
    keys = SENSIBLE[word] if draw(st.integers(0, 4)) else draw(st.lists(st.sampled_from(KEYS), max_size=4))
    return f"{word}:" * bool(word) + ",".join(f"{key}={draw(value(key))}" for key in keys)


def value(key: str) -> st.SearchStrategy[str]:
    """Half the time something that fits the key."""
    return st.sampled_from(FITTING.get(key, NUMBERS)) | st.sampled_from(VALUES)


DESIGNS = spec(["poisson", "wor", "wr", "multistage", "poison", ""])
MECHANISMS = spec([word for word in SENSIBLE if word not in ("poisson", "wor", "wr", "multistage")])
QUESTIONS = st.sampled_from([["--delta", "1e-6"], ["--epsilon", "1"], ["--neighbors", "replace-one"], []])


@settings(max_examples=300, deadline=None)
@given(design=DESIGNS | st.text(max_size=20), mechanism=MECHANISMS | st.text(max_size=20), question=QUESTIONS)
def test_any_spec_is_answered_or_refused(design, mechanism, question) -> None:
    arguments = ["amplify", f"--design={design}", f"--mechanism={mechanism}", *question, "--json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code in (0, 2), (design, mechanism, result.output)
    assert json.loads(result.stdout)["schema"] == 1


COMMAND = typer.main.get_command(app)  # built once: building it takes longer than most answers
UNEXPECTED = "unexpected error"


def told(*arguments: str) -> tuple[int, str]:
    """The exit code and everything that was printed."""
    out = io.StringIO()
    code = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            COMMAND.main(list(arguments), prog_name="privamp")
        except SystemExit as end:
            code = int(end.code or 0)
    return code, out.getvalue()


DESIGN_WORDS = ["poisson", "wor", "wr", "multistage", "random-size", "proportional", "systematic", "cluster", "poison"]
MECHANISM_WORDS = [word for word in SENSIBLE if word not in ("poisson", "wor", "wr", "multistage")]
MECHANISM_WORDS += ["exact-laplace", "exact-gaussian", "discrete-gaussian"]


def any_spec(chance: random.Random, words: list[str]) -> str:
    """Mostly a spec that could be meant, often with something wrong in it, sometimes torn by a random edit."""
    word = chance.choice(words)
    keys = SENSIBLE.get(word, []) if chance.random() < 0.6 else chance.choices(KEYS, k=chance.randrange(5))
    pairs = [f"{key}={chance.choice(FITTING.get(key, NUMBERS) if chance.random() < 0.6 else VALUES)}" for key in keys]
    text = f"{word}:" + ",".join(pairs)
    for _ in range(chance.choice([0, 0, 0, 1, 3])):
        at = chance.randrange(len(text) + 1)
        text = (
            text[:at]
            + chance.choice([",", ":", "=", "", "\0", "é", "9" * 30, "-", "e"])
            + text[at + chance.randrange(3) :]
        )
    return text


def ask_specs(times: int, seed: int) -> list[tuple[str, str]]:
    """Ask about so many pairs of specs; returns those that were not answered and not refused."""
    chance, failed = random.Random(seed), []
    for _ in range(times):
        design, mechanism = any_spec(chance, DESIGN_WORDS), any_spec(chance, MECHANISM_WORDS)
        question = chance.choice([("--delta", "1e-6"), ("--epsilon", "1"), ("--neighbors", "replace-one"), ()])
        code, text = told("amplify", f"--design={design}", f"--mechanism={mechanism}", *question, "--json")
        if code not in (0, 2):
            failed.append((design, mechanism, text[-300:]))
    return failed


def whole_files(folder: Path) -> dict[str, list[list[str]]]:
    """Good files, and the commands that read them; the file's name is put where FILE stands."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(1)
    columns = {"id": [f"p{i}" for i in range(40)], "x": rng.uniform(0, 9, 40).round(3), "group": ["a", "b"] * 20}
    rows = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    (folder / "people.csv").write_text("\n".join(["id,x,group", *rows]) + "\n")
    parquet.write_table(pa.table(columns), folder / "people.parquet")
    np.savez(folder / "people.npz", x=columns["x"], y=columns["x"][::-1])
    (folder / "sample.key").write_text("ab" * 32 + "\n")
    told("budget", "create", str(folder / "budget.db"), "--population", "p", "--epsilon", "3")
    for file in folder.iterdir():
        file.chmod(0o600)
    survey = ["FILE", "--size", "20"]
    tables = [
        ["bootstrap", "FILE", "--column", "x", "--bounds", "0:9", "--jobs", "1"],
        ["survey", "estimate", *survey, "--value", "x", "--bounds", "0:9", "--epsilon", "1"],
        ["survey", "estimate", *survey, "--strata", "group", "--value", "x", "--bounds", "0:9", "--epsilon", "1"],
        ["survey", "plan", *survey, "--value", "x", "--bounds", "0:9", "--epsilon", "1", "--strata", "group"],
        ["survey", "draw", *survey, "--id", "id", "--out", "o.csv", "--overwrite"],
        ["kmeans", "FILE", "--k", "2", "--epsilon", "1", "--radius", "9", "--columns", "x", "--out", "c.csv"],
    ]
    draw = ["survey", "draw", "people.csv", "--size", "20", "--out", "o.csv", "--overwrite"]
    return {
        "people.csv": tables,
        "people.parquet": tables,
        "people.npz": [tables[0], tables[5]],
        "sample.key": [[*draw, "--label", "people", "--key-file", "FILE"]],
        "budget.db": [["budget", name, "FILE"] for name in ("show", "log", "head", "verify")],
    }


def broken(chance: random.Random, good: bytes) -> bytes:
    """Bits flipped, pieces torn out, doubled or moved, ends cut off, other characters put in."""
    data = bytearray(good)
    for _ in range(chance.choice([1, 1, 2, 5, 40])):
        at = chance.randrange(len(data) + 1)
        end = min(len(data), at + chance.choice([1, 2, 8, 100]))
        kind = chance.randrange(6)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del data[at:end]
        elif kind == 2:
            data[at:at] = data[at:end]
        elif kind == 3:
            del data[at:]
        elif kind == 4:
            data[at:at] = chance.choice([b"nan", b"1e999", b",", b"\n", b'"', b"\0", b"\xff\xfe", "é".encode(), b"-"])
        else:
            data[at:end] = bytes(chance.randrange(256) for _ in range(end - at))
    return bytes(data)


def feed_files(folder: Path, times: int, seed: int) -> list[tuple[str, str]]:
    """Break so many files and have them read; returns what was not answered and not refused."""
    chance, failed = random.Random(seed), []
    good = whole_files(folder)
    whole = {name: (folder / name).read_bytes() for name in good}
    for i in range(times):
        name = chance.choice(list(good))
        path = folder / f"broken-{name}"
        path.unlink(missing_ok=True)
        path.touch(0o600)
        path.write_bytes(broken(chance, whole[name]))
        command = [str(path) if word == "FILE" else word for word in chance.choice(good[name])]
        code, text = told(*command, "--json")
        if code not in (0, 2) or UNEXPECTED in text:
            kept = folder / f"failed-{i}-{name}"
            kept.write_bytes(path.read_bytes())
            failed.append((" ".join(command), text[-300:]))
    return failed


def test_specs_in_a_hurry():
    assert ask_specs(150, seed=1) == []


def test_broken_files_in_a_hurry(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert feed_files(tmp_path, 60, seed=1) == []


@pytest.mark.slow
def test_a_hundred_thousand_specs():
    assert ask_specs(int(os.environ.get("PRIVAMP_FUZZ", "100000")), seed=2) == []


@pytest.mark.slow
def test_thousands_of_broken_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert feed_files(tmp_path, int(os.environ.get("PRIVAMP_FUZZ", "4000")), seed=2) == []
