"""Bounds that are found: by hand on noisy counts, and through a table with a budget."""

import numpy as np
import pyarrow as pa
import pytest

from privamp import Budget, open_table
from privamp.errors import InvalidInput
from privamp.queries.ranges import Found, edges_of


def test_edges_by_hand():
    assert edges_of(1.0, 5.0) == (-8.0, -4.0, -2.0, -1.0, 1.0, 2.0, 4.0, 8.0)
    for wrong in ((2.0, 1.0), (1e-100, 1.0), (0.0, 1.0)):
        with pytest.raises(InvalidInput):
            edges_of(*wrong)


@pytest.mark.parametrize(("counts", "bounds"), [
    ([0, 0, 0, 0, 90, 0, 90], (1.0, 8.0)),
    ([90, 0, 0, 0, 0, 0, 0], (-8.0, -4.0)),
    ([0, 0, 90, 0, 0, 90, 0], (-2.0, 4.0)),
    ([0, 0, 0, 90, 90, 0, 0], (0.0, 2.0)),
    ([0, 0, 90, 90, 0, 0, 0], (-2.0, 0.0)),
    ([0, 0, 0, 90, 0, 0, 0], (-1.0, 1.0)),
    ([3, 0, 0, 0, 0, 2, 0], (-8.0, 8.0)),
])  # fmt: skip
def test_bounds_by_hand(counts, bounds):
    for kind in ("laplace", "gaussian"):
        assert Found(edges_of(1.0, 5.0), np.array(counts, dtype=float), 2.0, kind).bounds == bounds


def test_empty_bins_are_rarely_taken_for_others():
    rng = np.random.default_rng(1)
    edges = edges_of(1e-6, 1e12)
    held = np.zeros(len(edges) - 1)
    held[80] = 1000.0
    seen = [
        Found(edges, held + rng.laplace(0, 1, len(held)), 2**0.5, "laplace").bounds == (edges[80], edges[81])
        for _ in range(400)
    ]
    assert np.mean(seen) > 0.92


def test_bounds_of_a_table_are_paid_for(tmp_path):
    budget = Budget.create(tmp_path / "b.db", population="p", epsilon=1.0)
    x = np.random.default_rng(2).lognormal(10.0, 0.7, 5000)
    t = open_table(pa.table({"x": x, "word": ["a"] * 5000}), budget=budget)
    found = t.find_bounds("x", epsilon=0.2)
    low, high = found.value
    assert found.names == ("low", "high")
    assert np.mean((x >= low) & (x <= high)) > 0.9
    assert high < 4 * x.max()
    assert found.guarantee.epsilon() <= 0.2
    assert budget.status().spent["epsilon"] == pytest.approx(0.2, abs=1e-6)
    with pytest.raises(InvalidInput, match="no interval"):
        found.interval()
    assert t.mean("x", (low, high)).run(epsilon=0.8).value == pytest.approx(x.mean(), rel=0.1)
