"""Members of clusters kept by coins, sizes along a chain: enumerated truth, the program, planted mistakes, attacks."""

import numpy as np
import pytest

from privamp import (
    ApproxDP,
    ClusterPPS,
    ClusterSampling,
    Gaussian,
    Laplace,
    Neighbors,
    NoTheorem,
    Poisson,
    PureDP,
    amplify,
    compose,
)
from privamp.core.curves import out_and_in, pair_profile
from privamp.core.profile import Profile
from privamp.core.size_paths import Ladder, bounded
from privamp.core.transport import best_plan, stakes_of
from privamp.designs import cluster_chain as chain
from privamp.designs.cluster_transport import by_coins, taken
from privamp.verify import exact_epsilon
from privamp.verify.enumerate import exact_deltas

pytestmark = pytest.mark.filterwarnings("ignore::privamp.errors.DegradingDesign")
AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
WITHIN = Neighbors("replace-one", scope="within cluster")
EPSILONS = np.array([0.0, 0.2, 0.9, 1.6])
CASES = [(1, 2, 2, 0.4, (1, 2)), (2, 3, 1, 0.5, (0, 1, 1)), (1, 2, (2, 1), 0.7, (1, 1)), (2, 2, 2, 0.3, (1, 2))]


def both(profile):
    return np.exp(np.stack([profile.forward(EPSILONS), profile.backward(EPSILONS)]))


def claimed(design, relation, noise):
    kind = relation.kind
    return bounded(chain.sizes_of(design.share, design.rate, chain.caps_of(design), kind), noise)


@pytest.mark.parametrize("relation", [AR, WITHIN], ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("noise", [Gaussian(1.4), Laplace(0.8)], ids=["gaussian", "laplace"])
def test_the_truth_is_below_the_bound(noise, case, relation):
    chosen, clusters, cap, rate, sizes = case
    design = ClusterSampling(chosen, clusters, cap, Poisson(rate))
    truth = exact_deltas(design, noise, design.sized(sizes), relation, EPSILONS)
    assert np.all(both(claimed(design, relation, noise)) >= truth - 1e-12)


@pytest.mark.parametrize("relation", [AR, WITHIN], ids=str)
def test_it_is_the_value_of_the_program(relation):
    """The program knows all distances between components, and nothing of chains."""
    design, noise = ClusterSampling(1, 4, 2, Poisson(0.4)), Gaussian(1.4)
    components = by_coins(0.25, 0.4, 2, 2, is_replaced=relation == WITHIN)
    for epsilon in (0.25, 1.0):
        _, program = best_plan(components, stakes_of(noise), epsilon)
        followed = float(np.exp(claimed(design, relation, noise).forward(epsilon)))
        assert followed == pytest.approx(program, rel=0.02)


def wrong_ladders():
    right = chain.sizes_of(0.5, 0.4, [(2, 2)], AR.kind)
    rarer = chain.sizes_of(0.5, 0.2, [(2, 2)], AR.kind)
    folded = [np.zeros((1, 3)) for _ in range(3)]  # the other cluster's members taken for the changed one's
    for whole, part in zip(folded, (right.p_in, right.p_out, right.q_out), strict=True):
        for place, chance in enumerate(part[0]):
            whole[0, abs(place - 1)] += chance
    return {
        "a coin too rare": rarer,
        "other clusters taken for the changed one": Ladder(folded[0], folded[1], 0.0 * folded[0], folded[2]),
        "nobody else": chain.sizes_of(0.5, 0.4, [(1, 0)], AR.kind),
    }


@pytest.mark.parametrize("name", wrong_ladders())
def test_planted_mistakes_are_caught(name):
    design = ClusterSampling(1, 2, 2, Poisson(0.4))
    truth = exact_deltas(design, Gaussian(1.4), design.sized((1, 2)), AR, EPSILONS)
    assert np.any(both(bounded(wrong_ladders()[name], Gaussian(1.4))) < truth - 1e-5)


@pytest.mark.parametrize(
    ("noise", "near"), [(Gaussian(1.0), 1.03), (Gaussian(4.0), 1.1), (Laplace(1.0), 1.06)], ids=str
)
@pytest.mark.parametrize("relation", [AR, WITHIN, RO], ids=str)
def test_attacks_are_near(relation, noise, near):
    found = amplify(noise, ClusterSampling(5, 50, 10, Poisson(0.3)), relation)
    lower = found.lower.epsilon(1e-6)
    assert lower <= found.epsilon(1e-6) <= near * lower


def test_the_attack_is_the_law_of_its_sum():
    design = ClusterSampling(2, 3, 2, Poisson(0.4))
    p, _ = chain.counted(design, 1, 1, 0.0)
    population = design.sized((2, 2, 2))
    clusters, found = np.asarray(population.columns["cluster"]), {}
    place = {int(one): i for i, one in enumerate(population.ids)}
    for units, chance in design.law(population):
        drawn = [int(clusters[place[int(u)]]) for u in units]
        at = float(drawn.count(0) - min(drawn.count(1), 1) - min(drawn.count(2), 1))
        found[at] = found.get(at, 0.0) + float(chance)
    assert {at: chance for at, chance in p.items() if chance > 0.0} == pytest.approx(found)


def test_a_hundred_rounds_are_near():
    found = compose(amplify(Gaussian(2.0), ClusterSampling(5, 50, 10, Poisson(0.3))), 100)
    assert found.epsilon(1e-6) < 1.21 * found.lower.epsilon(1e-6)


MOVES = [
    (ClusterSampling(1, 2, 2), (2, 1)), (ClusterSampling(2, 3, 1), (1, 0, 1)),
    (ClusterSampling(1, 3, (2, 1, 1)), (1, 1, 1)), (ClusterSampling(2, 2, 2, Poisson(0.4)), (2, 1)),
    (ClusterSampling(1, 3, 1, Poisson(0.4)), (1, 0, 1)), (ClusterPPS((0.5, 0.3, 0.2), (2, 1, 1)), (1, 1, 1)),
]  # fmt: skip


@pytest.mark.parametrize(("design", "sizes"), MOVES, ids=str)
def test_a_moved_record_loses_what_the_program_says(design, sizes):
    """Every event of every pure mechanism: the bound is the supremum, and half of it is below."""
    for epsilon in (0.5, 1.5):
        truth = exact_epsilon(design, design.sized(sizes), RO, epsilon, AR)
        bound = amplify(PureDP(epsilon), design, RO).epsilon()
        assert truth - 1e-9 <= bound <= truth + 1e-9
        assert amplify(PureDP(epsilon), design, AR).epsilon() < truth


def test_out_and_in_holds_for_every_pair_and_backward_twice_does_not():
    """P = A x B', Q = A' x B: out of one of two independent parts, and into the other."""
    random, is_caught = np.random.default_rng(5), False
    for _ in range(40):
        a, b = random.dirichlet(np.ones(3)), random.dirichlet(np.ones(3))
        one, p, q = pair_profile(np.log(a), np.log(b)), np.outer(a, b).ravel(), np.outer(b, a).ravel()
        truth = np.array([np.maximum(p - np.exp(e) * q, 0.0).sum() for e in EPSILONS])
        assert np.all(np.exp(out_and_in(one).forward(EPSILONS)) >= truth - 1e-12)
        wrong = out_and_in(Profile(one.backward, one.backward))
        is_caught = is_caught or bool(np.any(np.exp(wrong.forward(EPSILONS)) < truth - 1e-6))
    assert is_caught


@pytest.mark.parametrize("relation", [AR, WITHIN], ids=str)
def test_how_near_a_fixed_take_is_to_the_record(relation):
    """The distance to the samples with the record, by enumeration: its law is the attack's, and the bound's value."""
    design = ClusterSampling(1, 2, 3, 2, min_size=2 if relation == AR else 3)
    population = design.sized((3, 3))
    clusters = dict(zip(population.ids.tolist(), np.asarray(population.columns["cluster"]).tolist(), strict=True))
    own = [u for u, cluster in clusters.items() if cluster == 0]
    targets = [{own[0], other} for other in own[1:]]
    found = {}
    for units, chance in design.law(population):
        at = 2.0 - min(len(set(units) ^ target) for target in targets)
        found[at] = found.get(at, 0.0) + float(chance)
    p, q = taken(relation, 0.5, 2, 3, design.min_size)["another member"]
    assert dict(p) == pytest.approx(found)
    assert sum(q.values()) == pytest.approx(1.0)
    assert amplify(Gaussian(1.0), ClusterSampling(5, 50, 4, 2, 2), relation).lower is not None


@pytest.mark.parametrize("relation", [AR, WITHIN], ids=str)
@pytest.mark.parametrize("noise", [Gaussian(1.0), Gaussian(4.0), Laplace(1.0)], ids=["1", "4", "laplace"])
def test_a_fixed_take_is_nearly_exact(noise, relation):
    found = amplify(noise, ClusterSampling(5, 50, 4, 2, 2), relation)
    assert found.lower.epsilon(1e-6) <= found.epsilon(1e-6) <= 1.01 * found.lower.epsilon(1e-6)


@pytest.mark.parametrize("noise", [Gaussian(1.4), ApproxDP(0.8, 1e-4)], ids=["gaussian", "box"])
@pytest.mark.parametrize(
    "design", [ClusterSampling(1, 2, 3, 1, min_size=1), ClusterSampling(1, 2, 2, trim=True)], ids=["fixed", "trimmed"]
)
def test_moves_with_a_fixed_take_or_trimming_are_covered(design, noise):
    found = amplify(noise, design, RO)
    truth = exact_deltas(design, Gaussian(1.4), design.sized((2, 2)), RO, EPSILONS)
    assert found.delta(0.5) < 1.0
    if isinstance(noise, Gaussian):
        assert np.all(np.asarray(found.delta(EPSILONS)) >= truth.max(axis=0) - 1e-12)


@pytest.mark.parametrize("take", [1, 2])
def test_clusters_of_one_public_size_have_no_record_more(take):
    """No neighbour has one record more: refused in words, and nothing is lost inside a cluster."""
    design = ClusterSampling(1, 2, 2, take, min_size=2)
    for noise in (Gaussian(1.0), ApproxDP(1.0, 1e-6)):
        with pytest.raises(NoTheorem, match="no theorem covers"):
            amplify(noise, design, AR)
    truth = exact_deltas(design, Gaussian(1.0), design.sized((2, 2)), WITHIN, EPSILONS).max(axis=0)
    assert np.all(np.asarray(amplify(Gaussian(1.0), design, WITHIN).delta(EPSILONS)) >= truth - 1e-12)
