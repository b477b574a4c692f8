"""The chain program against the linear program over all mechanisms, and at sizes no linear program reaches."""

import math
import time
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from privamp import Neighbors, RandomSize
from privamp.numerics import size_chain
from privamp.numerics.roots import NumericalFailure
from privamp.verify import exact_epsilon, exact_epsilon_of_laws

RO = Neighbors.REPLACE_ONE
AGREE = 2e-8


def subsets(ids, sizes):
    law = {}
    for m, chance in enumerate(sizes):
        if chance:
            for units in combinations(ids, m):
                law[units] = Fraction(chance) / math.comb(len(ids), m)
    return law


def some_law(random, n):
    """Whole numbers over their sum, some of them zero."""
    weights = random.integers(0, 5, n + 1) * random.integers(0, 2, n + 1)
    weights[random.integers(n + 1)] += 1
    return [Fraction(int(w), int(weights.sum())) for w in weights]


@pytest.mark.parametrize("seed", range(6))
def test_replaced_equals_the_linear_program(seed):
    random = np.random.default_rng(seed)
    for _ in range(20):  # 120 cases in all
        n, epsilon = int(random.integers(1, 6)), float(random.uniform(0.05, 3.0))
        design = RandomSize([float(p) for p in some_law(random, n)])
        found = size_chain.replaced(design.chances, epsilon)
        truth = exact_epsilon(design, n, RO, epsilon, Neighbors.ADD_REMOVE)
        assert found.lower <= found.upper <= found.lower + 1e-11
        assert found.upper == pytest.approx(truth, abs=AGREE)


@pytest.mark.parametrize("seed", range(6))
def test_added_equals_the_linear_program(seed):
    random = np.random.default_rng(100 + seed)
    for _ in range(20):
        n, epsilon = int(random.integers(0, 5)), float(random.uniform(0.05, 3.0))
        few, many = some_law(random, n), some_law(random, n + 1)
        found = size_chain.added(np.array(few, dtype=float), np.array(many, dtype=float), epsilon)
        laws = subsets(range(n), few), subsets(range(n + 1), many)
        assert found.lower <= found.upper <= found.lower + 1e-11
        assert found.upper == pytest.approx(exact_epsilon_of_laws(*laws, epsilon, "add-remove"), abs=AGREE)


@pytest.mark.parametrize(
    ("sizes", "epsilon", "lp"),
    [
        ([0, 0, 0.5, 0.5], 1.0, 1.763382515),
        ([0.9, 0, 0, 0, 0.1], 0.1, 0.026112522),
        ([0.2] * 5, 2.0, 2.870463435),
    ],
)
def test_reference_values(sizes, epsilon, lp):
    found = size_chain.replaced(np.array(sizes), epsilon)
    assert found.lower <= lp + 1e-9
    assert found.upper == pytest.approx(lp, abs=1e-9)


def test_a_fixed_size_is_sampling_without_replacement():
    sizes = np.zeros(1001)
    sizes[100] = 1.0
    assert size_chain.replaced(sizes, 1.0).upper == pytest.approx(math.log1p(0.1 * math.expm1(2)), rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.01, 1.0])
@pytest.mark.parametrize("sd", [30.0, 10_000.0])
def test_a_hundred_thousand_records_in_seconds(epsilon, sd):
    n = 100_000
    design = RandomSize.truncated_normal(n / 2, sd, n)
    started = time.perf_counter()
    found = size_chain.replaced(design.chances, epsilon)
    assert time.perf_counter() - started < 10.0
    assert found.lower <= found.upper <= found.lower * (1 + 1e-10)
    share = math.exp(design.log_tilted_mean(epsilon)) / n
    assert found.upper <= math.log1p(share * math.expm1(2 * epsilon)) * (1 + 1e-12)
    assert found.lower >= math.log1p(0.5 * math.expm1(2 * epsilon)) * 0.9  # the mean size alone, nearly


def test_tiny_tails_keep_their_digits():
    sizes = np.zeros(1001)
    sizes[0], sizes[-1] = 1.0, 5e-324  # the smallest float: e^-744
    whole = size_chain.replaced(sizes, 2.0)
    assert whole.upper == pytest.approx(4.0, abs=1e-9)  # a^1000 makes the tail everything
    # h_j = a^j: (a - 1/a) t_n a^(n-1) against nearly 1
    small = size_chain.replaced(sizes, 0.5)
    assert small.upper == pytest.approx(5e-324 * math.exp(200) * math.exp(299.5) * 2 * math.sinh(0.5), rel=1e-9)
    assert small.lower == pytest.approx(small.upper, rel=1e-9)


def test_a_smaller_value_is_not_certified():
    """Negative control: the upper pass rejects a mu that some chain exceeds, the lower pass one that none reaches."""
    gain, base, a = np.array([0.3, 0.7]), np.array([1.0, 0.5]), math.e
    mu = size_chain._optimum(gain, base, a)
    assert size_chain._best_sum(gain - 0.999 * mu * base, a, 0.0) > 0
    assert size_chain._best_sum(gain - 1.001 * mu * base, a, 0.0) < 0


def test_a_huge_epsilon_is_refused():
    with pytest.raises(NumericalFailure, match="at most 130"):
        size_chain.replaced(np.array([0.5, 0.5]), 301.0)


def test_nothing_to_lose():
    assert size_chain.replaced(np.array([1.0, 0.0]), 1.0).upper <= 1e-290
    assert size_chain.replaced(np.array([0.5, 0.5]), 0.0).upper == 0.0
    with pytest.raises(ValueError, match="one record more"):
        size_chain.added(np.array([1.0]), np.array([1.0]), 1.0)


def by_hand(p_in, p_out, q_in, q_out, epsilon):
    """The largest log ratio over every h whose neighbours differ by exactly e^epsilon: the corners."""
    a, best = math.exp(epsilon), 0.0
    for steps in product((1.0, -1.0), repeat=p_in.shape[1] - 1):
        h = a ** np.cumsum([0.0, *steps])
        for more, less in (((p_in, p_out), (q_in, q_out)), ((q_in, q_out), (p_in, p_out))):
            ratios = (more[1] + a * more[0]) @ h / ((less[1] + less[0] / a) @ h)
            best = max(best, float(np.max(np.log(ratios))))
    return best


@pytest.mark.parametrize("pairs", [1, 2, 7])
def test_the_largest_of_several_pairs_is_the_largest_at_the_corners(pairs):
    random = np.random.default_rng(pairs)
    for _ in range(20):
        laws = [random.integers(0, 6, (pairs, 5)) / 10.0 + 0.01 for _ in range(4)]
        epsilon = float(random.uniform(0.05, 3.0))
        found = size_chain.largest_of(*laws, epsilon)
        assert found.lower <= found.upper <= found.lower + 1e-11
        assert found.upper == pytest.approx(by_hand(*laws, epsilon), abs=1e-11)


def test_the_largest_pair_is_found_wherever_it_stands():
    mild, wild = np.array([[0.5, 0.5]]), np.array([[0.9, 0.1]])
    for place in range(6):
        p_in = np.concatenate([mild] * place + [wild] + [mild] * (5 - place))
        laws = (p_in, 1.0 - p_in, np.full((6, 2), 0.5), np.full((6, 2), 0.5))
        found = size_chain.largest_of(*laws, 1.0)
        assert found.upper == pytest.approx(by_hand(*laws, 1.0), abs=1e-11)
        assert found.upper > by_hand(*(law[[(place + 1) % 6]] for law in laws), 1.0) + 0.1


def test_a_negative_sum_too_small_for_a_float_stays_negative():
    """V_0 is -e^-3000 here, so a value of mu is not reached; as a float it is zero, which would say that it is."""
    far = np.array([0.0] * 3000 + [-1.0])
    assert size_chain._best_sum(far, math.e, size_chain._FLOOR) < 0.0
    assert size_chain._best_sum(np.array([1e-300, *far]), math.e, size_chain._FLOOR) > 0.0
    assert size_chain._best_sum(-far, math.e, size_chain._FLOOR) > 0.0


@pytest.mark.parametrize("wrong", [1.01, 0.99, 1.0 + 1e-4])
def test_a_value_that_is_wrong_is_not_certified(wrong, monkeypatch):
    """Planted: the search returns another value; the two passes that certify find neither side of it proved."""
    honest = size_chain._optimum
    monkeypatch.setattr(size_chain, "_optimum", lambda gain, base, a: wrong * honest(gain, base, a))
    laws = np.array([0.1, 0.3, 0.4, 0.2]), np.array([0.05, 0.2, 0.3, 0.3, 0.15])
    with pytest.raises(NumericalFailure, match="not certified"):
        size_chain.added(*laws, 0.7)


def test_sums_are_scaled_by_powers_of_two_and_not_beyond_their_start():
    """A large one down; a small one up, but no farther than one step below where it began."""
    big, small, step = size_chain._BIG, size_chain._SMALL, size_chain._SHIFT
    assert big * small == 1.0
    assert size_chain._rescaled(3.0, 2.0 * big, 5) == (3.0 * small, 2.0, 5 + step)
    assert size_chain._rescaled(3.0, 0.5 * small, 0) == (3.0 * big, 0.5, -step)
    assert size_chain._rescaled(3.0, 0.5 * small, -step) == (3.0, 0.5 * small, -step)
    assert size_chain._rescaled(3.0, 0.5 * small**2, step) == (3.0 * big**2, 0.5, -step)
    assert size_chain._rescaled(3.0, 1.0, 0) == (3.0, 1.0, 0)
