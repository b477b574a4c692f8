"""A design of one's own on a cluster: its file is sent to the workers, and everything else is as for any design."""

import json
from typing import Any

import pytest

from privamp import ExactLaplace, Guarantee, Neighbors, PrivateSum
from privamp.core.ledger import REGISTRY
from privamp.spark import draw, release, sample
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


def test_a_certified_sum_is_that_of_memory(spark: Any, records: Any) -> None:
    asked, key = PrivateSum(bounds=2.0, epsilon=1.0, sampler=DESIGN), seeded_key(853)
    here = asked.release(records.x, key=key)
    REGISTRY.clear()  # a rehearsal with a known seed, not a second release
    rows = spark.createDataFrame(records.arrow().set_column(0, "uid", [list(range(N))]))
    there = release(asked, rows.repartition(5, "a"), ["a", "b"], id="uid", key=key, trust_ids=True)
    assert there.value.tolist() == here.value.tolist()
    assert there.guarantee.neighbors == Neighbors.REPLACE_ONE
    assert there.guarantee.epsilon() == here.guarantee.epsilon() <= 1.0
    assert any("Truncated Poisson, one replaced" in line for line in there.guarantee.because)
    certificate = json.loads(json.dumps(there.guarantee.to_json()))
    assert Guarantee.from_json(certificate).claims[0].design == DESIGN


def test_its_ledger_composes_inside_the_sample(table: Any) -> None:
    drawn = draw(table, DESIGN, id="uid", key=seeded_key(854), trust_ids=True)
    noise = ExactLaplace(scale=8.0, sensitivity=1.0)
    drawn.release_count(noise)
    once = drawn.guarantee().epsilon()
    drawn.release_count(noise)
    assert once < drawn.guarantee().epsilon()
    assert len(drawn.ledger.entries) == 2
