"""95% intervals cover: simulated data sets of 1,000 at epsilon 1, and a naive interval that does not."""

import numpy as np
import pytest
from scipy.special import bdtr

from privamp import bootstrap
from privamp.bootstrap.drawing import group_averages
from privamp.bootstrap.spread import correction, coverage
from privamp.testing import seeded_key
from scripts import script

ALARM = 1e-6  # chance that a right interval fails a test here
CASES = [(data, statistic) for data in ("normal", "lognormal") for statistic in ("mean", "variance")]


@pytest.fixture(scope="module", name="script")
def loaded():
    return script("benchmarks/bootstrap_coverage.py")


def least_covered(datasets, level=0.95):
    """The fewest data sets that may be covered, at a false alarm of 1e-6."""
    return int(np.argmax(bdtr(np.arange(datasets + 1), datasets, level) > ALARM))


def most_covered():
    """The highest chance of covering, above 95% because one width serves any mixture of noise and sampling error."""
    spread = bootstrap.plan(1000).spread
    return float(coverage(spread.groups, spread.ratio, 0.95, *correction(spread.groups, spread.ratio, 0.95)).max())


def test_the_chance_of_covering_is_near_the_level():
    assert 0.95 <= most_covered() < 0.97


def test_the_clipped_truth_is_integrated_right(script):
    x = np.clip(np.exp(np.random.default_rng(0).standard_normal(2_000_000)), 0, 20)
    assert script.truth("lognormal", "mean") == pytest.approx(x.mean(), abs=5 * x.std() / len(x) ** 0.5)
    assert script.truth("lognormal", "variance") == pytest.approx(x.var(), rel=0.02)
    assert script.truth("normal", "variance") == pytest.approx(1.0, rel=1e-3)


def test_two_hundred_intervals(script):
    covered = sum(50 * script.measure(*case, "subsampling", 50)[0] for case in CASES)
    assert covered >= least_covered(200)


def test_a_naive_interval_is_caught(script):
    """Negative control: the usual interval around the private estimate, as if there were no noise."""
    chosen, target, covered = bootstrap.plan(1000), script.truth("normal", "variance"), 0
    statistic = bootstrap.Variance((-4.0, 4.0))
    for seed in range(20):
        rows = statistic.rows(script.data("normal", seed))
        series = group_averages(chosen, statistic, rows, seeded_key(seed), 1, None)[:, 0]
        half = 0.5 * script.plain_width(script.data("normal", seed), "variance")
        covered += abs(series.mean() - target) <= half
    assert covered < least_covered(20)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_a_thousand_intervals(script, case):
    covered, width, plain = script.measure(*case, "subsampling", 1000)
    assert least_covered(1000, 0.949) <= 1000 * covered <= 1000 - least_covered(1000, 1.0 - most_covered())
    assert width > plain
