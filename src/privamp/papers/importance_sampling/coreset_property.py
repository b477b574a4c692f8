"""IS Definition 14 and Theorem 15: how far the cost on a coreset sample is from the cost on all rows.

Theorem 15 has a constant without a value, so its size cannot be checked; `coreset_size` has constants of its own, for
given sets of centres. Both are tested on Ijcnn1 with many sets of centres, near the data and far from them.
"""

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ...numerics.log_domain import FloatArray
from ...rules.coreset_size import all_centres_size, coreset_size
from ..files import Table, compared
from ..printed import Check, said
from ..registry import Entry, Outcome
from .data_sets import read
from .dp_lloyd import cost
from .figure_2 import IS

ERROR, FAILURE, CLUSTERS = 0.5, 1e-3, 10
QUICK, FULL = 60, 1000  # sets of centres


def centres(x: FloatArray, sets: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Records, records with noise, and distant points, in turn."""
    for number in range(sets):
        chosen = x[rng.choice(len(x), CLUSTERS, replace=False)]
        yield chosen * (1.0, 1.0, 3.0)[number % 3] + rng.normal(size=chosen.shape) * (0.0, 0.3, 0.0)[number % 3]


def weighted_cost(x: FloatArray, weights: FloatArray, at: FloatArray, n: int) -> float:
    """The weighted sum of squared distances over n."""
    best = np.sum(x**2, axis=1) + np.min(np.sum(at**2, axis=1) - 2.0 * (x @ at.T), axis=1)
    return float(weights @ best) / n


def errors(x: FloatArray, size: float, share: float, several: list[FloatArray], seed: int) -> FloatArray:
    """The error of Definition 14 for every set of centres, on one sample; share 1 is uniform."""
    n, squares = len(x), np.sum(x**2, axis=1)
    spread = float(squares.mean())
    q = np.minimum(size / n * (share + (1.0 - share) * squares / spread), 1.0)
    kept = np.random.default_rng(seed).random(n) < q
    found = []
    for at in several:
        whole = cost(x, at)
        found.append(abs(weighted_cost(x[kept], 1.0 / q[kept], at, n) - whole) / (0.5 * whole + 0.5 * spread))
    return np.array(found)


def checks(x: FloatArray, sets: int) -> Iterator[Check]:
    """Check the property at the proved size, the decrease of the error with m, and that the cost is unbiased."""
    several = list(centres(x, sets, np.random.default_rng(2)))
    size = coreset_size(ERROR, FAILURE, sets)
    found = errors(x, size, 0.5, several, 3)
    yield Check(f"Definition 14 holds at our size {size} for {sets} sets of centres, error {ERROR}", "-",
                f"largest error {found.max():.4f}", bool(found.max() <= ERROR))  # fmt: skip
    formula = all_centres_size(ERROR, CLUSTERS, x.shape[1], FAILURE)
    literal = errors(x, formula, 0.5, several, 4)
    yield said(f"Theorem 15 with c = 1: m = {formula:.0f} is enough for error {ERROR}", bool(literal.max() <= ERROR),
               f"largest error {literal.max():.4f} of {sets} sets")  # fmt: skip
    few, many = (float(np.mean([errors(x, m, 0.5, several[:20], s).max() for s in range(5)])) for m in (500, 8000))
    yield said("the error falls like 1/sqrt(m): sixteen times the size, a quarter of the error",
               2.5 < few / many < 6.5, f"{few:.4f} at m = 500, {many:.4f} at 8000: {few / many:.2f} times")  # fmt: skip
    signed = [weighted_sum_error(x, 1000, several[0], seed) for seed in range(60)]
    mean, error = float(np.mean(signed)), float(np.std(signed)) / math.sqrt(len(signed))
    yield said(
        "the weighted cost is an unbiased estimate", abs(mean) < 6.0 * error, f"mean error {mean:.5f} ± {error:.5f}"
    )


def weighted_sum_error(x: FloatArray, size: float, at: FloatArray, seed: int) -> float:
    """The signed relative error of one sample's cost."""
    n, squares = len(x), np.sum(x**2, axis=1)
    q = np.minimum(size / n * (0.5 + 0.5 * squares / squares.mean()), 1.0)
    kept = np.random.default_rng(seed).random(n) < q
    whole = cost(x, at)
    return (weighted_cost(x[kept], 1.0 / q[kept], at, n) - whole) / whole


def reproduced(out_dir: Path, sets: int) -> Outcome:
    """Sample, compare and write the files."""
    x = read("Ijcnn1").x
    sizes = [(e, coreset_size(e, FAILURE, sets), all_centres_size(e, CLUSTERS, x.shape[1], FAILURE))
             for e in (0.1, 0.2, 0.5, 1.0)]  # fmt: skip
    rows = [(f"{error:g}", str(proved), f"{formula:.0f}") for error, proved, formula in sizes]
    header = ("error", f"coreset_size, {sets} sets", "Theorem 15, c = 1")
    return compared(out_dir, ENTRY, list(checks(x, sets)), table=Table(header, rows, "Expected sizes."))


def run(out_dir: Path) -> Outcome:
    """Run with few sets of centres."""
    return reproduced(out_dir, QUICK)


def full(out_dir: Path) -> Outcome:
    """Run with many sets of centres."""
    return reproduced(out_dir, FULL)


ENTRY = Entry(
    name="is-coreset-property",
    paper=IS,
    title="Definition 14 and Theorem 15: the coreset property",
    summary="the largest error of k-means costs on coreset samples of a given size (needs ijcnn1.npz)",
    run=run,
    full=full,
    errata="is-coreset-sampling-the-supremum-on-a-grid-and-the-size",
)
