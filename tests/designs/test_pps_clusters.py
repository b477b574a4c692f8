"""Several clusters by public size, then a fixed take: exact chances, exact loss, planted mistakes, surveys."""

import math
from fractions import Fraction

import numpy as np
import pytest

from privamp import (
    ApproxDP,
    ExactGaussian,
    Gaussian,
    InvalidInput,
    Laplace,
    Neighbors,
    NoTheorem,
    Population,
    PPSClusters,
    PureDP,
    amplify,
    spec,
)
from privamp.designs.one_in_several import Kind
from privamp.survey import estimate
from privamp.testing import seeded_key
from privamp.verify import exact_delta, exact_epsilon
from privamp.verify.symmetry import collect

WITHIN = Neighbors("replace-one", scope="within cluster")
AR = Neighbors.ADD_REMOVE
EPSILONS = np.array([0.0, 0.3, 1.0])
CASES = [((2, 2), 1, 1), ((3, 2), 1, 2), ((2, 2, 1), 2, 1), ((3, 2, 2), 2, 1), ((2, 1, 1, 1), 2, 1), ((2, 2, 2), 2, 2)]


@pytest.mark.parametrize(("sizes", "chosen"), [((3, 2, 2), 2), ((2, 1, 1, 1), 2), ((5, 4, 3, 3), 2), ((4, 3, 3, 3), 3)])
def test_chances_are_proportional_to_size(sizes, chosen):
    design = PPSClusters(sizes, chosen, 1)
    law = dict(design.cluster_law(sizes))
    assert sum(law.values()) == 1
    for h, size in enumerate(sizes):
        assert sum(p for drawn, p in law.items() if h in drawn) == Fraction(chosen * size, sum(sizes))


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.5])
def test_the_loss_of_a_black_box_is_exact(case, epsilon):
    design = PPSClusters(*case)
    truth = exact_epsilon(design, design.sized(case[0]), WITHIN, epsilon, AR)
    found = amplify(PureDP(epsilon), design)
    assert found.epsilon() == pytest.approx(truth, rel=1e-6)
    assert found.lower.epsilon() <= found.epsilon() < 2 * epsilon
    assert found.neighbors == WITHIN


@pytest.mark.parametrize("case", CASES[:4], ids=str)
@pytest.mark.parametrize("noise", [Gaussian(1.3), Laplace(0.9)], ids=lambda n: type(n).__name__)
def test_noisy_sums_are_below_the_bound(case, noise):
    design = PPSClusters(*case)
    truth = exact_delta(design, noise, design.sized(case[0]), WITHIN, EPSILONS)
    found = amplify(noise, design)
    assert np.all(np.asarray(found.delta(EPSILONS)) >= truth - 1e-10)
    assert np.all(np.asarray(found.lower.delta(EPSILONS)) <= truth + 1e-10)


def test_planted_mistakes_are_caught():
    """Another cluster that is one record nearer, and a record that is never exchanged inside its cluster."""
    design = PPSClusters((3, 2), 1, 2)
    truth = exact_epsilon(design, design.sized((3, 2)), WITHIN, 1.0, AR)
    right = [Kind(0.4, ((0.2, 2), (0.4, 4))), Kind(0.4, ((0.6, 4),))]
    assert max(kind.loss(1.0, 2) for kind in right) == pytest.approx(truth, rel=1e-6)
    assert max(Kind(k.chance, tuple((w, e - 1) for w, e in k.others)).loss(1.0, 2) for k in right) < truth - 1e-3
    assert Kind(0.4, ((0.6, 2),)).loss(1.0, 2) < truth - 1e-3


def test_every_noise_is_certified_and_amplified():
    design = PPSClusters((40, 60, 50, 50, 40, 60), 3, 5)
    for noise in (Gaussian(4.0), ExactGaussian(4.0), Laplace(5.0), ApproxDP(0.2, 1e-8)):
        alone = noise.profile(Neighbors.REPLACE_ONE).epsilon(1e-6)
        assert 0 < amplify(noise, design).epsilon(1e-6) < 0.8 * alone


def test_the_sampler_follows_the_chances():
    design = PPSClusters((4, 3, 3, 2), 2, 2)
    people, rounds = design.sized((4, 3, 3, 2)), 800
    seen = np.zeros(people.size)
    for r in range(rounds):
        drawn = design.draw(people, seeded_key(8), r).reveal_secret()
        assert drawn.positions.size == 4
        seen[drawn.positions] += 1
    expected = rounds / design.weight
    assert np.all(np.abs(seen - expected) < 6.2 * math.sqrt(expected))  # fails by chance once in 10^8


def test_large_designs_draw_in_a_moment():
    sizes = np.random.default_rng(3).integers(20, 90, 2000).tolist()
    design = PPSClusters(sizes, 300, 10)
    drawn = design.drawn_clusters(seeded_key(4))
    assert drawn.size == 300 == np.unique(drawn).size


def test_collected_law_and_weights_agree():
    design = PPSClusters((3, 2, 2), 2, 1)
    people = design.sized((3, 2, 2))
    law = collect(design.law(people))
    for i in range(people.size):
        assert sum(p for units, p in law.items() if i in units) == Fraction(2, 7)
    assert np.allclose(design.weights(people), 3.5)


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: PPSClusters((5, 2, 2), 2, 1), InvalidInput, "would always be drawn"),
        (lambda: PPSClusters((3, 2), 1, 3), InvalidInput, "take"),
        (lambda: PPSClusters((3, 0), 1, 1), InvalidInput, "sizes must be a whole number"),
        (lambda: PPSClusters(7, 1, 1), InvalidInput, "one whole number per cluster"),
        (lambda: amplify(PureDP(1.0), PPSClusters((3, 2), 1, 1), AR), NoTheorem, "add-remove"),
        (lambda: amplify(PureDP(1.0), PPSClusters((3, 2), 1, 1), Neighbors.REPLACE_ONE), NoTheorem, "replace-one"),
        (lambda: PPSClusters((3, 2), 1, 1).draw(Population(4, cluster=[0, 0, 1, 1])), InvalidInput, "public size"),
        (lambda: spec.design("pps-clusters:sizes=3+x,chosen=1,take=1"), InvalidInput, "joined by"),
    ],
)
def test_what_is_refused(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_a_survey_estimates_from_it(noise):
    random, rounds = np.random.default_rng(2), 200
    sizes = random.integers(10, 40, 400)
    cluster = np.repeat(np.arange(400), sizes)
    x = np.clip(5 + random.normal(size=400)[cluster] + random.normal(size=cluster.size), 0, 10)
    design, people = PPSClusters(sizes.tolist(), 80, 5), Population(cluster.size, cluster=cluster)
    given = {"noise": noise, "delta": 1e-6 if noise == "gaussian" else 0.0, "bounds": (0, 10), "epsilon": 4.0}
    found = [estimate(design.draw(people, seeded_key(5), r), x, **given) for r in range(rounds)]
    values = np.array([one.value for one in found])
    assert abs(values.mean() - x.mean()) < 4.5 * values.std() / math.sqrt(rounds)
    claimed = math.sqrt(float(np.mean([one.standard_error**2 for one in found])))
    assert 0.88 <= claimed / values.std() <= 1.5  # errs to the wide side: a private variance, as with replacement
    assert found[0].guarantee.epsilon(given["delta"]) <= 4.0
    assert found[0].guarantee.neighbors == WITHIN
