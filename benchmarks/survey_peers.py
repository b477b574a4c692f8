"""The classical samples of Californian schools: privamp as epsilon grows, beside samplics without noise.

The sampling error of clusters stays larger than theirs at every epsilon: a district of 552 schools that the sample may
have missed has a part in it (privamp/survey/clustered.py). Without samplics (pip install samplics) the values it
printed are shown, which are those of R's survey package too. Domains, poststratified and raked means, and means of two
thirds of the sample whose classes count with their public sizes, are adjusted by samplics' own weights; it has no error
for those that knows of the adjustment, so only the values are compared. Its jackknife has replicate weights, which
privamp never makes; the errors are the same.

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
    ("srs", "domain E of api00"): (666.1408450704228, 11.193523397164363),
    ("srs", "domain H of api00"): (605.36, 21.926644697335735),
    ("srs", "domain M of api00"): (654.2727272727271, 21.826115991315476),
    ("srs", "poststratified mean of api00"): (656.7815809525304, None),
    ("srs", "raked mean of api00"): (657.7915463321177, None),
    ("srs", "nonresponse mean of api00"): (650.4193031466704, None),
    ("srs", "jackknife mean of api00"): (656.5849999999998, 9.24972203928275),
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


def words(rows, name):
    """A column as it is written."""
    return np.array([row[name] for row in rows])


def totals(column):
    """Public totals of a column of the population."""
    return dict(zip(*(part.tolist() for part in np.unique(column, return_counts=True)), strict=True))


def adjusted(rows, statistic, sample, epsilon):
    """Adjusted estimates of api00."""
    kind, asked = words(rows, "stype"), {"bounds": (200, 1000), "epsilon": epsilon}
    values = numbers(rows, "api00")
    if statistic.startswith("domain"):
        return adjust(sample, values, domain=kind, domains=sorted(SIZES), **asked)[statistic.split()[1]]
    if statistic.startswith("nonresponse"):
        values[np.flatnonzero(words(rows, "srs_pw") != "")[::3]] = np.nan
        return adjust(sample, values, classes=kind, **asked)
    margins = {"stype": (kind, totals(kind))}
    if statistic.startswith("raked"):
        wide = words(rows, "sch_wide")
        margins["sch_wide"] = (wide, totals(wide))
    return adjust(sample, values, margins=margins, **asked)


def released(rows, name, statistic, epsilon):
    """The private estimate from that sample."""
    sample = sample_of(rows, name)
    if statistic.split()[0] in ("domain", "poststratified", "raked", "nonresponse"):
        return adjusted(rows, statistic, sample, epsilon)
    statistic = statistic.removeprefix("jackknife ")
    if statistic.startswith("ratio"):
        return adjust(
            sample, numbers(rows, "api00"), "ratio", bounds=(200, 1000), epsilon=epsilon,
            denominator=numbers(rows, "api99"), denominator_bounds=(200, 1000),
        )  # fmt: skip
    word, _, column = statistic.split()
    bounds = (200, 1000) if column == "api00" else (0, 4200)
    return estimate(sample, numbers(rows, column), word, bounds=bounds, epsilon=epsilon)


def weights_by_samplics(rows, statistic):
    """Adjusted by samplics; and the rows that they are for."""
    from samplics.weighting import SampleWeight

    drawn = [row for row in rows if row["srs_pw"]]
    if statistic.startswith("nonresponse"):
        drawn = [row for k, row in enumerate(drawn) if k % 3]
    first, kind = numbers(drawn, "srs_pw"), words(drawn, "stype")
    public = totals(words(rows, "stype"))
    if not statistic.startswith("raked"):
        return drawn, SampleWeight().poststratify(first, control=public, domain=kind)
    margins = {"stype": kind, "sch_wide": words(drawn, "sch_wide")}
    control = {"stype": public, "sch_wide": totals(words(rows, "sch_wide"))}
    close = {"tol": 1e-10, "ctrl_tol": 1e-10, "max_iter": 500}
    return drawn, SampleWeight().rake(first, margins=margins, control=control, **close)


def jackknife_by_samplics(rows):
    """The mean of api00 and its error from replicate weights."""
    from samplics.estimation import ReplicateEstimator
    from samplics.utils.types import PopParam, RepMethod
    from samplics.weighting import ReplicateWeight

    drawn = [row for row in rows if row["srs_pw"]]
    made = ReplicateWeight(method=RepMethod.jackknife, strat=False)
    table = made.replicate(numbers(drawn, "srs_pw"), psu=np.arange(len(drawn)))
    columns = table[[name for name in table.columns if name.startswith("_jk")]].to_numpy()
    found = ReplicateEstimator(RepMethod.jackknife, PopParam.mean)
    share = 1.0 - 1.0 / len(drawn)
    found.estimate(numbers(drawn, "api00"), numbers(drawn, "srs_pw"), columns, rep_coefs=share)
    return found.point_est, found.stderror * (1.0 - 200 / 6194) ** 0.5


def by_samplics(rows, name, statistic):
    """The same by samplics, where it is installed."""
    first = statistic.split()[0]
    if first == "jackknife":
        return jackknife_by_samplics(rows)
    if first in ("poststratified", "raked", "nonresponse"):
        drawn, weights = weights_by_samplics(rows, statistic)
        return float(np.average(numbers(drawn, "api00"), weights=weights)), None
    return by_taylor(rows, name, statistic)


def by_taylor(rows, name, statistic):
    """Means, totals, ratios and domains."""
    from samplics.estimation import TaylorEstimator
    from samplics.utils.types import PopParam

    drawn = [row for row in rows if row[f"{name}_pw"]]
    column = lambda what: numbers(drawn, what)  # noqa: E731
    options = {"srs": {"fpc": 1 - 200 / 6194}, "clus1": {"psu": [row["dnum"] for row in drawn], "fpc": 1 - 15 / 757}}
    options["strat"] = {
        "stratum": [row["stype"] for row in drawn],
        "fpc": {level: 1 - n / size for level, (n, size) in SIZES.items()},
    }
    said = statistic.split()
    is_domain = said[0] == "domain"
    made = TaylorEstimator(PopParam.mean if is_domain else getattr(PopParam, said[0]))
    over = column(said[4]) if said[0] == "ratio" else None
    domain = words(drawn, "stype") if is_domain else None
    y = column(said[3] if is_domain else said[2])
    made.estimate(y=y, x=over, samp_weight=column(f"{name}_pw"), domain=domain, **options[name])
    return (made.point_est[said[1]], made.stderror[said[1]]) if is_domain else (made.point_est, made.stderror)


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
        told = [f"{value:,.6g}" + ("" if error is None else f" ({error:,.4g})") for value, error in cells]
        print(f"{name}, {statistic}: " + " | ".join(told), flush=True)


if __name__ == "__main__":
    main()
