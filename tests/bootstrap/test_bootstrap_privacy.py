"""What a bootstrap guarantees, against exact brute force, with two wrong ways of counting as negative controls."""

from collections import Counter
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest
from scipy.special import ndtr

from privamp import Gaussian, MultiStage, Neighbors, WithoutReplacement, WithReplacement, amplify, compose
from privamp.bootstrap import Procedure, plan
from privamp.bootstrap.shared_stage import SharedStage

RO = Neighbors.REPLACE_ONE
EPSILONS = (0.3, 1.0)
THETA = 1.0
TINY = [
    *[Procedure("subsampling", n, (m,), 2) for n, m in ((2, 1), (3, 2), (4, 2))],
    *[Procedure("m-out-of-n", n, (m,), 2) for n, m in ((2, 2), (3, 1), (4, 2))],
    *[Procedure("double", n, (b, m), 2) for n, b, m in ((2, 2, 2), (3, 2, 2))],
    *[Procedure("little", n, (b, m), 2) for n, b, m in ((3, 2, 2), (4, 2, 1))],
]


def sums_of(stage, entries, size):
    """The law of the array that a stage draws from an array, up to order."""
    kind = combinations(entries, size) if stage == "wor" else product(entries, repeat=size)
    arrays = [tuple(sorted(array)) for array in kind]
    return {array: Fraction(count, len(arrays)) for array, count in Counter(arrays).items()}


def through(laws, stage, size):
    after = Counter()
    for entries, chance in laws.items():
        for array, weight in sums_of(stage, entries, size).items():
            after[array] += chance * weight
    return after


def outcome_law(procedure, data, releases):
    """{vector of clean sums: probability} of the first `releases` released sums."""
    first = through({tuple(sorted(data)): Fraction(1)}, procedure.kinds[0], procedure.sizes[0])
    if procedure.each == 1:  # fresh stages for every release
        last = through(first, procedure.kinds[1], procedure.sizes[1]) if len(procedure.kinds) == 2 else first
        one = Counter()
        for array, chance in last.items():
            one[sum(array)] += chance
        return product_law([one] * releases)
    law = Counter()  # one first stage, resampled again and again
    for entries, chance in first.items():
        one = Counter()
        for array, weight in sums_of(procedure.kinds[1], entries, procedure.sizes[1]).items():
            one[sum(array)] += weight
        for sums, weight in product_law([one] * releases).items():
            law[sums] += chance * weight
    return law


def product_law(laws):
    found = Counter({(): Fraction(1)})
    for law in laws:
        found = Counter({(*sums, s): p * q for sums, p in found.items() for s, q in law.items()})
    return found


def divergence(first, second, theta, epsilon, cells=60):
    """A true lower bound of the delta of two laws of pairs of sums with unit noise: cells are post-processing."""
    centres = sorted({s for law in (first, second) for sums in law for s in sums})
    edges = np.linspace(0.5 * theta * centres[0] - 4.0, 0.5 * theta * centres[-1] + 4.0, cells + 1)
    edges[0], edges[-1] = -np.inf, np.inf
    mass = {s: np.diff(ndtr(edges - 0.5 * theta * s)) for s in centres}  # values in {-1, 0, 1}: range 2, so shift theta
    p, q = (sum(float(w) * np.multiply.outer(mass[a], mass[b]) for (a, b), w in law.items()) for law in (first, second))
    return float(np.maximum(p - np.exp(epsilon) * q, 0.0).sum())


def worst(procedure, theta, epsilon):
    """Over all data in {-1, 0, 1} and all replacements of one record."""
    found = 0.0
    for others in combinations_with_replacement((-1, 0, 1), procedure.population - 1):
        laws = [outcome_law(procedure, (v, *others), 2) for v in (-1, 0, 1)]
        pairs = [(i, j) for i in range(3) for j in range(3) if i != j]
        found = max(found, *(divergence(laws[i], laws[j], theta, epsilon) for i, j in pairs))
    return found


@pytest.mark.parametrize("procedure", TINY, ids=lambda p: f"{p.method} {p.population} {p.sizes}")
def test_fresh_groups_are_certified(procedure):
    guarantee = compose(amplify(procedure.mechanism(1.0, THETA), procedure.design), 2)
    for epsilon in EPSILONS:
        assert worst(procedure, THETA, epsilon) <= guarantee.delta(epsilon)


SHARED = [Procedure("little", n, (b, m), 2, 2) for n, b, m in ((3, 1, 1), (4, 1, 2), (4, 2, 1))]


@pytest.mark.parametrize("procedure", SHARED, ids=lambda p: f"{p.population} {p.sizes}")
def test_a_shared_stage_is_certified_and_fresh_stages_are_not(procedure):
    """Two resamples of ONE subset: composed inside and amplified once holds; two fresh draws would not."""
    guarantee = amplify(procedure.mechanism(1.0, THETA), procedure.design)
    stages = MultiStage(tuple(zip(procedure.kinds, procedure.sizes, strict=True)), procedure.population)
    fresh = compose(amplify(Gaussian(1.0, THETA, RO), stages), 2)
    broken = 0
    for epsilon in (0.3, 1.0, 2.0):
        truth = worst(procedure, THETA, epsilon)
        assert truth <= guarantee.delta(epsilon)
        broken += truth > fresh.delta(epsilon)
    assert broken > 0


def test_sensitivity_over_n_is_caught():
    """The negative control of calibration: noise for (U - L)/n on a mean over m entries."""
    procedure, theta = Procedure("m-out-of-n", 4, (2,), 2), THETA
    wrong = compose(amplify(procedure.mechanism(1.0, theta * 2 / 4), procedure.design), 2)
    assert any(worst(procedure, theta, epsilon) > wrong.delta(epsilon) for epsilon in EPSILONS)


def test_twenty_resamples_of_one_subset():
    """n = 10,000, 118 without replacement, 20 times 200 of them with replacement, sigma 4, records in [-1, 1]."""
    noise = Gaussian(4.0, 2.0, RO)
    shared = amplify(SharedStage(noise, WithReplacement(200, 118), 20), WithoutReplacement(118, 10_000))
    assert shared.lower.delta(1.0) == pytest.approx(7.50e-3, rel=2e-3)
    assert shared.lower.delta(1.0) <= shared.delta(1.0) <= 1.25 * shared.lower.delta(1.0)
    fresh = compose(amplify(noise, MultiStage([("wor", 118), ("wr", 200)], 10_000)), 20)
    assert fresh.delta(1.0) <= 5.93e-4 < 0.1 * shared.lower.delta(1.0)


def test_one_resample_shares_nothing():
    """With one resample the shared form is sound but no tighter than the theorem for two stages."""
    noise, inside, first = Gaussian(1.0, 0.5, RO), WithReplacement(4, 8), WithoutReplacement(8, 100)
    shared = amplify(SharedStage(noise, inside, 1), first)
    chain = amplify(noise, MultiStage([("wor", 8), ("wr", 4)], 100))
    for epsilon in EPSILONS:
        assert shared.delta(epsilon) >= chain.lower.delta(epsilon)
        assert shared.delta(epsilon) == pytest.approx(chain.delta(epsilon), rel=0.05)


@pytest.mark.parametrize("method", ["subsampling", pytest.param("m-out-of-n", marks=pytest.mark.slow)])
def test_the_plan_keeps_its_budget_and_uses_it(method):
    chosen = plan(500, method=method, epsilon=0.7, delta=1e-5, resamples=20)
    assert 0.95e-5 < chosen.guarantee.delta(0.7) <= 1e-5
    assert chosen.guarantee.steps == 20
    again = compose(amplify(Gaussian(1.0, chosen.strength, RO), chosen.procedure.design), 20)
    assert again.delta(0.7) == pytest.approx(chosen.guarantee.delta(0.7), rel=1e-9)


def test_the_noise_is_for_the_resample_size():
    chosen = plan(500, epsilon=0.7, delta=1e-5, resamples=20)
    assert chosen.procedure.size == 25
    from privamp.bootstrap import Mean

    statistic = Mean((0.0, 3.0))
    assert chosen.sigma(statistic.sensitivity(chosen.procedure.size)) >= 3.0 / 25 / chosen.strength
