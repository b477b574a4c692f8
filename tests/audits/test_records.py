"""Every job that ships moves no more than it declares, and every planted mistake is found."""

from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from privamp.audits import records

FOUND = 60  # pairs in which a planted mistake is found; `privamp audit records --pairs N` asks with more


def named(audits):
    return [pytest.param(audit, id=audit.name) for audit in audits]


def runnable(audit):
    if audit.missing:
        pytest.skip(f"needs {audit.missing}")
    return audit


@pytest.mark.parametrize("audit", named(records.jobs()))
def test_one_record_moves_no_more_than_declared(audit):
    report = runnable(audit).perform(audit.quick)
    assert report.ok, str(report)


def is_caught_early(audit):
    """By a few pairs; that too few of them reached a release says something of many pairs only."""
    few = (told for pairs in (3, FOUND // 3) for told in audit.perform(pairs).violations)
    return any("too little was checked" not in told for told in few)


@pytest.mark.parametrize("audit", named(records.planted()))
def test_every_planted_mistake_is_found(audit):
    runnable(audit)
    assert is_caught_early(audit) or not audit.perform(FOUND).ok  # the first pairs of the same list


def test_every_planted_mistake_is_listed():
    page = (Path(__file__).parents[2] / "docs" / "audit.md").read_text(encoding="utf-8")
    assert not [audit.name for audit in records.planted() if f"`{audit.name}`" not in page]


def test_names_are_different():
    names = [audit.name for audit in (*records.jobs(), *records.planted())]
    assert len(set(names)) == len(names)


@pytest.mark.slow
@pytest.mark.parametrize("audit", named(records.jobs()))
def test_with_many_pairs_and_other_seeds(audit):
    report = runnable(audit).perform(40 * audit.quick, seed=20)
    assert report.ok, str(report)


def test_every_hard_record_comes_up_before_any_comes_up_again():
    audit = next(audit for audit in records.jobs() if audit.name == "array sum, Laplace, 1")
    seen = [pair.record for pair in islice(audit._rounds(0), 60)]
    kinds = {pair.record for pair in audit.pairs(np.random.default_rng(0))}
    assert {*seen[: len(kinds)]} == kinds
