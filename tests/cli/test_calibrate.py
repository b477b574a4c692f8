import json

import pytest

from privamp.spec import design as read_design

GOAL = ["--epsilon", "1", "--delta", "1e-6"]


@pytest.mark.parametrize(
    ("design", "mechanism", "unknown"),
    [
        ("poisson:rate=0.01", "gaussian:sigma=?", "sigma"),
        ("poisson:rate=?", "gaussian:sigma=1", "rate"),
        ("wor:size=?,population=1000", "gaussian:sigma=2", "size"),
        ("wr:size=?,population=1000", "laplace:scale=2", "size"),
        ("wor:size=10,population=?", "gaussian:sigma=1", "population"),
        ("multistage:wor=?,wor=3,population=100", "gaussian:sigma=2", "wor"),
        ("multistage:wor=50,wr=?,population=1000", "gaussian:sigma=8", "wr"),
        ("multistage:wr=20,wor=?,population=1000", "gaussian:sigma=8", "wor"),
        ("wor:size=10,population=100", "pure:epsilon=?", "epsilon"),
        ("wor:size=10,population=100", "gaussian:sigma=3,sensitivity=?", "sensitivity"),
    ],
)
def test_the_answer_reaches_the_goal(privamp, design, mechanism, unknown) -> None:
    result = privamp("calibrate", "--design", design, "--mechanism", mechanism, *GOAL, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["unknown"] == unknown
    assert found["delta_upper"] <= 1e-6
    assert found["wanted"] == {"epsilon": 1.0, "delta": 1e-6}
    filled = ["--design", found["design"], "--mechanism", found["mechanism"]]
    again = privamp("amplify", *filled, "--epsilon", "1", "--json")
    assert json.loads(again.stdout)["delta_upper"] == found["delta_upper"]


def test_sizes_are_the_largest(privamp) -> None:
    question = ["--design", "wor:size=?,population=1000", "--mechanism", "laplace:scale=1", "--epsilon", "0.5"]
    found = json.loads(privamp("calibrate", *question, "--json").stdout)
    assert found["value"] == 377
    assert read_design(found["design"]).size == 377
    assert found["epsilon_upper"] <= 0.5
    bigger = privamp("amplify", "--design", "wor:size=378,population=1000", "--mechanism", "laplace:scale=1", "--json")
    assert json.loads(bigger.stdout)["epsilon_upper"] > 0.5


def test_persons_and_steps_need_more_noise(privamp) -> None:
    specs = ["--design", "wor:size=10,population=100", "--mechanism", "laplace:scale=?"]
    question = ["calibrate", *specs, "--epsilon", "1"]
    one, person, twice = (
        json.loads(privamp(*question, *more, "--json").stdout)["value"]
        for more in ([], ["--records-per-person", "2"], ["--steps", "2"])
    )
    assert one < person
    assert one < twice


def test_people_see_the_value_and_the_filled_spec(privamp) -> None:
    text = privamp("calibrate", "--design", "poisson:rate=0.01", "--mechanism", "gaussian:sigma=?", *GOAL).stdout
    assert "sigma" in text
    assert "gaussian:sigma=0." in text
    assert "delta at epsilon 1" in text


def test_unreachable_is_said(privamp) -> None:
    result = privamp("calibrate", "--design", "poisson:rate=?", "--mechanism", "gaussian:sigma=1", "--epsilon", "1")
    assert result.exit_code == 2
    assert "reaches the target guarantee" in result.stderr
