"""Interviews: whose answer counts, estimates adjusted for those who gave none, and what one person can move."""

import numpy as np
import pytest

from privamp import ClusterSampling, Poisson, Population, Proportional, Stratified, Systematic, WithoutReplacement
from privamp.audits.records import interviews
from privamp.errors import InvalidInput
from privamp.survey import adjust, answers
from privamp.survey.answers import labels
from privamp.survey.cells import Cells
from privamp.survey.fitting import Margin, _pools, _raked
from privamp.testing import seeded_key

N = 2000
RANDOM = np.random.default_rng(5)
CLASS = RANDOM.integers(0, 4, N)
INCOME = np.clip(30 + 10 * CLASS + 8 * RANDOM.standard_normal(N), 0, 100)
ANSWERED = RANDOM.random(N) < 0.3 + 0.15 * CLASS  # the rich answer more often: the plain mean of answers is too large
VALUES = np.where(ANSWERED, INCOME, np.nan)
SMALL = ("simple random, classes", "Poisson, mean", "Poisson, total")
LISTED = {"class_sizes": [0, 1, 2, 3]}
DESIGNS = {
    "simple random": (WithoutReplacement(600, N), {}),
    "strata": (
        Stratified({"a": WithoutReplacement(250, 1000), "b": WithoutReplacement(400, 1000)}),
        {"stratum": np.repeat(["a", "b"], 1000)},
    ),
    "Poisson": (Poisson(0.3), LISTED),
    "systematic": (Systematic(3), LISTED),
    "fixed share": (Proportional(0.3), LISTED),
    "clusters": (ClusterSampling(80, 200, 10), {"cluster": np.arange(N) // 10} | LISTED),
}


class TestWhoseAnswerCounts:
    def test_the_rule(self):
        rows = [("b", 2), ("a", "1"), ("a", 1.0), ("c", 5), ("c", 6), ("z", 9), ("d", None), ("d", 4), ("e", "x")]
        found = answers(["a", "b", "c", "d", "e", "f"], [who for who, _ in rows], [what for _, what in rows])
        assert np.array_equal(found, [1.0, 2.0, np.nan, 4.0, np.nan, np.nan], equal_nan=True)

    def test_the_order_of_rows_does_not_matter(self):
        who, what = ["c", "a", "c", "b"], [1.0, 2.0, 3.0, 4.0]
        found = [answers(["a", "b", "c"], who[::s], what[::s]) for s in (1, -1)]
        assert np.array_equal(*found, equal_nan=True)

    def test_ids_of_either_kind(self):
        assert answers([7, 8], ["8", 7.0], [1, 2]).tolist() == [2.0, 1.0]
        assert np.isnan(answers(["007"], [7], [1])).all()
        assert answers(np.array([1, 2]), [[], {}, object()], [1, 2, 3]).tolist() != [1, 2]

    def test_labels(self):
        assert labels(["a", "b"], ["b", "b", "a"], ["x", " x", None]).tolist() == ["", "x"]

    def test_columns_of_two_lengths_are_refused(self):
        with pytest.raises(InvalidInput, match="one entry per row"):
            answers(["a"], ["a", "a"], [1])


class TestAdjusted:
    @pytest.mark.parametrize("law", [{}, {"delta": 1e-6, "noise": "gaussian"}], ids=["laplace", "gaussian"])
    @pytest.mark.parametrize("name", DESIGNS)
    def test_every_design_corrects_nonresponse_by_classes(self, name, law):
        design, options = DESIGNS[name]
        columns = {k: v for k, v in options.items() if k in ("stratum", "cluster")}
        sample = design.draw(Population(N, **columns), seeded_key(3))
        found = adjust(sample, VALUES, bounds=(0, 100), epsilon=8.0, classes=CLASS, **options, **law)
        assert abs(found.value - INCOME.mean()) < 4.5 * found.standard_error < abs(found.value - 100)
        assert INCOME[ANSWERED].mean() - INCOME.mean() > 3.0
        assert abs(found.value - INCOME.mean()) < 2.0

    @pytest.mark.filterwarnings("ignore::privamp.errors.DegradingDesign")
    @pytest.mark.parametrize("name", ["simple random", "strata", "Poisson", "clusters"])
    def test_the_certificate_is_what_was_asked_for(self, name):
        design, options = DESIGNS[name]
        for law in ({}, {"delta": 1e-6, "noise": "gaussian"}):
            both = {"a": VALUES, "b": VALUES}
            found = adjust(design, both, bounds=(0, 100), epsilon=2.0, classes=CLASS, **options, **law)
            epsilon = found["b"].guarantee.epsilon(law.get("delta", 0.0))
            assert 1.99 < epsilon <= 2.0

    def test_many_budgets_approach_the_textbook(self):
        """At epsilon 1e6 the estimate is the exact weighting-class estimate of the sample, and its error too."""
        sample = WithoutReplacement(600, N).draw(Population(N), seeded_key(3))
        drawn = sample.reveal_secret().positions
        found = adjust(sample, VALUES, bounds=(0, 100), epsilon=1e6, classes=CLASS)
        sizes = np.bincount(CLASS)
        cells = [INCOME[drawn][ANSWERED[drawn] & (CLASS[drawn] == c)] for c in range(4)]
        exact = sum(n * cell.mean() for n, cell in zip(sizes, cells, strict=True)) / N
        assert found.value == pytest.approx(exact, rel=1e-4)
        g = np.array([n / cell.size for n, cell in zip(sizes, cells, strict=True)]) * 600 / N
        means = np.array([cell.mean() for cell in cells])
        e = np.where(ANSWERED[drawn], g[CLASS[drawn]] * (INCOME[drawn] - means[CLASS[drawn]]), 0.0)
        assert found.sampling_error == pytest.approx(np.sqrt(e.var(ddof=1) / 600 * (1 - 600 / N)), rel=1e-3)

    def test_poststratification_and_raking_hit_their_totals(self):
        other = (np.arange(N) % 7 < 3).astype(int)
        margins = {
            "class": (CLASS, dict(enumerate(np.bincount(CLASS).tolist()))),
            "other": (other, dict(enumerate(np.bincount(other).tolist()))),
        }
        for some in (["class"], ["class", "other"]):
            asked = {name: margins[name] for name in some}
            found = adjust(Poisson(0.4), VALUES, bounds=(0, 100), epsilon=20.0, margins=asked)
            assert abs(found.value - INCOME.mean()) < 4.5 * found.standard_error
            total = adjust(Poisson(0.4), VALUES, "total", bounds=(0, 100), epsilon=20.0, margins=asked)
            assert abs(total.value / N - INCOME.mean()) < 4.5 * total.standard_error / N
            assert total.sampling_error / N < 1.0  # without the margins the size of the sample alone moves it by 1.4

    def test_raking_fits_every_margin(self):
        margins = (
            Margin("rows", np.array([0, 0, 0, 1, 1, 1]), np.array([60.0, 40.0])),
            Margin("columns", np.array([0, 1, 2, 0, 1, 2]), np.array([20.0, 30.0, 50.0])),
        )
        cells = _raked(np.array([3.0, 9.0, 4.0, 8.0, 1.0, 5.0]), margins)
        for margin in margins:
            assert np.bincount(margin.of_cell, cells) == pytest.approx(margin.totals, rel=1e-8)

    def test_thin_cells_are_pooled(self):
        assert _pools(np.array([100.0, -3.0, 40.0, 4.0]), 10.0).tolist() == [1, 0, 0, 0]
        assert _pools(np.array([1.0, 2.0]), 10.0).tolist() == [0, 0]
        assert _pools(np.array([50.0, 50.0]), 10.0).tolist() == [0, 1]

    def test_ratios_and_domains(self):
        hours = 20 + 20 * RANDOM.random(N)
        sex = np.where(np.arange(N) % 2, "f", "m")
        found = adjust(
            WithoutReplacement(900, N), INCOME, "ratio", bounds=(0, 100), epsilon=20.0, denominator=hours,
            denominator_bounds=(0, 60),
        )  # fmt: skip
        assert abs(found.value - INCOME.sum() / hours.sum()) < 4.5 * found.standard_error < 0.2
        each = adjust(Poisson(0.5), VALUES, bounds=(0, 100), epsilon=20.0, classes=CLASS, domain=sex,
                      domains=["f", "m"], **LISTED)  # fmt: skip
        assert set(each) == {"f", "m"}
        for name, one in each.items():
            assert abs(one.value - INCOME[sex == name].mean()) < 4.5 * one.standard_error < 8.0

    def test_intervals_stay_within_the_bounds(self):
        found = adjust(Poisson(0.5), np.ones(40), "proportion", epsilon=0.1)
        low, high = found.interval()
        assert 0.0 <= low <= high <= 1.0
        assert found.numbers()["interval"] == [low, high]

    @pytest.mark.parametrize(
        ("options", "part"),
        [
            ({"classes": CLASS}, "class_sizes="),
            ({"class_sizes": [1]}, "needs classes="),
            ({"classes": CLASS, "class_sizes": [0], "margins": {}}, "one of the margins"),
            ({"margins": {}}, "at least one name"),
            ({"margins": {"a": 5}}, "must be"),
            ({"margins": {"a": (CLASS, {0: 3}), "b": (CLASS, {0: 4})}}, "one sum"),
            ({"margins": {"a": (CLASS, {0: 0})}}, "above 0"),
            ({"domain": CLASS}, "give both or none"),
            ({"domain": CLASS[1:], "domains": [1]}, "one value per record"),
            ({"denominator": INCOME, "denominator_bounds": (0, 1)}, "statistic='ratio'"),
            ({"epsilon": None}, "needs epsilon"),
        ],
    )
    def test_what_makes_no_sense_is_refused_before_anything_is_drawn(self, options, part):
        with pytest.raises(InvalidInput, match=part):
            adjust(Poisson(0.5), VALUES, **({"bounds": (0, 100), "epsilon": 1.0} | options))


class TestWhatOnePersonMoves:
    """The honest jobs and the planted mistakes are asked in tests/audits."""

    @pytest.mark.parametrize("make", interviews.JOBS, ids=lambda make: make.args[0])
    def test_both_releases_are_reached(self, make):
        audit = make()
        pair = next(iter(audit.pairs(np.random.default_rng(0))))
        assert audit.run(pair.one)

    def test_a_reach_that_is_too_small_is_found(self, monkeypatch):
        honest = Cells._moved
        monkeypatch.setattr(Cells, "_moved", lambda self, *rest: 0.5 * honest(self, *rest))
        caught = [not make().perform(12).ok for make in interviews.JOBS if make.args[0] in SMALL]
        assert all(caught)


def test_masked_entries_are_missing_and_not_a_question_mark():
    masked = np.ma.masked_array(["a", "b", "?"], mask=[False, True, False])
    assert answers(["a", "b", "?"], masked, [1, 2, 3]).tolist()[::2] == [1.0, 3.0]
    assert labels(["a", "b", "?"], ["a", "b", "?"], masked).tolist() == ["a", "", "?"]
