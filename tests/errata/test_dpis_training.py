"""The paper on DPIS (importance-sampled SGD): what it prints against what is true. Needs no torch."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from privamp import Gaussian, Poisson, amplify, compose
from privamp.core.population import Population
from privamp.testing import seeded_key
from privamp.torch.dpis import DPISBatches, DPISPlan
from privamp.torch.importance import ImportanceRule
from renyi_quadrature import renyi_step_by_quadrature

DELTA = 1e-5


def delta_of_a_sampled_sum(rate: float, shift: float, sigma: float, epsilon: float) -> float:
    """(1-rate)N(0, sigma) + rate N(shift, sigma) against N(0, sigma), larger direction, on cells with exact masses."""
    edges = np.concatenate([[-np.inf], np.linspace(-9 * sigma, 9 * sigma + shift, 40001), [np.inf]])
    without = np.diff(ndtr(edges / sigma))
    with_it = (1 - rate) * without + rate * np.diff(ndtr((edges - shift) / sigma))
    a = math.exp(epsilon)
    return max(np.maximum(with_it - a * without, 0).sum(), np.maximum(without - a * with_it, 0).sum())


def test_the_sum_of_norms_has_a_smaller_multiplier_than_accounted() -> None:
    """Eq. 11 scales by 1/p after summing, so a record counts up to C/p; Eq. 19 accounts for C. N = 1437, b = 32."""
    n, b, clip = 1437, 32, 1.0
    chance, sigma = b / n, 0.02 * n
    accounted = compose(amplify(Gaussian(sigma), Poisson(chance)), 1).epsilon(DELTA)
    assert accounted < 0.002
    true = delta_of_a_sampled_sum(chance, clip / chance, sigma * clip, accounted)
    assert true > 1000 * DELTA
    mended = amplify(Gaussian(sigma * chance), Poisson(chance))
    assert mended.epsilon(DELTA) == pytest.approx(2.189, abs=1e-3)
    for epsilon in (0.002, 0.5, 2.0):
        assert delta_of_a_sampled_sum(chance, clip / chance, sigma, epsilon) <= mended.delta(epsilon)
    assert compose(mended, 20).epsilon(DELTA) > 3.6  # twenty epochs, without a single gradient


def test_that_slip_is_harmless_for_large_data() -> None:
    n, b = 60000, 1024
    chance, sigma = b / n, 0.02 * n
    assert compose(amplify(Gaussian(sigma * chance), Poisson(chance)), 20).epsilon(DELTA) < 0.01


def test_the_library_counts_the_sums_as_they_are() -> None:
    plan = DPISPlan(rate=0.1, steps=20, epsilon=3.0, delta=1e-5, clip=1.0, population=500, sum_noise=50.0,
                    size_noise=50.0, external_clip=4.0, order=8)  # fmt: skip
    sampled, star = plan.sums(0.1, 8)
    assert sampled == pytest.approx(renyi_step_by_quadrature(0.1, 50.0 * 0.1, 8.0), rel=1e-6)  # sigma_K p
    assert star == pytest.approx(8 / (2 * 50.0**2))  # the sum for the clip is over all records: not sampled


def test_probabilities_cut_at_one_break_the_sensitivity() -> None:
    """b = 4096, k = 5, K/NC = 0.1, sigma_G = 0.5, T = 200: accounted 9.69, and a record exists with 11.52."""
    rate, multiplier, growth, steps = 4096 / 6000, 0.5 / 0.1, 5, 200
    accounted = compose(amplify(Gaussian(multiplier), Poisson(rate)), steps).epsilon(DELTA)
    assert accounted == pytest.approx(9.69, abs=0.01)
    # A record of norm C: bound kC, drawn for sure, accepted with 1/k, and weighed by 1/(1 * 1/k).
    weight = rate * growth
    assert weight > 3
    attack = compose(amplify(Gaussian(multiplier / weight), Poisson(1 / growth)), steps)
    assert attack.lower.epsilon(DELTA) > 11.5
    # Mended: the bound is at most C, so is the weight.
    rule = ImportanceRule(rate, 1.0, growth=float(growth), rejects=True)
    bound = rule.remembered(np.array([1.0]))
    assert rule.coefficients(bound, np.array([1.0]))[0] == 1.0
    assert (rule.rate * rule.shares(bound))[0] <= rate


def test_line_26_divides_by_b_twice() -> None:
    """1/(N q p) already holds 1/b: the mean comes out b times too small."""
    g, b = np.array([0.2, 0.5, 0.9]), 2.0
    total = g.sum()
    drawn = b * g / total
    printed = np.sum(drawn * g / (len(g) * drawn)) / b
    assert printed == pytest.approx(g.mean() / b)
    rule = ImportanceRule(b * 1.0 / 4.0, 1.0, floor=0.01)
    bounds = rule.remembered(g)
    ours = np.sum((rule.rate * rule.shares(bounds)) * rule.coefficients(bounds, g) * g) / (len(g) * rule.rate)
    assert ours == pytest.approx(g.mean())


def test_batches_that_are_not_emptied_pass_the_certificate() -> None:
    """Line 5 empties the batch once per epoch: a record once drawn stays in, and two steps already show it."""
    rate, sigma = 0.1, 1.0
    edges = np.concatenate([[-np.inf], np.linspace(-7, 8, 600), [np.inf]])
    out, inside = np.diff(ndtr(edges / sigma)), np.diff(ndtr((edges - 1) / sigma))
    stays = (
        (1 - rate) ** 2 * np.outer(out, out)
        + (1 - rate) * rate * np.outer(out, inside)
        + rate * np.outer(inside, inside)
    )
    afresh = np.outer((1 - rate) * out + rate * inside, (1 - rate) * out + rate * inside)
    nobody = np.outer(out, out)
    certified = compose(amplify(Gaussian(sigma), Poisson(rate)), 2)
    for epsilon in (0.2, 1.0):
        a = math.exp(epsilon)
        assert np.maximum(afresh - a * nobody, 0).sum() <= certified.delta(epsilon)
        assert np.maximum(stays - a * nobody, 0).sum() > 1.1 * certified.delta(epsilon)


def test_the_number_of_steps_must_be_public() -> None:
    """T = |D|/b: one record more and one release more, so the number of releases tells them apart for sure."""
    b = 32
    assert (45 * b - 1) // b != (45 * b) // b
    plan = DPISPlan(rate=0.1, steps=20, epsilon=3.0, delta=1e-5, clip=1.0, population=500)
    assert plan.epoch == 10  # from the public rate


@pytest.mark.parametrize("growing", [False, True])
def test_noise_chosen_from_releases_stays_within_one_order(growing: bool) -> None:
    """sigma_G follows the released sums; a filter of one order holds whatever the norms do."""
    plan = DPISPlan(rate=0.1, steps=60, epsilon=3.0, delta=1e-5, clip=1.0, population=400, size_noise=40.0,
                    sum_noise=60.0, split=0.5, external_clip=4.0)  # fmt: skip
    batches = DPISBatches(plan, Population(400))
    batches.begin_stretch(seeded_key(4))
    limit = batches.limit.limits["renyi_loss"]
    rng = np.random.default_rng(0)
    noises = []
    for step in range(plan.steps):
        scale = 0.1 * 1.05**step if growing else 2.0 * 0.95**step
        norms = rng.exponential(scale, 400)
        batches.prepare(step, lambda positions, norms=norms: norms[positions])
        batches.begin(step)
        batch = batches.draw(step)
        assert np.all(batch.bounds <= batches.rule.clip * (1 + 1e-12))
        factors = batches.coefficients(batch, norms[batch.positions])
        assert np.all(factors * norms[batch.positions] <= batches.rule.clip * (1 + 1e-9))
        batches.remember(batch, norms[batch.positions])
        noises.append(batches.gradient_noise)
        assert batches.spent <= limit
    assert batches.spent > 0.98 * limit  # nothing is left lying
    if not growing:
        assert noises[-1] < noises[0]  # the paper's Figure 1: the noise falls with the norms
    assert plan.guarantee().epsilon(1e-5) <= 3.0


def test_dpis_table_3_is_not_what_its_text_says() -> None:
    """Printed accuracies at epsilon 0.5, 1, 2, 3, 4: DPIS and the best competitor of each column."""
    imdb, others = (59.1, 62.1, 65.9, 68.3, 70.2), (57.5, 60.4, 63.6, 66.4, 67.6)
    assert [round(a - b, 1) for a, b in zip(imdb, others, strict=True)] == [1.6, 1.7, 2.3, 1.9, 2.6]
    fashion, features = (84.6, 86.6, 88.3, 88.8, 89.4), (83.9, 86.0, 87.8, 88.3, 88.7)
    doubled = [(0, 1), (1, 2), (2, 4)]
    assert max(round(features[j] - fashion[i], 1) for i, j in doubled) == 1.4
    assert max(round(others[j] - imdb[i], 1) for i, j in doubled) == 1.7
