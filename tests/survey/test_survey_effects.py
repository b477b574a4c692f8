"""Design effects: R's numbers without noise, paid for, and none where noise hides them."""

from dataclasses import replace

import numpy as np
import pytest

from privamp import ClusterSampling, InvalidInput, Poisson, PoissonPPS, Population, Stratified, WithoutReplacement
from privamp.audits.records import interviews, strata
from privamp.survey import adjust, estimate
from privamp.survey.basis import Basis
from privamp.survey.effects import Effect
from privamp.survey.estimation import WeightedTotals
from privamp.testing import seeded_key
from scripts import script

peers = script("benchmarks/survey_peers.py")
needs_schools = pytest.mark.skipif(not peers.DATA.is_file(), reason="api_schools.csv.gz is not here")


@pytest.fixture(scope="module")
def rows():
    return peers.schools()


def textbook(rows, name, error, records):
    """R's svymean(deff=TRUE): the variance over that of a simple random sample, svyvar / n (1 - n/N)."""
    drawn = [row for row in rows if row[f"{name}_pw"]]
    y, w = peers.numbers(drawn, "api00"), peers.numbers(drawn, f"{name}_pw")
    n, mean = y.size, np.average(y, weights=w)
    variance = np.average((y - mean) ** 2, weights=w) * n / (n - 1)
    return error**2 / (variance / n * (1 - n / records))


@needs_schools
@pytest.mark.parametrize(("name", "records"), [("srs", 6194), ("strat", 6194), ("clus1", 183 * 757 / 15)])
@pytest.mark.parametrize("release", [adjust, estimate])
@pytest.mark.parametrize("statistic", ["mean", "total"])
def test_r_s_number_without_noise(rows, name, records, release, statistic):
    _, error = peers.PRINTED[name, "mean of api00"]
    if statistic == "total" and name == "clus1":
        pytest.skip("the clusters' total is that of a secret number of schools, in R of a public one")
    wanted = textbook(rows, name, error, records)
    assert {"srs": 1.0, "strat": 1.2045, "clus1": 9.26}[name] == pytest.approx(wanted, rel=2e-3)
    found = release(
        peers.sample_of(rows, name), peers.numbers(rows, "api00"), statistic, bounds=(200, 1000), epsilon=1e5,
        design_effect=True,
    )  # fmt: skip
    assert found.design_effect == pytest.approx(wanted, rel=5e-3)
    assert found.to_json()["design_effect"] == found.design_effect


STRATA = Stratified([("a", WithoutReplacement(60, 300)), ("b", WithoutReplacement(40, 100))])
STRATUM = np.repeat(["a", "b"], [300, 100])
VALUES = np.random.default_rng(3).normal(np.where(STRATUM == "a", 30.0, 70.0), 15.0)


@pytest.mark.parametrize("noise", [{}, {"noise": "gaussian", "delta": 1e-6}])
@pytest.mark.parametrize("release", [adjust, estimate])
def test_it_is_paid_for_out_of_the_same_budget(release, noise):
    """With it the error of the variance is larger, and the guarantee the same."""

    def made(seed, **more):
        sample = STRATA.draw(Population(400, stratum=STRATUM), seeded_key(seed))
        return release(sample, VALUES, bounds=(0, 100), epsilon=300.0, **noise, **more)

    plain, told = made(6), made(5, design_effect=True)
    delta = noise.get("delta", 0.0)
    assert told.guarantee.epsilon(delta) <= 300.0 * (1 + 1e-9)
    assert told.guarantee.epsilon(delta) == pytest.approx(plain.guarantee.epsilon(delta), rel=1e-2)
    assert "design_effect" not in plain.details
    assert 0.1 < told.design_effect < 0.8  # strata explain most of what differs


def test_none_where_noise_hides_it():
    sample = STRATA.draw(Population(400, stratum=STRATUM), seeded_key(5))
    assert adjust(sample, VALUES, bounds=(0, 100), epsilon=0.01, design_effect=True).design_effect is None


@pytest.mark.parametrize("release", [adjust, estimate])
@pytest.mark.parametrize(("epsilon", "is_told"), [(3.0, False), (30.0, True)])
def test_what_is_told_is_not_made_large_by_noise(release, epsilon, is_told):
    """The median of what is told is the truth, to a quarter, and noise alone tells nothing."""
    stratum = np.repeat(["a", "b"], [1500, 500])
    values = np.where(stratum == "a", 30.0, 60.0) + 10.0 * np.random.default_rng(5).standard_normal(2000)
    design = Stratified({"a": WithoutReplacement(150, 1500), "b": WithoutReplacement(50, 500)})
    within = sum(n / 2000 * values[stratum == h].var(ddof=1) for h, n in (("a", 1500), ("b", 500)))
    true = within / values.var(ddof=1)
    found = [
        release(design, values, bounds=(0, 100), epsilon=epsilon, key=seeded_key(seed), stratum=stratum,
                design_effect=True).design_effect
        for seed in range(60)
    ]  # fmt: skip
    told = [effect for effect in found if effect is not None]
    if not is_told:
        assert len(told) <= 1
    else:
        assert len(told) > 30
        assert np.median(told) == pytest.approx(true, rel=0.25)


def test_noise_of_a_total_counts_too():
    quiet = Effect(squares=2e5, noise=1.0, total=1e4, records=1000.0, weight=10.0)
    assert quiet.of(9e5, 1.0) == pytest.approx(0.99)
    assert replace(quiet, total_noise=1e3).of(9e5, 1.0) is None
    assert quiet.of(-1.0, 1.0) is None


def test_what_cannot_be_compared_is_refused():
    coins = PoissonPPS(0.9, 0.5).draw(Population(400, probability=np.full(400, 0.7)), seeded_key(1))
    with pytest.raises(InvalidInput, match="how many this design draws is secret"):
        adjust(coins, VALUES, bounds=(0, 100), epsilon=1.0, design_effect=True)
    with pytest.raises(InvalidInput, match="adjust gives them"):
        estimate(Poisson(0.5).draw(400, seeded_key(1)), VALUES, "total", bounds=(0, 100), epsilon=1.0,
                 design_effect=True)  # fmt: skip


def test_clusters_have_one_for_nothing():
    design = ClusterSampling(30, 80, 5)
    sample = design.draw(Population(400, cluster=np.arange(400) // 5), seeded_key(1))
    same = VALUES[np.arange(400) // 5 * 5]  # a cluster's records are all alike
    found = estimate(sample, same, bounds=(0, 100), epsilon=1e3)
    assert found.design_effect == pytest.approx(5.0, rel=0.35)


def test_a_reach_that_is_too_small_is_found(monkeypatch):
    honest = Basis.squares_reach
    audit = interviews._loose("Poisson, total, design effect")
    assert audit.perform(20).ok
    monkeypatch.setattr(Basis, "squares_reach", property(lambda self: 0.2 * honest.fget(self)))
    assert not audit.perform(20).ok


def test_squares_of_strata_that_are_too_large_are_found(monkeypatch):
    audit = strata._share_estimate("mean, design effect")
    assert audit.perform(30).ok
    honest = WeightedTotals.squares
    monkeypatch.setattr(WeightedTotals, "squares", lambda self, release, drawn: 40 * honest(self, release, drawn))
    assert not audit.perform(30).ok
