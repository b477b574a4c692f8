"""Variances: exact without noise, by groups, from samples, and intervals that hold. Seeded."""

import numpy as np
import pyarrow as pa
import pytest

from privamp import Poisson, WithoutReplacement, open_table
from privamp.queries.plan import Layout
from privamp.testing import seeded_key

GREAT = 1e6
X = np.random.default_rng(1).normal(50.0, 12.0, 2000)
DATA = pa.table({"x": X, "g": ["a", "b"] * 1000, "id": np.arange(2000)})


def test_variances_without_noise():
    t = open_table(DATA)
    found = t.variance("x", (0, 100)).run(epsilon=GREAT)
    assert found.value == pytest.approx(np.clip(X, 0, 100).var(), rel=1e-4)
    groups = t.variance("x", (0, 100)).by("g", ["b", "a"]).run(epsilon=GREAT)
    np.testing.assert_allclose(groups.value, [X[1::2].var(), X[::2].var()], rtol=1e-3)
    few = pa.table({"x": [1.0, 3.0, None, 3.0]})
    assert open_table(few).variance("x", (0, 4)).run(epsilon=GREAT).value == pytest.approx(8 / 9, rel=1e-3)
    assert open_table(few).variance("x", (0, 4), missing=0.0).run(epsilon=GREAT).value == pytest.approx(
        1.6875, rel=1e-3
    )


@pytest.mark.parametrize("design", [Poisson(0.3), WithoutReplacement(600, 2000)], ids=str)
def test_a_sample_tells_the_variance_of_all(design):
    t = open_table(DATA, id="id", key=seeded_key(1), population="x").sample(design)
    low, high = t.variance("x", (0, 100)).run(epsilon=GREAT).interval(0.9999)
    assert low < X.var() < high
    assert high - low < 80.0


def test_nobody_has_any_variance():
    found = open_table(DATA).variance("x", (0, 100)).by("g", ["zz"]).run(epsilon=1.0)
    low, high = found.interval()
    assert (low[0], high[0]) == (0.0, 2500.0)


@pytest.mark.parametrize("rate", [1.0, 0.2])
def test_intervals_hold(rate):
    rng = np.random.default_rng(2)
    t = open_table(DATA).sample(Poisson(rate))
    question, runs, hits = t.variance("x", (0, 100)), 150, 0
    plan = t.plan([question])
    noise = plan.noise(1.0)
    layout = Layout.of([question], plan._asking(1.0))
    [(rows, _)] = question.levels(DATA.combine_chunks().to_batches()[0], plan._asking(1.0))
    for _ in range(runs):
        total = layout.factors[0] * rows[rng.random(2000) < rate].sum(axis=0)
        noisy = total + rng.laplace(0.0, noise.scale, total.shape)
        [found] = layout.releases(noisy, noise, t.design, None, {})
        low, high = found.interval(0.9)
        hits += low <= X.var() <= high
    assert hits / runs >= 0.84
