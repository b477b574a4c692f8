"""Intervals of counts, also where few or none are drawn, and where the number drawn varies. All seeded."""

import math

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from privamp import MultiStage, Poisson, TruncatedPoisson, WithoutReplacement, WithReplacement, open_table
from privamp.core.population import Population
from privamp.queries.answers import count_of
from privamp.queries.drawn_numbers import law
from privamp.queries.plan import Plan
from privamp.queries.public_facts import PublicFacts
from privamp.testing import seeded_key


def told_by(design, noise, kind="laplace"):
    of_size = design.spread if design.spread_of_size is None else design.spread_of_size
    return PublicFacts(noise, kind, design.spread, design.weight, design.public_size, of_size, design.equal_chances)


def covered(design, records, noise, draw, kind="laplace", runs=400, level=0.9):
    rng = np.random.default_rng(5)
    told = told_by(design, noise, kind)
    hits = 0
    for _ in range(runs):
        own = rng.laplace(0.0, noise / math.sqrt(2.0)) if kind == "laplace" else rng.normal(0.0, noise)
        low, high = count_of(design.weight * draw(rng) + own, told).interval(level, kind)
        hits += low <= records <= high
    return hits / runs


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize(
    ("records", "rate", "noise"), [(30, 0.01, 9.0), (10, 0.1, 2.0), (17, 0.01, 0.5), (3, 0.5, 0.4)]
)
def test_coins_that_draw_few(records, rate, noise, kind):
    """Before, an empty sample told of no sampling error: .55 to .75 instead of .9."""
    share = covered(Poisson(rate), records, noise, lambda rng: rng.binomial(records, rate), kind)
    assert 0.85 <= share <= 0.95  # 400 runs have a standard error of .015


def test_small_groups_in_samples_of_fixed_size():
    draw = lambda rng: rng.hypergeometric(20, 480, 50)  # noqa: E731
    assert 0.86 <= covered(WithoutReplacement(50, 500), 20, 4.0, draw) <= 0.94
    assert 0.86 <= covered(WithReplacement(50, 500), 20, 4.0, lambda rng: rng.binomial(50, 0.04)) <= 0.94


def test_a_capped_number_of_coins():
    """Before, the number drawn counted as fixed: .45 of a group's intervals held."""
    design = TruncatedPoisson(0.1, 105, 1000, 1000)

    def draw(rng):
        return rng.hypergeometric(900, 100, min(rng.binomial(1000, 0.1), 105))

    assert 0.86 <= covered(design, 900, 3.0, draw) <= 0.95  # an end at 1000 is cut
    assert covered(WithoutReplacement(97, 1000), 900, 3.0, draw) < 0.6  # what was told before


def test_the_laws_are_those_of_the_designs():
    cases = [
        (Poisson(0.3), stats.binom(7, 0.3)), (WithReplacement(5, 20), stats.binom(5, 7 / 20)),
        (WithoutReplacement(5, 20), stats.hypergeom(20, 7, 5)),
        (WithoutReplacement(18, 20), stats.hypergeom(20, 7, 18)),
    ]  # fmt: skip
    for design, exact in cases:
        numbers, chances = law(7, told_by(design, 1.0))
        np.testing.assert_allclose(chances, exact.pmf(numbers), atol=1e-12)
        assert float(np.sum(exact.pmf(numbers))) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("records", [1, 3, 5])
@pytest.mark.parametrize(
    "design",
    [Poisson(0.3), WithoutReplacement(2, 5), TruncatedPoisson(0.4, 2, 5, 5), MultiStage((("wor", 3), ("wr", 2)), 5)],
    ids=["poisson", "without", "truncated", "stages"],
)
def test_the_variance_of_a_count_is_that_of_the_law(design, records):
    """By enumeration; the matched laws have the mean and no less than the variance."""
    told, found = told_by(design, 1.0), {}
    for units, chance in design.law(Population.of(5)):
        k = sum(unit < records for unit in units)
        found[k] = found.get(k, 0.0) + float(chance)
    k, p = np.array(list(found)), np.array(list(found.values()))
    variance = p @ k**2 - (p @ k) ** 2
    assert told.variance(records, records) == pytest.approx(design.weight**2 * variance, abs=1e-7)
    numbers, chances = law(records, told)
    assert chances @ numbers == pytest.approx(p @ k, abs=1e-9)
    assert chances @ numbers**2 - (chances @ numbers) ** 2 >= variance - 1e-9


def test_a_mean_does_not_vary_with_the_number_drawn(monkeypatch):
    """All values are .9: with a capped number of coins, before, the mean varied with the number, and 78% missed."""
    data = pa.table({"x": np.full(600, 0.9), "person": np.arange(600)})
    design, hits = TruncatedPoisson(0.1, 70, 600, 600), 0
    table = open_table(data).sample(design)
    noise = table.plan([table.count()]).noise(10.0)
    monkeypatch.setattr(Plan, "noise", lambda *_: noise)
    for k in range(40):
        t = open_table(data, key=seeded_key(k), population="people", id="person").sample(design)
        low, high = t.mean("x", (0, 1), missing=0.0).run(epsilon=10.0).interval()
        hits += low <= 0.9 <= high
    assert hits >= 36
