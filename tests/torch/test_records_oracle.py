"""The second oracle on training steps; the other jobs are asked in tests/audits."""

import pytest

pytest.importorskip("torch", reason="torch is not installed (make test-torch)")

from privamp.audits.records import training

PAIRS = 12


@pytest.mark.parametrize("audit", [make() for make in training.JOBS], ids=lambda audit: audit.name)
def test_one_record_moves_no_more_than_a_clip(audit):
    if audit.missing:
        pytest.skip(f"needs {audit.missing}")
    report = audit.perform(PAIRS)
    assert report.ok, str(report)


@pytest.mark.parametrize("audit", [make() for make in training.PLANTED], ids=lambda audit: audit.name)
def test_planted_mistakes_are_found(audit):
    assert not audit.perform(2 * PAIRS).ok
