"""Frames as people have them: what can be sampled is, the rest is refused in a sentence."""

import inspect

import numpy as np
import pytest

from privamp import ExactLaplace, Poisson, Stratified, WithoutReplacement
from privamp import spark as engine
from privamp.engines import spark_files, spark_session
from privamp.errors import InvalidInput
from privamp.testing import seeded_key

KEY = seeded_key(4)
NOISE = ExactLaplace(scale=1e-6, sensitivity=1.0)  # next to none, to see the sum


@pytest.fixture(scope="module")
def people(spark):
    from pyspark.sql import functions

    times = functions.timestamp_seconds(functions.col("id"))
    return spark.range(1000).select(
        "id", (functions.col("id") % 2).cast("double").alias("x"), times.alias("at"),
        times.cast("timestamp_ntz").alias("naive"), times.cast("date").alias("day"),
        (functions.col("id") % 3).cast("decimal(10,0)").alias("region"),
    )  # fmt: skip


def drawn(df, design=None, **reads):
    found = engine.sample(df, design or Poisson(0.3), id="id", key=KEY, label="people", reads=reads or None)
    return sorted(row.id for row in found.select("id").collect())


def test_times_and_dates_come_with_the_rows(people):
    rows = engine.sample(people, WithoutReplacement(20, 1000), id="id", key=KEY, label="people").toPandas()
    assert len(rows) == 20
    assert (rows["at"].astype("int64") // 10**6 % 10**6 >= 0).all()


def test_decimals_without_places_are_strata(people):
    design = Stratified({0: Poisson(0.1), 1: Poisson(0.5), 2: Poisson(1.0)})
    found = drawn(people, design, stratum="region")
    whole = people.withColumn("region", people.region.cast("int"))
    assert found == drawn(whole, design, stratum="region")
    assert set(range(2, 1000, 3)) <= set(found)
    with pytest.raises(InvalidInput, match="whole numbers or text"):
        drawn(people.withColumn("region", people.region.cast("decimal(10,1)")), design, stratum="region")


def test_groups_of_numpy(people):
    sample = engine.draw(people.withColumn("g", people.id % 3), Poisson(1.0), id="id", key=KEY, label="people")
    assert np.round(sample.release_count(NOISE, by="g", groups=np.arange(3))).tolist() == [334, 333, 333]


def test_vectors_are_arrays(spark, people, tmp_path):
    from pyspark.ml.functions import array_to_vector
    from pyspark.sql import functions

    vectors = people.select("id", array_to_vector(functions.array("x", "x")).alias("v"))
    vectors.write.parquet(str(tmp_path / "vectors"))
    table = spark.read.parquet(str(tmp_path / "vectors"))
    assert type(table.schema["v"].dataType).__name__ == "VectorUDT"
    sample = engine.draw(table, Poisson(1.0), id="id", key=KEY, label="people")
    halves = sample.release_sum(ExactLaplace(scale=1e-6, sensitivity=2.0), "v", dimension=2)
    assert np.round(halves).tolist() == [500, 500]


@pytest.mark.filterwarnings("ignore")
def test_a_frame_of_pyspark_pandas(spark, people):
    was = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "false")  # PySpark 4.0 makes such frames only then
    try:
        assert drawn(people.select("id", "x").pandas_api()) == drawn(people)
    finally:
        spark.conf.set("spark.sql.ansi.enabled", was)


def test_times_are_in_utc_for_every_version_of_pyspark(people, monkeypatch):
    """PySpark 4.0 takes no time zone: all types were null there."""
    schema = spark_session.arrow_schema(people)
    assert [str(kind) for kind in schema.types[:3]] == ["int64", "double", "timestamp[us, tz=UTC]"]
    from pyspark.sql.pandas import types

    newer = types.to_arrow_type
    monkeypatch.setattr(
        types,
        "to_arrow_type",
        (lambda dt, error=False, utc=True: newer(dt, timezone="UTC"))
        if "timezone" in inspect.signature(newer).parameters
        else (lambda dt, timezone=None: newer(dt)),
    )
    assert spark_session.arrow_schema(people) == schema


def test_what_is_refused(spark, people):
    from pyspark.sql import functions

    twice = people.select("id", "x", functions.col("x").alias("X"))
    stream = spark.readStream.format("rate").load().withColumn("id", functions.col("value"))
    tick = people.withColumnRenamed("x", "a`b")
    for frame, rule in (
        (twice, "two columns named 'X'"),
        (stream, "has no end"),
        ([1, 2], "must be a Spark DataFrame"),
    ):
        with pytest.raises(InvalidInput, match=rule):
            drawn(frame)
    sample = engine.draw(tick, Poisson(0.5), id="id", key=KEY, label="people")
    with pytest.raises(InvalidInput, match="has a backtick"):
        sample.release_sum(NOISE, "a`b")
    with pytest.raises(InvalidInput, match="at least one column"):
        sample.release_sum(NOISE, [])


@pytest.mark.parametrize("name", ["a.b", "a`b", "a.`b c"])
def test_columns_of_any_name_come_with_the_rows(people, name):
    table = people.select("id", "x").withColumnRenamed("x", name)
    for design in (Poisson(0.3), WithoutReplacement(300, 1000)):
        rows = engine.sample(table, design, id="id", key=KEY, label="people").toArrow()
        assert rows["id"].to_pylist() == drawn(people, design)
        assert rows[name].to_pylist() == [k % 2 for k in rows["id"].to_pylist()]
    sample = engine.draw(table, Poisson(0.3), id="id", key=KEY, label="people").persist()
    assert round(float(sample.release_count(NOISE))) == len(drawn(people))
    if "`" not in name:
        assert round(float(sample.release_sum(NOISE, name))) == sum(k % 2 for k in drawn(people))


def test_a_label_that_ends_with_nul_stops_no_job(people):
    from pyspark.sql import functions

    odd = people.withColumn("region", functions.when(functions.col("id") == 3, "a\0").otherwise("a"))
    sample = engine.draw(
        odd, Stratified({"a": Poisson(1.0)}), id="id", key=KEY, label="people", reads={"stratum": "region"}
    )
    assert round(float(sample.release_count(NOISE))) == 999


def test_an_older_pyspark_is_named(monkeypatch):
    pytest.importorskip("pyspark")
    monkeypatch.setattr(spark_session, "version", lambda name: "3.5.1")
    with pytest.raises(InvalidInput, match=r"needs PySpark 4\.0 or newer, got 3\.5\.1"):
        spark_session.check_pyspark()


@pytest.mark.parametrize("log", ["_delta_log/0.json", ".hoodie/x", "metadata/v1.metadata.json"])
def test_files_of_a_table_with_a_log_are_refused_by_any_way(spark, people, tmp_path, log):
    where = tmp_path / "lake"
    people.select("id", "x").write.parquet(f"{where}/data")
    table = spark.read.parquet(f"{where}/data")
    assert len(drawn(table)) > 200
    (where / log).parent.mkdir()
    (where / log).write_text("{}")
    for frame in (table, table.cache(), table.filter("id > 3"), spark.read.parquet(f"{where}/data/*.parquet")):
        with pytest.raises(InvalidInput, match="erased or outdated rows"):
            drawn(frame)


def test_tables_of_a_catalog_and_other_formats(spark, people, tmp_path):
    people.select("id", "x").createOrReplaceTempView("people_view")
    assert drawn(spark_files.read(spark, "table:people_view")) == drawn(people)
    people.select("id", "x").write.orc(str(tmp_path / "orc"))
    assert drawn(spark_files.read(spark, str(tmp_path / "orc"), format="orc")) == drawn(people)
    with pytest.raises(InvalidInput, match="has no table 'nobody'"):
        spark_files.read(spark, "table:nobody")
    with pytest.raises(InvalidInput, match="as delta"):
        spark_files.read(spark, str(tmp_path / "orc"), format="delta")


def test_a_sample_can_be_kept_and_released_from_many_times(spark, people, tmp_path):
    people.select("id", "x").write.parquet(str(tmp_path / "people"))
    table = spark.read.parquet(str(tmp_path / "people"))
    sample = engine.draw(table, Poisson(0.3), id="id", key=KEY, label="people")
    first = round(float(sample.release_sum(NOISE, "x")))
    sample.persist()
    assert [round(float(sample.release_sum(NOISE, "x"))) for _ in range(2)] == [first, first]
    assert round(float(sample.release_count(NOISE))) == len(drawn(table))
    for file in (tmp_path / "people").glob("*.parquet"):
        file.unlink()  # the table is gone: kept rows answer, the table does not
    assert round(float(sample.release_sum(NOISE, "x"))) == first
    sample.unpersist()
    with pytest.raises(InvalidInput):
        sample.release_sum(NOISE, "x")


def test_kept_rows_that_changed_are_noticed(people):
    from pyspark.sql import functions

    sample = engine.draw(people, WithoutReplacement(50, 1000), id="id", key=KEY, label="people").persist()
    kept = sample._draw
    other = kept.df.withColumn("privamp_weight", functions.col("privamp_weight") * 2)
    object.__setattr__(kept, "df", other)
    with pytest.raises(InvalidInput, match="changed"):
        sample.release_sum(NOISE, "x")
