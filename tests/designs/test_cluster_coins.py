"""Clusters whose members are kept by coins, under Gaussian noise: enumerated truth, every cap, planted mistakes."""

import numpy as np
import pytest

from privamp import ClusterSampling, DiscreteGaussian, ExactGaussian, Gaussian, Neighbors, Poisson, amplify
from privamp.amplification import quick_bound
from privamp.designs import cluster_coins as coins
from privamp.verify.enumerate import exact_deltas

pytestmark = pytest.mark.filterwarnings("ignore::privamp.errors.DegradingDesign")
AR = Neighbors.ADD_REMOVE
WITHIN = Neighbors("replace-one", scope="within cluster")
EPSILONS = np.array([0.0, 0.2, 0.9, 1.6])
CASES = [(1, 2, 1, 0.4, (0, 1)), (1, 2, 2, 0.4, (1, 2)), (1, 2, 2, 0.9, (1, 2)), (2, 3, 1, 0.5, (0, 1, 1)),
         (2, 2, 2, 0.3, (1, 2))]  # fmt: skip


def both(profile):
    return np.exp(np.stack([profile.forward(EPSILONS), profile.backward(EPSILONS)]))


@pytest.mark.parametrize("relation", [AR, WITHIN], ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_truth_is_below_the_bound(case, relation):
    chosen, clusters, cap, rate, sizes = case
    design = ClusterSampling(chosen, clusters, cap, Poisson(rate))
    truth = exact_deltas(design, Gaussian(1.4), design.sized(sizes), relation, EPSILONS)
    bounds = both(quick_bound(Gaussian(1.4), design, relation))
    assert np.all(bounds >= truth - 1e-12)
    if relation == AR:
        assert np.all(truth[0, :2] >= 0.85 * bounds[0, :2])


@pytest.mark.parametrize(("chance", "rate", "members"), [(0.25, 0.4, 3), (0.5, 0.2, 3), (0.5, 0.4, 0)])
def test_smaller_chances_and_fewer_members_are_caught(chance, rate, members):
    """The plants: clusters drawn too rarely, a coin too rare, and others that are forgotten."""
    design = ClusterSampling(1, 2, 2, Poisson(0.4))
    truth = exact_deltas(design, Gaussian(1.4), design.sized((1, 2)), AR, EPSILONS)
    assert np.all(both(coins.added(1.0 / 1.4, 0.5, 0.4, 3)) >= truth - 1e-12)
    assert np.any(both(coins.added(1.0 / 1.4, chance, rate, members)) < truth - 1e-5)


def test_rare_counts_are_kept_and_chances_add_up():
    law = coins.counts(400, 0.01)
    assert sum(p for p, _ in law) >= 1.0
    assert law[-1][1] == 400
    assert len(law) < 100


def test_every_cap_is_covered_in_a_moment():
    large = amplify(ExactGaussian(3.0), ClusterSampling(30, 150, 60, Poisson(0.3)))
    assert 0.1 < large.epsilon(1e-6) < 1.0
    assert "Thm 10" in " ".join(large.because)


def test_all_members_kept_is_the_exact_theorem():
    whole, nearly = ClusterSampling(5, 50, 4), ClusterSampling(5, 50, 4, Poisson(1.0 - 1e-9))
    exact, bound = (quick_bound(Gaussian(4.0), design).epsilon(1e-6) for design in (whole, nearly))
    assert bound == pytest.approx(exact, rel=1e-5)


def test_noise_that_is_post_processing_of_gaussian_noise_has_its_theorems():
    design = ClusterSampling(5, 50, 4)
    exact, continuous = (amplify(noise, design).epsilon(1e-6) for noise in (ExactGaussian(4.0), Gaussian(4.0)))
    assert continuous <= exact <= continuous * (1.0 + 1e-6)
    assert ExactGaussian(4.0).covering.sigma < 4.0
    assert DiscreteGaussian(4.0).covering.sigma < 4.0
    assert DiscreteGaussian(2.0).covering is None  # too far from continuous noise
    assert amplify(ExactGaussian(4.0), design).lower is None  # an attack on the covering noise need not be one here


@pytest.mark.parametrize("relation", [AR, WITHIN], ids=str)
def test_the_attack_is_a_real_pair(relation):
    design = ClusterSampling(1, 2, 2, Poisson(0.4))
    truth = exact_deltas(design, Gaussian(1.4), design.sized((1, 2)), relation, EPSILONS).max(axis=0)
    lower = np.asarray(amplify(Gaussian(1.4), design, relation).lower.delta(EPSILONS))
    assert np.all(lower <= truth + 1e-11)
    assert np.any(lower > 0.7 * truth)
    rarer = Gaussian(1.4).on_a_line(*coins.lines(relation, 0.7, 0.4, 1)["alone"])  # drawn more often than it is
    assert np.any(rarer.delta(EPSILONS) > truth + 1e-4)
