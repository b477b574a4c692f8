"""Formulas that are true in their place and false one step outside it."""

import math

import pytest

from privamp import (
    Joint,
    Laplace,
    Neighbors,
    Poisson,
    PureDP,
    WithoutReplacement,
    amplify,
)
from privamp.verify import exact_delta, exact_delta_of_laws, exact_epsilon

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE


def test_amplification_formula_is_false_for_negative_epsilon() -> None:
    rate, base, theta = 0.3, -1.2, 1.5
    epsilon = math.log1p(rate * math.expm1(base))
    laplace = Laplace(1 / theta)
    claimed = rate * laplace.profile(AR).delta(base)
    assert claimed == pytest.approx(0.222, abs=5e-4)
    truth = exact_delta_of_laws({0.0: 1 - rate, 1.0: rate}, {0.0: 1.0}, laplace, epsilon)
    assert truth == pytest.approx(0.293, abs=5e-4)
    assert exact_delta(Poisson(rate), laplace, 1, AR, epsilon) == pytest.approx(truth, abs=1e-9)
    assert amplify(laplace, Poisson(rate)).delta(epsilon) == pytest.approx(truth, abs=1e-9)
    fixed_size = amplify(Laplace(1 / theta, neighbors=RO), WithoutReplacement(3, 10))
    assert fixed_size.delta(epsilon) == pytest.approx(truth, abs=1e-9)


@pytest.mark.parametrize(("rate", "queries", "added", "truth"), [(0.1, 10, 0.6285, 2.7563), (0.01, 20, 0.1293, 5.3993)])
def test_amplify_then_add_is_false_on_one_sample(rate: float, queries: int, added: float, truth: float) -> None:
    one = PureDP(0.5)
    design = Poisson(rate)
    assert queries * amplify(one, design).epsilon() == pytest.approx(added, abs=5e-5)
    # the linear program: `queries` 0.5-DP answers on one sample are one (0.5 queries)-DP answer
    assert exact_epsilon(design, 1, AR, 0.5 * queries) == pytest.approx(truth, abs=5e-5)
    assert amplify(Joint([one] * queries), design).epsilon() == pytest.approx(truth, abs=5e-5)


def test_records_that_share_a_coin_are_not_a_group_of_independent_records() -> None:
    rate, epsilon, records = 0.01, 1.0, 10
    independent = amplify(PureDP(epsilon), Poisson(rate), AR.for_person(records)).epsilon()
    assert independent == pytest.approx(0.170, abs=5e-4)
    shared = exact_epsilon(Poisson(rate), 1, AR, records * epsilon)  # all ten in or all ten out
    assert shared == pytest.approx(math.log1p(rate * math.expm1(records * epsilon)), abs=1e-9)
    assert shared == pytest.approx(5.40, abs=5e-3)
    assert amplify(PureDP(records * epsilon), Poisson(rate)).epsilon() == pytest.approx(shared, abs=1e-9)
