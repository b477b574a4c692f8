"""What `survey.plan` promises beside what `survey.estimate` delivers, for every design that has public weights.

Each line is one design: the standard error that the plan promises from public facts (the standard deviations, the mean
and the correlation of the population itself), and the root mean square error of RUNS seeded estimates about the truth.
With 200 runs the ratio has a standard error of 5%. Estimates get what the plan was told: `population=` and, where it
goes with the design, the public standard deviations.

    python benchmarks/survey_plans.py [--runs 200] [--noise gaussian]
"""

import argparse
import csv
import gzip
import math
import warnings
from pathlib import Path

import numpy as np

from privamp import Population, spec
from privamp.survey import estimate, plan
from privamp.testing import seeded_key

DATA = Path(__file__).parents[2] / "shared" / "data" / "api_schools.csv.gz"
BOUNDS, SIZE = (200.0, 1000.0), 600
GIVEN = (
    "wr:size=600,population={n}",
    "proportional:rate=0.1",
    "systematic:step=10",
    "random-size-law:chances=500=0.5+700=0.5,population={n}",
    "poisson-pps:low=0.05,high=0.15",
    "cluster:chosen=100,clusters={k},max_size={cap}",
    "cluster:chosen=100,clusters={k},max_size={cap},second_rate=0.5",
)


def frame():
    """Schools with an API score: districts of more than 40 schools are cut into parts of 40."""
    with gzip.open(DATA, "rt", encoding="utf-8") as rows:
        table = [row for row in csv.DictReader(rows) if row["api00"]]
    x = np.clip([float(row["api00"]) for row in table], *BOUNDS)
    names, seen = [], {}
    for row in table:
        seen[row["dnum"]] = seen.get(row["dnum"], 0) + 1
        names.append(f"{row['dnum']}/{(seen[row['dnum']] - 1) // 40}")
    cluster = np.unique(names, return_inverse=True)[1]
    return x, np.array([row["stype"] for row in table]), cluster


def facts(x, strata, cluster):
    """Standard deviations, the mean, and the correlation inside clusters, as somebody who knows would state them."""
    sizes, between = np.bincount(cluster), np.bincount(cluster, x - x.mean())
    weighted = (sizes**2).sum() / sizes.sum()
    icc = ((between**2).sum() / (x.size * x.var()) - 1) / (weighted - 1)
    sd = {name: float(x[strata == name].std(ddof=1)) for name in np.unique(strata).tolist()}
    return {"overall_sd": float(x.std(ddof=1)), "overall_mean": float(x.mean()), "sd": sd, "icc": float(icc)}


def delivered(row, columns, x, known, noise, epsilon, runs):
    """The root mean square error of estimates by the design of one row."""
    design, errors = row.design, []
    public = {name: columns[name] for name in design.reads}
    options = {"population": x.size} if design.public_size is None and not design.parts else {}
    if design.parts:
        options = {"sd": known["sd"]}
    if row.name == "simple random":
        options = {"sd": known["overall_sd"]}
    if "hajek" in row.note:
        options = {"weights": "hajek", "sd": known["overall_sd"]}
    elif row.name not in ("cluster",) and not design.parts and "cluster" not in row.name:
        options.setdefault("sd", "range")
    for seed in range(runs):
        sample = design.draw(Population(x.size, row.name, **public), seeded_key(seed))
        errors.append(estimate(sample, x, bounds=BOUNDS, epsilon=epsilon, **noise, **options).value - x.mean())
    return math.sqrt(np.mean(np.square(errors)))


def main():
    """Print the table."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--noise", default="laplace")
    parser.add_argument("--epsilon", type=float, default=0.5)
    given = parser.parse_args()
    noise = {"noise": "gaussian", "delta": 1e-6} if given.noise == "gaussian" else {}
    x, strata, cluster = frame()
    known, chance = facts(x, strata, cluster), np.linspace(0.05, 0.15, x.size)
    columns = {"stratum": strata, "cluster": cluster, "probability": chance}
    named = [text.format(n=x.size, k=cluster.max() + 1, cap=np.bincount(cluster).max()) for text in GIVEN]
    found = plan(
        columns, size=SIZE, epsilon=given.epsilon, bounds=BOUNDS, strata="stratum", cluster="cluster",
        designs={text: spec.design(text) for text in named}, **known, **noise,
    )  # fmt: skip
    print(f"{x.size} schools, {SIZE} drawn, {given.noise} noise at epsilon {given.epsilon:g}, {given.runs} runs each")
    for row in found.rows:
        real = delivered(row, columns, x, known, noise, given.epsilon, given.runs)
        parts = f"{row.standard_error_sampling:.3g} sampling, {row.standard_error_noise:.3g} noise"
        ratio = row.standard_error / real
        print(f"{row.name}: {row.standard_error:.3g} ({parts}), {real:.3g}: {ratio:.2f}", flush=True)


if __name__ == "__main__":
    main()
