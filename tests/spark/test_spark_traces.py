"""What jobs on Spark leave behind: pages, REST interface, event log, shuffle and temporary files are searched for the
key, its subkeys and the ids of drawn records. Each search finds what is planted."""

import base64
import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from privamp import ExactLaplace, Key, Poisson, WithoutReplacement
from privamp.chance.keys import derive
from privamp.engines import spark_candidates
from privamp.engines.spark_files import write
from privamp.spark import draw, sample

N, FIRST = 2000, 7_300_000_000_000_000  # whole-number ids that nothing else looks like
NOISE = ExactLaplace(scale=20.0, sensitivity=3.0)
PAGES = ["jobs/", "stages/", "storage/", "environment/", "executors/", "SQL/"]
ANSWERS = [
    "jobs", "stages?details=true&withSummaries=true", "storage/rdd", "environment", "allexecutors",
    "sql?details=true&planDescription=true&length=100000",
]  # fmt: skip
DESIGNS = [Poisson(0.2), WithoutReplacement(40, N)]


class Traces:
    """All that an operator, or whoever reads the disks, can look at."""

    def __init__(self, spark: Any, folders: list[Path]) -> None:
        self._context, self._folders = spark.sparkContext, folders

    def texts(self) -> Iterator[bytes]:
        self._context._jsc.sc().listenerBus().waitUntilEmpty()
        top, app = self._context.uiWebUrl, self._context.applicationId
        queries = [
            f"SQL/execution/?id={q['id']}" for q in json.loads(self._read(f"{top}/api/v1/applications/{app}/sql"))
        ]
        for page in (*PAGES, *queries[-20:]):
            yield self._read(f"{top}/{page}")
        for name in ANSWERS:
            yield self._read(f"{top}/api/v1/applications/{app}/{name}")

    def files(self) -> Iterator[bytes]:
        for folder in self._folders:
            for path in folder.rglob("*"):
                if path.is_file():
                    yield path.read_bytes()

    @staticmethod
    def _read(url: str) -> bytes:
        with urlopen(url) as answer:
            return bytes(answer.read())

    def of(self, secrets: dict[str, list[bytes]]) -> set[str]:
        """The names of the secrets that are found anywhere."""
        left = dict(secrets)
        for text in (*self.texts(), *self.files()):
            left = {name: forms for name, forms in left.items() if not any(form in text for form in forms)}
        return set(secrets) - set(left)


@pytest.fixture
def traces(spark: Any, event_logs: Path, local_files: Path) -> Traces:
    return Traces(spark, [event_logs, local_files, Path(spark_candidates._folder().name)])


@pytest.fixture(scope="module")
def people(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("people")
    ids = FIRST + np.random.default_rng(3).permutation(10**9)[:N]
    names = [f"canary-person-{k}" for k in ids.tolist()]
    columns = {"uid": ids, "name": names, "a": np.linspace(-2.0, 2.0, N)}
    for k in range(2):
        parquet.write_table(pa.table(columns).slice(k * N // 2, N // 2), folder / f"{k}.parquet")
    return spark.read.parquet(str(folder))


def forms(raw: bytes) -> list[bytes]:
    signed = [value - 256 if value > 127 else value for value in raw]
    said = [
        raw.hex(),
        raw.hex().upper(),
        base64.b64encode(raw).decode(),
        str(list(raw))[1:-1],
        str(signed)[1:-1],
        repr(raw)[2:-1],
    ]
    return [raw, *(text.encode() for text in said), ",".join(map(str, signed)).encode()]


def secrets_of(key: Key, design: Any) -> dict[str, list[bytes]]:
    """The key, and what is derived from it for a draw."""
    own = design.subkey(key, "population", 0)
    every = {"key": key.secret_bytes(), "subkey": own.secret_bytes(), "JVM key": derive(own, b"whole-number ids")}
    every["JVM key for text"] = derive(own, b"text ids, AES")
    every |= {name: own.subkey(name).secret_bytes() for name in ("pin", "tickets", "cells")}
    return {name: forms(raw) for name, raw in every.items()}


def drawn_ids(rows: Any) -> dict[str, list[bytes]]:
    """Ids of drawn records as text and as eight bytes in either order."""
    ids = rows.select("uid").toArrow()["uid"].to_pylist()[:30]
    assert len(ids) == 30
    return {str(k): [str(k).encode(), struct.pack("<q", k), struct.pack(">q", k)] for k in ids}


JOBS: dict[str, Callable[[Any, Any, Key, str], Any]] = {
    "handed out": lambda df, design, key, id: sample(df, design, id=id, key=key, trust_ids=True).count(),
    "sums": lambda df, design, key, id: draw(df, design, id=id, key=key, trust_ids=True).release_sum(NOISE, "a"),
    "groups": lambda df, design, key, id: draw(df, design, id=id, key=key, trust_ids=True).release_count(
        NOISE, by="uid", groups=[1, 2]
    ),
    "kept": lambda df, design, key, id: draw(df, design, id=id, key=key, trust_ids=True).persist().release_count(NOISE),
    "function": lambda df, design, key, id: draw(df, design, id=id, key=key, trust_ids=True).release(
        NOISE, lambda rows: float(rows.count())
    ),
}


@pytest.mark.parametrize(("design", "id"), [(DESIGNS[0], "name"), (DESIGNS[1], "uid")])
def test_nothing_secret_is_left_behind(people: Any, traces: Traces, design: Any, id: str) -> None:
    key = Key.generate()
    for job in JOBS.values():
        job(people, design, key, id)
    secrets = secrets_of(key, design)
    assert traces.of(secrets) == set()
    ids = sample(people, design, id=id, key=key, trust_ids=True)
    assert traces.of(drawn_ids(ids)) == set()


def test_a_file_that_is_written_leaves_nothing_on_the_cluster(people: Any, traces: Traces, tmp_path: Path) -> None:
    key = Key.generate()
    write(people, DESIGNS[0], tmp_path / "sample.parquet", key=key, id="uid", label="population")
    assert traces.of(secrets_of(key, DESIGNS[0])) == set()


def test_drawn_rows_that_are_shuffled_are_found(people: Any, traces: Traces) -> None:
    """The twin: rows that are handed out and then shuffled lie in Spark's files as they are."""
    rows = sample(people, DESIGNS[1], id="uid", key=(key := Key.generate()), trust_ids=True)
    rows.repartition(3).collect()
    ids = drawn_ids(sample(people, DESIGNS[1], id="uid", key=key, trust_ids=True))
    assert len(traces.of(ids)) == len(ids)


@pytest.mark.parametrize("where", ["plan", "file"])
def test_a_key_that_is_planted_is_found(people: Any, traces: Traces, where: str) -> None:
    """The twin: a key as a literal of a plan, and a function of more than a megabyte, which Spark writes to disk."""
    from pyspark.sql import functions

    key = Key.generate()
    raw = key.secret_bytes()
    if where == "plan":
        people.select(functions.lit(raw).alias("k")).distinct().count()
    else:
        held = (raw, np.random.default_rng(0).bytes(3 << 20))
        people.select("uid").mapInArrow(lambda batches: (b for b in batches if held), "uid long").count()
    assert "key" in traces.of(secrets_of(key, DESIGNS[0]))
