"""Unequal probabilities: closed forms, reference values, draws, and what is refused."""

import math
from itertools import product

import numpy as np
import pytest

from privamp import (
    ClusterPPS,
    ConditionalPoisson,
    Gaussian,
    InvalidInput,
    Key,
    Laplace,
    Neighbors,
    NoTheorem,
    Poisson,
    PoissonPPS,
    Population,
    PureDP,
    WithoutReplacement,
    amplify,
    spec,
)
from privamp.designs.cluster_by_size import ClusterBySize
from privamp.designs.proportional_pps import ProportionalPPS, capped, capped_exactly
from privamp.errors import DegradingDesign
from privamp.testing import seeded_key
from privamp.verify import exact_delta, exact_epsilon, exact_epsilon_of_laws
from privamp.verify.symmetry import collect

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
WITHIN = Neighbors("replace-one", scope="within cluster")


def laws(design, one, other, column):
    populations = (Population(list(p), **{column: list(p.values())}) for p in (one, other))
    return tuple(collect(design.law(population)) for population in populations)


def test_reference_rows_of_public_probabilities():
    design, others = PoissonPPS(high=0.6), {1: 0.2, 2: 0.5}
    added = laws(design, others | {0: 0.6}, others, "probability")
    assert exact_epsilon_of_laws(*added, 1.0, "add-remove") == pytest.approx(0.708513067, abs=1e-8)
    assert amplify(PureDP(1.0), design).epsilon() == pytest.approx(0.708513067, abs=1e-8)
    swapped = laws(design, others | {0: 0.6}, others | {9: 0.3}, "probability")
    assert exact_epsilon_of_laws(*swapped, 1.0, "add-remove") == pytest.approx(0.918785023, abs=1e-8)
    a, x, y = math.e, 0.6, 0.3
    pair = math.log((1 + x * (a - 1)) / (1 - y * (1 - 1 / a)))
    other_order = math.log((1 + y * (a - 1)) / (1 - x * (1 - 1 / a)))
    assert max(pair, other_order) == pytest.approx(0.918785023, abs=1e-8)
    assert amplify(PureDP(1.0), design, RO).epsilon() >= 0.918785023


def test_poisson_pps_is_poisson_at_the_highest_probability():
    for mechanism in (PureDP(0.7), Gaussian(1.3), Laplace(2.0)):
        for neighbors in (AR, RO):
            one, other = (amplify(mechanism, d, neighbors) for d in (PoissonPPS(0.3, 0.1), Poisson(0.3)))
            assert one.delta(0.2) == other.delta(0.2)
    equal = Population(3, probability=[0.3] * 3)
    assert collect(PoissonPPS(0.3).law(equal)) == collect(Poisson(0.3).law(equal))


def test_probabilities_from_sizes():
    design = PoissonPPS(high=0.5, low=0.1, per_size=0.2)
    batch = Population(4, size=[0.1, 1.0, 2.0, 9.0]).batch()
    assert design.probabilities(batch).tolist() == pytest.approx([0.1, 0.2, 0.4, 0.5])


def test_recursive_capping():
    random = np.random.default_rng(0)
    for _ in range(100):
        sizes, total = random.uniform(0.1, 20.0, random.integers(1, 12)), float(random.uniform(0.3, 12))
        found = capped(sizes, total)
        assert found == pytest.approx([float(q) for q in capped_exactly(sizes.tolist(), total)], rel=1e-12)
        assert found.sum() == pytest.approx(min(total, sizes.size))
    assert capped(np.array([8.0, 1.0, 1.0]), 2).tolist() == [1.0, 0.5, 0.5]


def test_proportional_pps_closed_form_and_the_loss_without_public_facts():
    design, q, a = PoissonPPS.proportional(10, 1.0, 5.0, 1000), 50 / 1005, math.e
    c, before = 1 - 1 / a, 50 / 1004
    gone, there = math.log1p(q * (a - 1)) + q * c / (1 - before * c), q * (a - 1) - math.log1p(-q * c)
    found = amplify(PureDP(1.0), design)
    assert found.epsilon() == pytest.approx(max(gone, there), rel=1e-10)
    assert found.lower.epsilon() > 0.97 * found.epsilon()
    free = ProportionalPPS(4, 1.0, 1e9, 0)
    assert 1e79 < free.added_loss(183.5, 0) < 1e80  # 1 - Qc is 1/a, and not a difference that rounds to 0
    assert free.added_loss(1.0, 0) == pytest.approx(1.0 + a - 1.0)
    # a newcomer that takes a whole unit from many others: epsilon + a - 1 is approached
    losses = []
    for n in (3, 5, 7):
        design = ProportionalPPS(n, 1.0, 1e6, n)
        with_x = {**dict.fromkeys(range(n), 1.0), n: 1e6}
        pair = laws(design, with_x, dict.fromkeys(range(n), 1.0), "size")
        losses.append(exact_epsilon_of_laws(*pair, 1.0, "add-remove"))
    assert losses == pytest.approx([1.0 + n * math.log1p((a - 1.0) / n) for n in (3, 5, 7)], abs=1e-8)


def test_capping_once_is_refused_and_has_no_bound():
    with pytest.raises(NoTheorem, match="recursive"):
        PoissonPPS.proportional(4, 1.0, 5.0, 10, capping="once")
    n, newcomer, a = 20, 1e6, math.e
    falls = n / (n + newcomer)  # every probability, from 1
    assert n * math.log(a * (1 - falls * (1 - 1 / a))) > 0.99 * n


def test_conditional_poisson_certifies_the_largest_inclusion_probability():
    m, n, low, high = 3, 8, 1.0, 4.0
    design = ConditionalPoisson(m, n, low, high)
    law = collect(design.law(Population(n, odds=[high, *[low] * (n - 1)])))
    included = float(sum(p for units, p in law.items() if 0 in units))
    assert design.largest_probability(n) == pytest.approx(included, rel=1e-12)
    right = math.log1p(included * math.expm1(1.0))
    assert amplify(PureDP(1.0, neighbors=RO), design).epsilon() == pytest.approx(right, rel=1e-12)
    equal = ConditionalPoisson(m, n, 2.0, 2.0)
    for neighbors in (AR, RO):
        ours, theirs = (
            amplify(Gaussian(1.0, neighbors=RO), d, neighbors).delta(0.3) for d in (equal, WithoutReplacement(m, n))
        )
        assert ours == pytest.approx(theirs, rel=1e-12)


def test_conditional_poisson_curve_holds_for_noisy_sums_on_mixed_odds():
    design = ConditionalPoisson(2, 4, 0.5, 3.0)
    noise = Gaussian(0.8, neighbors=RO)
    for odds in ([0.5, 3.0, 1.0, 1.0], [3.0, 3.0, 0.5, 0.5]):
        truth = exact_delta(design, noise, Population(4, f"odds {odds}", odds=odds), RO, np.array([0.0, 0.4, 1.2]))
        assert np.all(np.asarray(amplify(noise, design).delta(np.array([0.0, 0.4, 1.2]))) >= truth - 1e-12)


def test_conditional_poisson_draws_the_wanted_size_from_extreme_odds():
    odds = np.geomspace(1e-3, 1e3, 500)
    for m in (1, 250, 499, 500):
        drawn = ConditionalPoisson(m, 500, 1e-3, 1e3).draw(Population(500, odds=odds), seeded_key(m)).reveal_secret()
        assert drawn.positions.size == m


def test_cluster_pps_pairs_are_exact():
    random = np.random.default_rng(5)
    for _ in range(40):
        k = int(random.integers(1, 4))
        weights = random.integers(0, 5, k) + np.eye(k, dtype=int)[0]
        pi = tuple((weights / weights.sum()).tolist())
        sizes = tuple(int(n) for n in random.integers(0, 4, k))
        changed, epsilon = int(random.integers(0, k)), float(random.uniform(0.1, 2.5))
        design = ClusterPPS(pi, 4)
        old = design.sized(sizes)
        ids, cluster = [int(i) for i in old.ids], old.columns["cluster"].tolist()
        if sizes[changed] and random.random() < 0.5:
            at, neighbors = cluster.index(changed), WITHIN
            new = Population([*ids[:at], 99, *ids[at + 1 :]], cluster=cluster)
        else:
            neighbors, new = AR, Population([*ids, 99], cluster=np.array([*cluster, changed], dtype=np.int64))
        truth = exact_epsilon_of_laws(collect(design.law(old)), collect(design.law(new)), epsilon, "add-remove")
        assert design.pair_loss(epsilon, sizes, changed, neighbors) == pytest.approx(truth, abs=1e-8)
        assert truth <= amplify(PureDP(epsilon), design, neighbors).epsilon() + 1e-9


@pytest.mark.parametrize(
    ("sizes", "epsilon", "lp", "digits"),
    [
        ((1, 1), 1.0, 1.1853428, 1e-7),
        ((5, 5), 0.1, 0.118570635, 1e-8),
        ((0, 6), 1.0, 5.06, 5e-3),
        ((1, 9), 1.0, 1.5975, 5e-5),
    ],
)
def test_oracle_values_of_a_cluster_by_its_private_size(sizes, epsilon, lp, digits):
    design = ClusterPPS.proportional_to_size(2, 9)
    old, ids = design.sized(sizes), list(range(sum(sizes)))
    cluster = [*old.columns["cluster"].tolist(), 0]
    new = Population([*ids, 99], cluster=np.array(cluster, dtype=np.int64))
    truth = exact_epsilon_of_laws(collect(design.law(old)), collect(design.law(new)), epsilon, "add-remove")
    assert truth == pytest.approx(lp, abs=digits)
    if min(sizes):
        assert truth <= ClusterBySize(2, 9, min(sizes)).added_loss(epsilon, min(sizes)) + 1e-9


def test_clusters_by_private_size_are_refused_when_one_may_be_empty():
    for neighbors, least in ((AR, 0), (RO, 0)):
        with pytest.raises(NoTheorem, match="ClusterPPS"):
            amplify(PureDP(1.0), ClusterBySize(3, 6, least), neighbors)


@pytest.mark.filterwarnings("ignore::privamp.errors.DegradingDesign")
def test_replaced_inside_a_cluster_by_size_is_the_supremum_over_sizes():
    for least, cap, epsilon in product((0, 1, 2), (2, 3), (0.3, 1.0)):
        design = ClusterBySize(2, cap, least)
        found = [
            exact_epsilon(design, design.sized((n, other)), WITHIN, epsilon, AR)
            for n in range(max(least, 1), cap + 1)
            for other in range(least, cap + 1)
        ]
        assert amplify(PureDP(epsilon), design, WITHIN).epsilon() == pytest.approx(max(found), abs=1e-7)


def test_spec_words():
    assert spec.design("poisson-pps:high=0.3") == PoissonPPS(0.3)
    assert spec.design("conditional-poisson:size=2,population=9,low=1,high=3") == ConditionalPoisson(2, 9, 1.0, 3.0)


def draw(design, **columns):
    return design.draw(Population(len(next(iter(columns.values()))), **columns), Key.generate())


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: PoissonPPS(1.1), "high"),
        (lambda: PoissonPPS(0.5, 0.6), "low"),
        (lambda: PoissonPPS(0.5, per_size=0.0), "per_size"),
        (lambda: draw(PoissonPPS(0.5), probability=["0.1", "0.2"]), "must hold numbers"),
        (lambda: draw(PoissonPPS(0.5), chance=[0.1, 0.2]), "column 'probability'"),
        (lambda: PoissonPPS.proportional(0, 1.0, 2.0, 3), "size"),
        (lambda: PoissonPPS.proportional(1, 3.0, 2.0, 3), "low"),
        (lambda: PoissonPPS.proportional(1, 1.0, 2.0, 3, capping="never"), "capping"),
        (lambda: draw(ProportionalPPS(1, 1.0, 2.0, 3), size=[1.0, 2.0]), "fewer were given"),
        (lambda: ConditionalPoisson(3, 2, 1.0, 2.0), "size"),
        (lambda: ConditionalPoisson(1, 2, 0.0, 2.0), "low"),
        (lambda: ConditionalPoisson(1, 2, 1.0, math.inf), "high"),
        (lambda: draw(ConditionalPoisson(1, 3, 1.0, 2.0), odds=[1.0, 2.0]), "fewer were given"),
        (lambda: draw(ConditionalPoisson(1, 2, 1.0, 2.0), weight=[1.0, 2.0]), "column 'odds'"),
        (lambda: ClusterPPS((0.5, 0.6), 1), "add up to 1"),
        (lambda: ClusterPPS((1.5, -0.5), 1), "probabilities"),
        (lambda: ClusterPPS(0.5, 1), "one number per cluster"),
        (lambda: ClusterPPS((0.5, 0.5), 0), "max_size"),
        (lambda: draw(ClusterPPS((0.5, 0.5), 1), cluster=[0, 0, 1]), "a cluster has more records"),
        (lambda: ClusterBySize(2, 3, 4), "min_size"),
        (lambda: draw(ClusterBySize(2, 3, 1), cluster=[0, 0]), "fewer records"),
    ],
)
def test_bad_input_is_one_sentence(make, says):
    with pytest.raises(InvalidInput, match=says) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf, -1.0, 0.0, 1e300, 5e-324])
def test_a_value_outside_the_declared_range_is_cut_and_never_refused(odd):
    key = Key.generate()
    for design, name, low, high in (
        (PoissonPPS(0.5, 0.1), "probability", 0.1, 0.5),
        (PoissonPPS(0.5, 0.1, per_size=1.0), "size", 0.1, 0.5),
        (ProportionalPPS(1, 1.0, 2.0, 2), "size", 1.0, 2.0),
        (ConditionalPoisson(1, 2, 1.0, 2.0), "odds", 1.0, 2.0),
    ):
        cut = low if math.isnan(odd) else min(max(odd, low), high)
        people = [Population(2, "people", **{name: np.array([low, value])}) for value in (odd, cut)]
        given, meant = (design.draw(who, key).reveal_secret() for who in people)
        assert given.positions.tolist() == meant.positions.tolist()


@pytest.mark.parametrize(("clusters", "cap"), [(2, 2), (2, 3), (3, 2)])
def test_the_attack_on_a_cluster_by_size_is_what_the_linear_program_finds(clusters, cap):
    design = ClusterBySize(clusters, cap, 1)
    full = [cap] * (clusters - 1)
    for neighbors, own, before in ((AR, 1, (1, *full)), (WITHIN, cap - 1, (cap, *full))):
        found = design._looked_for(1.0, own, neighbors)
        assert found == pytest.approx(exact_epsilon(design, design.sized(before), neighbors, 1.0, AR), rel=1e-9)
    with pytest.warns(DegradingDesign):
        one = amplify(PureDP(1.0), ClusterBySize(4, 5, 2))
    assert one.lower.epsilon() <= one.epsilon() < 1.01 * one.lower.epsilon()
