"""Means of columns whose range nobody knows, three ways, at the same (epsilon, delta): errors in one run.

    python benchmarks/unknown_ranges.py --data FOLDER [--runs 100] [--epsilon 0.1 1]

privamp           find_bounds with a tenth of epsilon (pure), then the mean between them with the rest (Gaussian noise).
private quantiles both quartiles by the exponential mechanism between plus and minus 10^7, a twentieth of epsilon each,
                  then the mean between them, widened to both sides by twice their distance: the idea of Smith (2011),
                  with privamp's own mean. (Far quantiles do worse: outside of all records every number is as good.)
CoinPress         Biswas, Dong, Kamath, Ullman: "CoinPress: Practical Private Mean and Covariance Estimation" (2020),
                  Algorithm 1 in one dimension, reimplemented: an interval for the mean is made smaller in three rounds
                  with 1/4, 1/4 and 1/2 of rho, each a noisy mean of records cut to it, widened by what n normal numbers
                  with the column's deviation reach (beta = .01 a round). It must be told the deviation, and is told the
                  true one; it starts from the interval between plus and minus 10^7.

privamp and private quantiles hide the number of records (one is added or removed). CoinPress takes it as public (one is
replaced) and assumes a normal column. rho is the largest with which rho-zCDP implies (epsilon, delta) by
epsilon = rho + 2 sqrt(rho log(1/delta)). Errors are root mean squares over fresh noise, over the column's standard
deviation; the standard error of the ratios is printed. Nothing is private here: this is a benchmark.
"""

import argparse
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from query_peers import COLUMNS, column, error

from privamp import open_table

DELTA = 1e-6
LARGEST = 1e7
STEPS = (0.25, 0.25, 0.5)


def coinpress(x: np.ndarray, epsilon: float, rng: np.random.Generator) -> float:
    """The published idea, with the deviation given."""
    n, sd, log = len(x), float(np.std(x)), math.log(1.0 / DELTA)
    rho = (math.sqrt(epsilon + log) - math.sqrt(log)) ** 2
    low, high, beta = -LARGEST, LARGEST, 0.01
    for share in STEPS:
        reach = sd * math.sqrt(2.0 * math.log(2.0 * n / beta))
        low, high = low - reach, high + reach
        noise = (high - low) / n / math.sqrt(2.0 * share * rho)
        middle = float(np.mean(np.clip(x, low, high))) + noise * rng.normal()
        half = math.sqrt(2.0 * math.log(2.0 / beta) * (sd * sd / n + noise * noise))
        low, high = middle - half, middle + half
    return middle


def quantile(held: np.ndarray, q: float, epsilon: float, rng: np.random.Generator) -> float:
    """The exponential mechanism on the line: a record moves the score of a place by at most max(q, 1 - q)."""
    ends = np.concatenate([[-LARGEST], np.clip(held, -LARGEST, LARGEST), [LARGEST]])
    off = np.abs(np.arange(len(held) + 1) - q * len(held))
    with np.errstate(divide="ignore"):
        room = np.log(np.diff(ends))  # no room between ties
    at = int(np.argmax(room - 0.5 * epsilon / max(q, 1.0 - q) * off + rng.gumbel(size=len(off))))
    return float(rng.uniform(ends[at], ends[at + 1]))


def answers(x: np.ndarray, epsilon: float, rng: np.random.Generator) -> dict[str, Callable[[], np.ndarray]]:
    """One number each."""
    table, held = open_table(pa.table({"x": x})), np.sort(x)

    def found() -> np.ndarray:
        low, high = table.find_bounds("x", epsilon=0.1 * epsilon).value
        return np.array([table.mean("x", (low, high)).run(epsilon=0.9 * epsilon, delta=DELTA).value])

    def by_quantiles() -> np.ndarray:
        low, high = sorted(quantile(held, q, 0.05 * epsilon, rng) for q in (0.25, 0.75))
        ends = (low - 2.0 * (high - low), high + 2.0 * (high - low) + 1e-6)
        return np.array([table.mean("x", ends).run(epsilon=0.9 * epsilon, delta=DELTA).value])

    return {"privamp": found, "quantiles": by_quantiles, "CoinPress": lambda: np.array([coinpress(x, epsilon, rng)])}


def columns(folder: Path) -> dict[str, np.ndarray]:
    """Real ones, and two made up."""
    rng = np.random.default_rng(3)
    real = {title: column(folder / file, name)[0] for title, (file, name, _, _) in COLUMNS.items()}
    return real | {"normal about 10000": rng.normal(10_000.0, 1.0, 20_000), "lognormal": rng.lognormal(10, 1, 20_000)}


def main() -> None:
    """One line for a column and an epsilon."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 1.0])
    asked = parser.parse_args()
    print(f"{asked.runs} runs, delta {DELTA:g}; error over the standard deviation, and the others' over privamp's")
    for title, x in columns(asked.data).items():
        for epsilon in asked.epsilon:
            rng = np.random.default_rng(11)
            made = {
                who: error(each, np.array([x.mean()]), asked.runs) for who, each in answers(x, epsilon, rng).items()
            }
            own, spread = made.pop("privamp")
            line = f"{title:32s} n={len(x):6d} eps {epsilon:4g}  privamp {own / np.std(x):9.3g}"
            for who, (theirs, theirs_spread) in made.items():
                line += f"   {who} {theirs / own:8.3g} ± {theirs / own * math.hypot(spread, theirs_spread):.2g}"
            print(line, flush=True)


if __name__ == "__main__":
    main()
