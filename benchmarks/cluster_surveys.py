"""Cluster estimates on real frames: coverage of 95% intervals, and their width over an oracle's.

The oracle knows the true sampling variance of the ratio mean, spends all of epsilon on the weighted sum, and is cut to
the bounds too; its width is the ideal, not what any private estimate can have. Every line is `RUNS` seeded draws;
the standard error of a coverage of .95 from 400 runs is .011.

    python benchmarks/cluster_surveys.py [--runs 400] [--quick]
    python benchmarks/cluster_surveys.py --held-out [--runs 150]
    python benchmarks/cluster_surveys.py --textbook    # without noise: how often the textbook's interval covers
    python benchmarks/cluster_surveys.py --floor       # what must be paid for without knowing the variance

For cells above the aim of 1.3, two widths over the oracle's follow in brackets. First what noise alone costs: that of
somebody who knows the variance, pays for the sum and the count, and uses Student's quantile. Then that of somebody who
takes the error the sample shows (squares or mean distances of its clusters' sums, free and without noise), times the
least factor that brings the coverage to .93, which is chosen with the whole frame in hand. Where either is above 1.3,
no such interval meets the aim.
"""

import argparse
import csv
import gzip
import math
from pathlib import Path

import numpy as np
from scipy.special import stdtrit

from privamp import ClusterSampling, Poisson, Population
from privamp.numerics.half_width import half_width
from privamp.survey import estimate
from privamp.survey.units import signal_to_noise
from privamp.testing import seeded_key

DATA = Path(__file__).parents[2] / "shared" / "data"
FRAMES = {  # name: (file, value, cluster, bounds, drawn clusters)
    "schools, enrolment": ("api_schools", "enroll", "dnum", (0, 4200), (24, 40)),
    "schools, API": ("api_schools", "api00", "dnum", (200, 1000), (24, 40)),
    "municipalities, people": ("swiss_municipalities", "POPTOT", "CT", (0, 20000), (10,)),
    "municipalities, wood": ("swiss_municipalities", "Surfacesbois", "CT", (0, 2000), (10,)),
    "MU284, people": ("mu284", "P85", "CL", (0, 100), (16,)),
    "MU284, seats": ("mu284", "S82", "CL", (0, 110), (16,)),
}

EPSILONS, AIM = (1.0, 3.0, 10.0), 1.3

HELD_OUT = {  # columns and clusters that no constant of privamp.survey.clustered was chosen with
    "schools, meals": ("api_schools", "meals", "dnum", (0, 100), (24,)),
    "schools by county, learners of English": ("api_schools", "ell", "cnum", (0, 100), (15,)),
    "municipalities, fields": ("swiss_municipalities", "Surfacescult", "CT", (0, 2000), (10,)),
    "MU284, council seats": ("mu284", "CS82", "CL", (0, 40), (16,)),
    "MU284, real estate": ("mu284", "REV84", "CL", (0, 15000), (16,)),
}


def read(file, value, cluster, bounds):
    """Values cut to the bounds, and clusters by number; schools without an enrolment are left out."""
    with gzip.open(DATA / f"{file}.csv.gz", "rt", encoding="utf-8") as rows:
        table = [row for row in csv.DictReader(rows) if row.get("enroll", "0") != ""]
    numbers = np.clip([float(row[value]) for row in table], *bounds)
    return numbers, np.unique([row[cluster] for row in table], return_inverse=True)[1]


def oracle(x, cluster, bounds, design, epsilon):
    """Half the width of an interval of somebody who knows the true variance."""
    k, drawn, r, records = design.clusters, design.chosen, design.rate, x.size
    residual = np.bincount(cluster, x - x.mean())
    variance = (
        k * k * (1 - drawn / k) / drawn * residual.var(ddof=1) + k / drawn * (1 - r) / r * ((x - x.mean()) ** 2).sum()
    )
    half = 0.5 * (bounds[1] - bounds[0])
    noise = math.sqrt(2.0) * half * k / (drawn * r) / signal_to_noise(design, "laplace", epsilon, 0.0).theta
    wide = half_width(math.sqrt(variance) / records, noise / records, "laplace", 0.95)
    return 0.5 * (min(x.mean() + wide, bounds[1]) - max(x.mean() - wide, bounds[0]))


def measured(x, cluster, bounds, design, epsilon, known, runs):
    """Coverage, width over the oracle's, and the released standard error over the true one."""
    covered, widths = 0, []
    for seed in range(runs):
        sample = design.draw(Population(x.size, cluster=cluster), seeded_key(seed))
        found = estimate(sample, x, bounds=bounds, epsilon=epsilon, population=x.size if known else None)
        low, high = found.interval()
        covered += low <= x.mean() <= high
        widths.append(0.5 * (high - low))
    return covered / runs, float(np.mean(widths)) / oracle(x, cluster, bounds, design, epsilon)


def textbook(x, cluster, drawn, runs=4000):
    """Without noise: the error of the ratio mean, the textbook's estimate of it, and how often its interval covers."""
    random, k = np.random.default_rng(1), int(cluster.max()) + 1
    sums, sizes, f = np.bincount(cluster, x), np.bincount(cluster), drawn / k
    means, errors = np.empty(runs), np.empty(runs)
    for run in range(runs):
        at = random.choice(k, drawn, replace=False)
        means[run] = sums[at].sum() / sizes[at].sum()
        residual = sums[at] - means[run] * sizes[at]
        errors[run] = math.sqrt((1 - f) / drawn * residual.var(ddof=1)) / sizes[at].mean()
    away = np.abs(means - x.mean())
    return means.std(), errors.mean(), np.mean(away <= stdtrit(drawn - 1, 0.975) * errors)


def tell_textbook():
    """Print how far the textbook's intervals can be trusted on these frames."""
    for name, (file, value, column, bounds, sizes) in FRAMES.items():
        x, cluster = read(file, value, column, bounds)
        for drawn in (15, *sizes) if file == "api_schools" else sizes:
            true, told, covered = textbook(x, cluster, drawn)
            print(f"{name}, {drawn} clusters: true error {true:.4g}, textbook's {told:.4g}, its interval {covered:.3f}")


def noise_of_mean(x, bounds, design, epsilon):
    """That of sum over count, with all of epsilon, divided in the best way."""
    half, theta = 0.5 * (bounds[1] - bounds[0]), signal_to_noise(design, "laplace", epsilon, 0.0).theta
    away = abs(x.mean() - 0.5 * (bounds[0] + bounds[1]))
    each = math.sqrt(2.0) * design.clusters / (design.chosen * design.rate * theta * x.size)
    return min(each * math.hypot(half / part, away / (1.0 - part)) for part in np.arange(0.05, 1.0, 0.05))


def floor(x, cluster, bounds, design, epsilon):
    """The least width over the oracle's of somebody who knows the variance but pays for the count and uses Student's
    quantile, and what noise with all of epsilon makes of the mean distance of clusters' sums, relative to it."""
    k, drawn, r, records = design.clusters, design.chosen, design.rate, x.size
    residual = np.bincount(cluster, x - x.mean())
    within = k / drawn * (1 - r) / r * np.sum((x - x.mean()) ** 2)
    sampling = math.sqrt(k * k * (1 - drawn / k) / drawn * residual.var(ddof=1) + within) / records
    noise = noise_of_mean(x, bounds, design, epsilon)
    student = stdtrit(drawn - 1, 0.975) / 1.959964
    wide = half_width(student * sampling, noise, "laplace", 0.95)
    half, away = 0.5 * (bounds[1] - bounds[0]), abs(x.mean() - 0.5 * (bounds[0] + bounds[1]))
    theta = signal_to_noise(design, "laplace", epsilon, 0.0).theta
    distance = math.sqrt(2.0) * (half + away) / (theta * r) / (drawn * np.abs(residual).mean())
    return wide / oracle(x, cluster, bounds, design, epsilon), distance


TRIED = np.concatenate([[0.0], np.geomspace(1e-3, 1e3, 200)])
WIDE = np.array([half_width(each, 1.0, "laplace", 0.95) for each in TRIED])


def wides(sampling, noise):
    """`half_width` of many sampling errors."""
    ratio = np.minimum(sampling / noise, TRIED[-1])
    return np.maximum(noise * np.interp(ratio, TRIED, WIDE), 1.96 * sampling)


def draws(x, cluster, design, runs, random):
    """Of many samples: the mean, the sum over drawn clusters of squared and of absolute residual sums."""
    k, drawn, r = design.clusters, design.chosen, design.rate
    sums, sizes, found = np.bincount(cluster, x), np.bincount(cluster).astype(float), np.empty((runs, 3))
    for run in range(runs):
        if r < 1.0:
            kept = random.random(x.size) < r
            sums, sizes = np.bincount(cluster[kept], x[kept], k), np.bincount(cluster[kept], minlength=k).astype(float)
        at = random.choice(k, drawn, replace=False)
        mean = sums[at].sum() / max(sizes[at].sum(), 1.0)
        residual = (sums[at] - mean * sizes[at]) / r
        found[run] = mean, np.sum(residual**2), np.sum(np.abs(residual))
    return found.T


def narrowest(away, errors, noise, centre, bounds, covered=0.93):
    """The mean half width of centre +- wides(factor * errors, noise) for the least factor that covers."""
    low, high = 0.0, 64.0
    for _ in range(24):
        factor = 0.5 * (low + high)
        is_enough = np.mean(away <= wides(factor * errors, noise)) >= covered
        low, high = (low, factor) if is_enough else (factor, high)
    wide = wides(high * errors, noise)
    ends = np.minimum(centre + wide, bounds[1]) - np.maximum(centre - wide, bounds[0])
    return 0.5 * float(np.mean(np.maximum(ends, 0.0)))


def needed(x, cluster, bounds, design, epsilon, runs=2000):
    """The second width of the brackets, over the oracle's."""
    random = np.random.default_rng(2)
    k, drawn = design.clusters, design.chosen
    means, squares, distances = draws(x, cluster, design, runs, random)
    noise, per = noise_of_mean(x, bounds, design, epsilon), k / x.size * math.sqrt((1.0 - drawn / k) / drawn)
    centre = means + noise * random.laplace(0.0, math.sqrt(0.5), runs)
    away = np.abs(centre - x.mean())
    tried = (per * np.sqrt(squares / (drawn - 1)), per * distances / drawn)
    return min(narrowest(away, errors, noise, centre, bounds) for errors in tried) / oracle(
        x, cluster, bounds, design, epsilon
    )


def known_variance(*cell):
    """The first of the two."""
    return floor(*cell)[0]


def tell_floor():
    """Print both for the designs of the first table that keep all members."""
    for name, (file, value, column, bounds, sizes) in FRAMES.items():
        x, cluster = read(file, value, column, bounds)
        k, cap = int(cluster.max()) + 1, int(np.bincount(cluster).max())
        for drawn in sizes:
            cells = [floor(x, cluster, bounds, ClusterSampling(drawn, k, cap), e) for e in (1.0, 3.0, 10.0)]
            told = " | ".join(f"{wide:.2f} {distance:.0%}" for wide, distance in cells)
            print(f"{name}, {drawn} of {k}: {told}")


def main():
    """Print the table of docs/surveys.md."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--quick", action="store_true", help="40 runs of each")
    parser.add_argument("--held-out", action="store_true", help="other columns and clusters")
    parser.add_argument("--textbook", action="store_true", help="without noise: how often the textbook covers")
    parser.add_argument("--floor", action="store_true", help="what must be paid for without knowing the variance")
    parser.add_argument("--only", action="append", help="some frames, by name")
    given = parser.parse_args()
    if given.floor:
        tell_floor()
        return
    if given.textbook:
        tell_textbook()
        return
    runs = 40 if given.quick else given.runs
    print(f"{runs} runs each; coverage of 95% intervals, width over the oracle's, at epsilon 1 | 3 | 10")
    count = np.zeros((len(EPSILONS), 4), dtype=int)
    for name, (file, value, column, bounds, sizes) in (HELD_OUT if given.held_out else FRAMES).items():
        if given.only and name not in given.only:
            continue
        x, cluster = read(file, value, column, bounds)
        k, cap = int(cluster.max()) + 1, int(np.bincount(cluster).max())
        for drawn in sizes:
            for second in (None, Poisson(0.5)):
                design = ClusterSampling(drawn, k, cap, second)
                for known in (True, False):
                    cells = [measured(x, cluster, bounds, design, epsilon, known, runs) for epsilon in EPSILONS]
                    told = []
                    for at, (cover, width) in enumerate(cells):
                        told.append(f"{cover:.3f} {width:.2f}")
                        which, more = 0, ()
                        if width > AIM:
                            more = tuple(f(x, cluster, bounds, design, EPSILONS[at]) for f in (known_variance, needed))
                            which = 1 if more[0] > AIM else 2 if more[1] > AIM else 3
                            told[-1] += f" [{more[0]:.2f} {more[1]:.2f}]"
                        count[at, which] += 1
                    stage = "coins inside" if second else "all members"
                    where = f"{name}, {drawn} of {k}, {stage}, N {'public' if known else 'secret'}"
                    print(f"{where}: {' | '.join(told)}", flush=True)
    for epsilon, (met, noise, own, left) in zip(EPSILONS, count.tolist(), strict=True):
        print(
            f"epsilon {epsilon:g}: within {AIM} in {met} cells; of the others noise alone is above it in {noise}, the "
            f"sample's own error without noise in {own} more, and neither in {left}"
        )


if __name__ == "__main__":
    main()
