"""Ratio means from samples of a random size: their error is that of the size that was drawn."""

import numpy as np
import pytest

from privamp import Population, RandomSize, spec
from privamp.survey import estimate
from privamp.testing import seeded_key

RECORDS = 1000
X = np.random.default_rng(0).permutation(np.repeat([0.0, 1.0], RECORDS // 2))
WIDE = ("random-size:low=40,high=760,population=1000", "random-size-law:chances=50=0.5+550=0.5,population=1000")


def means(design: RandomSize, rounds: int, values=X, **options):
    people = Population(design.population)
    options = {"epsilon": 1e4, "weights": "hajek"} | options
    for r in range(rounds):
        yield estimate(design.draw(people, seeded_key(r)), values, "mean", bounds=(0, 1), **options)


@pytest.mark.parametrize("text", WIDE)
def test_a_ratio_mean_is_covered_whatever_size_was_drawn(text):
    found = list(means(spec.design(text), 400))
    inside = [low <= 0.5 <= high for low, high in (f.interval(0.95) for f in found)]
    assert 0.93 <= np.mean(inside) <= 0.97


@pytest.mark.parametrize("size", [50, 550])
def test_the_error_is_that_of_the_drawn_size(size):
    law = spec.design(WIDE[1])
    expected = np.sqrt((1.0 - size / RECORDS) * 0.25 / size)
    errors = np.array([f.standard_error for f in means(law, 40)])
    near = errors[np.abs(errors / expected - 1.0) < 0.1]
    assert near.size >= 10  # the sizes are as likely
    assert np.mean(near) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("text", WIDE)
def test_the_public_error_is_the_one_of_the_widest_values(text):
    law = spec.design(text)
    wide, own = ([f.standard_error for f in means(law, 20, values=0.25 + 0.5 * X, sd=sd)] for sd in ("range", None))
    assert np.array(wide) / own == pytest.approx(2.0, rel=0.1)  # values are in the middle half of their bounds


def test_the_guarantee_is_the_budget():
    (found,) = means(spec.design(WIDE[1]), 1, epsilon=1.0)
    assert 1.0 - 1e-6 <= found.guarantee.epsilon() <= 1.0
    assert str(found.guarantee.neighbors) == "replace-one"


def test_samples_of_one_record_have_the_largest_error():
    (found,) = means(RandomSize.uniform(1, 1, RECORDS), 1)
    assert found.standard_error >= 0.49
