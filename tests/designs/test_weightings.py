"""What designs say about weighted totals and their variance, averaged over every sample of their small cases."""

import numpy as np
import pytest

from privamp import (
    ClusterPPS,
    ClusterSampling,
    MultiStage,
    Poisson,
    PoissonPPS,
    Population,
    PPSClusters,
    Proportional,
    RandomSize,
    Systematic,
    SystematicPPS,
    WithoutReplacement,
    WithReplacement,
)
from privamp.errors import InvalidInput, NoTheorem

EXACT = [Poisson, PoissonPPS, ClusterSampling]  # the estimate has no bias
ABOVE = [WithReplacement, WithoutReplacement, MultiStage, RandomSize, PPSClusters, ClusterPPS, SystematicPPS]
SHARES = [Proportional, Systematic]  # without bias where the share is a whole number of records, and it is public


def cases(kind):
    for design, population in kind.small_cases():
        population = Population(population) if isinstance(population, int) else population
        if population.size >= 2:
            yield design, population


def found(design, population, known):
    """The weighting, or None where a total cannot be estimated."""
    columns = {name: population.columns[name] for name in design.reads if name in population.columns}
    try:
        return design.weighting(population.size, known, columns)
    except (NoTheorem, InvalidInput):
        return None


def moments(design, population, weighting, z):
    """(mean of T, variance of T, mean of V), as core/weighting.py defines them."""
    place = {int(i): k for k, i in enumerate(population.ids)}
    rows = []
    for units, chance in design.law(population):
        drawn = [place[u] for u in units]
        total = sum(weighting.weight[i] * z[i] for i in drawn)
        estimate = sum(weighting.second[i] * z[i] ** 2 for i in drawn) - weighting.shrink * total**2
        if weighting.cluster is not None:
            for c in {int(weighting.cluster[i]) for i in drawn}:
                inside = sum(z[i] for i in drawn if weighting.cluster[i] == c)
                estimate += weighting.first * (inside / weighting.rate) ** 2
        rows.append((float(chance), total, estimate))
    chances, totals, estimates = np.array(rows).T
    mean = float(chances @ totals)
    return mean, float(chances @ (totals - mean) ** 2), float(chances @ estimates)


def values(n):
    yield np.linspace(-1.0, 1.0, n)
    yield np.where(np.arange(n) % 2, 1.0, -1.0)
    yield np.arange(1.0, n + 1.0) / n


@pytest.mark.parametrize("kind", [*EXACT, *ABOVE, *SHARES], ids=lambda kind: kind.__name__)
def test_totals_have_no_bias_and_variances_are_not_too_small(kind):
    tried = 0
    for design, population in cases(kind):
        n = population.size
        for known in (None, float(n)):
            weighting = found(design, population, known)
            if weighting is None or (kind in SHARES and known is None):
                continue
            assert weighting.heaviest >= np.max(weighting.weight)
            assert weighting.second_most >= np.max(weighting.second)
            for z in values(n):
                mean, variance, estimate = moments(design, population, weighting, z)
                assert mean == pytest.approx(z.sum(), abs=1e-9)
                most = weighting.spread_most * np.max(np.abs(z)) ** 2 * (n if weighting.per_record else 1)
                assert variance <= most * (1.0 + 1e-9) + 1e-12
                if weighting.refusal:
                    continue
                tried += 1
                if kind in EXACT:
                    assert estimate == pytest.approx(variance, abs=1e-9)
                elif kind in ABOVE:
                    assert estimate >= variance - 1e-9
                elif float(design.share) * n % 1.0 == 0.0:
                    assert estimate == pytest.approx(variance, abs=1e-9)
    assert tried > 0


@pytest.mark.parametrize("kind", [Poisson, WithoutReplacement, WithReplacement, ClusterSampling, Proportional])
def test_the_largest_variance_is_reached(kind):
    """So that nobody is told an error much above what can happen: for some case it is the variance itself."""
    shares = []
    for design, population in cases(kind):
        weighting = found(design, population, float(population.size))
        if weighting is None or weighting.spread_most == 0.0:
            continue
        for z in values(population.size):
            _, variance, _ = moments(design, population, weighting, z)
            top = weighting.spread_most * np.max(np.abs(z)) ** 2
            shares.append(variance / (top * (population.size if weighting.per_record else 1)))
    assert max(shares) > {ClusterSampling: 0.4, Proportional: 0.95}.get(kind, 0.999)


def test_a_random_size_has_no_bias_where_two_records_may_be_drawn():
    for design, population in cases(RandomSize):
        weighting = found(design, population, None)
        if weighting is None or np.sum(design.chances[2:]) == 0.0:
            continue
        for z in values(population.size):
            _, variance, estimate = moments(design, population, weighting, z)
            assert estimate == pytest.approx(variance, abs=1e-9)


@pytest.mark.parametrize(
    ("design", "reason"),
    [
        (Proportional(0.3, rounding="floor"), "no public weights"),
        (Proportional(0.0), "share of 0"),
        (RandomSize((1.0, 0.0, 0.0)), "size of 0"),
        (ClusterSampling(1, 2, 2, 1, min_size=1), "secret sizes"),
        (ClusterPPS((1.0, 0.0), 2), "probability 0"),
        (PoissonPPS(0.5), "smallest probability"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_be_estimated_is_refused(design, reason):
    columns = {"cluster": np.array([0, 1]), "probability": np.array([0.1, 0.2])}
    with pytest.raises((InvalidInput, NoTheorem), match=reason):
        design.weighting(2, None, {name: columns[name] for name in design.reads})


def test_one_cluster_or_slot_shows_no_spread_and_says_so():
    columns = {"cluster": np.array([0, 1])}
    assert "at least two" in ClusterSampling(1, 2, 1).weighting(2, None, columns).refusal
    assert ClusterSampling(2, 2, 1).weighting(2, None, columns).refusal == ""
    assert ClusterSampling(1, 1, 2).weighting(2, None, {"cluster": np.array([0, 0])}).refusal == ""
    assert "several" in ClusterPPS((0.5, 0.5), 1).weighting(2, None, columns).refusal
