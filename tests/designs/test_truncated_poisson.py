"""Truncated Poisson sampling: reference values, the range of n, planted mistakes, draws, and what is refused."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from privamp import (
    Gaussian,
    InvalidInput,
    Laplace,
    Neighbors,
    NoTheorem,
    Poisson,
    Population,
    PrivateSum,
    PureDP,
    TruncatedPoisson,
    WithoutReplacement,
    amplify,
    compose,
    spec,
)
from privamp.core.multiplicity import Multiplicity
from privamp.core.profile import Profile
from privamp.designs import truncated_poisson as module
from privamp.designs.head_counts import expected_kept, heads
from privamp.designs.multiplicity import one_sided
from privamp.testing import seeded_key
from privamp.verify import check_design

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
pytestmark = pytest.mark.filterwarnings("ignore::privamp.errors.DegradingDesign")
EPSILONS = np.array([0.0, 0.1, 0.5, 1.0, 2.0, 5.0])


def by_theorem(number, mechanism, design, relation=AR):
    """What one theorem of the page gives, whatever other theorems say."""
    (theorem,) = (t for t in design.theorems if f"Thm {number}" in t.cite and t.gives == relation.kind)
    return theorem.bound(design, mechanism, relation)


@pytest.mark.parametrize(("n", "epsilon"), [(500, 2.18), (1000, 7.28), (1200, 7.42), (10_000, 4.29)])
def test_one_step_at_given_numbers(n, epsilon):
    design = TruncatedPoisson(0.1, 100, n, n + 1)
    assert by_theorem(1, Gaussian(1.0), design).epsilon(1e-6) == pytest.approx(epsilon, abs=0.005)
    found = amplify(Gaussian(1.0), design)
    assert found.lower.epsilon(1e-6) <= found.epsilon(1e-6) <= epsilon + 0.005


@pytest.mark.parametrize(("most", "n", "epsilon"), [(100, 1000, 1.973), (100, 1100, 2.227)])
def test_a_hundred_steps(monkeypatch, most, n, epsilon):
    design = TruncatedPoisson(0.1, most, n, n + 1)
    found = compose(amplify(Gaussian(4.0), design), 100).epsilon(1e-6)
    monkeypatch.setattr(TruncatedPoisson, "theorems", TruncatedPoisson.theorems[:1])
    by_heads = compose(amplify(Gaussian(4.0), design), 100).epsilon(1e-6)
    assert by_heads == pytest.approx(epsilon, abs=6e-4)
    assert 0.85 * by_heads < found < by_heads


def by_hand(mechanism, p, most, n):
    """Theorem 1 for one n, one K after the other."""
    parts = []
    for k in range(n + 1):
        q = p if k < most else p * most / (k + 1)
        parts.append(one_sided(Multiplicity.binomial(1, q), mechanism, AR if k < most else RO))
    weights = binom.pmf(np.arange(n + 1), n, p)
    ways = ([part.forward for part in parts], [part.backward for part in parts])
    return [sum(w * np.exp(curve(EPSILONS)) for w, curve in zip(weights, way, strict=True)) for way in ways]


@pytest.mark.parametrize("mechanism", [Gaussian(1.0), Laplace(1.0), PureDP(0.7)])
@pytest.mark.parametrize(("p", "most", "n"), [(0.3, 4, 12), (0.1, 2, 30), (0.9, 3, 3), (1.0, 3, 6)])
def test_one_number_is_the_plain_sum(mechanism, p, most, n):
    upper = by_theorem(1, mechanism, TruncatedPoisson(p, most, n, n + 1))
    for curve, truth in zip((upper.forward, upper.backward), by_hand(mechanism, p, most, n), strict=True):
        found = np.exp(curve(EPSILONS))
        assert np.all(found >= truth * (1 - 1e-12))
        assert np.allclose(found, truth, rtol=1e-8, atol=1e-18)


def largest(mechanism, p, most, low, high):
    each = [by_hand(mechanism, p, most, n) for n in range(low, high + 1)]
    return np.max(each, axis=0)


@pytest.mark.parametrize(("p", "most", "low", "high"), [(0.25, 5, 0, 60), (0.05, 2, 10, 70), (0.5, 3, 4, 12)])
def test_a_range_is_the_supremum_over_it(p, most, low, high):
    upper = by_theorem(1, Gaussian(1.0), TruncatedPoisson(p, most, low, high + 1))
    for curve, truth in zip((upper.forward, upper.backward), largest(Gaussian(1.0), p, most, low, high), strict=True):
        found = np.exp(curve(EPSILONS))
        assert np.all(found >= truth * (1 - 1e-12))
        assert np.all(found <= truth * 1.05)
    anything = amplify(Gaussian(1.0), TruncatedPoisson(p, most)).upper
    assert np.all(anything.forward(EPSILONS) >= upper.forward(EPSILONS) - 1e-9)


def test_wide_blocks_cover_every_number_in_them(monkeypatch):
    """Blocks as wide as they come: still above every single n."""
    monkeypatch.setattr("privamp.designs.head_counts._SHARE", 3.0)
    monkeypatch.setattr("privamp.designs.head_counts._DEVIATIONS", 1.0)
    heads.cache_clear()
    upper = by_theorem(1, Gaussian(1.0), TruncatedPoisson(0.25, 5, 0, 61))
    heads.cache_clear()
    for curve, truth in zip((upper.forward, upper.backward), largest(Gaussian(1.0), 0.25, 5, 0, 60), strict=True):
        assert np.all(np.exp(curve(EPSILONS)) >= truth * (1 - 1e-12))


def test_the_ends_of_the_range_are_not_the_worst():
    at = [amplify(Gaussian(1.0), TruncatedPoisson(0.1, 100, n, n + 1)).lower.epsilon(1e-6) for n in (500, 1200, 10_000)]
    assert at[1] > max(at[0], at[2]) + 2.0


def test_the_mean_size_lemma():
    """Theorem 3's coupling, number by number: "out" has as many others as "in", or one more."""
    for n, most, p in product(range(1, 15), range(1, 9), (0.01, 0.2, 0.5, 0.8, 0.99)):
        k, q = np.arange(n), expected_kept(p, most, n) / n
        f = binom.pmf(k, n - 1, p)
        kept = p * np.where(k < most, 1.0, most / (k + 1))
        inside, outside = np.zeros(most + 2), np.zeros(most + 2)
        np.add.at(inside, np.minimum(k, most - 1), f * kept / q)
        np.add.at(outside, np.minimum(k, most), f * (1 - kept) / (1 - q))
        a, b = np.cumsum(inside), np.cumsum(outside)
        assert np.all(b <= a + 1e-12)
        assert np.all(b[1:] >= a[:-1] - 1e-12)


def test_replace_one_is_poisson_without_a_cap_and_simple_random_with_certain_heads():
    for mechanism in (Gaussian(1.0), PureDP(1.0)):
        roomy, coins = (amplify(mechanism, d, RO) for d in (TruncatedPoisson(0.2, 50, 50, 50), Poisson(0.2)))
        assert roomy.delta(0.3) == pytest.approx(coins.delta(0.3), rel=1e-9)
    certain = amplify(Gaussian(1.0), TruncatedPoisson(1.0, 10, 50, 50), RO)
    assert certain.delta(0.3) == pytest.approx(amplify(Gaussian(1.0), WithoutReplacement(10, 50)).delta(0.3), rel=1e-8)


@pytest.mark.parametrize("plant", ["rate pB/K", "add-remove at the cap", "no cap"])
def test_planted_mistakes_are_caught(monkeypatch, plant):
    """Bounds that look right: a chance of survival that is too small, and distance one at the cap."""

    def wrong(design, mechanism, neighbors):
        p, most = design.rate, design.most
        free = one_sided(Multiplicity.binomial(1, p), mechanism, AR)
        if plant == "no cap":
            return free
        if plant == "add-remove at the cap":
            taken = one_sided(Multiplicity.binomial(1, p * most / (most + 1)), mechanism, AR)
        else:
            taken = one_sided(Multiplicity.binomial(1, p * most / (most + 2)), mechanism, RO)
            free = taken
        return Profile.maximum([free, taken])

    planted = module.Theorem("planted", "none", AR.kind, AR.kind, False, wrong)
    monkeypatch.setattr(TruncatedPoisson, "theorems", (planted,))
    report = check_design(TruncatedPoisson, checks=24, seed=1)
    assert not report.ok
    assert any("UPPER" in words for tally in report.tallies for words in tally.violations)


def test_draws_keep_to_the_cap_in_any_order():
    design, key = TruncatedPoisson(0.3, 20, 0, 200), seeded_key(5)
    ids = np.arange(100)
    first = design.draw(Population(ids), key).reveal_secret().positions
    turned = design.draw(Population(ids[::-1]), key).reveal_secret().positions
    assert set(ids[first]) == set(ids[::-1][turned])
    sizes = [design.draw(100, key, r).reveal_secret().positions.size for r in range(200)]
    assert max(sizes) == 20
    assert abs(np.mean(sizes) - design.expected_size(100)) < 0.5


def test_sums_from_a_public_number():
    design = TruncatedPoisson(0.3, 20, 60, 60)
    x = np.linspace(0, 1, 60)
    found = [
        PrivateSum(bounds=1.0, epsilon=50.0, sampler=design).release(x[:, None], key=seeded_key(k)).value
        for k in range(60)
    ]
    assert abs(np.mean(found) - x.sum()) < 5 * np.std(found) / math.sqrt(60)


def test_specs_and_refusals():
    design = TruncatedPoisson(0.1, 120, 1000, 2000)
    assert design.spec == "capped-poisson:rate=0.1,most=120,at_least=1000,at_most=2000"
    assert spec.design(design.spec) == design
    assert spec.design("capped-poisson:rate=0.1,most=5").at_most is None
    for bad in ((1.5, 3), (0.5, 0), (0.5, 3, -1), (0.5, 3, 5, 4), (math.nan, 3)):
        with pytest.raises(InvalidInput):
            TruncatedPoisson(*bad)
    for n in (999, 2001):
        with pytest.raises(InvalidInput, match="at least 1000 and at most 2000"):
            design.draw(n, seeded_key(1))
    with pytest.raises(NoTheorem, match="declare a range"):
        amplify(Gaussian(1.0), TruncatedPoisson(0.1, 3, 9, 9), AR)
    with pytest.raises(NoTheorem, match="replace-one neighbours"):
        amplify(Gaussian(1.0, neighbors=RO), design, AR)
    assert amplify(Gaussian(1.0, neighbors=RO), design, RO).delta(0.5) > 0


def test_corners():
    assert amplify(Gaussian(1.0), TruncatedPoisson(0.0, 3)).delta(0.0) == 0.0
    assert amplify(Gaussian(1.0), TruncatedPoisson(0.0, 3), RO).delta(0.0) == 0.0
    tiny = amplify(Gaussian(1.0), TruncatedPoisson(1e-6, 10, 10**6, 10**9))
    assert 0 < tiny.delta(0.1) < 1e-5
    large = amplify(Gaussian(1.0), TruncatedPoisson(0.01, 20_000, 10**6, 2 * 10**6))
    assert large.epsilon(1e-6) < 8
