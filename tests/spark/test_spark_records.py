"""The jobs on Spark, asked what one record moves, with a few pairs each: every run is a few Spark jobs."""

from typing import Any

import pytest

from privamp.audits.records import spark as jobs

PAIRS = 5  # `privamp audit records --pairs N` asks with more


@pytest.mark.parametrize("make", jobs.JOBS, ids=lambda make: make().name)
def test_one_record_moves_no_more_than_declared(spark: Any, make: Any) -> None:
    report = make().perform(PAIRS)
    assert report.ok, str(report)


@pytest.mark.parametrize("make", jobs.PLANTED, ids=lambda make: make().name)
def test_every_planted_mistake_is_found(spark: Any, make: Any) -> None:
    assert not make().perform(3 * PAIRS).ok
