"""What the paper on sampling designs (SD) says about clusters and unequal probabilities, against enumeration."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from privamp import ClusterPPS, ClusterSampling, Neighbors, NoTheorem, Poisson, PoissonPPS, PureDP, amplify
from privamp.verify import exact_epsilon_of_laws

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
NEW = 99


def some_clusters(clusters: list[list[int]], chosen: int) -> dict[tuple[int, ...], Fraction]:
    """The law of the union of `chosen` clusters, written out."""
    law: dict[tuple[int, ...], Fraction] = {}
    picks = list(combinations(clusters, chosen))
    for pick in picks:
        units = tuple(sorted(i for cluster in pick for i in cluster))
        law[units] = law.get(units, Fraction(0)) + Fraction(1, len(picks))
    return law


def of_sizes(sizes: tuple[int, ...]) -> list[list[int]]:
    starts = np.cumsum([0, *sizes])
    return [list(range(starts[h], starts[h] + n)) for h, n in enumerate(sizes)]


def one_more(sizes: tuple[int, ...], chosen: int, epsilon: float) -> float:
    """The exact loss when the first cluster gets a member."""
    old, new = of_sizes(sizes), of_sizes(sizes)
    new[0] = [*new[0], NEW]
    return exact_epsilon_of_laws(some_clusters(old, chosen), some_clusters(new, chosen), epsilon, "add-remove")


def printed(epsilon: float, share: float, distance: int) -> float:
    """Theorems 5.1 and 5.2, with n_i + n_min and n_i + n_max."""
    return math.log1p(math.expm1(epsilon) * share / (share + (1 - share) * math.exp(-distance * epsilon)))


@pytest.mark.parametrize(
    ("sizes", "chosen"), [((1, 1), 1), ((0, 3, 1), 2), ((1, 2, 3), 1), ((2, 1, 1, 2), 2), ((1, 3, 1), 1)]
)
def test_sd_5_1_and_5_2_hold_between_given_sizes(sizes: tuple[int, ...], chosen: int) -> None:
    share, others = chosen / len(sizes), sizes[1:]
    truth = one_more(sizes, chosen, 0.8)
    assert printed(0.8, share, sizes[0] + min(others)) <= truth + 1e-9
    assert truth <= printed(0.8, share, sizes[0] + max(others)) + 1e-9
    design = ClusterSampling(chosen, len(sizes), 3)
    assert design.pair_loss(0.8, sizes, 0) == pytest.approx(truth, abs=1e-8)


def test_sd_5_1_is_proved_on_a_pair_that_is_no_deletion() -> None:
    """C_1 = {1}, C_2 = {-1}; the proof turns the 1 into a -1, and claims a factor e^eps for it."""
    epsilon, half = 1.0, 0.5

    def density(total: float) -> float:  # of total + Laplace(1/epsilon) at 2, beyond all sums
        return math.exp(-epsilon * (2.0 - total))

    before, after = half * density(1) + half * density(-1), density(-1)
    of_the_proof = math.log(before / after)
    assert density(1) / density(-1) == pytest.approx(math.exp(2 * epsilon))  # not e^epsilon
    assert of_the_proof == pytest.approx(1.4338, abs=5e-5)
    assert of_the_proof > printed(epsilon, half, 2) == pytest.approx(0.9217, abs=5e-5)
    # a deletion that reaches the printed number: {1, 1} against {1}, weights e^(members of C_1 - others)
    assert one_more((1, 1), 1, epsilon) == pytest.approx(printed(epsilon, half, 2), abs=1e-8)


def test_sd_5_2_cannot_be_reported_because_sizes_are_private() -> None:
    design = ClusterSampling(1, 2, max_size=3)
    certified = amplify(PureDP(1.0), design).epsilon()
    small, large = one_more((0, 1), 1, 1.0), one_more((2, 3), 1, 1.0)
    assert small == pytest.approx(0.8137, abs=5e-5)
    assert small < large == pytest.approx(certified, abs=1e-8)


def test_sd_5_2_two_rates_do_not_multiply() -> None:
    share, rate, epsilon = 0.5, 0.5, 1.0
    product = math.log1p(share * rate * math.expm1(epsilon))
    design = ClusterSampling(1, 2, 2, Poisson(rate))
    laws: list[dict[tuple[int, ...], Fraction]] = []
    for clusters in ([[0], [1]], [[0, NEW], [1]]):
        law: dict[tuple[int, ...], Fraction] = {}
        for cluster in clusters:
            for kept in range(len(cluster) + 1):
                for units in combinations(cluster, kept):
                    law[units] = law.get(units, Fraction(0)) + Fraction(1, 2) * Fraction(1, 2) ** len(cluster)
        laws.append(law)
    truth = exact_epsilon_of_laws(*laws, epsilon, "add-remove")
    assert product == pytest.approx(0.3574, abs=5e-5)
    assert truth == pytest.approx(0.487402841, abs=1e-8)
    assert design.pair_loss(epsilon, (1, 1), 0) == pytest.approx(truth, abs=1e-8)


def test_sd_5_3_claims_more_than_any_mechanism_loses() -> None:
    """C_1 = {x} and C_2 = {z}, one drawn; P' has C_1 empty. E is the event {H = 0} of the test, as in the proof."""
    a, half = math.e, 0.5
    rare = 1e-6
    p, q, p_new = a * rare, rare / a, rare  # chances of E after {x}, {z} and the empty sample: 1-DP
    test, inside = math.log(p / q), math.log(p / p_new)  # eps' and eps''
    assert (test, inside) == pytest.approx((2.0, 1.0))
    loss = math.log((half * p + half * q) / (half * p_new + half * q))

    def bound(exponent: float) -> float:
        return math.log1p(math.expm1(inside) * half / (half + (1 - half) * math.exp(-exponent)))

    assert bound(test) == pytest.approx(0.9217, abs=5e-5)
    assert loss == pytest.approx(0.8137, abs=5e-5)
    assert one_more((0, 1), 1, 1.0) == pytest.approx(0.8137, abs=5e-5)  # the most any 1-DP mechanism can lose
    assert bound(test - inside) == pytest.approx(loss, abs=1e-12)  # e^-(eps' - eps'')


def test_sd_6_1_is_not_the_best_lower_bound_for_replacements() -> None:
    a, chance = math.e, 0.6
    printed_bound = math.log1p(chance * (a - 1))
    laws = [{(): Fraction(2, 5), (i,): Fraction(3, 5)} for i in (0, NEW)]
    truth = exact_epsilon_of_laws(*laws, 1.0, "add-remove")
    assert truth == pytest.approx(math.log((1 + chance * (a - 1)) / (1 - chance * (1 - 1 / a))), abs=1e-8)
    assert truth > printed_bound + 0.4
    guarantee = amplify(PureDP(1.0), PoissonPPS(high=chance), RO)
    assert guarantee.epsilon() == pytest.approx(truth, abs=1e-8)
    assert guarantee.lower is not None
    assert guarantee.lower.epsilon() == pytest.approx(truth, abs=1e-8)


@pytest.mark.parametrize(("others", "loss"), [(2, 2.00), (6, 5.06), (9, 7.70)])
def test_sd_6_2_an_empty_cluster_drawn_by_size_loses_with_the_size_of_the_others(others: int, loss: float) -> None:
    members = tuple(range(others))
    old = {members: Fraction(1)}
    new = {members: Fraction(others, others + 1), (NEW,): Fraction(1, others + 1)}
    truth = exact_epsilon_of_laws(old, new, 1.0, "add-remove")
    assert truth == pytest.approx(math.log((math.exp(others + 1) + others) / (others + 1)), abs=1e-8)
    assert truth == pytest.approx(loss, abs=5e-3)
    with pytest.raises(NoTheorem, match="public probabilities"):
        amplify(PureDP(1.0), ClusterPPS.proportional_to_size(2, others))
