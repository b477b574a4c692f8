"""Intervals of sums and shares from samples: they cover, also where few are drawn, and are no wider than need be."""

import math

import numpy as np
import pytest

from privamp import Poisson, WithoutReplacement
from privamp.numerics.half_width import half_width, half_widths
from privamp.queries.answers import Ratio, Share, Summed
from privamp.queries.public_facts import PublicFacts

LEVEL = 0.9


def told_by(design, noise):
    return PublicFacts(noise, "laplace", design.spread, design.weight, design.public_size, 0.0, design.equal_chances)


def shares(design, records, yes, noise, draw, law, runs=400):
    """How often the interval of a share holds, where draw gives how many yes and how many no there are."""
    rng, told, hits = np.random.default_rng(6), told_by(design, noise), 0
    for _ in range(runs):
        ones, zeros = draw(rng)
        own = rng.laplace(0.0, noise / math.sqrt(2.0), 3)
        total = design.weight * (ones - zeros) + own[0]
        count = design.weight * (ones + zeros) + own[1] / 0.5
        squares = max(count, 0.0) if law is Share else design.weight * (ones + zeros) + own[2] / 0.125
        low, high = law(total, count, squares, 0.5, 0.5, 0.5, told).interval(LEVEL)
        hits += low <= yes / records <= high
    return hits / runs


@pytest.mark.parametrize("yes", [2, 10, 95])
def test_shares_of_few_that_were_drawn(yes):
    """Ten of a hundred are drawn, and of those one or none says yes: before, .58 to .69 of 90% intervals held."""

    def draw(rng):
        return rng.binomial(yes, 0.1), rng.binomial(100 - yes, 0.1)

    found = shares(Poisson(0.1), 100, yes, 0.5, draw, Share)
    assert 0.85 <= found <= 0.96
    if yes < 50:
        assert shares(Poisson(0.1), 100, yes, 0.5, draw, Ratio) < 0.8  # what was told before

    def fixed(rng):
        ones = rng.hypergeometric(yes, 100 - yes, 10)
        return ones, 10 - ones

    assert 0.85 <= shares(WithoutReplacement(10, 100), 100, yes, 2.0, fixed, Share) <= 0.97


def test_a_sample_of_none_tells_nothing_of_a_share():
    found = Share(0.0, 0.1, 0.1, 0.5, 0.5, 0.5, told_by(Poisson(0.01), 5.0)).interval(LEVEL)
    assert found == (0.0, 1.0)


def test_sums_use_what_a_sum_knows_of_its_squares():
    """All values are .9 of the largest: in a sample of fixed size their sum hardly varies."""
    design = WithoutReplacement(50, 500)
    told = told_by(design, 8.0)
    squares, blur = 0.81 * 500, 8.0 / 0.125
    low, high = Summed(450.0, squares, 1.0, (0.0, 500.0), told, blur).interval(LEVEL)
    before = 2.0 * half_width(math.sqrt(design.spread * (squares + 0.4 * blur)), 8.0, "laplace", LEVEL)
    assert high - low < 0.4 * before
    assert high <= 500.0


@pytest.mark.parametrize(("many", "value", "rate"), [(5, 1.0, 0.1), (40, 0.5, 0.1), (450, 0.9, 0.3), (500, 0.9, 0.02)])
def test_sums_cover(many, value, rate):
    """Positive numbers among zeros, by coins."""
    rng, noise, hits, widths = np.random.default_rng(8), 2.0, 0, []
    design = Poisson(rate)
    told = told_by(design, noise)
    for _ in range(400):
        drawn = rng.binomial(many, rate) / rate
        own = rng.laplace(0.0, noise / math.sqrt(2.0), 2)
        squares = value**2 * drawn + own[1] / 0.125
        low, high = Summed(value * drawn + own[0], squares, 3.0, (0.0, math.inf), told, noise / 0.125).interval(LEVEL)
        hits += low <= 3.0 * value * many <= high
        widths.append((high - low) / 3.0)
    assert hits >= 0.86 * 400
    assert np.median(widths) <= 1.5 * 2.0 * half_width(math.sqrt(design.spread * many * value), noise, "laplace", LEVEL)


def _of_few(design, draw, ends, sign=1.0, level=0.95):
    """How often the interval of a sum of 40 numbers .9 holds, of which two are drawn on average, with little noise."""
    rng, noise, hits, runs = np.random.default_rng(5), 0.6, 0, 300
    told = told_by(design, noise)
    for _ in range(runs):
        drawn = design.weight * draw(rng)
        own = rng.laplace(0.0, noise / math.sqrt(2.0), 2)
        law = Summed(sign * (0.9 * drawn + own[0]), 0.81 * drawn + own[1] / 0.125, 10.0, ends, told, noise / 0.125)
        low, high = law.interval(level)
        hits += low <= sign * 360.0 <= high
    return hits / runs


def test_sums_cover_where_nobody_may_have_been_drawn():
    """A sample of none tells nothing of the squares of others: before, .82 to .89 of these 95% intervals held."""

    def coins(rng):
        return rng.binomial(40, 0.05)

    def fixed(rng):
        return rng.hypergeometric(40, 760, 40)

    assert 0.93 <= _of_few(Poisson(0.05), coins, (0.0, math.inf)) <= 0.99
    assert 0.93 <= _of_few(Poisson(0.05), coins, (-math.inf, 0.0), -1.0) <= 0.99
    assert 0.93 <= _of_few(WithoutReplacement(40, 800), fixed, (0.0, 800.0)) <= 0.99
    low, high = Summed(0.03, -4.0, 10.0, (0.0, math.inf), told_by(Poisson(0.05), 0.6), 4.8).interval(0.95)
    assert low == 0.0
    assert 0.975 <= 1.0 - 0.95 ** (high / 10.0) <= 0.985  # with more numbers of 1 than this, somebody is drawn


def test_sums_of_negative_and_of_both_signs():
    told = told_by(Poisson(0.1), 2.0)
    up = Summed(30.0, 40.0, 1.0, (0.0, math.inf), told).interval(LEVEL)
    down = Summed(-30.0, 40.0, 1.0, (-math.inf, 0.0), told).interval(LEVEL)
    np.testing.assert_allclose(down, (-up[1], -up[0]))
    both = Summed(30.0, 40.0, 1.0, (-math.inf, math.inf), told).interval(LEVEL)
    half = half_width(math.sqrt(9.0 * 40.0), 2.0, "laplace", LEVEL)
    np.testing.assert_allclose(both, (30.0 - half, 30.0 + half), rtol=1e-3)
    assert Summed(-50.0, 1.0, 1.0, (0.0, math.inf), told).interval(LEVEL) == (0.0, 0.0)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_the_table_of_widths_is_no_narrower(level):
    rng = np.random.default_rng(0)
    sampling, noise = 10.0 ** rng.uniform(-5, 5, 60), 10.0 ** rng.uniform(-2, 2, 60)
    sampling[0] = 0.0
    exact = [half_width(s, n, "laplace", level) for s, n in zip(sampling, noise, strict=True)]
    ratio = half_widths(sampling, noise, "laplace", level) / exact
    assert ratio.min() >= 1.0
    assert ratio.max() <= 1.0001
