"""How much of a whole job its kernels take, and so the most that compiling them can save (Amdahl's bound).

    python benchmarks/kernel_shares.py [--rows 1000000] [--data FOLDER]

Jobs run on one thread, in processes that have run them once. A kernel's time is its own: what it spends in another
kernel counts there. "the rest" is planning, certifying, reading files and everything else that stays Python and
libraries. docs/decisions/kernels.md draws the conclusion.
"""

import argparse
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from kmeans_utility import centred
from pyarrow import parquet

from privamp import (
    ExactLaplace,
    ImportanceSampling,
    Key,
    LinearProfile,
    Poisson,
    PrivateKMeans,
    PrivateSum,
    privacy_constrained,
)
from privamp.chance import discrete, keyed
from privamp.engines import local
from privamp.kmeans import ball, compiled, lloyd, steps
from privamp.numerics import row_norms, whole_sums

COLUMNS = 10
KERNELS: dict[str, list[Callable[..., Any]]] = {
    "keyed draws": [keyed.keyed_numbers, keyed.keyed_pairs, keyed.keep],
    "norms and clipping": [row_norms.norms, row_norms.clipped, row_norms.finite, ball.scan, ball.measured],
    "fixed-point sums, clipping included": [whole_sums.clipped_total, whole_sums.toward_zero, whole_sums.exact_total],
    "Lloyd steps": [lloyd.sums_and_counts, steps.taken_inside],
    "discrete noise": [discrete.discrete_laplace, discrete.discrete_gaussian],
}


class Inner(threading.local):
    """Time spent in kernels by the calls that a thread is in, from the outermost on."""

    def __init__(self) -> None:
        self.taken = [0.0]


class Clock:
    """The time of each kernel, less that of the kernels it calls."""

    def __init__(self) -> None:
        self.spent = dict.fromkeys(KERNELS, 0.0)
        self._inner = Inner()

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> Any:
            self._inner.taken.append(0.0)
            began = time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                taken = time.perf_counter() - began
                self.spent[name] += taken - self._inner.taken.pop()
                self._inner.taken[-1] += taken

        return run

    def watch(self) -> None:
        """Replace the kernels wherever the library has imported them."""
        watched = {id(one): self.timed(name, one) for name, several in KERNELS.items() for one in several}
        for name, module in list(sys.modules.items()):
            if name.startswith("privamp"):
                for known, value in list(vars(module).items()):
                    if id(value) in watched:
                        setattr(module, known, watched[id(value)])


def report(what: str, clock: Clock, work: Callable[[], object], repeats: int = 5) -> None:
    """The repeat that takes the least time counts."""
    work()
    best, shares = float("inf"), dict[str, float]()
    for _ in range(repeats):
        clock.spent = dict.fromkeys(KERNELS, 0.0)
        began = time.perf_counter()
        work()
        if (taken := time.perf_counter() - began) < best:
            best, shares = taken, {name: spent / taken for name, spent in clock.spent.items() if spent}
    every = sum(shares.values())
    parts = ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
    print(
        f"{what}: {1e3 * best:.1f} ms; {parts}, the rest {1 - every:.0%}; at most {1 / (1 - every):.1f} times as fast"
    )


def file_of(folder: str, rows: int) -> Path:
    rng, path = np.random.default_rng(1), Path(folder) / "rows.parquet"
    names = [f"x{i}" for i in range(COLUMNS)]
    table = pa.table([np.arange(rows), *(rng.normal(size=rows) for _ in names)], names=["id", *names])
    parquet.write_table(table, path, row_group_size=rows // 8, compression="snappy")
    return path


def scans(clock: Clock, path: Path) -> None:
    names, noise = [f"x{i}" for i in range(COLUMNS)], ExactLaplace(50.0, 30.0)
    rule = privacy_constrained(LinearProfile.of(noise), epsilon=1.0, radius=30.0)
    designs = {
        "all records": Poisson(1.0),
        "one record in a hundred": Poisson(0.01),
        "an importance sample": ImportanceSampling(rule, "+".join(names)),
    }
    for what, design in designs.items():
        clip = design.weighing_rule is not None
        draw = partial(local.draw, path, design, id="id", threads=1, clip=clip)
        report(f"sum of a file, {what}", clock, lambda draw=draw: draw(key=Key.generate()).release_sum(noise, names))


def fits(clock: Clock, folder: Path) -> None:
    X = centred(np.load(folder / "covertype.npz")["X"], most=10**9).X.astype(np.float32)
    radius = float(np.linalg.norm(X, axis=1).max())
    kernel = "numba" if compiled.has_numba() else "without numba"
    for what, size in (("a sample of 20,000", 20_000), ("all records", None)):
        sampler = "privacy-constrained" if size else None
        model = PrivateKMeans(25, epsilon=1.0, radius=radius, n_jobs=1, sampler=sampler, sample_size=size)
        report(f"k-means on {what}, {kernel}", clock, lambda model=model: model.fit(X))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("PRIVAMP_SHARED", Path(__file__).parents[2] / "shared")
    parser.add_argument("--data", type=Path, default=Path(default) / "data")
    parser.add_argument("--rows", type=int, default=1_000_000)
    asked = parser.parse_args()
    clock = Clock()
    clock.watch()
    with tempfile.TemporaryDirectory() as folder:
        scans(clock, file_of(folder, asked.rows))
    X = np.random.default_rng(2).normal(size=(asked.rows, COLUMNS))
    report("PrivateSum in memory", clock, lambda: PrivateSum(bounds=30.0, epsilon=1.0).release(X))
    fits(clock, asked.data)


if __name__ == "__main__":
    main()
