"""What sampling on Spark costs, against a plain scan of the same columns by Spark's own JVM.

    python benchmarks/spark_sample.py                         # 10 million rows of 5 columns, embedded Spark
    python benchmarks/spark_sample.py --workers 2             # a standalone cluster of two workers of one core
    python benchmarks/spark_sample.py --ways                  # also other ways to find the drawn rows
    python benchmarks/spark_sample.py --wide 101              # also one column of a wide table
    python benchmarks/spark_sample.py --make --folder people  # only write the table, then give --folder again

A scan writes the columns to Spark's sink `noop`. Ratios are to the scan of the same columns in the same run (best of a
few, in turn), so the machine cancels; the identity pass is a `mapInArrow` that hands every row through Python. Asked
for: Poisson within 2 scans, privacy-constrained and fixed-size samples within 2.5.
"""

import argparse
import math
import os
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pyarrow as pa
from spark_cluster import cluster

from privamp import (
    ExactLaplace,
    ImportanceSampling,
    InvalidInput,
    Laplace,
    LinearProfile,
    Poisson,
    WithoutReplacement,
    privacy_constrained,
)
from privamp.chance.keys import Key
from privamp.engines.kernel import Kernel
from privamp.engines.spark import check_unique
from privamp.engines.spark_draw import Draw
from privamp.spark import draw, sample, session

RULE = privacy_constrained(LinearProfile.of(Laplace(scale=40.0)), epsilon=0.5, radius=4.0)
NOISE = ExactLaplace(scale=40.0)
RATE, SIZE = 0.01, 10_000
PAIR = ("id", "a")


def written(spark, rows, folder, columns=4):
    """Ids and columns of numbers between -1 and 1, as Parquet."""
    from pyspark.sql import functions

    names = [*"abcd", *(f"x{k}" for k in range(4, columns))][:columns]
    numbers = [(functions.hash("id", functions.lit(k)) / 2.0**31).alias(name) for k, name in enumerate(names)]
    if not Path(folder).exists():
        spark.range(rows).select("id", *numbers).write.parquet(str(folder))
    return spark.read.parquet(str(folder))


def evaluated(rows):
    """One evaluation that keeps nothing."""
    rows.write.format("noop").mode("overwrite").save()


def samples(df, rows):
    """Rows that are handed out, each with the columns of the scan that it is compared with."""
    every, quick = tuple(df.columns), {"id": "id", "trust_ids": True}
    importance = ImportanceSampling(RULE)
    reads = {"x": ["a", "b", "c", "d"]}
    return {
        "Poisson(0.01)": (every, lambda: evaluated(sample(df, Poisson(RATE), **quick))),
        "privacy-constrained": (every, lambda: evaluated(sample(df, importance, reads=reads, **quick))),
        "10,000 without replacement": (every, lambda: evaluated(sample(df, WithoutReplacement(SIZE, rows), **quick))),
    }


def releases(df, rows):
    """Sums whose rows stay hidden from Spark's pages: every row is handed to Python."""
    drawn = draw(df, Poisson(RATE), id="id", trust_ids=True)
    kept = draw(df, Poisson(RATE), id="id", trust_ids=True).persist()
    kept.release_sum(NOISE, "a")
    return {
        "draw, Poisson": (("id",), lambda: draw(df, Poisson(RATE), id="id", trust_ids=True)),
        "release_sum of one column": (PAIR, lambda: drawn.release_sum(NOISE, "a")),
        "the same, persisted": (PAIR, lambda: kept.release_sum(NOISE, "a")),
        "repeated ids counted": (("id",), lambda: check_unique(df, "id")),
    }


def ways(df):
    """Other ways to a Poisson sample: all rows in Python, ids alone in Python, kept ids joined."""
    from pyspark.sql import functions

    kernel = Kernel.of(Poisson(RATE), Key.generate(), id="id")
    secret, every = kernel.secret_bytes(), tuple(df.columns)

    def all_in_python():
        evaluated(df.mapInArrow(_keeping(secret), Draw(df, kernel).rows().schema))

    def ids_as_function():
        evaluated(df.filter(_udf(secret)("id")))

    def ids_joined():
        own = df.select("id").mapInArrow(_keeping(secret), "id long, privamp_weight double, privamp_count long")
        evaluated(df.join(functions.broadcast(own), "id"))

    return {
        "identity mapInArrow": (every, lambda: evaluated(df.mapInArrow(lambda batches: batches, df.schema))),
        "all columns in Python": (every, all_in_python),
        "ids in an Arrow function": (every, ids_as_function),
        "ids in Python, broadcast join": (every, ids_joined),
    }


def _keeping(secret):
    def keep(batches):
        kernel = Kernel.from_secret_bytes(secret)
        return (kernel.kept(batch) for batch in batches)

    return keep


def _udf(secret):
    from pyspark.sql.functions import arrow_udf

    def drawn(ids: pa.Array) -> pa.Array:
        verdict = Kernel.from_secret_bytes(secret).verdict(pa.record_batch([ids], names=["id"]))
        kept = np.zeros(len(ids), np.bool_)
        kept[verdict.positions] = True
        return pa.array(kept)

    return arrow_udf(drawn, "boolean")


def wide(df):
    """One column of many."""
    drawn = draw(df, Poisson(RATE), id="id", trust_ids=True)
    return {
        f"release_sum of 1 of {len(df.columns)} columns": (PAIR, lambda: drawn.release_sum(NOISE, "a")),
        "sample of these two columns": (
            PAIR,
            lambda: evaluated(sample(df.select(*PAIR), Poisson(RATE), id="id", trust_ids=True)),
        ),
        "sample of all columns": (
            tuple(df.columns),
            lambda: evaluated(sample(df, Poisson(RATE), id="id", trust_ids=True)),
        ),
    }


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def compared(df, runs, repeats):
    """Print seconds and ratios to the scan of the same columns."""
    scans = {columns: None for columns, _ in runs.values()}
    works = {columns: (lambda columns=columns: evaluated(df.select(*columns))) for columns in scans}
    works |= {name: work for name, (_, work) in runs.items()}
    best = dict.fromkeys(works, math.inf)
    for turn in range(repeats + 1):  # the first warms up
        for name, work in works.items():
            took = timed(work)
            best[name] = min(best[name], took) if turn or not repeats else took
    for columns in scans:
        print(f"  plain scan of {len(columns):3d} columns            {best[columns]:8.2f} s")
    for name, (columns, _) in runs.items():
        print(f"  {name:34s} {best[name]:8.2f} s {best[name] / best[columns]:7.2f} scans of {len(columns)} columns")


def main():
    parser = argparse.ArgumentParser(description="the cost of sampling on Spark")
    parser.add_argument("--rows", type=int, default=10**7)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--spark", default="local[*]")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--folder")
    parser.add_argument("--only", choices=["samples", "releases"])
    for flag in ("--ways", "--make"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--wide", type=int, default=0)
    options = parser.parse_args()
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    with cluster(options.workers) if options.workers else nullcontext(options.spark) as url:
        try:
            spark = session(url)
        except InvalidInput as error:
            sys.exit(print(f"skipped: {error}"))
        spark.sparkContext.setLogLevel("ERROR")
        measured(spark, options)
        spark.stop()


def measured(spark, options):
    with tempfile.TemporaryDirectory() as scratch:
        df = written(spark, options.rows, Path(options.folder or scratch, "rows.parquet"))
        if options.make:
            return
        where = f"{options.workers} workers" if options.workers else spark.sparkContext.master
        print(f"{options.rows:,} rows of 5 columns, Spark {spark.version}, {where}, best of {max(options.repeats, 1)}")
        runs = {} if options.only == "releases" else samples(df, options.rows)
        runs |= {} if options.only == "samples" else releases(df, options.rows)
        compared(df, runs | (ways(df) if options.ways else {}), options.repeats)
        if options.wide:
            print(f"{options.rows // 10:,} rows of {options.wide} columns")
            table = written(spark, options.rows // 10, Path(scratch, "wide.parquet"), options.wide - 1)
            compared(table, wide(table), options.repeats)


if __name__ == "__main__":
    main()
