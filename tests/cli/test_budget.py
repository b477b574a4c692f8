"""privamp budget: create, show, log."""

import json

import pytest

from privamp import Budget, Gaussian, PureDP

CREATE = ("budget", "create", "study.db", "--epsilon", "3", "--delta", "1e-6", "--population", "patients")


def test_create_show_and_log(privamp, tmp_path):
    made = privamp(*CREATE)
    assert made.exit_code == 0, made.output
    assert "renyi" in made.stdout
    assert "nothing was spent yet" in privamp("budget", "log", "study.db").stdout
    budget = Budget.open(tmp_path / "study.db")
    budget.spend(Gaussian(5.0), note="mean age")
    held = budget.reserve(Gaussian(5.0), note="cut off by a crash")
    shown = json.loads(privamp("budget", "show", "study.db", "--json").stdout)
    (one,) = shown["budgets"]
    cost = one["order"] / 50
    assert one["population"] == "patients"
    assert one["spent"]["renyi_loss"] == pytest.approx(2 * cost)
    assert one["reserved"]["renyi_loss"] == pytest.approx(cost)
    assert one["limit"]["renyi_loss"] == pytest.approx(one["left"]["renyi_loss"] + 2 * cost)
    assert any("Feldman" in reason for reason in one["because"])
    shown = privamp("budget", "show", "study.db", "--population", "patients").stdout
    assert "reserved, no answer" in shown
    log = privamp("budget", "log", "study.db").stdout
    for word in ("mean age", "answered", "reserved", "cut off by a crash"):
        assert word in log
    (entries,) = json.loads(privamp("budget", "log", "study.db", "--last", "1", "--json").stdout)["budgets"]
    assert [(e["note"], e["state"]) for e in entries["entries"]] == [("cut off by a crash", "reserved")]
    held.cancel()


def test_a_second_population_in_the_same_store(privamp, tmp_path):
    privamp(*CREATE)
    made = privamp("budget", "create", "study.db", "--epsilon", "1", "--population", "nurses", "--json")
    assert json.loads(made.stdout)["rule"] == "pure"
    Budget.open(tmp_path / "study.db", "nurses").spend(PureDP(0.5))
    shown = json.loads(privamp("budget", "show", "study.db", "--json").stdout)["budgets"]
    assert [(b["population"], b["spent"]) for b in shown] == [
        ("patients", {"renyi_loss": 0.0, "delta": 0.0}),
        ("nurses", {"epsilon": 0.5}),
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (CREATE, "not overwritten"),
        (("budget", "create", "notes.txt", "--epsilon", "1", "--population", "a"), "not a privamp budget store"),
        (("budget", "create", "new.db", "--epsilon", "-1", "--population", "a"), "epsilon must be"),
        (("budget", "create", "new.db", "--epsilon", "nan", "--population", "a"), "epsilon must be"),
        (("budget", "create", "new.db", "--epsilon", "1", "--population", " "), "label"),
        (("budget", "create", "new.db", "--epsilon", "1", "--population", "a", "--rule", "best"), "rule must be"),
        (("budget", "create", "new.db", "--epsilon", "1", "--population", "a", "--order", "2"), "order belongs"),
        (("budget", "create", "new.db", "--epsilon", "1", "--population", "a", "--neighbors", "x"), "neighbors must"),
        (
            ("budget", "create", "new.db", "--epsilon", "1e-9", "--delta", "1e-9", "--population", "a"),
            "nothing fits",
        ),
        (("budget", "create", "nowhere/new.db", "--epsilon", "1", "--population", "a"), "no folder"),
        (("budget", "create", "new.db", "--population", "a"), "--epsilon"),
        (("budget", "show", "none.db"), "no budget store"),
        (("budget", "show", "notes.txt"), "not a privamp budget store"),
        (("budget", "show", "study.db", "--population", "b"), "it has 'patients'"),
        (("budget", "log", "study.db", "--last", "0"), "last must be"),
    ],
)
def test_mistakes_are_one_sentence(privamp, tmp_path, arguments, words):
    privamp(*CREATE)
    (tmp_path / "notes.txt").write_text("something else\n" * 100)
    before = sorted(path.name for path in tmp_path.iterdir())
    for extra in ((), ("--json",)):
        result = privamp(*arguments, *extra)
        assert result.exit_code == 2, result.output
        said = json.loads(result.stdout)["error"] if extra else result.stderr
        assert words in said
        assert "Traceback" not in result.output
    assert sorted(path.name for path in tmp_path.iterdir()) == before
