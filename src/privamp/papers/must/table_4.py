"""MUST Table 4: the mean and the variance of 300 standard normal values, from 500 noisy resamples of 30.

Each data set is resampled by the design itself; the average over resamples gets noise with the averaged law,
N(0, sigma^2/500), once as printed and once honest. Poisson samples have a secret size, so there the sums are divided by
the public m: the mean is sum(x)/m, the variance sum(x^2 - 8)/m + 8 minus the square of the mean.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from ...chance.keys import Key
from ...chance.stream import Stream
from ...core.design import Design
from ...core.population import Population
from ...core.sample import Drawn
from ...numerics.log_domain import FloatArray
from ...report.html import Report
from ..files import columns, csv_of, publish
from ..partial import part
from ..printed import HEADER, Check, counted
from ..registry import Entry, Outcome
from . import experiment as experiment
from . import setting as must
from . import table_3 as noise

REPETITIONS = 200  # data sets in the paper
QUICK: Final = (10, 50)  # data sets, resamples of each; the noise is still that of 500 resamples
FULL: Final = (REPETITIONS, noise.T)

# mean (SD) of the estimates of the mean and of the variance, as printed
PRINTED: Final[dict[tuple[str, int], tuple[float, float, float, float]]] = {
    ("Poisson", 0): (0.0024, 0.058, 0.989, 0.093),
    ("WOR", 0): (0.0025, 0.058, 0.991, 0.092),
    ("WR", 0): (0.0026, 0.058, 0.984, 0.094),
    ("MUSTow", 10): (0.0027, 0.058, 0.886, 0.082),
    ("MUSTow", 20): (0.0007, 0.061, 0.943, 0.086),
    ("MUSTow", 30): (0.0013, 0.058, 0.958, 0.090),
    ("MUSTow", 50): (0.0025, 0.057, 0.969, 0.093),
    ("MUSTow", 100): (0.0022, 0.060, 0.984, 0.096),
    ("MUSTww", 10): (0.0003, 0.060, 0.889, 0.081),
    ("MUSTww", 20): (0.0013, 0.059, 0.935, 0.086),
    ("MUSTww", 30): (0.0009, 0.059, 0.956, 0.090),
    ("MUSTww", 50): (0.0010, 0.059, 0.965, 0.088),
    ("MUSTww", 100): (0.0025, 0.058, 0.972, 0.096),
}
COLUMNS = ("design", "mean, print", "paper's noise", "honest noise", "variance, print", "paper's noise", "honest noise")


@dataclass(frozen=True, slots=True)
class Row:
    """Estimates (data sets, 2) of the mean and the variance before noise, and the two standard deviations of each."""

    name: str
    b: int
    plain: FloatArray
    printed_noise: tuple[float, float]
    honest_noise: tuple[float, float]

    def noisy(self, sigmas: tuple[float, float]) -> FloatArray:
        """With the averaged noise of 500 answers."""
        spread = np.asarray(sigmas) / np.sqrt(noise.T)
        found: FloatArray = self.plain + spread * Stream.from_os().normals(self.plain.shape)
        return found


def drawn(of: Design, population: Population, key: Key) -> Drawn:
    """A draw on synthetic data, from which nothing is released."""
    return of.finish(of.merge([of.partial(population.batch(), key)]), key)


def moments(name: str, values: FloatArray, found: Drawn) -> tuple[float, float]:
    """Mean and variance of one resample; for a secret size, sums over the public m."""
    x = np.repeat(values[found.positions], found.counts)
    if name == "Poisson":
        return float(x.sum() / noise.M), float(np.sum(x**2 - 8.0) / noise.M + 8.0)
    return float(x.mean()), float(x.var(ddof=1))


def estimates(name: str, of: Design, values: FloatArray, resamples: int) -> tuple[float, float]:
    """Averages over resamples of one data set."""
    population, key = Population(values.size), Key.generate()
    pairs = [moments(name, values, drawn(of, population, key.subkey(t))) for t in range(resamples)]
    mean, variance = np.mean(pairs, axis=0)
    return (float(mean), float(variance - mean**2)) if name == "Poisson" else (float(mean), float(variance))


def rows(repetitions: int, resamples: int, which: tuple[tuple[str, int], ...] = tuple(PRINTED)) -> Iterator[Row]:
    """Simulate every row of the table."""
    data = np.clip(np.random.default_rng(7).normal(size=(repetitions, noise.N)), -4.0, 4.0)
    for name, b in which:
        of = noise.design(name, b)
        plain = np.array([
            part((name, b, resamples, i), partial(estimates, name, of, values, resamples))
            for i, values in enumerate(data)
        ])  # fmt: skip
        moves = (noise.RANGE / noise.M, (16.0 if name == "Poisson" else noise.RANGE**2) / noise.M)
        unit = noise.honest_ratio(of)
        paper = (noise.printed_sigma(of, noise.RANGE), noise.printed_sigma(of, noise.RANGE**2))
        yield Row(name, b, plain, paper, (unit * moves[0], unit * moves[1]))


def checks(row: Row, found: FloatArray) -> Iterator[Check]:
    """Compare the printed mean and SD with ours under the paper's noise, within six standard errors of both.

    A quick run averages fewer resamples, which adds to its SD; only the full setting bounds the SD from above as well.
    """
    printed = PRINTED[row.name, row.b]
    size = len(found)
    for i, what in enumerate(("mean", "variance")):
        mean, sd = float(found[:, i].mean()), float(found[:, i].std(ddof=1))
        error = np.sqrt(max(sd, printed[2 * i + 1]) ** 2 / size + printed[2 * i + 1] ** 2 / REPETITIONS)
        near = abs(mean - printed[2 * i]) <= 6.0 * error
        wider, slack = np.log(sd / printed[2 * i + 1]), 6.0 * np.sqrt(0.5 / (size - 1) + 0.5 / REPETITIONS)
        wide = -slack <= wider and (size < REPETITIONS or wider <= slack)
        says = f"{printed[2 * i]} ({printed[2 * i + 1]})"
        name = f"{noise.label(row.name, row.b)}: {what} (SD), paper's noise"
        yield Check(name, says, f"{mean:.3f} ({sd:.3f})", bool(near and wide))
    claim = f"{noise.label(row.name, row.b)}: noise for eps' 0.1 (mean)"
    ours = row.honest_noise[0]
    printed_sigma = noise.PRINTED[row.name, row.b][0]
    yield Check(claim, printed_sigma, f"{ours:.3g}", ours <= row.printed_noise[0], experiment.DIVIDED_BY_N)


def _shown(found: FloatArray) -> list[str]:
    return [f"{found[:, i].mean():.3f} ({found[:, i].std(ddof=1):.3f})" for i in (0, 1)]


def reproduced(out_dir: Path, repetitions: int, resamples: int, which: tuple[tuple[str, int], ...]) -> Outcome:
    """Simulate, compare and write the files."""
    table, found = [], []
    for row in rows(repetitions, resamples, which):
        as_printed, honest = row.noisy(row.printed_noise), row.noisy(row.honest_noise)
        found += list(checks(row, as_printed))
        printed = PRINTED[row.name, row.b]
        (mean, variance), (true_mean, true_variance) = _shown(as_printed), _shown(honest)
        table.append((noise.label(row.name, row.b), f"{printed[0]} ({printed[1]})", mean, true_mean,
                      f"{printed[2]} ({printed[3]})", variance, true_variance))  # fmt: skip
    remark = (
        f"Mean (SD) over {repetitions} data sets of {resamples} resamples, noise averaged over {noise.T}. Honest noise "
        "gives each answer (0.1, 1/300)-DP; the paper never composes the 1,000 answers. With few "
        "values between the stages (b) the variance is too small by 1 - 1/b, with or without noise."
    )
    text = "\n".join(
        [columns(COLUMNS, table), "", columns(HEADER, (c.row for c in found)), "", remark, counted(found) + "."]
    )
    report = Report("MUST Table 4, recomputed", f"Utility experiment 1: {counted(found)}.")
    report.add_text(remark)
    report.add_table(COLUMNS, table, "Estimates of the mean (0) and the variance (1).")
    report.add_table(
        HEADER, [c.row for c in found], "Each printed number.", [i for i, c in enumerate(found) if not c.agrees]
    )
    return publish(out_dir, ENTRY.name, text, found, report, {".csv": csv_of(COLUMNS, table)})


def run(out_dir: Path) -> Outcome:
    """Run on a few data sets."""
    return reproduced(out_dir, *QUICK, tuple(PRINTED))


def full(out_dir: Path) -> Outcome:
    """Run on the paper's 200 data sets of 500 resamples."""
    return reproduced(out_dir, *FULL, tuple(PRINTED))


ENTRY = Entry(
    name="must-table-4",
    paper=must.MUST,
    title="Table 4: estimates of utility experiment 1",
    summary="mean and variance from noisy resamples under the paper's noise and under honest noise",
    run=run,
    full=full,
    errata="noise-over-n-for-a-mean-over-m",
)
