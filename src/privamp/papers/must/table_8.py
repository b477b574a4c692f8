"""MUST Table 8: computing time of training, and the number of distinct records that explains it.

Times on another machine with another program are not compared. Ratios can be: a gradient is computed once for every
distinct record of a sample, so the time of a step is proportional to n eta. The sentences are compared with the printed
rows, and the ratios with n eta.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from ..files import Table, compared
from ..printed import Check, apart, said
from ..registry import Entry, Outcome
from . import experiment, network
from . import setting as must
from .adult import TASK as ADULT
from .classification import Task
from .mnist import TASK as MNIST

PRINTED: Final[dict[str, dict[str, float]]] = {
    "Adult": {"non-private": 4.63, "Poisson": 5.65, "WOR": 8.82, "WR": 7.20, "MUSTow": 5.02, "MUSTww": 4.78},
    "MNIST": {"non-private": 867.25, "Poisson": 874.90, "WOR": 862.46, "WR": 869.21, "MUSTow": 636.65,
              "MUSTww": 632.02},
}  # fmt: skip
TASKS: Final[dict[str, Task]] = {"Adult": ADULT, "MNIST": MNIST}
SINGLE, TWO = ("Poisson", "WOR", "WR"), ("MUSTow", "MUSTww")
MACHINE = "measured on another machine with another program"


def distinct(task: Task, name: str) -> float:
    """n eta, the expected number of distinct records."""
    return task.n * task.design(name).appearances().eta


def sentences() -> Iterator[Check]:
    """Check what section 4.3 says about the table."""
    for data, row in PRINTED.items():
        less = max(row[name] for name in TWO) < min(row[name] for name in SINGLE)
        yield said(f"{data}: MUST takes less time than every single-step design (printed row)", less,
                   f"{max(row[n] for n in TWO):g} < {min(row[n] for n in SINGLE):g}")  # fmt: skip
    few = distinct(MNIST, "MUSTww") / distinct(MNIST, "WOR")
    ratio = PRINTED["MNIST"]["MUSTww"] / PRINTED["MNIST"]["WOR"]
    yield Check("MNIST: the time of MUSTww over WOR is the ratio of distinct records (within 0.03)", f"{ratio:.3f}",
                f"{few:.3f}", abs(ratio - few) < 0.03)  # fmt: skip
    few = distinct(MNIST, "MUSTow") / distinct(MNIST, "WOR")
    ratio = PRINTED["MNIST"]["MUSTow"] / PRINTED["MNIST"]["WOR"]
    yield Check("MNIST: the time of MUSTow over WOR is the ratio of distinct records (within 0.03)", f"{ratio:.3f}",
                f"{few:.3f}", abs(ratio - few) < 0.03)  # fmt: skip
    of = experiment.design("MUSTww", 30_969, 300, 500)
    gain = 300 / (30_969 * of.appearances().eta)
    yield Check("gain in computational efficiency of MUSTww over WOR (sizes of Table 7)", "33%", f"{gain - 1:.1%}",
                abs(gain - 1.33) < 0.01)  # fmt: skip


def measured(repetitions: int) -> dict[str, float]:
    """Processor seconds of one sum of clipped gradients on MNIST-sized random pixels, by design."""
    rng = np.random.default_rng(5)
    pixels = rng.random((2000, 784), dtype=np.float32)
    digits = rng.integers(0, 10, 2000)
    clipped = network.clipped_sum_of(pixels, digits, MNIST.clip)
    start, found = network.start(0), {}
    for name in experiment.FIVE:
        rows = np.arange(min(round(distinct(MNIST, name)), 2000))
        counts = np.ones(rows.size, dtype=np.int64)
        times = []
        for _ in range(repetitions):
            began = time.process_time()
            clipped(start, rows, counts)
            times.append(time.process_time() - began)
        found[name] = min(times)
    return found


def reproduced(out_dir: Path, repetitions: int) -> Outcome:
    """Measure, compare and write the files."""
    times = measured(repetitions)
    checks = list(sentences())
    for data, row in PRINTED.items():
        checks += [apart(f"{data}, {name}: total time", f"{value:g}", MACHINE, "not compared")
                   for name, value in row.items()]  # fmt: skip
    less = max(times[n] for n in TWO) < 1.02 * min(times[n] for n in SINGLE)
    shown = ", ".join(f"{name} {times[name] / times['WR']:.2f}" for name in experiment.FIVE)
    checks.append(Check("a sum of gradients is cheapest for MUST (processor time over WR's)", "-", shown, less))
    rows = [(name, *(f"{distinct(task, name):.1f}" for task in TASKS.values()), f"{1e3 * times[name]:.1f}")
            for name in experiment.FIVE]  # fmt: skip
    header = ("design", "distinct records, Adult", "MNIST", "ms per sum, MNIST")
    return compared(out_dir, ENTRY, checks, table=Table(header, rows, "The cost of a step."))


def run(out_dir: Path) -> Outcome:
    """Run with few repetitions."""
    return reproduced(out_dir, 5)


def full(out_dir: Path) -> Outcome:
    """Run with many repetitions."""
    return reproduced(out_dir, 50)


ENTRY = Entry(
    name="must-table-8",
    paper=must.MUST,
    title="Table 8: computing time",
    summary="ratios of the printed times compared with the number of distinct records, and our own time",
    run=run,
    full=full,
    errata="smaller-slips-in-the-experiments",
)
