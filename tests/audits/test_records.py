"""Every job that ships moves no more than it declares, and every planted mistake is found."""

import pytest

from privamp.audits import records

PAIRS = 60  # of each job; `privamp audit records --pairs N` asks with more


def named(audits):
    return [pytest.param(audit, id=audit.name) for audit in audits]


def runnable(audit):
    if audit.missing:
        pytest.skip(f"{audit.missing} is not installed")
    return audit


@pytest.mark.parametrize("audit", named(records.jobs()))
def test_one_record_moves_no_more_than_declared(audit):
    report = runnable(audit).perform(PAIRS)
    assert report.ok, str(report)


@pytest.mark.parametrize("audit", named(records.planted()))
def test_every_planted_mistake_is_found(audit):
    assert not runnable(audit).perform(PAIRS).ok


def test_names_are_different():
    names = [audit.name for audit in (*records.jobs(), *records.planted())]
    assert len(set(names)) == len(names)


@pytest.mark.slow
@pytest.mark.parametrize("audit", named(records.jobs()))
def test_with_many_pairs_and_other_seeds(audit):
    report = runnable(audit).perform(2000, seed=20)
    assert report.ok, str(report)
