"""What Spark shows of a release, on its pages and in its event log: rows of the table, never rows of the sample."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import pytest
from pyarrow import parquet

from privamp import ExactLaplace, Poisson, PrivateKMeans, Proportional, Stratified, WithoutReplacement, WithReplacement
from privamp.chance.keyed import keyed_numbers
from privamp.engines.kernel import Kernel
from privamp.engines.options import WriteOptions
from privamp.engines.spark_files import write
from privamp.spark import draw, fit, sample
from privamp.testing import seeded_key

N = 2000
PUBLIC = {0, 1, 2, N}  # messages, pieces of the cached table, rows of the table


@pytest.fixture
def shown(spark: Any, event_logs: Path) -> Callable[[], set[int]]:
    """The row counts that Spark has shown since the test began, by its REST interface and in its event log."""

    def everything() -> tuple[list[Any], list[str]]:
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        url = f"{spark.sparkContext.uiWebUrl}/api/v1/applications/{spark.sparkContext.applicationId}"
        with urlopen(f"{url}/sql?details=true&planDescription=false&length=100000") as answer:
            queries = json.loads(answer.read())
        (log,) = (path for path in event_logs.iterdir() if not path.name.startswith("."))
        return queries, log.read_text().splitlines()

    queries_before, lines_before = map(len, everything())

    def since() -> set[int]:
        queries, lines = everything()
        counts = {
            int(metric["value"].replace(",", ""))
            for query in queries[queries_before:] for node in query["nodes"] for metric in node["metrics"]
            if "rows" in metric["name"]
        }  # fmt: skip
        for line in lines[lines_before:]:
            for found in json.loads(line).get("Task Info", {}).get("Accumulables", []):
                if "rows" in str(found.get("Name")) or "records" in str(found.get("Name")):
                    counts |= {int(found["Update"]), int(found["Value"])}
        return counts

    return since


def test_rows_of_a_sample_are_seen_where_they_are_handed_out(table: Any, shown: Callable[[], set[int]]) -> None:
    kept = sample(table.coalesce(1), Poisson(0.2), id="uid", key=seeded_key(841), trust_ids=True).count()
    assert kept in shown()  # the twin of the tests below: this is what they would see


@pytest.mark.parametrize("design", [Poisson(0.2), Proportional(0.2), WithReplacement(500, N)])
def test_sums_and_counts_show_no_row_of_the_sample(table: Any, shown: Callable[[], set[int]], design: Any) -> None:
    rows, noise = table.coalesce(1), ExactLaplace(scale=20.0, sensitivity=3.0)
    drawn = draw(rows, design, id="uid", key=seeded_key(842), trust_ids=True)
    drawn.release_sum(noise, ["a", "b"])
    drawn.release_count(noise, by="stratum", groups=["east", "north", "south", "west"])
    counts = shown()
    kept = drawn.reveal_secret().count()
    assert counts <= PUBLIC
    assert kept not in counts


def test_a_sample_that_is_written_to_a_file_shows_no_row(
    table: Any, shown: Callable[[], set[int]], tmp_path: Path
) -> None:
    drawn = write(
        table.coalesce(1), Poisson(0.2), tmp_path / "sample.parquet", key=seeded_key(846), id="uid", label="rows",
        options=WriteOptions(trust_ids=True, columns=["uid", "a"]),
    )  # fmt: skip
    counts = shown()
    assert counts <= PUBLIC
    assert drawn.reveal_secret().count() not in counts


def test_fixed_sizes_in_one_scan_show_the_rows_below_the_cut(
    spark: Any, records: Any, shown: Callable[[], set[int]], tmp_path: Path
) -> None:
    """What the page says that Spark shows of a filtered job, and nothing else."""
    parquet.write_table(records.arrow().drop_columns(["x"]), tmp_path / "rows.parquet")
    design, key = WithoutReplacement(40, N), seeded_key(847)
    rows = sample(spark.read.parquet(str(tmp_path)), design, id="uid", key=key, trust_ids=True)
    assert shown() <= PUBLIC
    assert len(rows.collect()) == 40
    numbers = keyed_numbers(Kernel.of(design, key, id="uid").subkey, records.ids.astype(np.uint64))
    below = int(np.sum(numbers < np.uint64(design.number_bound or 0)))
    assert below > 40
    assert {40, below} <= shown() <= PUBLIC | {40, below}


def test_text_ids_and_strata(table: Any, shown: Callable[[], set[int]]) -> None:
    design = Stratified({"east": Poisson(0.1), "north": Proportional(0.2), "west": Poisson(0.3)})
    drawn = draw(table.coalesce(1), design, id="name", key=seeded_key(843), trust_ids=True)
    drawn.release_count(ExactLaplace(scale=20.0))
    assert shown() <= PUBLIC


@pytest.mark.parametrize("size", [400, None])
def test_k_means(table: Any, shown: Callable[[], set[int]], size: int | None) -> None:
    model = PrivateKMeans(
        n_clusters=2, epsilon=5.0, radius=3.0, n_iter=2, sample_size=size, sampler="privacy-constrained"
    )
    fit(model, table.coalesce(1), ["a", "b"], id="uid", key=seeded_key(844), trust_ids=True)
    assert shown() <= PUBLIC


def test_messages_have_the_same_length_whatever_was_kept(table: Any, spark: Any, event_logs: Path) -> None:
    """Bytes that come from Python, at rates of .001, .5 and 1."""
    noise, sizes = ExactLaplace(scale=20.0, sensitivity=3.0), []
    (log,) = (path for path in event_logs.iterdir() if not path.name.startswith("."))
    for rate in (0.001, 0.5, 1.0):
        drawn = draw(table.coalesce(1), Poisson(rate), id="uid", key=seeded_key(845), trust_ids=True)
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        before = len(log.read_text().splitlines())
        drawn.release_sum(noise, ["a", "b"])
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        ends = [json.loads(line) for line in log.read_text().splitlines()[before:] if "SparkListenerTaskEnd" in line]
        found = [a for end in ends for a in end["Task Info"]["Accumulables"] if "data returned" in str(a.get("Name"))]
        sizes.append([int(a["Update"]) for a in found])  # of every operator, not only of the last
    assert sizes[0]
    assert sizes[0] == sizes[1] == sizes[2]
