"""Adjusted estimates of given cells: values by their definition, influences and noise by numerical derivatives."""

import math
from dataclasses import replace

import numpy as np
import pytest

from privamp.errors import InvalidInput
from privamp.survey.cells import Answers
from privamp.survey.effects import Effect
from privamp.survey.fitting import Fit, Margin, _few, _pools, _raked, check_margins, fit_of, linear

ENDS, MIDDLE, OVER = (6.0, 16.0), 11.0, 3.0
COUNT = np.array([[8.0, 6.0, 9.0], [5.0, 4.0, 7.0]])
TOTAL = np.array([[10.0, -7.0, 12.0], [3.0, 5.0, -8.0]])  # from the middle
DIVISOR = np.array([[4.0, 3.0, -2.0], [1.0, 0.5, 2.0]])  # from its own
PEOPLE = np.array([40.0, 30.0, 50.0])
NOISES = {"total_noise": 0.03, "count_noise": 0.02, "over_noise": 0.05}


def cells(offset=0.0, **changes):
    none = {"over": None, "everybody": None, "offset": np.full(3, offset)}
    return replace(Answers(TOTAL + offset * COUNT, COUNT, **{**none, **NOISES}), **changes)


def by_definition(total, count, over, people, domain, statistic):
    """g = N/R; the sums over cells of g R, g(Z + mR) and g(X + m'R)."""
    g = people / count.sum(axis=0)
    sums = float(g @ (total + MIDDLE * count)[domain])
    if statistic == "total":
        return sums
    divisor = count if over is None else over + OVER * count
    return sums / float(g @ divisor[domain])


def asked(found, people, statistic, domain):
    fit = fit_of(found, (), people, 1.0)
    return linear(found, fit, domain, statistic, MIDDLE, OVER, ENDS)


CASES = [
    ("mean", False, "public"),
    ("mean", False, "released"),
    ("total", False, "public"),
    ("total", False, "released"),
    ("ratio", True, "public"),
    ("ratio", True, "released"),
]


@pytest.mark.parametrize("offset", [0.0, 0.7])
@pytest.mark.parametrize("domain", [0, 1])
@pytest.mark.parametrize(("statistic", "is_ratio", "people"), CASES)
def test_values_influences_and_noise(statistic, is_ratio, people, domain, offset):
    over, known = (DIVISOR if is_ratio else None), (PEOPLE if people == "public" else None)
    found = cells(offset, over=over, everybody=None if known is not None else PEOPLE)
    one = asked(found, known, statistic, domain)
    pool = one.fit.pool.tolist()
    assert pool == [1, 0, 2]  # in the order of their answers

    def value(total=found.total, count=COUNT, over=over, people=PEOPLE):
        return by_definition(total, count, over, people, domain, statistic)

    assert one.value == pytest.approx(value())
    assert one.domain == domain
    assert one.has_others
    step, variance, estimated = 1e-6, 0.0, people == "released"

    def slope(**changed):
        return (value(**changed) - value()) / step

    for d in range(2):
        for c in range(3):
            here = np.zeros((2, 3))
            here[d, c] = step
            of_total = slope(total=found.total + here)
            of_count = slope(count=COUNT + here, total=found.total + offset * here)
            variance += (of_total * 0.03) ** 2 + (of_count * 0.02) ** 2
            variance += (slope(over=over + here) * 0.05) ** 2 if is_ratio else 0.0
            own = {"people": PEOPLE + here[d]} if estimated else {}
            variance += (slope(**own) * 0.02) ** 2 if estimated else 0.0
            # a record of this cell and domain with an answer z and a divisor x, and one without an answer
            z, x = np.array([2.5, -1.0]), np.array([0.4, 0.0])
            each = [
                slope(total=found.total + here * a, count=COUNT + here, **own)
                if not is_ratio
                else slope(total=found.total + here * a, count=COUNT + here, over=over + here * b, **own)
                for a, b in zip(z, x, strict=True)
            ]
            told = one.residuals(np.full(2, pool[c]), np.full(2, d), np.full(2, True), z, x if is_ratio else 0.0)
            assert told == pytest.approx(each, rel=1e-4, abs=1e-7)
            silent = one.residuals(np.full(2, pool[c]), np.full(2, d), np.full(2, False), 0.0 * z, 0.0)
            assert silent == pytest.approx([slope(**own)] * 2 if estimated else [0.0, 0.0], rel=1e-4, abs=1e-7)
            assert np.all(np.abs([*told, *silent]) <= one.bound(2.5, 0.4) * (1.0 + 1e-12))
    assert one.noise == pytest.approx(math.sqrt(variance), rel=1e-4)
    nowhere = one.residuals(np.full(1, 3), np.full(1, domain), np.full(1, True), np.ones(1), 0.0)
    assert nowhere.tolist() == [0.0]


@pytest.mark.parametrize(("statistic", "is_ratio", "people"), CASES)
def test_the_bound_is_the_largest_influence(statistic, is_ratio, people):
    """Over all cells, both ends of values and divisors, both domains, answered or not."""
    known = PEOPLE if people == "public" else None
    found = cells(over=DIVISOR if is_ratio else None, everybody=None if known is not None else PEOPLE)
    one = asked(found, known, statistic, 0)
    ends = np.array([[z, x] for z in (-5.0, 5.0) for x in ((-2.0, 2.0) if is_ratio else (0.0,))])
    most = max(
        float(
            np.max(
                np.abs(one.residuals(np.full(len(ends), c), np.full(len(ends), d), np.full(len(ends), says), *ends.T))
            )
        )
        for c in range(3)
        for d in (0, 1)
        for says in (True, False)
    )
    assert one.bound(5.0, 2.0) == pytest.approx(most)


def test_one_domain_alone_has_no_others():
    found = Answers(TOTAL[:1], COUNT[:1], None, None, 0.03, 0.02, 0.0, np.zeros(3))
    one = asked(found, PEOPLE, "mean", 0)
    assert not one.has_others
    g, v = one.fit.factor, one.v
    own = g * 5.0 + np.abs(g * (one.k - v))
    assert one.bound(5.0, 0.0) == pytest.approx(float(np.max(own)) / one.den)


def test_a_mean_is_cut_to_its_ends_and_divided_by_more_than_noise():
    far = cells(total=TOTAL + 1e3)
    assert asked(far, PEOPLE, "mean", 0).value == 16.0
    assert asked(cells(total=TOTAL - 1e3), PEOPLE, "mean", 0).value == 6.0
    few = np.array([[1e-9, 0.0, 0.0], [13.0, 10.0, 16.0]])
    loud = cells(count=few, count_noise=0.5)
    one = asked(loud, PEOPLE, "mean", 0)
    fit = fit_of(loud, (), PEOPLE, 1.0)
    grown = math.sqrt(sum(int(np.sum(fit.pool == p)) * g**2 for p, g in enumerate(fit.factor)))
    assert one.den == pytest.approx(max(2.0 * 0.5 * grown, float(np.min(fit.factor))))
    quiet = cells(count=few, count_noise=1e-9)
    assert asked(quiet, PEOPLE, "mean", 0).den == pytest.approx(float(np.min(PEOPLE / few.sum(axis=0))))


def test_a_ratio_is_divided_by_more_than_noise():
    found = cells(over=-OVER * COUNT, count_noise=0.02)
    one = asked(found, PEOPLE, "ratio", 0)
    g = PEOPLE / COUNT.sum(axis=0)
    assert one.den == pytest.approx(2.0 * math.sqrt(float(np.sum(g**2))) * math.hypot(0.05, OVER * 0.02))


def test_cells_with_few_answers_are_pooled_with_the_next_smaller_ones():
    assert _pools(np.array([9.0, 1.0, 2.0, 30.0]), 3.0).tolist() == [1, 0, 0, 2]
    assert _pools(np.array([9.0, 1.0, 2.0, 30.0]), 3.1).tolist() == [0, 0, 0, 1]  # 1 + 2 is too few: 9 joins
    assert _pools(np.array([1.0, 1.0, 1.0]), 2.0).tolist() == [0, 0, 0]  # the last one joins those before
    assert _pools(np.array([5.0, 1.0, 1.0, 1.0]), 2.0).tolist() == [1, 0, 0, 1]
    assert _pools(np.array([1.0, 1.0]), 10.0).tolist() == [0, 0]
    assert _pools(np.array([3.0, 3.0]), 3.0).tolist() == [0, 1]


def test_few_is_one_weight_or_four_standard_deviations_of_all_domains():
    assert _few(cells(count_noise=0.5), 1.0) == pytest.approx(4.0 * 0.5 * math.sqrt(2.0))
    assert _few(cells(count_noise=0.5), 7.0) == 7.0


def test_pools_share_people_and_answers():
    found = cells(count=np.array([[1.0, 6.0, 9.0], [0.5, 4.0, 7.0]]))
    fit = fit_of(found, (), PEOPLE, 3.0)
    assert fit.pool.tolist() == [0, 0, 1]
    assert fit.people.tolist() == [70.0, 50.0]
    assert fit.answers.tolist() == [11.5, 16.0]
    assert fit.factor == pytest.approx([70.0 / 11.5, 50.0 / 16.0])
    assert not fit.is_estimated
    assert fit.pooled(np.array([[1.0, 2.0, 5.0]])).tolist() == [[3.0, 5.0]]
    released = fit_of(replace(found, everybody=np.array([1.0, -2.0, 50.0])), (), None, 3.0)
    assert released.is_estimated
    assert released.people.tolist() == [3.0, 50.0]  # a negative number of people counts as few
    neither = fit_of(found, (), None, 3.0)
    assert not neither.is_estimated
    assert neither.factor.tolist() == [1.0, 1.0]
    assert fit_of(cells(count=-COUNT), (), PEOPLE, 3.0).answers.tolist() == [3.0]  # noise alone


ROWS = Margin("row", np.array([0, 0, 1, 1]), np.array([30.0, 70.0]))
COLUMNS = Margin("column", np.array([0, 1, 0, 1]), np.array([45.0, 55.0]))


def test_raking_meets_both_margins_and_keeps_odds():
    start = np.array([4.0, 2.0, 3.0, 6.0])
    made = _raked(start, (ROWS, COLUMNS))
    assert np.bincount(ROWS.of_cell, made) == pytest.approx([30.0, 70.0])
    assert np.bincount(COLUMNS.of_cell, made) == pytest.approx([45.0, 55.0])
    assert made[0] * made[3] / (made[1] * made[2]) == pytest.approx(4.0 * 6.0 / (2.0 * 3.0))
    assert start.tolist() == [4.0, 2.0, 3.0, 6.0]


def test_raked_cells_that_nobody_answered_give_their_people_to_others():
    """Each cell has its raked people; those of cells below `few` answers are spread over what did answer."""
    count = np.array([[4.0, 0.5, 3.0, 6.0]])
    found = Answers(np.zeros((1, 4)), count, None, None, 0.03, 0.02, 0.0, np.zeros(4))
    fit = fit_of(found, (ROWS, COLUMNS), None, 1.0)
    start = np.array([4.0, 1.0, 3.0, 6.0])
    raked = _raked(start, (ROWS, COLUMNS))
    told = raked[0] + 0.5 * raked[1] + raked[2] + raked[3]
    assert fit.people == pytest.approx(raked * 100.0 / told)
    assert fit.answers.tolist() == start.tolist()
    assert not fit.is_estimated
    most = fit_of(replace(found, count=-count), (ROWS, COLUMNS), None, 1.0)
    assert most.people.sum() == pytest.approx(2.0 * 100.0)  # never more than twice


def test_the_additive_fit_to_margins_is_weighted_least_squares():
    fit = Fit(np.arange(4), np.ones(4), np.array([1.0, 4.0, 9.0, 2.0]), (ROWS, COLUMNS))
    means = np.array([1.0, 2.0, 5.0, 3.0])
    design = np.array([[1, 0, 0.0], [1, 0, 1.0], [0, 1, 0.0], [0, 1, 1.0]])  # row effects, second column
    w = np.diag(fit.answers)
    exact = design @ np.linalg.solve(design.T @ w @ design, design.T @ w @ means)
    assert fit.fitted(means) == pytest.approx(exact)
    assert replace(fit, margins=(ROWS,)).fitted(means) is means


def test_margins_have_one_sum():
    assert check_margins((ROWS, COLUMNS)) == 100.0
    near = replace(COLUMNS, totals=np.array([45.0, 55.00009]))
    assert check_margins((ROWS, near)) == 100.0
    for off in (0.0002, -0.0002):
        with pytest.raises(InvalidInput, match="must have one sum"):
            check_margins((ROWS, replace(COLUMNS, totals=np.array([45.0, 55.0 + off]))))


def test_a_design_effect_by_hand():
    """n = 100/4 of squares 90 and a sum of 20: (4 - 1)(90 - 4)·25/24."""
    effect = Effect(90.0, 0.1, 20.0, 100.0, 4.0, 0.1)
    simple = 3.0 * 86.0 * 25.0 / 24.0
    assert effect.of(500.0, 1.0) == pytest.approx(500.0 / simple)
    assert effect.of(0.0, 1.0) is None
    assert effect.of(-1.0, 1.0) is None
    assert effect.of(10.0, 0.1 * simple * (1 - 1e-9)) is not None
    assert effect.of(10.0, 0.1 * simple * (1 + 1e-9)) is None
    assert effect.of(2.0 * simple, 0.2 * simple * (1 - 1e-9)) is not None
    assert effect.of(2.0 * simple, 0.2 * simple * (1 + 1e-9)) is None
    loud = math.sqrt(8.6**2 - (2.0 * 20.0 * 0.1 / 100.0) ** 2)  # with the total's noise a tenth of 86
    assert replace(effect, noise=loud * (1 - 1e-9)).of(500.0, 1.0) is not None
    assert replace(effect, noise=loud * (1 + 1e-9)).of(500.0, 1.0) is None
    assert replace(effect, weight=1.0).of(500.0, 1.0) is None
    assert replace(effect, weight=100.0).of(500.0, 1.0) is None
    assert replace(effect, weight=99.0).of(5e5, 1.0) is not None
