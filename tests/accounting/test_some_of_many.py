"""Attacks on records that join k of t rounds, against every outcome of randomised response and against quadrature."""

import math
from itertools import combinations, product

import numpy as np
import pytest

from privamp import Gaussian, Laplace, Neighbors, NoTheorem, PureDP
from privamp.accounting.allocation import allocation, allocation_attack
from privamp.accounting.convex_order import one_of_many
from privamp.accounting.joint import Joint
from privamp.accounting.some_of_many import some_of_many
from privamp.core.curves import pair_profile
from privamp.core.profile import Profile
from privamp.core.schedule import OneOf

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
TWO_ROUNDS = (5.9206501086e-2, 5.0197662369e-2)  # D(P||Q), D(Q||P) at epsilon 1: sigma 1, one of two rounds, quadrature


def deltas(profile: Profile, epsilon: float) -> tuple[float, float]:
    return tuple(float(np.exp(curve(np.asarray(epsilon)))) for curve in (profile.forward, profile.backward))


def by_outcomes(with_record, without, times, rounds, epsilon):
    """Both directions over all sequences of outcomes, the record's rounds chosen at random."""
    chosen = list(combinations(range(rounds), times))
    forward = backward = 0.0
    for outcome in product(range(len(without)), repeat=rounds):
        q = math.prod(without[x] for x in outcome)
        p = sum(
            math.prod(with_record[x] if i in mine else without[x] for i, x in enumerate(outcome)) for mine in chosen
        ) / len(chosen)
        forward += max(p - math.exp(epsilon) * q, 0.0)
        backward += max(q - math.exp(epsilon) * p, 0.0)
    return forward, backward


@pytest.mark.parametrize(("times", "rounds"), [(1, 1), (1, 4), (2, 5), (4, 5), (3, 3)])
@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.3])
def test_randomised_response_is_attacked_as_well_as_possible(times, rounds, epsilon):
    """The number of yes says everything, so that the attack is the best one."""
    yes = math.e / (1.0 + math.e)
    exact = by_outcomes((yes, 1.0 - yes), (1.0 - yes, yes), times, rounds, epsilon)
    found = deltas(some_of_many(PureDP(1.0).profile(AR), times, rounds), epsilon)
    for mine, best in zip(found, exact, strict=True):
        assert mine <= best * (1.0 + 1e-9)
        assert mine >= best * 0.99 - 2e-4


def test_a_record_that_is_seen_for_sure_is_seen():
    """A third of the releases with the record have an outcome that none has without it."""
    with_record, without = (1 / 3, 1 / 3, 1 / 3), (0.0, 0.5, 0.5)
    with np.errstate(divide="ignore"):
        pair = pair_profile(np.log(np.array(with_record)), np.log(np.array(without)))
    for times, rounds in ((1, 3), (2, 3)):
        exact = by_outcomes(with_record, without, times, rounds, 2.0)
        found = deltas(some_of_many(pair, times, rounds), 2.0)
        assert found[0] == pytest.approx(exact[0], rel=0.02)
        assert found[0] <= exact[0] * (1.0 + 1e-9)
        assert found[1] <= exact[1] + 1e-12


def test_two_gaussian_rounds():
    found = deltas(some_of_many(Gaussian(1.0).profile(AR), 1, 2), 1.0)
    for mine, best in zip(found, TWO_ROUNDS, strict=True):
        assert 0.88 * best <= mine <= best


def test_every_round_is_the_composition():
    found = deltas(some_of_many(Gaussian(2.0).profile(AR), 4, 4), 0.5)
    exact = Gaussian(1.0).profile(AR).delta(0.5)  # 2/sqrt(4)
    for mine in found:
        assert 0.99 * exact <= mine <= exact


def test_nothing_and_too_much_to_attack():
    for profile in (PureDP(1e-300).profile(AR), Gaussian(1e-3).profile(AR)):
        assert some_of_many(profile, 1, 2).delta(0.1) <= 1e-12


def test_a_block_is_between_its_bounds_and_says_why():
    guarantee = allocation(Gaussian(1.0), OneOf(2), AR)
    worst = max(TWO_ROUNDS)
    assert worst <= guarantee.delta(1.0) <= worst * 1.02
    assert worst * 0.98 <= guarantee.lower.delta(1.0) <= worst
    assert "Random allocation" in guarantee.because[0]
    assert guarantee.assumes == Gaussian(1.0).assumes
    with pytest.raises(NoTheorem, match="replace-one"):
        allocation(Gaussian(1.0), OneOf(2), RO)


def test_a_block_for_persons_with_several_records():
    persons = Neighbors("add-remove", unit="person", records=2)
    one, two = (allocation(PureDP(0.5), OneOf(4), neighbors) for neighbors in (AR, persons))
    assert two.epsilon() == pytest.approx(2.0 * one.epsilon())
    assert "group privacy" in two.because[0]
    assert "group privacy" not in one.because[0]


def test_a_block_of_a_mechanism_that_may_lose_it_all_at_once():
    """The bound of one of many rounds is no larger than that of every round."""
    for mechanism in (Laplace(1.0), Gaussian(0.7)):
        upper = one_of_many(mechanism.profile(AR), 3, upper=True)
        assert allocation(mechanism, OneOf(3), AR).delta(0.4) == pytest.approx(upper.delta(0.4), rel=1e-6)


@pytest.mark.parametrize("epochs", [1, 3])
def test_the_attack_goes_on_from_epoch_to_epoch(epochs):
    found = allocation_attack(Gaussian(2.0), 2, 2, epochs)  # in every round: 2 epochs rounds of Gaussian noise
    exact = Gaussian(2.0 / math.sqrt(2 * epochs)).profile(AR).epsilon(1e-5)
    assert exact * 0.98 <= found.epsilon(1e-5) <= exact


def test_no_attack_on_a_mechanism_whose_pair_is_not_known():
    assert allocation_attack(Gaussian(1.0, neighbors=AR), 1, 2, 1) is not None
    assert allocation_attack(Joint([Laplace(1.0), Gaussian(1.0)]), 1, 2, 1) is None


def test_joint_influences_and_opposites():
    laplaces = Joint([Laplace(4.0), Laplace(2.0)])
    assert float(laplaces.influence.at(1.0)) == pytest.approx(0.75)
    assert float(Joint([Gaussian(3.0), Gaussian(4.0)]).influence.at(12.0)) == pytest.approx(5.0)
    assert Joint([Laplace(4.0), Gaussian(2.0)]).influence is None
    assert Joint([Laplace(4.0), PureDP(1.0)]).influence is None
    root = Gaussian(1.0, math.hypot(1 / 3, 1 / 4))
    for records in (1, 2):
        mine = Joint([Gaussian(3.0), Gaussian(4.0)]).opposite_mixture(0.3, records)
        assert mine.delta(0.1) == pytest.approx(root.opposite_mixture(0.3, records).delta(0.1), rel=1e-9)
    assert Joint([PureDP(1.0), PureDP(1.0)]).opposite_mixture(0.3, 2) is None
    assert Joint([PureDP(1.0), Laplace(1.0)]).opposite_mixture(0.3) is None
    assert Joint([PureDP(1.0, RO), PureDP(1.0, RO)]).opposite_mixture(0.3) is None


def test_opposite_answers_of_pure_boxes():
    """Two boxes say yes, no or neither: every outcome of the two pairs, added up."""
    a = math.exp(0.8)
    high, low = a / (1 + a), 1 / (1 + a)
    chance, delta, epsilon = 0.3, 0.0, 0.2
    profile = Joint([PureDP(0.8), PureDP(0.8)]).opposite_mixture(chance)
    there, none, other = (high, low), (0.5, 0.5), (low, high)
    assert profile is not None
    assert profile.delta(epsilon) > 0.0
    for x, y in product((0, 1), repeat=2):
        p = chance * there[x] * there[y] + (1 - chance) * none[x] * none[y]
        q = chance * other[x] * other[y] + (1 - chance) * none[x] * none[y]
        delta += max(p - math.exp(epsilon) * q, 0.0)
    assert profile.delta(epsilon) >= delta * 0.999
