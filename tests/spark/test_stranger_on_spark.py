"""A design of one's own on a cluster: its file is sent to the workers, and everything else is as for any design."""

from typing import Any

import pytest

from privamp.spark import sample
from privamp.testing import seeded_key
from stranger import FILE, TruncatedPoisson

N = 2000
DESIGN = TruncatedPoisson(0.05, 90, N)


@pytest.fixture(scope="module", autouse=True)
def sent(spark: Any) -> None:
    spark.sparkContext.addPyFile(str(FILE))


def test_it_draws_what_memory_draws_on_any_partitions(table: Any, records: Any) -> None:
    expected = records.in_memory(DESIGN, seeded_key(851))
    assert 0 < len(expected) <= 90
    for partitions in (1, 7):
        rows = sample(table.repartition(partitions), DESIGN, id="uid", key=seeded_key(851), trust_ids=True)
        assert records.on_spark(rows) == expected


def test_it_is_cut_to_the_most_it_may_hold(table: Any, records: Any) -> None:
    many = TruncatedPoisson(0.5, 90, N)
    assert len(records.on_spark(sample(table, many, id="uid", key=seeded_key(852), trust_ids=True))) == 90
