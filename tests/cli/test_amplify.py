import json
import math

import pytest

ASKED = {"schema", "design", "mechanism", "mechanism_neighbors", "neighbors", "steps"}
KEYS = ASKED | {"because", "assumes", "certificate"}
WOR = ["amplify", "--design", "wor:size=400,population=1000", "--mechanism"]


def answer(result) -> dict:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_delta_at_epsilon(privamp) -> None:
    found = answer(privamp(*WOR, "gaussian:sigma=1", "--epsilon", "1", "--json"))
    assert set(found) == KEYS | {"epsilon", "delta_upper", "delta_lower"}
    assert found["delta_lower"] <= found["delta_upper"] == pytest.approx(found["delta_lower"])


def test_epsilon_at_delta(privamp) -> None:
    found = answer(privamp(*WOR, "gaussian:sigma=1", "--delta", "1e-6", "--json"))
    assert set(found) == KEYS | {"delta", "epsilon_upper", "epsilon_lower"}
    assert round(found["epsilon_upper"], 2) == 3.79  # THEORY 4
    assert found["neighbors"] == found["mechanism_neighbors"] == "replace-one"


def test_pure(privamp) -> None:
    found = answer(privamp(*WOR, "pure:epsilon=1", "--json"))
    assert set(found) == KEYS | {"delta_upper", "epsilon_upper", "epsilon_lower"}
    assert found["delta_upper"] == 0.0
    assert found["epsilon_upper"] == pytest.approx(math.log(1 + 0.4 * (math.e - 1)))


@pytest.mark.parametrize(
    ("design", "relation", "spec", "read_for"),
    [
        ("poisson:rate=0.1", "replace-one", "pure:epsilon=1", "add-remove"),
        ("poisson:rate=0.1", "add-remove", "pure:epsilon=1", "add-remove"),
        ("wor:size=1,population=10", "replace-one", "pure:epsilon=1", "replace-one"),
        ("wor:size=1,population=10", "replace-one", "pure:epsilon=1,neighbors=add-remove", "add-remove"),
    ],
)
def test_the_relation_of_the_mechanism_is_shown(privamp, design, relation, spec, read_for) -> None:
    question = ["amplify", "--design", design, "--mechanism", spec, "--neighbors", relation]
    assert answer(privamp(*question, "--json"))["mechanism_neighbors"] == read_for
    assert f"sensitivity for {read_for}" in privamp(*question).stdout


def test_queries_share_one_sample_and_steps_do_not(privamp) -> None:
    poisson = ["amplify", "--design", "poisson:rate=0.1", "--mechanism", "pure:epsilon=0.5", "--json"]
    joint = answer(privamp(*poisson, "--queries", "10"))
    fresh = answer(privamp(*poisson, "--steps", "10"))
    assert (joint["queries"], joint["steps"], fresh["steps"]) == (10, 1, 10)
    assert joint["epsilon_upper"] == pytest.approx(2.7563, abs=1e-4)
    assert fresh["epsilon_upper"] == pytest.approx(0.6285, abs=1e-4)


def test_a_person_with_several_records(privamp) -> None:
    one = answer(privamp(*WOR, "pure:epsilon=0.1", "--json"))
    three = answer(privamp(*WOR, "pure:epsilon=0.1", "--records-per-person", "3", "--json"))
    assert three["records_per_person"] == 3
    assert one["epsilon_upper"] < three["epsilon_upper"] <= 3 * one["epsilon_upper"] * (1 + 1e-9)
    assert "up to 3 records" in privamp(*WOR, "pure:epsilon=0.1", "--records-per-person", "3").stdout


def test_people_see_why_and_what_is_assumed(privamp) -> None:
    text = privamp(*WOR, "gaussian:sigma=1", "--delta", "1e-6").stdout
    for part in ("at most 3.78", "at least 3.78", "replace-one", "Thm 9", "idealised real arithmetic"):
        assert part in text


def test_not_pure_asks_for_a_number(privamp) -> None:
    assert "--delta or --epsilon" in privamp(*WOR, "gaussian:sigma=1").stderr


@pytest.mark.slow
def test_the_reference_call(privamp) -> None:
    question = "--design multistage:wor=118,wr=200,population=10000 --mechanism gaussian:sigma=4,sensitivity=2"
    options = "--neighbors replace-one --steps 1000 --epsilon 1 --json"
    found = answer(privamp("amplify", *question.split(), *options.split()))
    assert set(found) == KEYS | {"epsilon", "delta_upper", "delta_lower"}
    assert (found["neighbors"], found["steps"], found["epsilon"]) == ("replace-one", 1000, 1.0)
    assert 0.0374 < found["delta_lower"] < found["delta_upper"] < 0.065


@pytest.mark.parametrize(
    ("design", "mechanism", "many"),
    [
        ("poisson:rate=1", "pure:epsilon=0.5", ["--steps", "3"]),
        ("wor:size=5,population=10", "pure:epsilon=1", ["--steps", "3"]),
        ("wor:size=5,population=1000", "pure:epsilon=1", ["--queries", "3"]),
        ("poisson:rate=0.5", "discrete-laplace:scale=4", ["--steps", "3"]),
    ],
)
def test_no_attack_beats_the_proof(privamp, design, mechanism, many) -> None:
    """Pure releases composed: epsilon at a small delta lies just below the sum, where far tails must not be lost."""
    found = answer(privamp("amplify", "--design", design, "--mechanism", mechanism, *many, "--delta", "1e-6", "--json"))
    assert found["epsilon_lower"] <= found["epsilon_upper"]
