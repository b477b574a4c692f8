"""What nobody asked for: numerics that give up, surprises, interrupts, warnings."""

import json

import pytest

from privamp.errors import BudgetExceeded
from privamp.numerics.roots import NumericalFailure

QUESTION = ["amplify", "--design", "poisson:rate=0.1", "--mechanism", "pure:epsilon=1"]


def fail_with(monkeypatch, error: BaseException) -> None:
    def amplify(*_):
        raise error

    monkeypatch.setattr("privamp.amplification.amplify", amplify)


@pytest.mark.parametrize(
    ("error", "code", "kind"),
    [
        (NumericalFailure("no root was found"), 1, "NumericalFailure"),
        (BudgetExceeded("the budget is spent"), 1, "BudgetExceeded"),
        (ZeroDivisionError(), 1, "ZeroDivisionError"),
        (MemoryError(), 1, "MemoryError"),
        (RuntimeError("a secret value"), 1, "RuntimeError"),
        (KeyboardInterrupt(), 130, "Interrupted"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_failure_is_one_sentence(privamp, monkeypatch, error, code, kind) -> None:
    fail_with(monkeypatch, error)
    result = privamp(*QUESTION)
    assert (result.exit_code, result.stdout) == (code, "")
    assert len(result.stderr.splitlines()) == 1
    assert "secret" not in result.output
    answer = privamp(*QUESTION, "--json")
    assert answer.exit_code == code
    assert json.loads(answer.stdout)["kind"] == kind


def test_a_design_that_loses_privacy_is_loud(privamp) -> None:
    question = ["amplify", "--design", "wr:size=1000,population=100", "--mechanism", "pure:epsilon=1"]
    result = privamp(*question)
    assert result.exit_code == 0
    assert result.stderr.startswith("Warning: ")
    assert len(result.stderr.splitlines()) == 1
    assert "LESS private" in result.stdout
    assert json.loads(privamp(*question, "--json").stdout)["degrades"] is True
