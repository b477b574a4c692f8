"""What sampling on Spark costs, against the least that any Python worker costs: a `mapInArrow` that hands rows through.

    python benchmarks/spark_sample.py            # 10 million rows of 5 columns, embedded Spark on all cores
    python benchmarks/spark_sample.py --rows 1000000

Ratios are to that identity pass in the same run (best of a few, in turn), so the machine cancels. Asked for: Poisson
and privacy-constrained samples within 2.5. Counting repeated ids is a shuffle of the ids, and is shown on its own;
where ids are a primary key it may be left out.
"""

import argparse
import math
import sys
import tempfile
import time
from pathlib import Path

from privamp import (
    ImportanceSampling,
    InvalidInput,
    Laplace,
    LinearProfile,
    Poisson,
    WithoutReplacement,
    privacy_constrained,
)
from privamp.engines.spark import check_unique
from privamp.spark import sample, session

RULE = privacy_constrained(LinearProfile.of(Laplace(scale=40.0)), epsilon=0.5, radius=4.0)


def table(spark, rows, folder):
    """Ids and four columns of numbers between -1 and 1, as Parquet."""
    from pyspark.sql import functions

    numbers = [(functions.hash("id", functions.lit(k)) / 2.0**31).alias(name) for k, name in enumerate("abcd")]
    spark.range(rows).select("id", *numbers).write.parquet(str(folder))
    return spark.read.parquet(str(folder))


def seconds(rows):
    """One evaluation that keeps nothing."""
    start = time.perf_counter()
    rows.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description="the cost of sampling on Spark")
    parser.add_argument("--rows", type=int, default=10**7)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--spark", default="local[*]")
    options = parser.parse_args()
    try:
        spark = session(options.spark)
    except InvalidInput as error:
        sys.exit(print(f"skipped: {error}"))
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder:
        df = table(spark, options.rows, Path(folder, "rows.parquet"))
        importance = ImportanceSampling(RULE)
        runs = {
            "identity": lambda: seconds(df.mapInArrow(lambda batches: batches, df.schema)),
            "Poisson(0.01)": lambda: seconds(sample(df, Poisson(0.01), id="id", trust_ids=True)),
            "privacy-constrained": lambda: seconds(
                sample(df, importance, id="id", reads={"x": ["a", "b", "c", "d"]}, trust_ids=True)
            ),
            "10,000 without replacement": lambda: wor(df, options.rows),
            "repeated ids counted": lambda: timed(lambda: check_unique(df, "id")),
        }
        best = dict.fromkeys(runs, math.inf)
        for turn in range(options.repeats + 1):  # the first warms up
            for name, run in runs.items():
                took = run()
                best[name] = min(best[name], took) if turn else math.inf
    print(f"{options.rows:,} rows of 5 columns, {spark.sparkContext.master}; identity pass {best['identity']:.2f} s")
    for name, took in best.items():
        print(f"  {name:28s} {took / best['identity']:5.2f}  {1e9 * took / options.rows:8.1f} ns a row")
    spark.stop()


def wor(df, rows):
    return timed(lambda: seconds(sample(df, WithoutReplacement(10_000, rows), id="id", trust_ids=True)))


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
