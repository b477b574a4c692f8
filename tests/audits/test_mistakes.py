"""The auditor finds every planted mistake, and finds nothing in the same thing done right."""

import pytest

from privamp import Gaussian, Laplace, MultiStage, Neighbors, NormNoise, Poisson, WithoutReplacement, WithReplacement
from privamp.audits.audit import performed
from privamp.audits.planted import PLANTED
from privamp.audits.release import Attacked, release_audit
from privamp.errors import InvalidInput


@pytest.mark.parametrize("make", PLANTED, ids=lambda make: make.__name__)
def test_every_planted_mistake_is_found(make):
    (found,) = performed([make()], confidence=0.99)
    assert found.refuted, f"{found.name}: claimed {found.claimed}, demonstrated only {found.shown}"


@pytest.mark.slow
@pytest.mark.parametrize("make", PLANTED, ids=lambda make: make.__name__)
def test_the_power_against_each_mistake_is_at_least_95_percent(make):
    audit = make()
    missed = sum(not next(performed([audit])).refuted for _ in range(40))
    assert missed <= 1, f"{audit.name} was missed {missed} times of 40"


@pytest.mark.parametrize(
    ("mechanism", "design", "options"),
    [
        (Laplace(1.0), Poisson(0.3), {}),
        (Gaussian(1.0), Poisson(0.3), {"delta": 1e-3}),
        (Laplace(2.0), Poisson(0.2), {"queries": 3}),
        (Gaussian(2.0), Poisson(0.2), {"steps": 3, "delta": 1e-3}),
        (Laplace(1.0), WithoutReplacement(5, 20), {}),
        (Gaussian(2.0, 2.0, Neighbors.REPLACE_ONE), WithReplacement(5, 10), {"delta": 1e-3}),
        (Gaussian(2.0, 2.0, Neighbors.REPLACE_ONE), MultiStage([("wor", 5), ("wr", 8)], 20), {"delta": 1e-3}),
        (NormNoise(1.0, 3), Poisson(0.5), {}),
    ],
    ids=str,
)
def test_what_is_certified_is_not_refuted(mechanism, design, options):
    audit = release_audit(mechanism, design, attacked=Attacked(trials=600, **options))
    (found,) = performed([audit], confidence=0.9999)
    assert not found.refuted


def test_a_claim_that_is_too_small_is_refuted():
    audit = release_audit(Laplace(1.0), Poisson(0.5), attacked=Attacked(claimed=0.1, trials=3000))
    assert next(performed([audit])).refuted


def test_processes_give_the_runs_of_one_world_each():
    audits = [
        release_audit(Laplace(1.0), Poisson(1.0), attacked=Attacked(trials=500)),
        release_audit(Laplace(2.0), Poisson(0.5), attacked=Attacked(trials=700)),
    ]
    assert [found.trials for found in performed(audits, jobs=2)] == [500, 700]


def test_a_design_of_other_than_plain_records_is_refused_in_one_sentence():
    from privamp import ClusterSampling

    with pytest.raises(InvalidInput, match="plain records"):
        release_audit(Laplace(1.0), ClusterSampling(2, 5, 3))
