"""What an attack on adjusted estimates found: numbers that were false, and rows that counted twice. Seeded."""

import warnings

import numpy as np
import pytest

from privamp import InvalidInput, Poisson, Stratified, WithoutReplacement, survey, testing
from privamp.survey.answers import answers, labels

N = 4000
DOMAIN = np.array(["p", "q", "r", "s"])[np.arange(N) % 4]
Y = np.where(DOMAIN == "p", 0.9, 0.2)


def adjusted(design, seed, statistic, y=Y, epsilon=5.0, **asked):
    drawn = design.draw(len(y), testing.seeded_key(seed))
    return survey.adjust(drawn, y, statistic, bounds=(0, 1), epsilon=epsilon, **asked)


@pytest.mark.parametrize("design", [Poisson(0.5), WithoutReplacement(2000, N)], ids=str)
def test_small_domains_are_divided_by_their_own_people(design):
    """They were divided by everybody: .6 for .9, and a total of 1986 where nobody is."""
    asked = {"domain": DOMAIN, "domains": ["p", "q", "none"]}
    means, totals = adjusted(design, 1, "mean", **asked), adjusted(design, 2, "total", **asked)
    assert means["p"].value == pytest.approx(0.9, abs=0.03)
    assert means["q"].value == pytest.approx(0.2, abs=0.03)
    assert totals["p"].value == pytest.approx(900, abs=60)
    assert totals["none"].value == pytest.approx(0, abs=25)
    low, high = means["none"].interval()
    assert high - low > 0.5


def test_raked_totals_are_not_lost_to_empty_cells():
    """Two margins that agree leave half of the cells empty: totals were 5% too small, and intervals held in 20%."""
    n, one = 2000, np.array(["a", "b", "c", "d"])[np.arange(2000) % 4]
    y = np.random.default_rng(3).random(n)
    sizes = dict.fromkeys("abcd", 500)
    margins = {"one": (one, sizes), "two": (one, sizes)}
    found = [adjusted(Poisson(0.5), 10 + k, "total", y, 0.5, margins=margins).interval(0.95) for k in range(20)]
    assert sum(low <= y.sum() <= high for low, high in found) >= 16


def test_a_ratio_over_nothing_is_finite_and_says_nothing_aloud():
    zeros = np.zeros(N)
    one = zeros.copy()
    one[7] = 1.0
    for over in (zeros, one):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for k in range(6):
                found = adjusted(
                    Poisson(0.5), 40 + k, "ratio", epsilon=0.5, denominator=over, denominator_bounds=(0, 1)
                )
                assert np.isfinite([found.value, found.noise_error, found.sampling_error]).all()


def test_people_in_no_stratum_are_in_no_class():
    design = Stratified({"a": WithoutReplacement(500, 1000)})
    from privamp import Population

    population = Population(2000, stratum=np.array(["a"] * 1000 + ["z"] * 1000))
    drawn = design.draw(population, testing.seeded_key(5))
    y = np.array([1.0] * 1000 + [0.0] * 1000)
    found = survey.adjust(drawn, y, "total", bounds=(0, 1), epsilon=20.0, classes=["x"] * 2000)
    assert found.value == pytest.approx(1000, abs=40)


def test_bounds_that_overflow_are_refused():
    for bounds in ((0, 1e160), (0, 1e-200)):
        with pytest.raises(InvalidInput, match="use another unit"):
            survey.adjust(Poisson(0.5), Y, "mean", bounds=bounds, epsilon=1.0)


def test_a_row_answers_for_one_person():
    with pytest.raises(InvalidInput, match="an id of their own"):
        answers(["i5", "i5 ", "i6"], ["i5"], [1])
    with pytest.raises(InvalidInput, match="an id of their own"):
        answers([None, "a"], [None], [1])
    assert answers(["nan", "a"], [float("nan"), "a"], [1, 2]).tolist()[1] == 2.0
    assert np.isnan(answers(["nan", "a"], [float("nan"), "a"], [1, 2])[0])


def test_empty_entries_say_nothing_whatever_their_kind():
    masked = np.ma.masked_array([1.0, 999.0], [False, True])
    np.testing.assert_array_equal(answers(["a", "b"], ["a", "b"], masked), [1.0, np.nan])
    for empty in (None, float("nan"), np.float32("nan"), "", "abc"):
        assert answers(["a"], ["a", "a"], [3, empty]).tolist() == [3.0]
    assert labels(["a"], ["a", "a"], ["1", "01"]).tolist() == labels(["a"], ["a", "a"], ["01", "1"]).tolist() == [""]
    assert labels(["a"], ["a", "a"], ["x ", " x"]).tolist() == ["x"]


@pytest.mark.parametrize("name", ["replicate_weights", "bootstrap_weights", "jackknife_weights", "brr_weights"])
def test_replicate_weights_never_leave(name):
    with pytest.raises(InvalidInput, match="says who was drawn"):
        getattr(survey, name)
    assert name not in dir(survey)
