"""One embedded Spark and one small table for all tests here; they are skipped where PySpark or Java is missing."""

import os
import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from privamp import Design, Population
from privamp.chance.keys import Key

Drawn = list[tuple[Any, float, int]]  # id, weight and count of every drawn record, sorted


class Records:
    """2000 records in three strata of 1000, 600 and 400 and in 40 clusters of 50, in no order of their ids."""

    def __init__(self) -> None:
        made, n = np.random.default_rng(20), 2000
        self.ids = made.permutation(10 * n)[:n].astype(np.int64)
        self.names = np.array([f"id {i}" for i in self.ids.tolist()])
        x = made.normal(size=(n, 2))
        self.x = x / np.maximum(1.0, np.linalg.norm(x, axis=1) / 2.99)[:, None]
        self.columns: dict[str, Any] = {
            "stratum": np.repeat(["east", "north", "west"], [1000, 600, 400]),
            "cluster": made.permutation(n) % 40,
            "probability": made.uniform(0.05, 0.3, n),
            "odds": made.uniform(1.0, 3.0, n),
        }

    def arrow(self) -> pa.Table:
        points = {"a": self.x[:, 0], "b": self.x[:, 1], "x": pa.array(self.x.tolist(), pa.list_(pa.float64()))}
        return pa.table({"uid": self.ids, "name": self.names.tolist(), **self.columns, **points})

    def in_memory(self, design: Design, key: Key, id: str = "uid") -> Drawn:
        """What the same key draws without any engine: the oracle."""
        population = Population(self.ids if id == "uid" else self.names, x=self.x, **self.columns)
        drawn = design.draw(population, key).reveal_secret()
        chosen = population.ids[drawn.positions].tolist()
        return sorted(zip(chosen, drawn.weights.tolist(), drawn.counts.tolist(), strict=True))

    @staticmethod
    def on_spark(rows: Any, id: str = "uid") -> Drawn:
        table = rows.select(id, "privamp_weight", "privamp_count").toArrow()
        return sorted(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))


@pytest.fixture(scope="session")
def records() -> Records:
    return Records()


@pytest.fixture(scope="session")
def event_logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where Spark writes its event log."""
    return tmp_path_factory.mktemp("event-logs")


@pytest.fixture(scope="session")
def local_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where Spark keeps its shuffle, spill and temporary files."""
    return tmp_path_factory.mktemp("local-files")


@pytest.fixture(scope="session")
def spark(event_logs: Path, local_files: Path) -> Iterator[Any]:
    java = shutil.which("java") or os.environ.get("JAVA_HOME")
    missing = [name for name, found in (("PySpark", find_spec("pyspark")), ("Java", java)) if not found]
    if missing:
        pytest.skip(
            f"{' and '.join(missing)} not found; `make test-spark` installs PySpark, Java 17 comes from the system"
        )
    from privamp.spark import session

    os.environ["PYSPARK_PYTHON"] = sys.executable
    _opened_up(event_logs, local_files)
    running = session("local[2]")
    running.sparkContext.setLogLevel("OFF")
    for name, value in (("shuffle.partitions", 2), ("execution.arrow.maxRecordsPerBatch", 500)):
        running.conf.set(f"spark.sql.{name}", value)
    yield running
    running.stop()


def _opened_up(event_logs: Path, local_files: Path) -> None:
    """A session as an operator has it, with its pages and its event log, and files that are not compressed: tests read
    what they say."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "true", "spark.ui.port": "0", "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.memory": "1g",
        "spark.eventLog.enabled": "true", "spark.eventLog.dir": event_logs.as_uri(),
        "spark.eventLog.compress": "false", "spark.eventLog.rolling.enabled": "false",
        "spark.sql.warehouse.dir": str(local_files / "tables"),
        "spark.local.dir": str(local_files), "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={local_files}",
        "spark.shuffle.compress": "false", "spark.shuffle.spill.compress": "false", "spark.broadcast.compress": "false",
        "spark.sql.classic.shuffleDependency.fileCleanup.enabled": "false", "spark.cleaner.referenceTracking": "false",
    }  # fmt: skip
    builder = SparkSession.builder.appName("privamp").master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    builder.getOrCreate()


@pytest.fixture(scope="session")
def table(spark: Any, records: Records) -> Any:
    return spark.createDataFrame(records.arrow()).cache()
