"""Ids that Spark would make anew when a cache is lost are refused, wherever in the plan they are made."""

import uuid
from typing import Any

import pytest

from privamp import ExactLaplace, InvalidInput, Poisson
from privamp.spark import draw, sample

REFUSED = "every evaluation would be another sample; write the table to files first"


def refused(rows: Any, id: str = "made") -> None:
    with pytest.raises(InvalidInput, match=REFUSED):
        sample(rows, Poisson(0.5), id=id, trust_ids=True)


def test_a_cache_hides_nothing(table: Any) -> None:
    from pyspark.sql import functions

    made = table.withColumn("made", functions.expr("uuid()")).cache()
    try:
        made.count()
        refused(made)
        refused(made.select("made", "a").filter("a > 0"))
        refused(made.withColumn("other", functions.upper("made")), "other")
        made.createOrReplaceTempView("made_once")
        refused(made.sparkSession.table("made_once"))
    finally:
        made.unpersist()


def test_clocks_code_and_open_orders(table: Any) -> None:
    from pyspark.sql import Window, functions

    made_up = functions.udf(lambda name: str(uuid.uuid4()), "string")
    when = functions.concat(functions.current_timestamp().cast("string"), functions.col("name"))
    for made in (
        made_up("name"),
        when,
        functions.concat(functions.expr("now()").cast("string"), functions.col("name")),
        functions.row_number().over(Window.orderBy("stratum")),
    ):
        refused(table.withColumn("made", made).cache())


def test_rows_that_come_and_go(table: Any) -> None:
    from pyspark.sql import functions

    refused(table.filter(functions.rand() < 0.5), "uid")
    refused(table.sample(0.5, seed=1), "uid")
    refused(table.mapInArrow(lambda batches: batches, table.schema), "uid")
    refused(table.union(table.withColumn("uid", functions.expr("cast(rand() * 1e15 as long)"))), "uid")
    refused(table.filter(functions.current_timestamp() > "2020-01-01"), "uid")


def test_columns_that_do_not_decide_may_come_from_anywhere(table: Any) -> None:
    from pyspark.sql import functions

    shout = functions.udf(lambda name: name.upper(), "string")
    other = table.withColumn("made", functions.rand()).withColumn("when", functions.current_timestamp())
    other = other.withColumn("loud", shout("name")).union(other.withColumn("loud", shout("name")))
    assert "loud" in sample(other, Poisson(0.5), id="uid", trust_ids=True).columns
    for rows in (table.groupBy("uid").agg(functions.sum("a").alias("a")), table.join(table.select("uid"), "uid")):
        assert "a" in sample(rows, Poisson(0.5), id="uid", trust_ids=True).columns


def test_sums_of_random_columns_are_refused(table: Any) -> None:
    from pyspark.sql import functions

    rows = draw(table.withColumn("made", functions.rand(seed=1)), Poisson(0.5), id="uid", trust_ids=True)
    with pytest.raises(InvalidInput, match="give a row another value when others come or go"):
        rows.release_sum(ExactLaplace(scale=5.0), "made")
