"""Advice: a multiset design beside the simple random sample that reads as many different records."""

import math

import numpy as np
import pytest

from privamp import (
    Gaussian,
    MultiStage,
    Neighbors,
    Poisson,
    Population,
    PureDP,
    WithoutReplacement,
    WithReplacement,
    amplify,
    compose,
)
from privamp.report.advice import advise, sampling_error
from privamp.report.comparison import Question, compare_designs

RO, AR = Neighbors.REPLACE_ONE, Neighbors.ADD_REMOVE
OW = MultiStage([("wor", 500), ("wr", 400)], 1000)


def advice_for(*designs, mechanism=None, **question):
    found = compare_designs(designs, Question(mechanism or Gaussian(1.0, neighbors=RO), **question))
    return advise(found)


def test_smaller_simple_sample_is_better_on_every_axis() -> None:
    (one,) = advice_for(OW, WithoutReplacement(400, 1000))
    assert one.instead_size == 275 <= one.distinct < 276
    exact = amplify(Gaussian(1.0, neighbors=RO), WithoutReplacement(275, 1000)).epsilon(1e-6)
    assert one.instead_epsilon == exact
    louder = amplify(Gaussian(1.0, 400 / 275, neighbors=RO), WithoutReplacement(275, 1000)).epsilon(1e-6)
    assert one.instead_epsilon_same_noise == pytest.approx(louder)
    assert exact < louder < 6 < 24.9 < one.epsilon_lower
    assert one.instead_sampling_error < one.sampling_error
    assert one.better_everywhere
    sentence = one.sentence()
    assert "a without-replacement sample of 275 records has the same number of distinct records" in sentence
    assert "better in every respect" in sentence
    assert "bootstrap" in sentence


def test_steps_and_delta_are_the_users() -> None:
    noise = Gaussian(4.0, 2.0, neighbors=RO)
    (one,) = advice_for(WithReplacement(200, 10_000), mechanism=noise, delta=1e-5, steps=100)
    wanted = compose(amplify(noise, WithoutReplacement(one.instead_size, 10_000)), 100).epsilon(1e-5)
    assert one.instead_epsilon == pytest.approx(wanted)
    assert one.instead_size == 198


def test_no_claim_where_it_is_not_proved() -> None:
    # two draws of a thousand almost never repeat: nothing to gain, and nothing is promised
    (one,) = advice_for(WithReplacement(2, 1000), mechanism=PureDP(1.0, neighbors=RO), delta=1e-9)
    assert one.instead_size == 1
    assert one.instead_epsilon_same_noise is None
    assert not one.better_everywhere
    assert "every respect" not in one.sentence()


def test_a_design_without_theorem_is_still_advised_about() -> None:
    (one,) = advice_for(OW, mechanism=Gaussian(1.0), neighbors=AR)
    assert one.epsilon_upper is None
    assert "cannot be certified here" in one.sentence()
    assert one.to_json()["epsilon_upper"] is None


def test_designs_without_repeats_need_no_advice() -> None:
    assert advice_for(WithoutReplacement(5, 100), Poisson(0.05), mechanism=Gaussian(1.0)) == ()


@pytest.mark.parametrize(
    "design",
    [
        WithoutReplacement(3, 4),
        WithReplacement(3, 4),
        MultiStage([("wor", 3), ("wr", 4)], 4),
        MultiStage([("wr", 2), ("wr", 3)], 4),
    ],
)
def test_sampling_error_is_that_of_the_enumerated_law(design) -> None:
    values = np.array([0.3, -1.0, 2.5, 0.0])
    law = [(float(np.mean(values[list(units)])), float(chance)) for units, chance in design.law(Population(4))]
    mean = sum(chance * value for value, chance in law)
    error = math.sqrt(sum(chance * (value - mean) ** 2 for value, chance in law))
    assert sampling_error(design, 4) == pytest.approx(error / values.std(ddof=1))
