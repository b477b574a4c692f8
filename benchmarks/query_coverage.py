"""How often the intervals of table queries hold the truth: 95% intervals of repeated releases, in many settings.

    python benchmarks/query_coverage.py --runs 1000 --jobs 16                 every setting (378)
    python benchmarks/query_coverage.py --runs 200 --records 2000 --rate 0.1  some of them
    python benchmarks/query_coverage.py --runs 1000 --jobs 2 --main           normal, lognormal, real; four questions
    python benchmarks/query_coverage.py --whole --runs 200 ...                through open_table, sample, budget and all

A setting is a column (normal, lognormal, uniform, five values, incomes in whole thousands, and the ages and weights of
Adult where --data has adult.csv.gz), a number of records, a design (Poisson, without replacement, Poisson with a cap),
a rate, and an epsilon. One line for each question of a setting: the share of runs whose interval holds the table's own
value (of several numbers the mean share, and the least), its standard error, and the median width over the unit: the
width of the bounds, or the number of records. In the end, by question: the least, median and greatest share, and
how many are below .93, from .93 to .97, and above; twice, for numbers that rest on enough records and for the others.
Enough is 30 drawn records, expected, and ten times the standard error of a noisy count: of the table, the group, the
bin, the rarer answer or the smaller side of the quantile. A count of all records where their number is public has a row
of its own: its interval ends at that number, which is the truth, so it should hold in 97.5% of the runs.

A quantile lies in a step of the tree, and its interval ends at edges of steps. With u records of that step above the
rank of the quantile, l below it, and an error of s records in the number below an edge, the interval misses if that
error is above z s + l at the lower edge, or below -(z s + u) at the upper, so it should hold in 1 - Phi(-z - u/s) -
Phi(-z - l/s) of the runs: 95% where steps hold few records, more where ties, or the step's width, put many into it.
Quantiles for which this is above .96 ("tied") have a row of their own, with the greatest distance between this number
and the share of the runs.

The noise is calibrated once per setting. Samples are drawn, and noise is added, afresh in every run: by NumPy, by the
same laws, and everything after that is the library's own code. --whole runs the library from end to end instead.
Every setting has its own seed. --save FILE keeps what is done, and a second command with the same file goes on there.
"""

import argparse
import csv
import gzip
import itertools
import math
import pickle
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa
from scipy.special import ndtr, ndtri

from privamp import Poisson, TruncatedPoisson, WithoutReplacement, open_table
from privamp.queries.plan import Layout

DATA = Path(__file__).parents[2] / "shared" / "data"
COLUMNS = ("normal", "lognormal", "uniform", "five values", "age (Adult)", "thousands", "weight (Adult)")
REAL = {"age (Adult)": ("age", (0.0, 110.0)), "weight (Adult)": ("fnlwgt", (0.0, 1_500_000.0))}
DESIGNS = ("poisson", "without", "capped")
MAIN = (("normal", "lognormal", *REAL), ("count", "mean", "group means", "quantile 0.5"))
TIED = 0.96
BINS, GROUPS, PROBABILITIES = 5, ("a", "b", "c"), (0.01, 0.5, 0.99)
ONES = np.ones(1)


@dataclass(frozen=True)
class Setting:
    """One line of the plan; everything is made from it, in a process of its own."""

    column: str
    records: int
    kind: str
    rate: float
    epsilon: float
    delta: float
    runs: int
    data: str
    whole: bool
    only: tuple[str, ...] = ()

    @property
    def design(self):
        """The design; a cap lies one standard deviation above the expected number."""
        n, q = self.records, self.rate
        if self.kind == "without":
            return WithoutReplacement(max(round(n * q), 1), n)
        if self.kind == "capped":
            return TruncatedPoisson(q, max(math.ceil(n * q + math.sqrt(n * q)), 2), n, n)
        return Poisson(q)

    @property
    def seed(self) -> list[int]:
        """Of the column."""
        return [7, COLUMNS.index(self.column), self.records]


def column_of(setting: Setting) -> tuple[np.ndarray, tuple[float, float]]:
    """Made up, or real ones, drawn once."""
    rng, n = np.random.default_rng(setting.seed), setting.records
    if setting.column == "normal":
        return rng.normal(50.0, 12.0, n), (0.0, 100.0)
    if setting.column == "lognormal":
        return np.minimum(rng.lognormal(10.0, 0.7, n), 200_000.0), (0.0, 200_000.0)
    if setting.column == "uniform":
        return rng.uniform(0.0, 1.0, n), (0.0, 1.0)
    if setting.column == "five values":
        return rng.integers(0, 5, n).astype(float), (0.0, 8.0)
    if setting.column == "thousands":
        return 1000 * np.rint(np.minimum(rng.lognormal(3.1, 0.7, n), 200.0)).astype(int), (0.0, 200_000.0)
    name, bounds = REAL[setting.column]
    with gzip.open(Path(setting.data) / "adult.csv.gz", "rt", encoding="utf-8") as file:
        every = np.array([float(row[name]) for row in csv.DictReader(file)])
    return rng.choice(every, n, replace=False), bounds


def questions_of(setting: Setting) -> tuple[pa.Table, dict]:
    """The table, and by name every question, its true answers and its unit."""
    x, bounds = column_of(setting)
    cut = np.clip(x, *bounds)
    group = np.array(GROUPS)[np.searchsorted([0.6, 0.9], np.arange(len(x)) / len(x), side="right")]
    yes = np.where(np.random.default_rng(setting.seed).random(len(x)) < 0.1, "yes", "no")
    data = pa.table({"x": x, "g": group, "y": yes})
    table = open_table(data).sample(setting.design)
    edges = np.linspace(*bounds, BINS + 1)
    bins = np.histogram(cut, edges)[0]
    width, n = bounds[1] - bounds[0], len(x)
    asked = {
        "count": (table.count(), [n], n),
        "group counts": (table.count().by("g", GROUPS), [np.sum(group == g) for g in GROUPS], n),
        "mean": (table.mean("x", bounds), [cut.mean()], width),
        "variance": (table.variance("x", bounds), [cut.var()], width**2),
        "group vars": (table.variance("x", bounds).by("g", GROUPS), [cut[group == g].var() for g in GROUPS], width**2),
        "sum": (table.sum("x", bounds), [cut.sum()], width * n),
        "proportion": (table.proportion("y"), [np.mean(yes == "yes")], 1.0),
        "group means": (table.mean("x", bounds).by("g", GROUPS), [cut[group == g].mean() for g in GROUPS], width),
        "bins": (table.histogram("x", BINS, bounds), bins, n),
    }
    for p in PROBABILITIES:
        truth = [np.quantile(cut, p, method="inverted_cdf")]
        asked[f"quantile {p:g}"] = (table.quantile("x", p, bounds), truth, width)
    return data, asked


class Simulated:
    """One question asked again and again: its rows are made once, then drawn, added up and noised by NumPy."""

    def __init__(self, setting: Setting, data: pa.Table, question, noise) -> None:
        self.setting, self.noise, self.design = setting, noise, setting.design
        asking = question.table.plan([question])._asking(noise.p)
        self.layout = Layout.of([question], asking)
        [batch] = data.combine_chunks().to_batches()
        self.parts, start = [], 0
        groups = np.zeros(len(data), dtype=np.int64) if question.groups is None else question.groups.places(batch)
        many = 1 if question.groups is None else len(question.groups.values)
        for (cells, width), (rows, cell) in zip(question.cells(asking), question.levels(batch, asking), strict=True):
            for k in range(width):
                inside = (groups >= 0) & (cell >= 0)
                place = np.where(inside, start + (groups * cells + cell) * width + k, -1)
                self.parts.append((place, self.layout.factors[0] * rows[:, k] * inside))
            start += many * cells * width
        self.all = self.sums(np.arange(setting.records)) if setting.rate == 1.0 else None

    def sums(self, chosen: np.ndarray) -> np.ndarray:
        """Of the rows that were drawn."""
        total = np.zeros(self.layout.size)
        for place, rows in self.parts:
            at = place[chosen]
            total += np.bincount(at[at >= 0], rows[chosen][at >= 0], minlength=self.layout.size)
        return total

    def expected(self, column: np.ndarray, truth: float) -> float:
        """How often the interval of a quantile should hold it, by the ties and the steps of the tree."""
        every = self.sums(np.arange(self.setting.records)) / self.design.weight
        [release] = self.layout.releases(every, self.noise, self.design, None, {})
        law = release.law
        step = min(max(int(np.searchsorted(law.edges, truth, side="right")) - 1, 0), len(law.edges) - 2)
        below = np.searchsorted(np.sort(column), law.edges[[step, step + 1]], side="left")
        if step == len(law.edges) - 2:
            below[1] = len(column)
        away = np.array([1.0, -1.0]) * (law.probability * len(column) - below)  # l, u
        error = np.sqrt(law._noise()[[step, step + 1]] + law._sampling())
        return float(1.0 - np.sum(ndtr(-ndtri(0.975) - away / np.maximum(error, 1e-9))))

    def ends(self, chosen: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """The interval of one run; `chosen` are the places of the records that were drawn."""
        total = self.sums(chosen) if self.all is None else self.all.copy()
        if self.noise.p == 1.0:
            total += rng.laplace(0.0, self.noise.scale, total.shape)
        else:
            total += rng.normal(0.0, self.noise.sigma, total.shape)
        [release] = self.layout.releases(total, self.noise, self.design, None, {})
        low, high = release.interval(0.95)
        return np.atleast_1d(low), np.atleast_1d(high)


def drawn(setting: Setting, rng: np.random.Generator) -> np.ndarray:
    """Places of records by the law of the design."""
    n = setting.records
    if setting.kind == "poisson":
        return np.flatnonzero(rng.random(n) < setting.rate) if setting.rate < 1.0 else np.arange(n)
    if setting.kind == "without":
        return rng.choice(n, setting.design.size, replace=False)
    return rng.choice(n, min(int(rng.binomial(n, setting.rate)), setting.design.most), replace=False)


def resting(setting: Setting, name: str, truth: list) -> np.ndarray:
    """On how many records of the table each number of a question rests."""
    n = setting.records
    if name in ("count", "mean", "variance", "sum"):
        return np.array([n])
    if name.startswith("group"):
        return n * np.array([0.6, 0.3, 0.1])
    if name == "proportion":
        return np.array([n * min(truth[0], 1.0 - truth[0])])
    if name == "bins":
        return np.asarray(truth)
    p = float(name.removeprefix("quantile "))
    return np.array([n * min(p, 1.0 - p)])


def measured(setting: Setting) -> tuple[Setting, dict[str, tuple[np.ndarray, float, np.ndarray, float | None]], float]:
    """Of every number of every question: coverage, median width, whether it rests on enough; of quantiles what is
    expected."""
    begun = time.perf_counter()
    data, asked = questions_of(setting)
    count = asked["count"][0]
    asked = {name: each for name, each in asked.items() if not setting.only or name in setting.only}
    rng = np.random.default_rng([*setting.seed, *(int(1e6 * v) for v in (setting.rate, setting.epsilon))])
    noise = count.table.plan([count]).noise(setting.epsilon, setting.delta)
    every = {name: Simulated(setting, data, question, noise) for name, (question, _, _) in asked.items()}
    hits = {name: [] for name in asked}
    widths = {name: [] for name in asked}
    for _ in range(setting.runs):
        chosen = drawn(setting, rng)
        for name, (question, truth, unit) in asked.items():
            if setting.whole:
                ends = question.run(epsilon=setting.epsilon, delta=setting.delta).interval(0.95)
                low, high = map(np.atleast_1d, ends)
            else:
                low, high = every[name].ends(chosen, rng)
            slack = 1e-6 * unit  # of one cell of 2^20
            hits[name].append((low <= np.asarray(truth) + slack) & (np.asarray(truth) - slack <= high))
            widths[name].append(np.mean(high - low) / unit)
    least = max(30.0, 10.0 * (math.sqrt(2.0) * noise.scale if noise.p == 1.0 else noise.sigma))
    x, bounds = column_of(setting)
    found = {
        name: (
            np.mean(hits[name], axis=0),
            float(np.median(widths[name])),
            setting.rate * resting(setting, name, truth) >= least,
            every[name].expected(np.clip(x, *bounds), truth[0]) if name.startswith("quantile") else None,
        )
        for name, (_, truth, _) in asked.items()
    }
    return setting, found, time.perf_counter() - begun


def settings(asked: argparse.Namespace) -> Iterator[Setting]:
    """The largest first, so that all processes end at about the same time."""
    data = Path(asked.data)
    names = [name for name in asked.columns if name not in REAL or (data / "adult.csv.gz").exists()]
    every = itertools.product(sorted(asked.records, reverse=True), asked.rate, asked.design, asked.epsilon, names)
    for n, rate, kind, epsilon, name in every:
        if rate < 1.0 or kind == "poisson":  # all records are drawn in one way
            yield Setting(
                name, n, kind, rate, epsilon, asked.delta, asked.runs, str(data), asked.whole, tuple(asked.only or ())
            )


def done(pool: ProcessPoolExecutor, every: list[Setting], save: str | None) -> Iterator[tuple]:
    """The results of all settings: those kept in the file, then the others, which are kept there."""
    kept = {}
    if save and Path(save).exists():
        with Path(save).open("rb") as file:
            while file.peek(1):
                result = pickle.load(file)
                kept[result[0]] = result
    yield from (kept[setting] for setting in every if setting in kept)
    for result in pool.map(measured, [setting for setting in every if setting not in kept]):
        if save:
            with Path(save).open("ab") as file:
                pickle.dump(result, file)
        yield result


def main() -> None:
    """Print every setting, and a summary."""
    parser = argparse.ArgumentParser(description="coverage of the intervals of table queries")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--records", type=int, nargs="+", default=[100, 2000, 20_000])
    parser.add_argument("--rate", type=float, nargs="+", default=[1.0, 0.1, 0.01])
    parser.add_argument("--design", nargs="+", choices=DESIGNS, default=list(DESIGNS))
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 1.0, 10.0])
    parser.add_argument("--delta", type=float, default=0.0, help="above 0: Gaussian noise")
    parser.add_argument("--columns", nargs="+", choices=COLUMNS, default=list(COLUMNS))
    parser.add_argument("--only", nargs="+", help="some questions only, such as mean")
    parser.add_argument("--data", default=str(DATA), help="the folder of adult.csv.gz, which is left out if missing")
    parser.add_argument("--whole", action="store_true", help="run the library end to end, with its own draws and noise")
    parser.add_argument("--main", action="store_true", help=f"columns {', '.join(MAIN[0])}: {', '.join(MAIN[1])}")
    parser.add_argument("--save", help="a file of results, to go on with later")
    asked = parser.parse_args()
    if asked.main:
        asked.columns, asked.only = MAIN
    beside: dict[tuple[str, str], list[float]] = {}
    shares: dict[tuple[str, str], list[float]] = {}
    begun, spent = time.perf_counter(), 0.0
    with ProcessPoolExecutor(asked.jobs, mp_context=get_context("spawn")) as pool:
        for setting, found, seconds in done(pool, list(settings(asked)), asked.save):
            spent += seconds
            where = f"{setting.column:11} n={setting.records:<5} {setting.kind:8} rate={setting.rate:<4g}"
            where += f" eps={setting.epsilon:<4g}"
            for name, (share, width, enough, expected) in found.items():
                public = name == "count" and setting.design.public_size is not None
                row = "count, public n" if public else name
                if expected is not None and expected > TIED:
                    row += ", tied"
                for held, is_enough in zip(share.tolist(), enough, strict=True):
                    shares.setdefault((row, "enough" if is_enough else "little"), []).append(held)
                    if expected is not None:
                        beside.setdefault((row, "enough" if is_enough else "little"), []).append(held - expected)
                mean, least = float(np.mean(share)), float(np.min(share))
                error = math.sqrt(max(mean * (1.0 - mean), 1e-9) / setting.runs)
                told = f"covered {mean:.3f} +- {error:.3f} least {least:.3f} width {width:.4f}"
                told += "" if expected is None else f" expected {expected:.3f}"
                print(f"{where} {name:13} {told}", flush=True)
    error = math.sqrt(0.95 * 0.05 / asked.runs)
    print(f"\n{time.perf_counter() - begun:.0f} s, {spent:.0f} s of processors; one share has an error of {error:.3f}")
    for (name, kind), every in sorted(shares.items(), key=lambda row: row[0][1]):
        each = np.array(every)
        low, high = int(np.sum(each < 0.93)), int(np.sum(each > 0.97))
        away = beside.get((name, kind))
        told = "" if away is None else f"; less expected {min(away):+.3f} to {max(away):+.3f}"
        print(
            f"{kind} {name:19} {len(each):4} shares: least {each.min():.3f}, median {np.median(each):.3f}, "
            f"greatest {each.max():.3f}; {low} below .93, {len(each) - low - high} from .93 to .97, {high} above{told}"
        )


if __name__ == "__main__":
    main()
