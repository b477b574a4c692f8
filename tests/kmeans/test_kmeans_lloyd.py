"""The kernels of a Lloyd step against the definition."""

import numpy as np
import pytest

from privamp.kmeans.compiled import has_numba
from privamp.kmeans.lloyd import sums_and_counts
from privamp.kmeans.nearest import decided, nearest
from privamp.kmeans.threads import ThreadPool, threads_of

KERNELS = [False, pytest.param(True, marks=pytest.mark.skipif(not has_numba(), reason="numba is not installed"))]


@pytest.mark.parametrize("fast", KERNELS)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("n", "d", "k"), [(0, 3, 2), (1, 3, 2), (1024, 1, 1), (5003, 7, 9), (1002, 19, 70)])
def test_sums_and_counts(fast: bool, threads: int, n: int, d: int, k: int) -> None:
    """Exactly: rows and weights are on a grid, so that every sum of their products is a double."""
    rng = np.random.default_rng(n)
    rows = np.trunc(rng.uniform(-1, 1, (n, d)) / np.sqrt(d) * 2**24) / 2**24
    weights, centres = np.trunc(1 + 3 * rng.random(n) * 8) / 8, 0.5 * rng.normal(size=(k, d)) / np.sqrt(d)
    labels = np.argmin(((rows[:, None] - centres) ** 2).sum(axis=2), axis=1) if n else np.empty(0, int)
    wanted = np.stack([(weights[:, None] * rows)[labels == j].sum(axis=0) for j in range(k)])
    with ThreadPool(threads) as pool:
        sums, counts = sums_and_counts(rows.astype(np.float32), weights, centres, pool, bits=27, fast=fast)
    assert np.array_equal(sums, wanted)
    assert np.array_equal(counts, np.bincount(labels, weights, minlength=k))
    assert np.array_equal(nearest(rows, centres), labels)


@pytest.mark.parametrize("k", [1, 2, 255, 256, 300])
def test_the_largest_score_is_certain_unless_another_one_is_near(k: int) -> None:
    """Also with 256 others near it, which a byte would count as none."""
    scores = np.random.default_rng(k).uniform(-1, 0, (k, 40)).astype(np.float32)
    most = np.random.default_rng(1).integers(k, size=40)
    scores[most, np.arange(40)] = 0.5
    scores[:, 7] = scores[:, 23] = 0.25
    scores[most[5] - 1, 5] = 0.45
    places, is_sure = decided(scores, np.float32(0.1))
    assert np.flatnonzero(~is_sure).tolist() == ([5, 7, 23] if k > 1 else [])
    assert np.array_equal(places[is_sure], most[is_sure])


def test_threads() -> None:
    assert threads_of(3) == 3
    assert threads_of(None) == threads_of(-1) >= 1
    assert threads_of(-100) == 1


@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_crew_keeps_the_order_tells_errors_and_may_be_asked_from_inside(size: int) -> None:
    def refuse(number: int) -> int:
        if number == 7:
            raise ValueError("seven")
        return number

    with ThreadPool(size) as pool:
        assert pool.map(lambda number: number**2, range(50)) == [number**2 for number in range(50)]
        assert pool.map(refuse, []) == []
        with pytest.raises(ValueError, match="seven"):
            pool.map(refuse, range(50))
        assert pool.map(lambda row: sum(pool.map(refuse, range(row))), range(7)) == [0, 0, 1, 3, 6, 10, 15]
