"""Bytes that a draw and a count on Spark bring to the driver and shuffle, for every kind of design.

    python benchmarks/spark_bytes.py                        # 100,000 rows in 8 partitions
    python benchmarks/spark_bytes.py --rows 1000000 --partitions 32

Counted by Spark itself, over all stages of `draw` and `release_count` (results of tasks, with Spark's own metrics of
about a thousand bytes a task, and shuffle writes). Ids are trusted; the search for repeated ones is a row of its own. A
number that grows with the rows, at the same sample size, is marked by running both sizes: `per row` is the difference
over the difference in rows.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from urllib.request import urlopen

from privamp import (
    ClusterSampling,
    ConditionalPoisson,
    ExactLaplace,
    ImportanceSampling,
    InvalidInput,
    Laplace,
    LinearProfile,
    MultiStage,
    Poisson,
    Proportional,
    RandomSize,
    Stratified,
    Systematic,
    WithoutReplacement,
    WithReplacement,
    privacy_constrained,
)
from privamp.engines.spark import check_unique
from privamp.spark import draw
from privamp.testing import seeded_key

RULE = privacy_constrained(LinearProfile.of(Laplace(scale=40.0)), epsilon=0.5, radius=4.0)
SIZE, CLUSTERS = 1_000, 500


def designs(rows):
    """About a thousand records of the table, by each kind of design."""
    small = WithoutReplacement(SIZE // 2, rows // 2)
    return {
        "Poisson": Poisson(SIZE / rows),
        "ImportanceSampling": ImportanceSampling(RULE),
        "WithoutReplacement": WithoutReplacement(SIZE, rows),
        "WithReplacement": WithReplacement(SIZE, rows),
        "MultiStage": MultiStage([("wor", SIZE), ("wr", SIZE)], rows),
        "Stratified, without replacement": Stratified({"0": small, "1": small}),
        "ClusterSampling": ClusterSampling(5, CLUSTERS, rows),
        "ConditionalPoisson": ConditionalPoisson(SIZE, rows, 1.0, 2.0),
        "Proportional": Proportional(SIZE / rows),
        "RandomSize": RandomSize([0.0] * SIZE + [0.5, 0.5] + [0.0] * (rows - SIZE - 1)),
        "Systematic": Systematic(rows // SIZE),
    }


def with_pages():
    """Spark's pages count the bytes; privamp's own session has none."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[*]").config("spark.ui.port", "0")
    for name in ("spark.driver.bindAddress", "spark.driver.host"):
        builder = builder.config(name, "127.0.0.1")
    return builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()


def table(spark, rows, partitions, folder):
    from pyspark.sql import functions

    half, cluster = (functions.pmod("id", functions.lit(k)) for k in (2, CLUSTERS))
    columns = [half.cast("string").alias("stratum"), cluster.cast("long").alias("cluster")]
    more = [functions.lit(1.0).alias(name) for name in ("odds", "a", "b")]
    spark.range(0, rows, 1, partitions).select("id", *columns, *more).write.parquet(str(folder))
    return spark.read.parquet(str(folder)).coalesce(partitions)


def stages(spark):
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    url = f"{spark.sparkContext.uiWebUrl}/api/v1/applications/{spark.sparkContext.applicationId}/stages"
    with urlopen(url) as answer:
        return {(stage["stageId"], stage["attemptId"]): stage for stage in json.loads(answer.read())}


def bytes_of(spark, work):
    """Results and shuffles of the stages that `work` runs."""
    before = set(stages(spark))
    work()
    new = [stage for key, stage in stages(spark).items() if key not in before]
    return sum(stage["resultSize"] for stage in new), sum(stage["shuffleWriteBytes"] for stage in new)


def counted(df, design):
    reads = {"x": ["a", "b"]} if isinstance(design, ImportanceSampling) else None
    if isinstance(design, ImportanceSampling):
        noise = ExactLaplace(scale=40.0)
        drawn = draw(df, design, id="id", key=seeded_key(1), label="rows", trust_ids=True, reads=reads)
        return drawn.release_sum(noise, ["a", "b"])
    drawn = draw(df, design, id="id", key=seeded_key(1), label="rows", trust_ids=True)
    return drawn.release_count(ExactLaplace(scale=40.0))


def measured(spark, rows, partitions):
    with tempfile.TemporaryDirectory() as folder:
        df = table(spark, rows, partitions, Path(folder, "rows.parquet"))
        found = {}
        for name, design in designs(rows).items():
            try:
                found[name] = bytes_of(spark, lambda design=design: counted(df, design))
            except InvalidInput as error:
                print(f"{name}: {error}")
        found["search for repeated ids"] = bytes_of(spark, lambda: check_unique(df, "id"))
    return found


def main():
    parser = argparse.ArgumentParser(description="bytes to the driver and shuffled")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--partitions", type=int, default=8)
    options = parser.parse_args()
    try:
        spark = with_pages()
    except ModuleNotFoundError as error:
        sys.exit(print(f"skipped: {error}"))
    spark.sparkContext.setLogLevel("ERROR")
    more = 4 * options.rows
    few, many = (measured(spark, rows, options.partitions) for rows in (options.rows, more))
    print(f"{options.rows:,} and {more:,} rows, {options.partitions} partitions, samples of about {SIZE:,}")
    print(f"  {'':34s}{'to the driver':>16s}{'per row':>9s}{'shuffled':>14s}{'per row':>9s}")
    for name, small in few.items():
        large = many[name]
        driver, shuffled = ((big - little) / (more - options.rows) for big, little in zip(large, small, strict=True))
        print(f"  {name:34s}{large[0]:16,}{driver:9.2f}{large[1]:14,}{shuffled:9.2f}")
    spark.stop()


if __name__ == "__main__":
    main()
