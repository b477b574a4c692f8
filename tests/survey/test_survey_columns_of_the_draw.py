"""Strata, clusters and probabilities of an estimate are those of the draw."""

from itertools import count

import numpy as np
import pytest

from privamp import ClusterSampling, InvalidInput, Poisson, PoissonPPS, Population, Stratified, WithoutReplacement
from privamp.survey import estimate
from privamp.testing import seeded_key

KEYS = map(seeded_key, count(1400))  # what was asked of a sample adds up, so every estimate draws afresh
VALUES = np.linspace(0.0, 1.0, 12)
STRATA = np.array(list("aabb" * 3))
SHARES = Stratified({"a": WithoutReplacement(5, 6), "b": WithoutReplacement(1, 6)})
COINS = Stratified({"a": Poisson(0.9), "b": Poisson(0.1)})
CLUSTERS = np.arange(12) % 4
CHANCES = np.where(np.arange(12) % 2, 0.3, 0.9)
CASES = {
    "stratum": (SHARES, STRATA, {}),
    "stratum, coins": (COINS, STRATA, {"statistic": "total"}),
    "cluster": (ClusterSampling(2, 4, 3), CLUSTERS, {}),
    "probability": (PoissonPPS(0.9, 0.2), CHANCES, {"statistic": "total"}),
}


def asked(case, **given):
    design, column, options = CASES[case]
    name = case.partition(",")[0]
    sample = design.draw(Population(12, **{name: column}), next(KEYS))
    return estimate(sample, VALUES, bounds=(0, 1), epsilon=1.0, **options, **given)


@pytest.mark.parametrize("case", CASES)
def test_the_column_of_the_draw_need_not_be_given(case):
    name = case.partition(",")[0]
    column = CASES[case][1]
    alone, again, listed = asked(case), asked(case, **{name: column}), asked(case, **{name: column.tolist()})
    assert alone.guarantee.epsilon() == again.guarantee.epsilon() == listed.guarantee.epsilon()


@pytest.mark.parametrize("case", CASES)
def test_another_column_is_refused(case):
    """With the strata swapped, a record that is drawn 5 times in 6 got the noise of one that is drawn once in 6."""
    name, column = case.partition(",")[0], CASES[case][1]
    for other in (np.roll(column, 1), column[:-1], [None] * 12, [["a"]] * 12):
        with pytest.raises(InvalidInput, match="is not the column that the sample was drawn with"):
            asked(case, **{name: other})


def test_probabilities_that_are_no_numbers_are_the_same_as_themselves():
    chances = np.where(np.arange(12) == 3, np.nan, CHANCES)
    sample = PoissonPPS(0.9, 0.2).draw(Population(12, probability=chances), next(KEYS))
    estimate(sample, VALUES, "total", bounds=(0, 1), epsilon=1.0, probability=chances.copy())


def test_probabilities_by_size_come_from_the_draw():
    sample = PoissonPPS(0.9, 0.2, per_size=0.1).draw(Population(12, size=np.arange(1.0, 13.0)), next(KEYS))
    found = estimate(sample, VALUES, "total", bounds=(0, 1), epsilon=1.0)
    assert found.guarantee.epsilon() <= 1.0


def test_a_stratum_without_records_is_nobody_s_business():
    """Under add/remove, an error would tell whether somebody is there."""
    sample = COINS.draw(Population(3, stratum=["a", "a", "a"]), next(KEYS))
    estimate(sample, [1.0, 0.5, 0.0], "total", bounds=(0, 1), epsilon=1.0)
    assert COINS.draw(Population(0, stratum=np.empty(0, "U1")), next(KEYS)).reveal_secret().positions.size == 0


def test_a_stratum_without_records_is_refused_where_their_number_is_public():
    with pytest.raises(InvalidInput, match="no record in stratum 'b'"):
        SHARES.draw(Population(6, stratum=["a"] * 6), next(KEYS))
