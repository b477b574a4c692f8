"""What an attack on adjusted estimates found: numbers that were false, and rows that counted twice. Seeded."""

import warnings

import numpy as np
import pytest

from privamp import InvalidInput, Poisson, Population, Stratified, WithoutReplacement, survey, testing
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
    with pytest.raises(InvalidInput, match="a unique id"):
        answers(["i5", "i5 ", "i6"], ["i5"], [1])
    with pytest.raises(InvalidInput, match="a unique id"):
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
    with pytest.raises(InvalidInput, match="reveals who was drawn"):
        getattr(survey, name)
    assert name not in dir(survey)


STRATA = Stratified({"a": WithoutReplacement(300, 3000), "b": WithoutReplacement(500, 1000)})
STRATUM = np.repeat(["a", "b"], [3000, 1000])
MONEY = np.where(STRATUM == "a", 2.0 + np.arange(N) % 5, 100.0 + np.arange(N) % 800)
NARROW = {"a": (0, 10), "b": (0, 1000)}


def by_stratum(seed, bounds, epsilon=1.0, values=MONEY, design=STRATA, **asked):
    drawn = design.draw(Population(N, stratum=STRATUM), testing.seeded_key(seed))
    return survey.adjust(drawn, values, bounds=bounds, epsilon=epsilon, **asked)


class TestBoundsByStratum:
    @pytest.mark.parametrize("noise", [{}, {"noise": "gaussian", "delta": 1e-6}])
    def test_narrow_strata_need_less_noise(self, noise):
        wide, narrow = by_stratum(1, (0, 1000), **noise), by_stratum(2, NARROW, **noise)
        assert narrow.noise_error < 0.7 * wide.noise_error
        assert narrow.guarantee.epsilon(noise.get("delta", 0.0)) <= 1.0 + 1e-9

    def test_the_noise_error_is_that_of_repeated_noise(self):
        everybody = Stratified({"a": WithoutReplacement(3000, 3000), "b": WithoutReplacement(1000, 1000)})
        holes = np.where(np.arange(N) % 4 == 0, np.nan, MONEY)
        found = [by_stratum(seed, NARROW, 0.5, holes, design=everybody) for seed in range(150)]
        each = np.array([one.value for one in found])
        assert np.mean([one.noise_error for one in found]) == pytest.approx(np.std(each), rel=0.25)
        truth = 0.75 * np.nanmean(holes[:3000]) + 0.25 * np.nanmean(holes[3000:])
        assert np.mean(each) == pytest.approx(truth, abs=4 * np.std(each) / 150**0.5)

    def test_the_same_without_noise_as_estimate(self):
        found = by_stratum(3, NARROW, 1e5)
        sample = STRATA.draw(Population(N, stratum=STRATUM), testing.seeded_key(3))
        at = sample.reveal_secret().positions
        weight = np.where(STRATUM[at] == "a", 10.0, 2.0)
        assert found.value == pytest.approx(np.sum(weight * MONEY[at]) / N, rel=1e-4)

    def test_nonresponse_and_several_questions(self):
        holes = np.where(np.arange(N) % 3 == 0, np.nan, MONEY)
        found = by_stratum(4, {"m": NARROW, "k": (0, 1)}, 50.0, {"m": holes, "k": Y})
        assert found["m"].value == pytest.approx(MONEY.mean(), rel=0.05)
        assert found["k"].value == pytest.approx(Y.mean(), rel=0.1)

    @pytest.mark.parametrize("design", [Poisson(0.5), WithoutReplacement(2000, N)], ids=str)
    def test_strata_that_are_not_there(self, design):
        with pytest.raises(InvalidInput, match=r"bounds by stratum need|must name every stratum"):
            survey.adjust(design.draw(N, testing.seeded_key(5)), MONEY, bounds=NARROW, epsilon=1.0)

    def test_a_stratum_that_has_no_bounds(self):
        with pytest.raises(InvalidInput, match="name every stratum"):
            by_stratum(6, {"a": (0, 10)})


def test_assumes_says_whom_answers_stand_for():
    """Bounds by stratum may divide cells by strata; then an answer no longer stands for everybody."""
    stratum, level = np.repeat(["a", "b", "c"], [400, 300, 60]), np.arange(760) % 2
    values = np.select([stratum == "a", stratum == "b"], [3.0, 300.0], 5300.0)
    sizes = {"a": (60, 400), "b": (60, 300), "c": (20, 60)}
    design = Stratified({name: WithoutReplacement(*pair) for name, pair in sizes.items()})
    own = {"a": (0, 10), "b": (0, 1000), "c": (5000, 6000)}

    def said(bounds, **options):
        made = survey.adjust(design, values, bounds=bounds, epsilon=20.0, stratum=stratum, **options)
        (sentence,) = [one for one in made.guarantee.assumes if "answers stand for" in one]
        return sentence.removeprefix("answers stand for ").removesuffix(" who gave none")

    assert said((0, 6000)) == "everybody"
    assert said(own) == "the people of their stratum"
    assert said({"a": (0, 5000), "b": (0, 5000), "c": (0, 6000)}) == "everybody"  # not worth dividing
    assert said((0, 6000), classes=level) == "the people of their class"
    assert said(own, classes=level) == "the people of their class and stratum"
    margins = {"level": (level, {0: 380, 1: 380})}
    assert said(own, margins=margins) == "the people of their categories of the margins"
