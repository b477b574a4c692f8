"""Sampling designs (SD): sizes drawn at random or computed from the data."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from privamp import Neighbors, NoTheorem, Proportional, PureDP, RandomSize, Systematic, WithoutReplacement, amplify
from privamp.designs.rounded_size import added_at
from privamp.verify import exact_epsilon_of_laws

RO = Neighbors.REPLACE_ONE


def subsets(ids, size):
    return {tuple(sorted(s)): Fraction(1, math.comb(len(ids), size)) for s in combinations(ids, size)}


def test_sd_2_4_a_hundredth_of_the_noise_is_not_enough() -> None:
    """A count with two-sided geometric noise on 1 of 100 records: the loss at its best event, written out."""

    def loss(epsilon: float) -> float:  # the record that differs is the one drawn in 1 of 100 samples
        a = math.exp(-epsilon)
        return math.log((0.01 + 0.99 * a) / a)

    assert loss(1.0) == pytest.approx(0.01704, abs=5e-6)
    assert loss(100.0) == pytest.approx(95.4, abs=0.05)
    assert loss(math.log1p(100 * math.expm1(1.0))) == pytest.approx(1.0)
    assert math.log1p(100 * math.expm1(1.0)) == pytest.approx(5.152, abs=5e-4)
    assert amplify(PureDP(100.0, RO), WithoutReplacement(1, 100)).epsilon() == pytest.approx(loss(100.0))


def test_sd_theorem_3_1_is_below_the_truth() -> None:
    """n = 4, always m = 2, epsilon = 1: t~ is the point mass at 2."""
    printed = math.log1p(2 / 4 * math.expm1(1.0))
    truth = exact_epsilon_of_laws(subsets([0, 1, 2, 3], 2), subsets([1, 2, 3, 4], 2), 1.0, "add-remove")
    assert printed == pytest.approx(0.620, abs=5e-4)
    assert truth == pytest.approx(1.434, abs=5e-4)
    assert amplify(PureDP(1.0), RandomSize([0, 0, 1, 0, 0]), RO).epsilon() == pytest.approx(truth, abs=1e-6)


def test_sd_lemma_b_1_needs_add_remove() -> None:
    """A mechanism that publishes its sample's size is 0-DP under replacement and tells 1 of 2 from 2 of 3."""
    one_of_two, two_of_three = subsets([0, 1], 1), subsets([0, 1, 2], 2)
    assert exact_epsilon_of_laws(one_of_two, two_of_three, 1.0, "replace-one") == math.inf
    claimed = math.log1p(1 / 3 * math.expm1(2.0)) + 1.0
    assert exact_epsilon_of_laws(one_of_two, two_of_three, 1.0, "add-remove") <= claimed


def smallest_error(epsilon: float, largest: int) -> float:
    """The least worst-case squared error of an epsilon-DP count of 0..largest with half-integer outputs."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    outputs = np.arange(0, 2 * largest + 1) / 2
    n, k, a = largest + 1, outputs.size, math.exp(epsilon)
    at = np.arange(n * k).reshape(n, k)
    rows, cols, values = [], [], []
    row = 0
    for low, high in [(i, i + 1) for i in range(largest)] + [(i + 1, i) for i in range(largest)]:
        for y in range(k):
            rows += [row, row]
            cols += [at[low, y], at[high, y]]
            values += [1.0, -a]
            row += 1
    for i in range(n):  # error of input i minus the worst error
        rows += [row] * (k + 1)
        cols += [*at[i], n * k]
        values += [*((outputs - i) ** 2), -1.0]
        row += 1
    inequality = coo_array((values, (rows, cols)), shape=(row, n * k + 1)).tocsr()
    total = coo_array((np.ones(n * k), (np.repeat(np.arange(n), k), np.arange(n * k))), shape=(n, n * k + 1)).tocsr()
    cost = np.zeros(n * k + 1)
    cost[-1] = 1.0
    found = linprog(cost, A_ub=inequality, b_ub=np.zeros(row), A_eq=total, b_eq=np.ones(n), method="highs-ipm")
    assert found.status == 0
    return float(found.fun)


def test_sd_proposition_4_2_subtracts_half_the_variance() -> None:
    """f = f~ = the number of records: epsilon' = epsilon, so the error 0 must be at least alpha - slack."""
    epsilon = 0.5
    on_a_grid = smallest_error(epsilon, 24)
    alpha = (math.sqrt(on_a_grid) - 0.25) ** 2  # rounding any estimate to the grid moves it by at most a quarter
    assert alpha > 1 / epsilon**2  # so "error >= alpha - 1/epsilon^2" is false
    assert alpha <= 2 / epsilon**2  # the variance of Laplace(1/epsilon) noise: "alpha - 2/epsilon^2" stands


def test_sd_proposition_4_2_mixes_relations() -> None:
    """f = f~ = n for even n, 0 for odd: constant under replacement, useless to estimate under deletion."""
    n, epsilon = 10, 1.0
    all_or_none = [0.0] * n + [1.0]
    assert amplify(PureDP(epsilon), RandomSize(all_or_none), RO).epsilon() == pytest.approx(2 * epsilon, abs=1e-9)
    # two points n apart: some estimate is off by n/2 with chance 1/(1 + e^eps') at one of them
    alpha = (n / 2) ** 2 / (1 + math.exp(2 * epsilon))
    assert alpha - 2 / epsilon**2 > 0  # more than the error of f~, which is 0, even with the right variance


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("epsilon", [0.01, 1.0])
def test_sd_theorem_4_3_is_loose(rate: float, epsilon: float) -> None:
    square = math.expm1(2 * epsilon)
    printed = math.log1p(2 * rate * square) + math.log1p(rate * square)
    ours = amplify(PureDP(epsilon), Proportional(rate)).epsilon() if rate < 0.2 else None
    truth = added_at(Fraction(str(rate)), "random", epsilon, 10_000)
    assert 2.0 <= printed / truth.upper <= 6.0
    if ours is not None:
        assert truth.upper <= ours <= truth.upper * 1.001
    if epsilon == 0.01:
        assert printed / truth.upper == pytest.approx(6 / (3 - 2 * rate), rel=0.02)


def every(order: list[int], step: int) -> dict[tuple[int, ...], Fraction]:
    return {tuple(sorted(order[start::step])): Fraction(1, step) for start in range(step)}


def test_sd_sorted_systematic_loses_with_the_sample_size() -> None:
    """Step 2: an insertion in the middle of 4, 6, 8 records costs more than 2, 3, 4 times epsilon."""
    for n, loss in ((4, 2.620), (6, 3.620), (8, 4.620)):
        middle = n // 2
        grown = [*range(middle), 99, *range(middle, n)]
        found = exact_epsilon_of_laws(every(list(range(n)), 2), every(grown, 2), 1.0, "add-remove")
        assert found == pytest.approx(loss, abs=5e-4)
    with pytest.raises(NoTheorem, match="sorted"):
        Systematic(2, "sorted")
