"""How often the intervals of table queries cover the truth: 95% intervals of repeated releases.

    python benchmarks/query_coverage.py --runs 1000

One line per column and question: the share of runs whose interval holds the table's own value, its standard error, and
the median width over the standard deviation of the column (of the count: over its value).
"""

import argparse
import csv
import gzip
import math
from pathlib import Path

import numpy as np
import pyarrow as pa

from privamp import Poisson, open_table

ADULT = Path(__file__).parents[2] / "shared" / "data" / "adult.csv.gz"


def columns(records: int) -> dict[str, tuple[np.ndarray, tuple[float, float]]]:
    """Made-up columns, and a real one where it is there."""
    rng = np.random.default_rng(7)
    found = {
        "normal": (rng.normal(50.0, 12.0, records), (0.0, 100.0)),
        "lognormal": (rng.lognormal(10.0, 0.7, records), (0.0, 200_000.0)),
    }
    if ADULT.exists():
        with gzip.open(ADULT, "rt", encoding="utf-8") as file:
            found["age (Adult)"] = np.array([float(row["age"]) for row in csv.DictReader(file)]), (0.0, 110.0)
    return found


def main() -> None:
    """Print the coverage of every question on every column."""
    parser = argparse.ArgumentParser(description="coverage of the intervals of table queries")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--rate", type=float, default=0.1)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=0.0)
    asked = parser.parse_args()
    for name, (x, bounds) in columns(asked.records).items():
        group = np.array(["a", "b", "c"])[np.arange(len(x)) % 3]
        table = open_table(pa.table({"x": x, "g": group})).sample(Poisson(asked.rate))
        cut = np.clip(x, *bounds)
        means = np.array([cut[group == g].mean() for g in "abc"])
        questions = {
            "count": (table.count(), len(x), len(x)),
            "mean": (table.mean("x", bounds), cut.mean(), cut.std()),
            "median": (table.median("x", bounds), np.median(cut), cut.std()),
            "group means": (table.mean("x", bounds).by("g", ["a", "b", "c"]), means, cut.std()),
        }
        for what, (question, truth, unit) in questions.items():
            hits, widths = [], []
            for _ in range(asked.runs):
                low, high = question.run(epsilon=asked.epsilon, delta=asked.delta).interval(0.95)
                hits.append(np.mean((low <= truth) & (truth <= high)))
                widths.append(np.mean(np.asarray(high) - low))
            share = float(np.mean(hits))
            error = math.sqrt(share * (1 - share) / len(hits))
            width = np.median(widths) / unit
            print(f"{name:12} {what:12} covered {share:.3f} +- {error:.3f}  width {width:.4f}", flush=True)


if __name__ == "__main__":
    main()
