"""Every job that ships, attacked end to end: none may lose more than it claims."""

import math

import numpy as np
import pytest
from typer.testing import CliRunner

from privamp import Key
from privamp.audits.audit import Audit, performed
from privamp.audits.workloads import DELTA, WORKLOADS, importance_sum, many_queries, private_sum, survey_simple
from privamp.cli.application import app

BLUNT = 0.2  # of the claim, which every attack here demonstrates with all its runs


@pytest.mark.parametrize("make", WORKLOADS, ids=lambda make: make.__name__)
def test_every_workload_claims_and_runs(make):
    audit = make()
    assert isinstance(audit, Audit)
    assert math.isfinite(audit.claimed)
    assert audit.delta in (0.0, DELTA)
    assert audit.trials >= 1000
    for there in (True, False):
        scores = audit.run(there, 8)
        assert scores.shape == (8, 1)
        assert np.all(np.isfinite(scores))


@pytest.mark.parametrize("make", [private_sum, importance_sum, survey_simple, many_queries], ids=lambda m: m.__name__)
def test_a_few_hundred_runs_refute_nothing(make):
    (found,) = performed([make()], trials=300, confidence=0.99999)
    assert not found.refuted


@pytest.mark.slow
@pytest.mark.parametrize("make", WORKLOADS, ids=lambda make: make.__name__)
def test_the_full_attack_has_teeth_and_refutes_nothing(make):
    (found,) = performed([make()], confidence=0.999)
    assert BLUNT * found.claimed < found.shown <= found.claimed


def test_a_workload_that_claims_half_of_its_loss_is_refuted():
    """The same attack on the same runs: only the claim is false."""
    audit = private_sum()
    false = Audit(audit.name, audit.what, audit.claimed / 2.0, audit.run, score=audit.score)
    (found,) = performed([false], trials=1500)
    assert found.refuted


def test_every_run_takes_a_fresh_key(monkeypatch):
    made = []
    real = Key.generate
    monkeypatch.setattr(Key, "generate", classmethod(lambda cls: made.append(real()) or made[-1]))
    audit = private_sum()
    audit.run(True, 5)
    assert len({key.fingerprint for key in made}) == len(made) >= 6


def test_the_command_names_the_audits_it_has():
    result = CliRunner().invoke(app, ["audit", "workloads", "--only", "horoscope"])
    assert result.exit_code == 2
    assert "private sum" in result.output
