"""Only the columns that decide and those that are summed are read and handed to Python."""

import re
from pathlib import Path
from typing import Any

import pytest

from privamp import ExactLaplace, Poisson, Stratified
from privamp.engines import spark_messages
from privamp.spark import draw
from privamp.testing import seeded_key

NOISE = ExactLaplace(scale=20.0, sensitivity=3.0)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """The columns in the physical plan of every job since, by its ReadSchema."""
    found: list[set[str]] = []
    received = spark_messages.received

    def seen(parts: Any, secret: bytes) -> Any:
        plan = str(parts._jdf.queryExecution().executedPlan().toString())
        found.extend(set(re.findall(r"(\w+):", schema)) for schema in re.findall(r"ReadSchema: struct<(.*)>", plan))
        return received(parts, secret)

    monkeypatch.setattr(spark_messages, "received", seen)
    return found


def test_one_of_101_columns(spark: Any, tmp_path: Path, read: list[set[str]]) -> None:
    many = [f"id * {k} as x{k}" for k in range(100)]
    spark.range(200).selectExpr("id", *many, "'e' as stratum").write.parquet(str(tmp_path / "wide"))
    table = spark.read.parquet(str(tmp_path / "wide"))
    drawn = draw(table, Poisson(0.5), id="id", key=seeded_key(911), trust_ids=True)
    drawn.release_sum(NOISE, "x7")
    drawn.release_count(NOISE)
    assert read == [{"id"}, {"id", "x7"}, {"id"}]
    strata = draw(table, Stratified({"e": Poisson(0.5)}), id="id", key=seeded_key(912), trust_ids=True)
    strata.release_sum(NOISE, "x7", by="stratum", groups=["e"])
    assert read[3:] == [{"id", "stratum"}, {"id", "stratum", "x7"}]
