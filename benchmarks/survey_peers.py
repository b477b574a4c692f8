"""The classical samples of Californian schools: privamp as epsilon grows, beside samplics without noise.

The sampling error of clusters stays larger than theirs at every epsilon: a district of 552 schools that the sample may
have missed has a part in it (privamp/survey/clustered.py). Without samplics (pip install samplics) the values it
printed are shown, which are those of R's survey package too.

    python benchmarks/survey_peers.py
"""

import csv
import gzip
from pathlib import Path

import numpy as np

from privamp import ClusterSampling, Population, Stratified, WithoutReplacement
from privamp.core.sample import Drawn, SeededSample
from privamp.survey import adjust, estimate
from privamp.testing import seeded_key

DATA = Path(__file__).parents[2] / "shared" / "data" / "api_schools.csv.gz"
SIZES = {"E": (100, 4421), "H": (50, 755), "M": (50, 1018)}
# What samplics 0.6.1 prints for (sample, statistic): the estimate and its standard error.
PRINTED = {
    ("srs", "mean of api00"): (656.5849999999998, 9.249722039282807),
    ("srs", "total of enroll"): (3621074.34, 169519.6543440591),
    ("srs", "ratio of api00 to api99"): (1.0510657371315144, 0.003603990581151267),
    ("strat", "mean of api00"): (662.2873631593208, 9.408940802784581),
    ("strat", "total of enroll"): (3687177.532438278, 114641.71610078031),
    ("strat", "ratio of api00 to api99"): (1.0522605462182486, 0.0036439222308434693),
    ("clus1", "mean of api00"): (644.1693989071039, 23.542240693781036),
}
EPSILONS = (1.0, 10.0, 1e3, 1e6)


def schools():
    """All rows of the population."""
    with gzip.open(DATA, "rt", encoding="utf-8") as rows:
        return list(csv.DictReader(rows))


def numbers(rows, name):
    """A column, nan where it is empty."""
    return np.array([float(row[name]) if row[name] else np.nan for row in rows])


def sample_of(rows, name):
    """The classical sample as one that a design drew."""
    positions = np.array([k for k, row in enumerate(rows) if row[f"{name}_pw"]], dtype=np.int64)
    ones = np.ones(positions.size, dtype=np.int64)
    columns, design = {}, WithoutReplacement(200, len(rows))
    if name == "strat":
        design = Stratified((level, WithoutReplacement(*sizes)) for level, sizes in SIZES.items())
        columns = {"stratum": np.array([row["stype"] for row in rows])}
    if name == "clus1":
        columns = {"cluster": np.unique([row["dnum"] for row in rows], return_inverse=True)[1]}
        design = ClusterSampling(15, 757, int(np.bincount(columns["cluster"]).max()))
    empty = design.draw(Population(len(rows), **columns), seeded_key(1))
    return SeededSample(design, empty._ids, Drawn(positions, ones, ones.astype(float)), empty._key, **empty._columns)


def released(rows, name, statistic, epsilon):
    """The private estimate from that sample."""
    sample = sample_of(rows, name)
    if statistic.startswith("ratio"):
        return adjust(
            sample, numbers(rows, "api00"), "ratio", bounds=(200, 1000), epsilon=epsilon,
            denominator=numbers(rows, "api99"), denominator_bounds=(200, 1000),
        )  # fmt: skip
    word, _, column = statistic.split()
    bounds = (200, 1000) if column == "api00" else (0, 4200)
    return estimate(sample, numbers(rows, column), word, bounds=bounds, epsilon=epsilon)


def by_samplics(rows, name, statistic):
    """The same by samplics, where it is installed."""
    from samplics.estimation import TaylorEstimator
    from samplics.utils.types import PopParam

    drawn = [row for row in rows if row[f"{name}_pw"]]
    column = lambda what: numbers(drawn, what)  # noqa: E731
    options = {"srs": {"fpc": 1 - 200 / 6194}, "clus1": {"psu": [row["dnum"] for row in drawn], "fpc": 1 - 15 / 757}}
    options["strat"] = {
        "stratum": [row["stype"] for row in drawn],
        "fpc": {level: 1 - n / size for level, (n, size) in SIZES.items()},
    }
    words = statistic.split()
    made = TaylorEstimator(getattr(PopParam, words[0]))
    over = column(words[4]) if words[0] == "ratio" else None
    made.estimate(y=column(words[2]), x=over, samp_weight=column(f"{name}_pw"), **options[name])
    return made.point_est, made.stderror


def main():
    """Print both."""
    rows = schools()
    try:
        import samplics  # noqa: F401

        peer, told = by_samplics, "samplics"
    except ImportError:
        peer, told = (lambda rows, *which: PRINTED[which]), "samplics, as printed"
    print(f"estimate (sampling error); {told}, then privamp at epsilon {', '.join(f'{e:g}' for e in EPSILONS)}")
    for name, statistic in PRINTED:
        found = [released(rows, name, statistic, epsilon) for epsilon in EPSILONS]
        cells = [peer(rows, name, statistic), *((one.value, one.sampling_error) for one in found)]
        print(
            f"{name}, {statistic}: " + " | ".join(f"{value:,.6g} ({error:,.4g})" for value, error in cells), flush=True
        )


if __name__ == "__main__":
    main()
