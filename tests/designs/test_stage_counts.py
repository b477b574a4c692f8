"""Chains under pure mechanisms by how many entries differ, and with the first stage apart: programs, plants, values."""

import numpy as np
import pytest

from privamp import Gaussian, MultiStage, Neighbors, PureDP, amplify
from privamp.designs import stage_counts
from privamp.designs.multistage import _after_the_first
from privamp.designs.stage_counts import before, chain_loss
from privamp.numerics.count_laws import binomial_log_chance
from privamp.numerics.log_domain import log_diff, log_sum
from privamp.verify import exact_delta, exact_epsilon

pytestmark = pytest.mark.filterwarnings("ignore::privamp.errors.DegradingDesign")
RO = Neighbors.REPLACE_ONE
THREE = MultiStage((("wor", 200), ("wr", 100), ("wr", 50)), 1000)
SMALL = [(design, n) for design, n in MultiStage.small_cases() if n < 4 and len(design.stages) > 1]


def moment(design, epsilon):
    law = design.appearances()
    return float(np.logaddexp(law.log_none, np.logaddexp.reduce(law.log_p + epsilon * law.counts)))


@pytest.mark.parametrize(("design", "n"), SMALL, ids=str)
def test_no_event_of_any_mechanism_is_above_the_bound(design, n):
    for epsilon in (0.5, 2.0):
        assert chain_loss(design.sized_stages, 1, epsilon) >= exact_epsilon(design, n, RO, epsilon) - 1e-9


def test_a_person_with_two_records():
    """Two of three records replaced at once: the enumerated law of all events, by two programs' larger loss."""
    design = MultiStage((("wr", 2), ("wr", 2)), 3)
    one, two = (chain_loss(design.sized_stages, j, 1.0) for j in (1, 2))
    assert moment(design, 1.0) <= one < two < 2.0
    law = design.appearances(2)
    assert two >= float(np.logaddexp(law.log_none, np.logaddexp.reduce(law.log_p + law.counts)))


def test_means_of_factors_alone_are_caught(monkeypatch):
    """The plant: sum p F for every stage, as if what is lowered in Q cost nothing; the program is above it."""

    def mean(kind, entries, draws, log_f, most):
        found = before(kind, entries, draws, log_f, most)
        law = [MultiStage(((kind, draws),), entries).appearances(j) for j in range(1, most + 1)]
        means = [np.logaddexp.reduce([one.log_none, *(one.log_p + log_f[one.counts.astype(int)])]) for one in law]
        return np.minimum(found, 0.9 * np.array([0.0, *means]))

    monkeypatch.setattr(stage_counts, "before", mean)
    wrong = [chain_loss(design.sized_stages, 1, 2.0) < exact_epsilon(design, n, RO, 2.0) - 1e-6 for design, n in SMALL]
    assert any(wrong)


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 3.0, 40.0])
@pytest.mark.parametrize(("entries", "draws"), [(5, 4), (60, 90), (100, 30)])
def test_the_root_is_the_least_number_that_passes(entries, draws, epsilon):
    """The condition itself, at the root with the margin that `before` adds to it, and a little below it."""
    log_f = epsilon * np.arange(draws + 1.0)
    log_p = binomial_log_chance(np.arange(draws + 1)[None, :], draws, np.arange(1, entries)[:, None] / entries)
    root = stage_counts._root(log_p, log_f)

    def passes(log_r):
        r, scale = log_r[:, None], np.where(np.arange(log_f.size) == 0, 0.0, log_f)
        above = np.where(log_f > r, log_p + log_diff(np.maximum(log_f, r), r), -np.inf)
        below = np.where(log_f < r, log_p - scale + log_diff(r, np.minimum(log_f, r)), -np.inf)
        return log_sum(above, axis=1) <= log_sum(below, axis=1)

    assert np.all(passes(root * (1.0 + stage_counts._MARGIN) + stage_counts._MARGIN))
    assert not np.any(passes(root * (1.0 - 1e-8) - 1e-10))


def test_three_stages_are_near_the_attack():
    found = amplify(PureDP(2.0, neighbors=RO), THREE)
    assert 1.05 * moment(THREE, 2.0) < found.epsilon() < 1.09 * moment(THREE, 2.0)
    assert "Thm" in found.because[0]
    double = MultiStage((("wr", 20), ("wr", 30)), 100)
    assert amplify(PureDP(1.0, neighbors=RO), double).epsilon() == pytest.approx(moment(double, 1.0), rel=1e-6)


@pytest.mark.parametrize("sigma", [2.0, 4.0])
def test_three_stages_with_gaussian_noise_are_near_the_attack(sigma):
    found = amplify(Gaussian(sigma), THREE, RO)
    assert found.lower.epsilon(1e-6) <= found.epsilon(1e-6) <= 1.02 * found.lower.epsilon(1e-6)
    assert "Thm D" in found.because[0]


def test_the_enumerated_truth_is_below_the_first_stage_apart():
    design = MultiStage((("wor", 2), ("wr", 2), ("wr", 2)), 3)
    for sigma, epsilon in ((1.0, 0.5), (2.0, 0.2)):
        noise = Gaussian(sigma, sensitivity=2.0, neighbors=RO)
        truth = exact_delta(design, noise, 3, RO, epsilon, values=(-1.0, 0.0, 1.0))
        bound = _after_the_first(design, noise, RO).delta(epsilon)
        assert truth <= bound < 1.3 * truth
        rarer = MultiStage((("wor", 2), ("wr", 2), ("wr", 2)), 5)  # the plant: a first stage that draws too rarely
        assert _after_the_first(rarer, noise, RO).delta(epsilon) < truth
