"""How often private bootstrap intervals cover, and how wide they are beside intervals without privacy.

    python benchmarks/bootstrap_coverage.py [DATASETS] [METHOD ...]
    python benchmarks/bootstrap_coverage.py rule

Simulated data sets of n = 1,000: standard normal clipped to [-4, 4] and lognormal clipped to [0, 20]; mean and variance
at epsilon = 1, delta = 1e-6. Test keys: the numbers are reproducible and nothing here is private. `rule` prints how
wide intervals would be for other numbers and sizes of resamples.
"""

import math
import sys

import numpy as np
from scipy.integrate import quad
from scipy.special import ndtr, ndtri

from privamp import bootstrap
from privamp.bootstrap.noise_needed import whole_data
from privamp.bootstrap.spread import correction, coverage
from privamp.testing import seeded_key

N, LEVEL = 1000, 0.95
BOUNDS = {"normal": (-4.0, 4.0), "lognormal": (0.0, 20.0)}
STATISTICS = ("mean", "variance")
METHODS = ("subsampling", "m-out-of-n", "double", "little", "direct")


def data(name, seed):
    draws = np.random.default_rng(seed).standard_normal(N)
    return np.clip(draws if name == "normal" else np.exp(draws), *BOUNDS[name])


def truth(name, statistic):
    """Of the clipped distribution, by integration."""
    low, high = BOUNDS[name]
    ends = (low, high) if name == "normal" else (-12.0, math.log(high))

    def moment(power):
        def value(z):
            x = z if name == "normal" else math.exp(z)
            return x**power * math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)

        atoms = high**power * ndtr(-ends[1]) + (low**power * ndtr(ends[0]) if name == "normal" else 0.0)
        return quad(value, *ends, epsabs=1e-12)[0] + atoms

    return moment(1) if statistic == "mean" else moment(2) - moment(1) ** 2


def plain_width(x, statistic):
    """The usual interval without privacy."""
    away = x - x.mean()
    variance = np.mean(away**2)
    error = variance if statistic == "mean" else np.mean(away**4) - variance**2
    return 2.0 * float(ndtri(0.5 + 0.5 * LEVEL)) * math.sqrt(error / N)


def measure(name, statistic, method, datasets, first=0):
    """Coverage, median width, median width without privacy."""
    target = truth(name, statistic)
    covered, widths, plain = 0, [], []
    for seed in range(first, first + datasets):
        x = data(name, seed)
        found = bootstrap.run(x, statistic, bounds=BOUNDS[name], method=method, key=seeded_key(seed), jobs=1)
        low, high = found.interval(0.95)
        covered += low <= target <= high
        widths.append(high - low)
        plain.append(plain_width(x, statistic))
    return covered / datasets, float(np.median(widths)), float(np.median(plain))


def rule():
    """Widths against an ideal release from all the data (only noise) and against no privacy (only sampling error)."""
    ideal = whole_data(1.0, 1e-6)
    print(f"{'B':>4} {'k':>3} {'m/n':>7} {'noise':>6} {'all noise':>10} {'all sampling':>13} {'most covered':>13}")
    for groups in (10, 20, 40, 80):
        for k in (1, 2, 4, 8):
            chosen = bootstrap.plan(N, resamples=groups, size=k * N // groups)
            spread, q = chosen.spread, chosen.procedure.size / N
            boost, stretch = correction(groups, spread.ratio, LEVEL)
            noise = ideal / (math.sqrt(groups) * chosen.strength * q)
            x = np.random.default_rng(0).chisquare(groups - 1, 20_000) / (groups - 1)
            z = float(ndtri(0.5 + 0.5 * LEVEL))
            noisy = np.mean([spread.half_width(float(v), 1.0) for v in x]) * math.sqrt(groups) / z * noise
            plain = spread.half_width(1e12, 1.0) / 1e6 * np.mean(np.sqrt(x)) / z
            plain *= math.sqrt(groups / spread.ratio)
            most = coverage(groups, spread.ratio, LEVEL, boost, stretch).max()
            print(f"{groups:4} {k:3} {q:7.4f} {noise:6.2f} {noisy:10.2f} {plain:13.2f} {most:13.3f}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["rule"]:
        rule()
        raise SystemExit
    datasets = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print(f"n = {N}, epsilon = 1, delta = 1e-6, {datasets} data sets, 95% intervals")
    print(f"{'method':12} {'data':10} {'statistic':10} {'coverage':>9} {'width':>9} {'without privacy':>16}")
    for method in sys.argv[2:] or METHODS:
        for name in BOUNDS:
            for statistic in STATISTICS[:1] if method == "direct" else STATISTICS:
                share, width, plain = measure(name, statistic, method, datasets)
                print(f"{method:12} {name:10} {statistic:10} {share:9.3f} {width:9.4g} {plain:16.4g}", flush=True)
