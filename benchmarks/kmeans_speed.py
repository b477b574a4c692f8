"""Speed of private k-means on Covertype, as ratios from one run.

    python benchmarks/kmeans_speed.py [--data FOLDER] [--rows N] [--repeats 5] [--threads 2]

Where the folder does not hold Covertype, or with --rows, the records are made up: as many columns, ten of them numbers
of unequal spread and the others mostly zero.

1. One Lloyd step on all records against one of scikit-learn's KMeans(algorithm="lloyd"): same centres, threads, dtype.
   Rows that single precision leaves open are decided again within the step, and sums are exact in float64.
2. The first look (norms, their histogram, squares of the columns) against one pass over memory: the largest entry of
   every part of the table, by the same threads.
3. A fit on a sample of 20,000 (first look, weights, draw, at most ten steps) against ten steps on all records and
   columns, of scikit-learn and of ours, and against the same fit on all records (which leaves out columns that are not
   worth their noise, so it is faster).
Everything is measured with numba, where it is installed, and without. The least of several repeats counts, the sides
taking turns, so that other load on the machine hits all. Without scikit-learn only the first look and our own steps
are measured.
"""

import argparse
import math
import os
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

import numpy as np
from kmeans_utility import centred
from threadpoolctl import threadpool_limits

from privamp.kmeans import compiled
from privamp.kmeans.ball import Ball, measured, scan, taken_inside
from privamp.kmeans.first_look import norm_counts
from privamp.kmeans.lloyd import sums_and_counts
from privamp.kmeans.threads import ThreadPool

K, STEPS, SIZE = 25, 10, 20_000
COVERTYPE = 581_012  # records
HAS_PEER = find_spec("sklearn") is not None


def least(works: list[Callable[[], object]], repeats: int) -> list[float]:
    for work in works:
        work()  # compile, fill caches
    best = [np.inf] * len(works)
    for _ in range(repeats):
        for i, work in enumerate(works):
            began = time.perf_counter()
            work()
            best[i] = min(best[i], time.perf_counter() - began)
    return best


def start(X: np.ndarray) -> np.ndarray:
    return X[np.random.default_rng(0).choice(len(X), K, replace=False)].astype(np.float64)


def step_times(X: np.ndarray, repeats: int, threads: int) -> tuple[float, float]:
    """Seconds of one step here, and in scikit-learn."""
    from sklearn.cluster import KMeans

    centres, rows = start(X), in_ball(X)

    def theirs(steps: int) -> Callable[[], object]:
        model = KMeans(K, init=centres.astype(X.dtype), n_init=1, max_iter=steps, tol=0.0, algorithm="lloyd")
        return lambda: model.fit(X)

    with warnings.catch_warnings(), threadpool_limits(threads):
        warnings.simplefilter("ignore")
        few, many, here = least([theirs(1), theirs(1 + STEPS), lambda: ten_steps(rows, threads)], repeats)
    return here / STEPS, (many - few) / STEPS


def own_step_time(X: np.ndarray, repeats: int, threads: int) -> float:
    """Seconds of one step here."""
    rows = in_ball(X)
    return least([lambda: ten_steps(rows, threads)], repeats)[0] / STEPS


def in_ball(X: np.ndarray) -> np.ndarray:
    """All records as a fit reads them: in the unit ball, on a grid, in single precision."""
    ball = Ball(np.zeros(X.shape[1]), float(np.linalg.norm(X, axis=1).max()))
    with ThreadPool(1) as pool:
        return taken_inside(ball, X, np.arange(len(X)), np.arange(X.shape[1]), measured(ball, X, pool), pool)


def ten_steps(rows: np.ndarray, threads: int) -> None:
    """Ten steps on all records and columns."""
    at, weights = start(rows), np.ones(len(rows))
    with ThreadPool(threads) as pool:
        for _ in range(STEPS):
            sums, counts = sums_and_counts(rows, weights, at, pool, bits=30)
            at = sums / np.maximum(counts, 1.0)[:, None]


def look_times(X: np.ndarray, radius: float, repeats: int, threads: int) -> tuple[float, float]:
    """Seconds of the first look without its noise, and of one pass over memory."""
    ball = Ball(np.zeros(X.shape[1]), radius)
    with ThreadPool(threads) as pool:
        looks = partial(norm_counts, fast=compiled.is_worth_compiling(X))
        spans = pool.spans(len(X))
        once, read = least(
            [lambda: scan(ball, X, pool, looks), lambda: pool.map(lambda span: X[span].max(), spans)], repeats
        )
    return once, read


def fit_times(X: np.ndarray, radius: float, repeats: int, threads: int) -> list[float]:
    """Seconds of a fit on a sample, and of one on all records."""
    from privamp import PrivateKMeans

    def fit(**options: object) -> Callable[[], object]:
        return lambda: PrivateKMeans(K, epsilon=1.0, radius=radius, n_iter=STEPS, n_jobs=threads, **options).fit(X)

    with threadpool_limits(threads):
        return least([fit(sampler="privacy-constrained", sample_size=SIZE), fit(sampler=None)], repeats)


def report(X: np.ndarray, radius: float, repeats: int, threads: int, kernel: str) -> None:
    """All rows for one table."""
    title = f"{X.dtype.name}, {kernel}"
    look, read = look_times(X, radius, repeats, threads)
    show(title, "first look", look, f"{look / read:.1f} passes over memory of {1e3 * read:.1f} ms (wanted <= 2)")
    if not HAS_PEER:
        return show(title, "one step", own_step_time(X, repeats, threads), "scikit-learn is not installed here")
    here, theirs = step_times(X, repeats, threads)
    show(title, "one step", here, f"{here / theirs:.2f} of scikit-learn's, {1e3 * theirs:.1f} ms (wanted <= 0.7)")
    sampled, full = fit_times(X, radius, repeats, threads)
    parts = (
        f"{sampled / theirs / STEPS:.3f} of {STEPS} of scikit-learn's steps on all records (wanted <= 0.10)",
        f"{sampled / here / STEPS:.3f} of {STEPS} of ours",
        f"{sampled / full:.3f} of a fit on all records ({1e3 * full:.0f} ms)",
    )
    show(title, f"fit, sample of {SIZE}", sampled, ", ".join(parts))


def show(title: str, what: str, seconds: float, ratios: str) -> None:
    print(f"{title}: {what}: {1e3 * seconds:.1f} ms, {ratios}", flush=True)


def records(folder: Path, rows: int | None) -> np.ndarray:
    path = folder / "covertype.npz"
    if rows is None and path.exists():
        print("full Covertype")
        return centred(np.load(path)["X"], most=10**9).X
    rows = COVERTYPE if rows is None else rows
    print(f"{rows:,} made-up records")
    return made_up(rows)


def made_up(rows: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    X = np.zeros((rows, 54))
    middles, spread = rng.normal(size=(K, 10)), np.geomspace(1500.0, 10.0, 10)
    X[:, :10] = (middles[rng.integers(K, size=rows)] + 0.3 * rng.normal(size=(rows, 10))) * spread
    for first, last in ((10, 14), (14, 54)):  # soil and wilderness: one of several
        X[np.arange(rows), rng.integers(first, last, size=rows)] = 1.0
    return centred(X, most=10**9).X


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("PRIVAMP_SHARED", Path(__file__).parents[2] / "shared")
    parser.add_argument("--data", type=Path, default=Path(default) / "data")
    parser.add_argument("--rows", type=int, help="so many made-up records instead of Covertype")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    asked = parser.parse_args()
    X = records(asked.data, asked.rows)
    radius = float(np.linalg.norm(X, axis=1).max())
    for kernel, size in [("numba", 1), ("without numba", math.inf)][0 if compiled.has_numba() else 1 :]:
        with patch.object(compiled, "_WORTH_IT", size):
            for dtype in (np.float32, np.float64):
                report(X.astype(dtype), radius, asked.repeats, asked.threads, kernel)


if __name__ == "__main__":
    main()
