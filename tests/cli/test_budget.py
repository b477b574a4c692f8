"""privamp budget: create, show, log, cancel; head, verify and backup for auditors."""

import json

import pytest

from privamp import Budget, Gaussian, PureDP

CREATE = ("budget", "create", "study.db", "--epsilon", "3", "--delta", "1e-6", "--population", "patients")


def test_create_show_and_log(privamp, tmp_path):
    made = privamp(*CREATE)
    assert made.exit_code == 0, made.output
    assert "renyi" in made.stdout
    assert "nothing spent yet" in privamp("budget", "log", "study.db").stdout
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
        (("budget", "create", "new.db", "--epsilon", "1", "--population", "a", "--order", "2"), "order is only for"),
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
        (("budget", "show", "study.db", "--last", "0"), "last must be"),
        (("budget", "log", "study.db", "--key", "none.key"), "--jsonl"),
        (("budget", "cancel", "study.db", "9", "--reason", "why"), "no entry 9"),
        (("budget", "cancel", "study.db", "2", "--reason", "why"), "no entry 2"),
        (("budget", "cancel", "study.db", "2", "--reason", " "), "needs a reason"),
        (("budget", "cancel", "study.db", "2"), "--reason"),
        (("budget", "verify", "none.db"), "cannot be read"),
        (("budget", "verify", "notes.txt"), "not a privamp budget store"),
        (("budget", "verify", "study.db", "--head", "notes.txt"), "not the head"),
        (("budget", "verify", "study.db", "--head", "none.json"), "cannot be read"),
        (("budget", "verify", "study.db", "--public-key", "12"), "64 hexadecimal"),
        (("budget", "verify", "study.db", "--public-key", "00" * 32), "needs --head"),
        (("budget", "backup", "study.db", "notes.txt"), "not overwritten"),
        (("budget", "backup", "study.db", "nowhere/copy.db"), "no folder"),
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


def told(result):
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_show_says_what_each_entry_bought_and_counts_nothing_twice(privamp, tmp_path):
    privamp("budget", "create", "study.db", "--epsilon", "1", "--population", "patients")
    budget = Budget.open(tmp_path / "study.db")
    certificate = {"epsilon": 0.25, "because": ["a theorem"]}
    budget.reserve(PureDP(0.25), job="mean", columns=["age", "size"], certificate=certificate).commit()
    budget.reserve(PureDP(0.25), note="under way")
    budget.reserve(PureDP(0.25), note="never asked").cancel("not needed")
    (one,) = told(privamp("budget", "show", "study.db", "--json"))["budgets"]
    assert one["spent"] == {"epsilon": 0.5}
    assert one["reserved"] == {"epsilon": 0.25}
    assert sum(e["cost"]["epsilon"] for e in one["entries"] if e["state"] != "cancelled") == one["spent"]["epsilon"]
    assert one["entries"][0]["certificate"] == certificate
    shown = privamp("budget", "show", "study.db").stdout
    assert [e["reason"] for e in one["entries"]] == ["", "", "not needed"]
    for words in ("mean(age, size)", "under way", "cancelled:", budget.log()[0].user):
        assert words in shown


def test_cancel_gives_back_what_crashed_before_its_noise_and_nothing_else(privamp, tmp_path):
    privamp("budget", "create", "study.db", "--epsilon", "1", "--population", "patients")
    budget = Budget.open(tmp_path / "study.db")
    crashed, drawn = budget.reserve(PureDP(0.25)), budget.reserve(PureDP(0.5))
    drawn.spend()
    cancel = ("budget", "cancel", "study.db", "--reason", "power cut", "--json")
    assert told(privamp(*cancel, str(crashed.number)))["left"] == {"epsilon": 0.5}
    refused = privamp(*cancel, str(drawn.number))
    assert refused.exit_code == 2
    assert "noise was not drawn" in refused.stdout
    (entries,) = told(privamp("budget", "log", "study.db", "--json"))["budgets"]
    assert [(e["state"], e["reason"]) for e in entries["entries"]] == [("cancelled", "power cut"), ("spent", "")]


def test_a_kept_head_shows_a_rollback(privamp, tmp_path):
    privamp(*CREATE)
    budget, path = Budget.open(tmp_path / "study.db"), tmp_path / "study.db"
    budget.spend(Gaussian(5.0))
    assert privamp("budget", "backup", "study.db", "old.db").exit_code == 0
    budget.spend(Gaussian(5.0))
    head = privamp("budget", "head", "study.db").stdout
    (tmp_path / "head.json").write_text(head)
    verify = ("budget", "verify", "study.db", "--head", "head.json")
    budget.spend(Gaussian(5.0))  # the store goes on, and still has the head
    assert told(privamp(*verify, "--json"))["anchored_at"] == json.loads(head)["number"]
    assert "entry 4, the head, is in it" in privamp(*verify).stdout
    (tmp_path / "old.db").replace(path)
    result = privamp(*verify)
    assert result.exit_code == 1
    assert "it was replaced by an older copy" in result.stderr
    Budget.create(tmp_path / "other.db", population="patients", epsilon=1.0)
    assert "of another store" in privamp("budget", "verify", "other.db", "--head", "head.json").stderr


def test_signed_heads_and_trails(privamp, tmp_path):
    privamp(*CREATE)
    Budget.open(tmp_path / "study.db").spend(Gaussian(5.0), note="Zoë\n\x1b[2J")
    for name in ("auditor.key", "other.key"):
        privamp("sample", "--new-key", name)
    head = told(privamp("budget", "head", "study.db", "--key", "auditor.key"))
    other = told(privamp("budget", "head", "study.db", "--key", "other.key"))["public_key"]
    trail = privamp("budget", "log", "study.db", "--jsonl", "--key", "auditor.key").stdout
    (tmp_path / "study.db").unlink()  # a machine without the store
    (tmp_path / "trail.jsonl").write_text(trail)
    verify = ("budget", "verify", "trail.jsonl", "--json", "--public-key")
    assert told(privamp(*verify, head["public_key"]))["signed_by"] == head["public_key"]
    assert "not signed by the given key" in privamp(*verify, other).stdout
    assert "signed by" in privamp("budget", "verify", "trail.jsonl").stdout


def test_labels_and_notes_cannot_steer_a_terminal(privamp, tmp_path):
    evil = "\x1b]0;title\x07\x1b[31mred\u202e\nnext"
    made = privamp("budget", "create", "study.db", "--epsilon", "1", "--population", evil)
    Budget.open(tmp_path / "study.db").spend(PureDP(0.1), note=evil, job=evil)
    outputs = [made, privamp("budget", "show", "study.db"), privamp("budget", "log", "study.db")]
    outputs += [
        privamp("budget", "verify", "study.db"),
        privamp("budget", "show", "study.db", "--population", evil[1:]),
    ]
    outputs.append(privamp("budget", "create", "study.db", "--epsilon", "1", "--population", evil))
    for result in outputs:
        assert not set(result.output) & set("\x1b\x07\u202e"), result.output
    assert "\\x1b[31mred" in outputs[1].stdout
    assert told(privamp("budget", "show", "study.db", "--json"))["budgets"][0]["population"] == evil
