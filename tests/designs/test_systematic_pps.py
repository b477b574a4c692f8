"""Systematic sampling by public size: exact chances, bounds, the counterexample for private lists, surveys."""

import math
from fractions import Fraction

import numpy as np
import pytest

from privamp import (
    ApproxDP,
    ClusterPPS,
    ClusterSampling,
    Gaussian,
    InvalidInput,
    Laplace,
    Neighbors,
    NoTheorem,
    Population,
    PureDP,
    SystematicPPS,
    amplify,
    spec,
)
from privamp.designs.one_in_several import Kind
from privamp.survey import estimate
from privamp.testing import seeded_key
from privamp.verify import exact_delta, exact_epsilon, exact_epsilon_of_laws

AR = Neighbors.ADD_REMOVE
WITHIN = Neighbors("replace-one", scope="within cluster")
EPSILONS = np.array([0.0, 0.3, 1.0])
CASES = [((2, 3), 1, 2), ((1, 1, 1), 2, 1), ((3, 2, 4), 2, 1), ((1, 2, 3, 2), 2, 1), ((3, 2, 3, 2), 3, 1)]


def full(design):
    return design.sized(design.caps)


@pytest.mark.parametrize("sizes", [(3, 2, 4, 1), (1, 1, 1, 1, 1), (7, 11, 5, 13, 2, 9)])
@pytest.mark.parametrize("chosen", [1, 2])
def test_chances_are_proportional_to_size(sizes, chosen):
    design = SystematicPPS(sizes, chosen)
    assert sum(p for _, p in design.samples()) == 1
    for h, size in enumerate(sizes):
        assert sum(p for units, p in design.samples() if h in units) == Fraction(chosen * size, sum(sizes))
    assert {len(units) for units, _ in design.samples()} == {chosen}


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("relation", [AR, WITHIN], ids=str)
def test_the_truth_is_below_the_bound(case, relation):
    design = SystematicPPS(*case)
    for epsilon in (0.1, 1.0, 2.5):
        truth = exact_epsilon(design, full(design), relation, epsilon, AR)
        found = amplify(PureDP(epsilon), design, relation)
        assert found.lower.epsilon() <= truth * (1 + 1e-9)
        assert truth <= found.epsilon() < epsilon * (1 if relation == AR else 2)
    for noise in (Gaussian(1.3), Laplace(0.9)):
        truth = exact_delta(design, noise, full(design), relation, EPSILONS)
        found = amplify(noise, design, relation)
        assert np.all(np.asarray(found.delta(EPSILONS)) >= truth - 1e-10)
        assert np.all(np.asarray(found.lower.delta(EPSILONS)) <= truth + 1e-10)


def test_a_distance_that_is_too_small_is_caught():
    design = SystematicPPS((2, 3), 1, 2)
    truth = exact_epsilon(design, full(design), AR, 1.0, AR)
    assert max(kind.loss(1.0, 1) for kind in design.kinds()) >= truth
    near = [Kind(kind.chance, tuple((w, e - 1) for w, e in kind.others)) for kind in design.kinds()]
    assert max(kind.loss(1.0, 1) for kind in near) < truth - 1e-3


def test_a_private_list_of_units_loses_more_and_more():
    """The reason for the refusal: a unit more at the front changes every sample."""
    found = []
    for n in (1, 2, 3, 4):
        before = dict(SystematicPPS((1,) * (2 * n), n).samples())
        after = {
            tuple(sorted(99 if h == 0 else h - 1 for h in units)): p
            for units, p in SystematicPPS((1,) * (2 * n + 1), n).samples()
        }
        found.append(exact_epsilon_of_laws(before, after, 1.0, "add-remove"))
    assert found == pytest.approx([1.1409, 1.5756, 2.5102, 3.0776], abs=1e-4)


def test_many_units_have_hardly_any_amplification_left_but_some():
    design = SystematicPPS([*range(5, 105)], 20)
    assert len(design.samples()) > 64  # distances are not looked at one by one
    alone, found = (Gaussian(8.0).profile(AR).epsilon(1e-6), amplify(Gaussian(8.0), design).epsilon(1e-6))
    assert 0.8 * alone < found < alone
    assert amplify(ApproxDP(0.1, 1e-9), design).epsilon(1e-6) <= 0.1


def test_the_keyed_draw_follows_the_starts():
    design = SystematicPPS((3, 2, 4, 1), 2)
    people, rounds = full(design), 2000
    seen = np.zeros(4)
    for r in range(rounds):
        seen[design.draw(people, seeded_key(2), r).reveal_secret().positions] += 1
    expected = rounds * design.chances
    assert np.all(np.abs(seen - expected) < 6.2 * np.sqrt(expected))  # fails by chance once in 10^8


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: SystematicPPS((5, 2, 2), 2), InvalidInput, "would always be drawn"),
        (lambda: SystematicPPS((3, 0), 1), InvalidInput, "sizes"),
        (lambda: SystematicPPS((3, 2.5), 1), InvalidInput, "sizes"),
        (lambda: SystematicPPS((3, 2), 3), InvalidInput, "chosen"),
        (lambda: amplify(PureDP(1.0), SystematicPPS((3, 2), 1), Neighbors.REPLACE_ONE), NoTheorem, "replace-one"),
        (lambda: spec.design("systematic-pps:sizes=3+2"), InvalidInput, "chosen"),
    ],
)
def test_what_is_refused(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_a_survey_estimates_from_it(noise):
    random, rounds = np.random.default_rng(2), 150
    sizes = random.integers(10, 40, 60)
    x = np.clip(sizes / 4 + random.normal(size=60), 0, 10)
    design, people = SystematicPPS(sizes.tolist(), 12), Population(60, cluster=np.arange(60))
    given = {"noise": noise, "delta": 1e-6 if noise == "gaussian" else 0.0, "bounds": (0, 10), "epsilon": 4.0}
    found = [estimate(design.draw(people, seeded_key(5), r), x, "total", sd="range", **given) for r in range(rounds)]
    values = np.array([one.value for one in found])
    assert abs(values.mean() - x.sum()) < 4.5 * values.std() / np.sqrt(rounds)
    assert values.std() <= found[0].standard_error  # the largest that the bounds allow
    assert found[0].guarantee.epsilon(given["delta"]) <= 4.0
    with pytest.raises(InvalidInput, match="one start does not show"):
        estimate(design.draw(people, seeded_key(6)), x, "total", **given)


@pytest.mark.parametrize(
    "design",
    [
        SystematicPPS(sizes=(3, 2, 4, 1), chosen=2),
        SystematicPPS(sizes=(1, 1, 1), chosen=2, max_size=2),
        ClusterSampling(chosen=5, clusters=50, max_size=4),
        ClusterPPS((0.5, 0.3, 0.2), max_size=4),
    ],
    ids=lambda design: type(design).__name__,
)
def test_one_record_replaced_loses_no_more_than_without_sampling(design):
    """At a small epsilon two add/remove steps have a smaller delta than the pure loss alone says."""
    at = np.linspace(0.0, 1.9, 20)
    found = np.asarray(amplify(PureDP(1.0), design, WITHIN).delta(at))
    assert np.all(found <= np.exp(PureDP(1.0).profile(Neighbors.REPLACE_ONE).forward(at)) * (1 + 1e-9) + 1e-12)


def test_geometric_noise_on_a_record_of_either_sign_stays_below():
    design = SystematicPPS(sizes=(3, 2, 4, 1), chosen=2)
    places = np.arange(-60, 61)
    bound = np.asarray(amplify(PureDP(1.0), design, WITHIN).delta(np.linspace(0.0, 1.9, 20)))
    noise = [math.tanh(0.5) * np.exp(-np.abs(places - shift)) for shift in (-1, 0, 1)]
    for unit in range(4):
        chance = float(sum(p for units, p in design.samples() if unit in units))
        plus, minus = (chance * noise[i] + (1 - chance) * noise[1] for i in (2, 0))
        exact = [np.maximum(plus - math.exp(e) * minus, 0).sum() for e in np.linspace(0.0, 1.9, 20)]
        assert np.all(np.asarray(exact) <= bound)
