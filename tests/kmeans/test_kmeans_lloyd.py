"""The kernels of a Lloyd step against the definition, and the post-processing."""

import numpy as np
import pytest

from privamp.kmeans.centres import Smoothing
from privamp.kmeans.compiled import has_numba
from privamp.kmeans.lloyd import sums_and_counts
from privamp.kmeans.nearest import nearest
from privamp.kmeans.starts import start
from privamp.kmeans.threads import ThreadPool, threads_of
from privamp.testing import seeded_stream

KERNELS = [False, pytest.param(True, marks=pytest.mark.skipif(not has_numba(), reason="numba is not installed"))]


@pytest.mark.parametrize("fast", KERNELS)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("n", "d", "k"), [(0, 3, 2), (1, 3, 2), (1024, 1, 1), (5003, 7, 9)])
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


def test_empty_and_noisy_counts() -> None:
    """A count at or below its noise, negative ones too, leaves the centre where it was."""
    smoothing = Smoothing(np.array([0.2, 0.1]), column_variance=4.0, count_error=3.0, mean_cluster=100.0)
    before = np.array([[0.1, 0.1], [0.2, 0.2], [0.3, 0.3], [0.4, 0.4]])
    sums = np.array([[50.0, 10.0], [5.0, 5.0], [-9.0, 2.0], [1e6, 0.0]])
    after = smoothing.next_centres(sums, np.array([100.0, 3.0, -50.0, 200.0]), before)
    assert np.array_equal(after[1:3], before[1:3])
    assert after[0] == pytest.approx([0.5 * 0.2 / (0.2 + 4e-4), 0.1 * 0.1 / (0.1 + 4e-4)])
    assert np.linalg.norm(after[3]) == pytest.approx(1.0)  # into the ball


def test_light_centres_join_heavy_ones() -> None:
    smoothing = Smoothing(np.array([0.2, 0.1]), column_variance=4.0, count_error=3.0, mean_cluster=100.0)
    centres = np.array([[0.1, 0.1], [0.2, 0.2], [0.3, -0.3]])
    moved = smoothing.split(centres, np.array([500.0, -3.0, 90.0]), seeded_stream(1))
    assert moved[0] + moved[1] == pytest.approx(2 * centres[0])
    assert not np.allclose(moved[0], moved[1])
    assert np.array_equal(moved[2], centres[2])
    alone = smoothing.split(centres, np.zeros(3), seeded_stream(1))
    assert np.array_equal(alone, centres)  # nobody is heavy


def test_starts_are_spread_inside_the_ball() -> None:
    variances = np.array([0.1, 0.0, 0.3])
    points = start("spread", 25, variances, 7)
    assert points.shape == (25, 3)
    assert np.max(np.linalg.norm(points, axis=1)) <= 1 + 1e-12
    assert np.all(points[:, 1] == 0)
    assert np.std(points[:, 2]) > np.std(points[:, 0]) > 0
    assert np.linalg.norm(start("ball", 25, variances, 7), axis=1) == pytest.approx(0.5)


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


def smoothing() -> Smoothing:
    return Smoothing(np.array([0.1, 0.1]), column_variance=1.0, count_error=2.0, mean_cluster=1200.0)


def test_neighbours_that_are_cheap_to_join_make_room_for_a_split() -> None:
    centres = np.array([[0.0, 0.0], [0.01, 0.0], [0.6, 0.0], [-0.6, 0.0], [0.0, 0.6]])
    counts = np.array([500.0, 1500.0, 3000.0, 1000.0, 1000.0])
    moved = smoothing().split(centres, counts, seeded_stream(4))
    assert np.allclose(moved[[3, 4]], centres[[3, 4]])
    joined, halves = (moved[[1]], moved[[0, 2]]) if moved[0, 0] > 0.1 else (moved[[0]], moved[[1, 2]])
    assert np.allclose(joined, [[0.0075, 0.0]])  # the mean of the two, by their counts
    assert np.allclose(halves.mean(axis=0), centres[2])
    assert np.linalg.norm(halves[0] - halves[1]) == pytest.approx(2 * 0.35 * 0.59, rel=1e-6)


def test_centres_that_are_all_worth_their_place_stay() -> None:
    centres = np.array([[x, y] for x in (-0.6, -0.2, 0.2, 0.6) for y in (-0.4, 0.0, 0.4)])
    counts = np.full(12, 1200.0)
    assert np.array_equal(smoothing().split(centres, counts, seeded_stream(5)), centres)


def test_two_centres_in_one_place_are_joined() -> None:
    centres = np.array([[0.3, 0.0], [0.3, 0.0], [-0.3, 0.0], [0.0, 0.5]])
    moved = smoothing().split(centres, np.full(4, 1200.0), seeded_stream(6))
    assert len(np.unique(moved.round(9), axis=0)) == 4
