"""Fixed sizes in one scan: the sample of memory, decided by one task, for tables that are files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from privamp import InvalidInput, MultiStage, Poisson, WithoutReplacement, WithReplacement
from privamp.engines import spark_gathered
from privamp.spark import sample
from privamp.testing import seeded_key

N = 2000
DESIGNS = [WithoutReplacement(40, N), WithReplacement(40, N - 7), MultiStage([("wor", 40), ("wr", 30)], N)]


@pytest.fixture(scope="module")
def files(spark: Any, records: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The table in seven files, the last of which has no row."""
    folder, table = tmp_path_factory.mktemp("gathered"), records.arrow().drop_columns(["x"])
    for k in range(7):
        parquet.write_table(table.slice(k * 334, 334 if k < 6 else 0), folder / f"{k}.parquet")
    return spark.read.parquet(str(folder))


@pytest.fixture
def jobs(spark: Any) -> Callable[[], int]:
    """How many jobs Spark has run since."""

    def number() -> int:
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        return len(spark.sparkContext.statusTracker().getJobIdsForGroup(None))

    before = number()
    return lambda: number() - before


def is_gathered(rows: Any) -> bool:
    return "privamp_may_draw" in (plan := str(rows._jdf.queryExecution().toString())) and "SinglePartition" in plan


@pytest.mark.parametrize("id", ["uid", "name"])
@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: type(design).__name__)
def test_the_sample_is_that_of_memory(files: Any, records: Any, design: Any, id: str) -> None:
    key = seeded_key(921)
    rows = sample(files, design, id=id, key=key, trust_ids=True)
    assert is_gathered(rows)
    assert is_gathered(sample(files.repartition(2).filter("a > -9").cache(), design, id=id, key=key, trust_ids=True))
    expected = records.in_memory(design, key, id)
    assert expected
    assert records.on_spark(rows, id) == expected == records.on_spark(rows.repartition(3), id)
    assert rows.columns == [*files.columns, "privamp_weight", "privamp_count"]
    assert rows.toArrow().equals(rows.toArrow())  # in one order


def test_every_value_of_a_row_comes_along(spark: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions

    times = functions.timestamp_seconds("id")
    made = spark.range(N).select(
        "id", times.alias("at"), times.cast("timestamp_ntz").alias("naive"), times.cast("date").alias("day"),
        functions.col("id").cast("decimal(38,3)").alias("money"), functions.lit(None).cast("string").alias("nothing"),
        (functions.col("id") % 2 == 0).alias("even"), functions.concat(functions.lit("ä"), "id").alias("a.b `c"),
    )  # fmt: skip
    made.write.parquet(str(tmp_path / "rows"))
    table = spark.read.parquet(str(tmp_path / "rows"))
    rows = sample(table, WithoutReplacement(40, N), id="id", key=seeded_key(922), trust_ids=True)
    assert is_gathered(rows)
    assert rows.drop("privamp_weight", "privamp_count").exceptAll(table).count() == 0
    assert rows.count() == 40


def test_one_scan(files: Any, jobs: Callable[[], int], monkeypatch: pytest.MonkeyPatch) -> None:
    rows = sample(files, DESIGNS[0], id="uid", key=seeded_key(923), trust_ids=True)
    once = jobs()  # counts the rows
    assert rows.count() == 40
    monkeypatch.setattr(spark_gathered, "_CELLS", 0)
    before = jobs()
    assert sample(files, DESIGNS[0], id="uid", key=seeded_key(923), trust_ids=True).count() == 40
    assert jobs() - before > once + 1  # the twin: two passes take more jobs before the rows are asked for


def test_what_is_not_files_takes_two_passes(spark: Any, files: Any, table: Any) -> None:
    key = seeded_key(924)
    hidden = spark.createDataFrame(files.rdd, files.schema)
    joined = files.join(hidden.select("uid"), "uid", "left_semi")
    hidden.createOrReplaceTempView("privamp_hidden")
    asked = files.filter("uid in (select uid from privamp_hidden)")
    some = files.union(files.limit(5).filter("false"))  # which rows a limit takes depends on their order
    for rows in (hidden, joined, asked, table, some, files.union(hidden.limit(0)), hidden.cache()):
        assert not is_gathered(sample(rows, DESIGNS[0], id="uid", key=key, trust_ids=True))


@pytest.mark.parametrize("kind", ["array(a, b)", "struct(a, b)", "cast(name as binary)", "map(name, a)"])
def test_wide_values_stay_where_they_are(files: Any, kind: str) -> None:
    from pyspark.sql import functions

    wide = files.withColumn("wide", functions.expr(kind))
    assert not is_gathered(sample(wide, DESIGNS[0], id="uid", key=seeded_key(925), trust_ids=True))


def test_a_population_that_is_declared_too_large_is_refused_at_once(files: Any) -> None:
    with pytest.raises(InvalidInput, match="declares a population of at least 2001 records but fewer were given"):
        sample(files, WithoutReplacement(40, N + 1), id="uid", trust_ids=True)


def test_ids_that_repeat_are_refused(spark: Any, files: Any, tmp_path: Path) -> None:
    twice = files.union(files)
    with pytest.raises(InvalidInput, match="ids must be unique"):
        sample(twice, DESIGNS[0], id="uid")
    trusted = sample(twice, DESIGNS[0], id="uid", key=seeded_key(926), trust_ids=True)
    assert is_gathered(trusted)
    with pytest.raises(Exception, match="ids repeat, or two text ids share a 64-bit ticket"):
        trusted.collect()
    parquet.write_table(pa.table({"uid": pa.array([None, *range(1, N)], pa.int64())}), tmp_path / "odd.parquet")
    odd = sample(spark.read.parquet(str(tmp_path)), DESIGNS[0], id="uid", key=seeded_key(926), trust_ids=True)
    with pytest.raises(Exception, match="has missing ids"):
        odd.collect()


def test_one_pass_designs_are_not_gathered(files: Any) -> None:
    assert not is_gathered(sample(files, Poisson(0.05), id="uid", key=seeded_key(928), trust_ids=True))


def test_a_table_of_the_catalog_is_not_read_in_one_scan(spark: Any, tmp_path: Path) -> None:
    """Its frame lists files anew after an insert; two passes keep who was drawn."""
    spark.sql("DROP TABLE IF EXISTS growing_people")
    people = spark.range(1000).selectExpr("id", "2 * id AS v").write
    people.option("path", str(tmp_path / "people")).saveAsTable("growing_people")
    try:
        rows = sample(spark.table("growing_people"), WithoutReplacement(20, 1000), id="id", key=seeded_key(929))
        assert not is_gathered(rows)
        before = {row.id for row in rows.collect()}
        spark.range(1000, 5000).selectExpr("id", "2 * id AS v").write.mode("append").insertInto("growing_people")
        assert {row.id for row in rows.selectExpr("*").collect()} == before
    finally:
        spark.sql("DROP TABLE growing_people")


def test_rows_that_were_appended_after_the_count_are_refused(spark: Any, tmp_path: Path) -> None:
    """A frame that was cached when files were added lists them once it is no longer cached."""
    people = str(tmp_path / "people")
    spark.range(1000).selectExpr("id", "2 * id AS v").write.parquet(people)
    frame = spark.read.parquet(people).cache()
    rows = sample(frame, WithoutReplacement(20, 1000), id="id", key=seeded_key(930))
    assert is_gathered(rows)
    before = {row.id for row in rows.collect()}
    assert len(before) == 20
    spark.range(1000, 5000).selectExpr("id", "2 * id AS v").write.mode("append").parquet(people)
    frame.unpersist()
    with pytest.raises(Exception, match="more or fewer rows than when the sample was drawn"):
        rows.selectExpr("*").collect()
