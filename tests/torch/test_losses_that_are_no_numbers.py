"""Records without a finite loss count as zero, and nothing tells how many there are."""

import logging

import numpy as np
import pytest

pytest.importorskip("torch")

from privamp.audits.records.training import CLASSES, SIDE, Setting, trained
from privamp.torch.plan import AS_ZERO, NO_STOP, Plan


def told(rows, caplog):
    caplog.clear()
    with caplog.at_level(logging.DEBUG, logger="privamp"):
        parameters, *said = trained(Setting(), rows)
    assert all(np.all(np.isfinite(p)) for p in parameters)
    return said, [record.getMessage() for record in caplog.records]


def test_a_run_in_which_no_loss_is_a_number_says_what_every_run_says(caplog, capsys):
    rng = np.random.default_rng(0)
    good = [
        (row, int(label)) for row, label in zip(rng.normal(size=(8, SIDE)), rng.integers(0, CLASSES, 8), strict=True)
    ]
    bad = [(np.full(SIDE, np.nan), label) for _, label in good]
    one, other = told(good, caplog), told(bad, caplog)
    assert one == other
    assert any(AS_ZERO in line for line in one[1])
    assert capsys.readouterr() == ("", "")


def test_the_guarantee_says_it():
    plan = Plan(sampler="uniform", steps=1, noise_multiplier=1.0, clip=1.0, population=10, rate=0.5)
    assert {AS_ZERO, NO_STOP} <= {*plan.guarantee().assumes}
