"""Every number of every spec can be solved for or is refused by name; the answer passes and the next value does not."""

import json
import re
import warnings

import pytest
from typer.testing import CliRunner

from privamp import amplify, spec
from privamp.cli.application import app

DESIGNS = (
    "poisson:rate=0.1",
    "wor:size=100,population=1000",
    "wr:size=10,population=50",
    "multistage:wor=20,wr=10,population=100",
    "random-size:low=2,high=10,population=30",
    "random-size-normal:mean=5,sd=2,population=30",
    "proportional:rate=0.1",
    "shared-rate:size=10,at_least=100,strata=3",
    "systematic:step=5",
    "systematic:step=5,order=slots,max_slot=2",
    "cluster:chosen=5,clusters=50,max_size=2",
    "cluster:chosen=5,clusters=50,max_size=2,second_rate=0.3",
    "poisson-pps:high=0.3",
    "conditional-poisson:size=5,population=40,low=1,high=2",
    "cluster-pps:probabilities=0.2+0.3+0.5,max_size=2",
    "cluster-by-size:clusters=50,max_size=4,min_size=2",
    "proportional-pps:size=10,low=1,high=5,at_least=1000",
    "stratified:a=[poisson:rate=0.1],b=[poisson:rate=0.2]",
)
TARGETS = (0.05, 0.5, 4.0)


def holes(text):
    """The spec with each of its numbers unknown in turn."""
    for found in re.finditer(r"(\w+)=([^=,\[\]]+)(?=[,\]]|$)", text):
        yield found[1], f"{text[: found.start(2)]}?{text[found.end(2) :]}"


def solved(design, mechanism, epsilon):
    result = CliRunner().invoke(
        app, ["calibrate", "--design", design, "--mechanism", mechanism, "--epsilon", str(epsilon), "--json"]
    )
    return result.exit_code, json.loads(result.stdout)


def loss(design):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = spec.design(design)
        return amplify(spec.mechanism("pure:epsilon=1", spec.stated_for(plan, None)), plan).epsilon()


@pytest.mark.parametrize(("key", "hole"), [pytest.param(*h, id=h[1]) for text in DESIGNS for h in holes(text)])
def test_every_number_of_a_design(key, hole):
    for target in TARGETS:
        code, answer = solved(hole, "pure:epsilon=1", target)
        if code:
            assert code in (1, 2)
            sentence = answer["error"]["message"] if isinstance(answer["error"], dict) else answer["error"]
            assert key in sentence or "reaches the target guarantee" in sentence, sentence
            continue
        value = answer["value"]
        assert loss(answer["design"]) <= target
        step = 1 if isinstance(value, int) else 1e-6 * value
        if value in answer["within"]:
            continue  # everything that was tried passes, and the answer says so
        beyond = [hole.replace("?", repr(v)) for v in (value - step, value + step)]
        assert any(_fails(text, target) for text in beyond), answer["design"]


def _fails(design, target):
    """Outside the range, or above the target, or no different: the answer is the last that passes."""
    try:
        return loss(design) > target
    except Exception:
        return True


@pytest.mark.parametrize("fact", ["rule=uniform,rate=?", "rule=variance-optimal,kappa=?"])
def test_the_number_of_an_importance_rule(fact):
    design, noise = f"importance:{fact},radius=4,scale=40", "exact-laplace:scale=40,sensitivity=4"
    code, answer = solved(design, noise, 0.2)
    assert code == 0, answer
    plan = spec.design(answer["design"])
    assert 0.2 * (1 - 1e-6) < amplify(spec.mechanism(noise, plan.natural), plan).epsilon() <= 0.2


def test_a_rate_that_always_passes_is_the_largest():
    code, answer = solved("poisson:rate=?", "pure:epsilon=0.5", 1)
    assert (code, answer["value"]) == (0, 1.0)


@pytest.mark.parametrize(
    "mechanism",
    [
        "laplace:scale=?",
        "laplace:scale=1,sensitivity=?",
        "pure:epsilon=?",
        "geometric:epsilon=?",
        "norm:scale=?,dimension=3",
    ],
)
def test_every_number_of_a_mechanism(mechanism):
    code, answer = solved("poisson:rate=0.1", mechanism, 0.5)
    assert code == 0
    plan = spec.design("poisson:rate=0.1")
    made = spec.mechanism(answer["mechanism"], spec.stated_for(plan, None))
    assert 0.5 * (1 - 1e-6) < amplify(made, plan).epsilon() <= 0.5


@pytest.mark.parametrize(
    "mechanism", ["norm:scale=1,dimension=?", "approx:epsilon=1,delta=?", "norm:scale=1,dimension=3,p=?"]
)
def test_what_cannot_be_solved_for_is_named(mechanism):
    code, answer = solved("poisson:rate=0.1", mechanism, 0.5)
    assert code == 2
    assert mechanism.split(",")[-1].partition("=")[0].split(":")[-1] in str(answer["error"])
