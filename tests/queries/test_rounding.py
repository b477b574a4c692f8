"""Rounding to the grid of the noise: it costs the same for one record and for very many, and no record moves more."""

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from privamp import open_table
from privamp.core.sample import Drawn
from privamp.errors import InvalidInput
from privamp.mechanisms.fixed_point import ExactLaplace
from privamp.queries.fine_sums import FineSums, norm_left
from privamp.testing import seeded_key

N = 100_000
ASKED = {
    "count": (lambda t: t.count(), N),
    "sum": (lambda t: t.sum("x", (0, 3)), N),
    "mean": (lambda t: t.mean("x", (0, 3)), 1.0),
    "proportion": (lambda t: t.proportion("y"), 1.0),
    "histogram": (lambda t: t.histogram("x", [0, 2, 3]), [N, 0]),
}


@pytest.mark.parametrize("records", [10**15, 10**13, None])
@pytest.mark.parametrize("name", ASKED)
def test_many_records_are_rounded_as_one(name, records):
    """Before, each lost up to a unit of the grid, hundreds of standard errors together."""
    table = open_table(
        pa.table({"id": np.arange(N), "x": np.ones(N), "y": np.ones(N, dtype=bool)}), id="id", key=seeded_key(3),
        population="alike", rows=records,
    )  # fmt: skip
    question, truth = ASKED[name]
    found = question(table).run(epsilon=30.0 if records == 10**15 else 1e3)
    assert np.all(np.abs(np.asarray(found.value) - truth) <= 6.0 * np.asarray(found.noise_error))
    low, high = found.interval(1.0 - 1e-6)
    assert np.all(np.asarray(low) <= truth)
    assert np.all(np.asarray(high) >= truth)


def _drawn(counts, weights):
    return Drawn(np.arange(len(counts)), np.asarray(counts), np.asarray(weights))


def _total(rows, places, drawn, grid, radius, p, batches=1):
    sums = FineSums.of(4, grid)
    for part in np.array_split(np.arange(len(rows)), batches):
        sums.add(rows[part], places[part], _drawn(drawn.counts[part], drawn.weights[part]), radius, p)
    return np.asarray(sums.rounded())


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_one_record_moves_a_rounded_sum_by_no_more_than_declared(p):
    """On a coarse grid, for records of every count and weight, and whatever the others are; a longer row is caught."""
    rng, grid, k, worst = np.random.default_rng(2), 2.0**-6, 3, 0.0
    radius = norm_left(1.0, k, grid)
    for trial in range(400):
        n = int(rng.integers(1, 6))
        rows = rng.normal(0.0, 1.0, (n, k)) * rng.choice([0.01, 0.3, 1.0, 1e6], (n, 1))
        places = np.array([rng.permutation(4)[:k] for _ in range(n)])
        counts = np.ones(n, dtype=np.int64) if trial % 2 else rng.integers(1, 9, n)
        weights = np.ones(n) if trial % 3 else rng.choice([1.0, 0.01, 0.7, 2.0], n)
        drawn, rest = _drawn(counts, weights), np.arange(n) > 0
        without = _drawn(counts[rest], weights[rest])
        for length in (radius, 1.0):
            move = _total(rows, places, drawn, grid, length, p) - _total(
                rows[rest], places[rest], without, grid, length, p
            )
            size = float(np.sum(np.abs(move.astype(float)) ** p)) ** (1.0 / p) * grid
            allowed = counts[0] * weights[0]
            if length == radius:
                assert size <= allowed * (1.0 + 1e-12)
            worst = max(worst, size / allowed)
    assert worst > 1.001  # rows of the whole norm move the rounded sum by more


def test_sums_are_exact_until_they_are_rounded():
    rng, grid = np.random.default_rng(4), 2.0**-8
    rows, places = rng.uniform(-0.3, 0.3, (500, 2)), rng.integers(0, 2, (500, 1)) * 2 + np.arange(2)
    drawn = _drawn(rng.integers(1, 4, 500), np.ones(500))
    truth = [Fraction(0)] * 4
    for row, place, count in zip(rows, places, drawn.counts, strict=True):
        for x, at in zip(row, place, strict=True):
            truth[at] += int(count) * Fraction(x)
    found = _total(rows, places, drawn, grid, 1.0, 1.0)
    assert all(abs(int(u) - t / Fraction(grid)) <= Fraction(51, 100) for u, t in zip(found, truth, strict=True))
    assert np.array_equal(
        found, _total(rows[::-1], places[::-1], _drawn(drawn.counts[::-1], np.ones(500)), grid, 1, 1, 7)
    )


def test_a_grid_too_coarse_for_a_row_is_refused_before_it_is_paid_for():
    assert norm_left(1.0, 4, 2.0**-70) < 1.0
    with pytest.raises(InvalidInput, match="rows"):
        norm_left(1.0, 9, 2.0**-5)
    table = open_table(pa.table({"x": [1.0]}), rows=1)
    assert isinstance(table.plan([table.count()]).noise(1e-8), ExactLaplace)
    with pytest.raises(InvalidInput, match="too coarse"):
        table.count().run(epsilon=1e-8)
    assert math.isfinite(table.count().run(epsilon=0.01).value)
