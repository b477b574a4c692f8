"""Estimates from clusters, systematic samples, fixed shares and unequal coins: covered, calibrated, refused in words.

Seeded keys, 400 repetitions: a 95% interval covers 93% to 97%. Only sd="range", the public conservative error, may
cover more, and is tested apart.
"""

import math

import numpy as np
import pytest

from privamp import (
    ClusterSampling,
    InvalidInput,
    NoTheorem,
    Poisson,
    PoissonPPS,
    Population,
    Proportional,
    PureDP,
    Stratified,
    Systematic,
    amplify,
)
from privamp.core.neighbors import Neighbors
from privamp.core.sample import Drawn
from privamp.survey import estimate
from privamp.survey.exact import Statistic, release_of
from privamp.survey.units import inner_epsilon, units_of
from privamp.testing import seeded_key

random = np.random.default_rng(7)
CLUSTER = np.repeat(np.arange(1500), random.integers(2, 7, 1500))
SIZE = CLUSTER.size
X = (5 + 2 * random.normal(size=1500)[CLUSTER] + 1.5 * random.normal(size=SIZE)).clip(0, 12)
CHANCE = np.clip(0.05 + 0.03 * X, 0.1, 0.4)
PEOPLE = Population(SIZE, cluster=CLUSTER, probability=CHANCE)
BOUNDS = (0.0, 12.0)
ROUNDS = 400

CLUSTERS = ClusterSampling(300, 1500, 6)
TWO_STAGE = ClusterSampling(300, 1500, 6, Poisson(0.5))
COINS = PoissonPPS(0.4, 0.1)
C, P, N, TOTAL = {"cluster": CLUSTER}, {"probability": CHANCE}, {"population": SIZE}, {"statistic": "total"}
CASES = {
    "cluster total": (CLUSTERS, C | TOTAL),
    "cluster mean, public size": (CLUSTERS, C | N),
    "cluster mean, ratio": (CLUSTERS, C),
    "two stages, total": (TWO_STAGE, C | TOTAL),
    "two stages, ratio": (TWO_STAGE, C | N | {"weights": "hajek"}),
    "systematic total": (Systematic(10), TOTAL),
    "systematic mean, public size": (Systematic(10), N),
    "systematic mean, public sd": (Systematic(10), N | {"sd": float(X.std())}),
    "systematic mean, ratio": (Systematic(10), {}),
    "share mean, public size": (Proportional(0.07), N),
    "coins total": (COINS, P | TOTAL),
    "coins mean, ratio": (COINS, P),
}


def repeated(design, options, key, rounds=ROUNDS):
    return [
        estimate(design.draw(PEOPLE, seeded_key(key), r), X, epsilon=1.0, bounds=BOUNDS, **options)
        for r in range(rounds)
    ]


def covered(found, truth):
    return float(np.mean([low <= truth <= high for low, high in (f.interval(0.95) for f in found)]))


@pytest.mark.parametrize("name", CASES)
def test_unbiased_covered_and_calibrated(name):
    design, options = CASES[name]
    truth = X.sum() if "statistic" in options else X.mean()
    found = repeated(design, options, 8500 + list(CASES).index(name))
    released = np.array([f.value for f in found])
    assert 0.93 <= covered(found, truth) <= 0.97
    assert abs(released.mean() - truth) < 4 * released.std() / math.sqrt(ROUNDS)
    claimed = float(np.mean([f.standard_error for f in found]))
    assert 0.93 <= claimed / released.std() <= 1.25  # a private variance errs to the wide side
    assert 1.0 - 1e-6 <= found[0].guarantee.epsilon() <= 1.0
    assert str(found[0].guarantee.neighbors) == "add-remove"
    assert not found[0].guarantee.is_private  # a seeded key


@pytest.mark.parametrize(
    ("design", "options"),
    [
        (CLUSTERS, C | TOTAL),
        (CLUSTERS, C),
        (TWO_STAGE, C | N),
        (Systematic(10), N),
        (Systematic(10), {}),
        (Systematic(10, "slots", SIZE // 10 + 1), TOTAL),
        (Systematic(10, "slots", SIZE // 10 + 1), {}),
        (COINS, P | N),
    ],
)
def test_the_public_error_is_conservative(design, options):
    truth = X.sum() if "statistic" in options else X.mean()
    found = repeated(design, options | {"sd": "range"}, 7100, 60)
    assert covered(found, truth) == 1.0  # above 97% because sd="range" is the worst population within the bounds
    assert {f.sampling_error_is for f in found} == {"public bound"}


def moved(units, values, most, keep, at):
    """How far one record moves the total and the squares when it is in the sample, over how far it may."""
    positions = np.flatnonzero(keep)
    both = [Drawn(p, np.ones(p.size, dtype=np.int64), np.ones(p.size)) for p in (positions, positions[positions != at])]
    limits = units.by.heaviest * most, units.squares_reach(most)
    asked = [
        Statistic(np.array([limit]), limit, is_sum) for limit, is_sum in zip(limits, (True, units.is_sum), strict=True)
    ]
    release = release_of("laplace", asked, 2.0)
    first = np.diff([units.total(release, 0, values, drawn)[0] for drawn in both])
    second = np.diff([units.squares(release, 1, values, most, drawn)[0] for drawn in both])
    once = 0.0 if units.is_sum else release.grid  # rounded down at the end, which may cost one unit
    allowed = limits[0] * release.ratios[0], limits[1] * release.ratios[1] + once
    return [abs(int(m[0])) * release.grid / limit for m, limit in zip((first, second), allowed, strict=True)]


@pytest.mark.parametrize(
    ("design", "largest"),
    [(ClusterSampling(4, 6, 3), 0.99), (ClusterSampling(4, 6, 3, Poisson(0.4)), 0.99), (PoissonPPS(0.9, 0.2), 0.9)],
)
def test_one_record_moves_no_more_than_the_sensitivity(design, largest):
    most, worst = 2.0, [0.0, 0.0]
    for _ in range(400):
        cluster = np.repeat(np.arange(6), random.integers(0, 4, 6))
        n = cluster.size
        chance = random.choice([0.2, 0.5, 0.9], n)
        values = random.choice([-most, most, most, 0.3], n)
        people = Population(n, cluster=cluster, probability=chance)
        units = units_of(design.draw(people, seeded_key(1)), None, {})
        for at in range(n):
            keep = random.random(n) < 0.9
            keep[at] = True
            shares = moved(units, values, most, keep, at)
            worst = [max(w, s) for w, s in zip(worst, shares, strict=True)]
    assert max(worst) <= 1.0 + 1e-12
    assert min(worst) >= largest  # and not a larger one than needed


@pytest.mark.parametrize("design", [CLUSTERS, TWO_STAGE, Systematic(10), Proportional(0.3), COINS])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 4.0])
@pytest.mark.filterwarnings("ignore::privamp.errors.DegradingDesign")
def test_the_noise_is_just_enough(design, epsilon):
    inner = inner_epsilon(design, epsilon)
    reached = amplify(PureDP(inner, neighbors=Neighbors.ADD_REMOVE), design).epsilon()
    assert reached == pytest.approx(epsilon, rel=1e-6)
    assert reached <= epsilon * (1 + 1e-12)


def test_a_census_of_clusters_has_no_sampling_error():
    design = ClusterSampling(1500, 1500, 6)
    found = estimate(design.draw(PEOPLE, seeded_key(1)), X, "total", bounds=BOUNDS, epsilon=1.0, **C)
    assert found.sampling_error < 0.1 * found.noise_error
    assert abs(found.value - X.sum()) < 12 * found.noise_error


def asked(design, **options):
    options = {"bounds": BOUNDS, "epsilon": 1.0} | options
    values = options.pop("values", X)
    return estimate(design.draw(PEOPLE, seeded_key(2)), values, **options)


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: asked(CLUSTERS, cluster=CLUSTER[:9]), InvalidInput, "cluster= is not the column"),
        (lambda: asked(CLUSTERS, cluster=CLUSTER // 2), InvalidInput, "cluster= is not the column"),
        (lambda: asked(ClusterSampling(1, 1500, 6), **C), InvalidInput, "sd='range'"),
        (lambda: asked(ClusterSampling(9, 1500, 6, 2), **C), NoTheorem, "use a second stage Poisson"),
        (lambda: asked(ClusterSampling(9, 1500, 6, trim=True), **C), NoTheorem, "no trim"),
        (lambda: asked(CLUSTERS, **C, sd=1.0), InvalidInput, "omit sd"),
        (lambda: asked(CLUSTERS, **C, sd="wide"), InvalidInput, "sd must be"),
        (lambda: asked(CLUSTERS, **C, by=CLUSTER % 2), InvalidInput, "no by="),
        (lambda: asked(CLUSTERS, **C, noise="gaussian"), InvalidInput, "delta must be above 0"),
        (lambda: asked(Systematic(10), delta=1e-6), InvalidInput, "delta must be 0 for laplace noise"),
        (lambda: asked(Systematic(10), population=-1), InvalidInput, "population must be"),
        (lambda: asked(Systematic(10), population=10), InvalidInput, "larger rate"),
        (lambda: asked(Systematic(10), values=X[:9]), InvalidInput, "one number per record"),
        (lambda: asked(Systematic(10), values=X[:9], statistic="total"), InvalidInput, "one number per record"),
        (lambda: asked(Systematic(10), statistic="total", sd="range"), InvalidInput, "needs population="),
        (lambda: asked(Systematic(10, "slots", 9999)), InvalidInput, "order='random'"),
        (lambda: asked(Proportional(0.1, "floor")), NoTheorem, "rounding='random'"),
        (lambda: asked(Proportional(0.0)), InvalidInput, "rate above 0"),
        (lambda: asked(PoissonPPS(0.4), **P), InvalidInput, "declare low="),
        (lambda: asked(COINS, probability=0.5 * CHANCE), InvalidInput, "probability= is not the column"),
    ],
)
def test_what_cannot_be_done_soundly_is_refused_in_one_sentence(make, kind, message):
    with pytest.raises(kind, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_strata_of_these_designs_are_refused():
    design = Stratified([("a", Systematic(5))])
    people = Population(100, stratum=["a"] * 100)
    with pytest.raises(InvalidInput, match="without strata"):
        estimate(design.draw(people, seeded_key(1)), np.ones(100), bounds=(0, 2), epsilon=1.0, stratum=["a"] * 100)
