"""Specs written by nobody in their right mind: an answer or a sentence, never a traceback."""

import json

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
