"""Under add/remove a declared number of records is a lower bound for both data sets, and the guarantee says so."""

from itertools import pairwise

import numpy as np
import pytest

from privamp import Neighbors, Poisson, Population, PureDP, Stratified, WithoutReplacement, WithReplacement, amplify
from privamp.amplification import AT_LEAST
from privamp.verify import exact_epsilon_of_laws
from privamp.verify.symmetry import collect

AR = Neighbors.ADD_REMOVE
pytestmark = pytest.mark.filterwarnings("ignore::privamp.errors.DegradingDesign")


def assumed(design, neighbors=AR):
    return amplify(PureDP(1.0), design, neighbors).assumes


@pytest.mark.parametrize("kind", [WithoutReplacement, WithReplacement])
def test_fewer_records_than_declared_cost_more_and_are_excluded_in_words(kind):
    design = kind(2, 4)
    laws = [collect(design.law(Population(np.arange(size)))) for size in (3, 4, 5)]
    certified = amplify(PureDP(1.0), design, AR)
    below, above = (exact_epsilon_of_laws(a, b, 1.0, "add-remove") for a, b in pairwise(laws))
    assert above <= certified.epsilon() < below
    assert AT_LEAST[0] in certified.assumes


def test_where_it_stands():
    assert AT_LEAST[0] in assumed(Stratified([("a", WithoutReplacement(1, 4)), ("b", WithoutReplacement(1, 3))]))
    assert AT_LEAST[0] not in assumed(Poisson(0.5))
    assert AT_LEAST[0] not in assumed(WithoutReplacement(2, 4), Neighbors.REPLACE_ONE)
