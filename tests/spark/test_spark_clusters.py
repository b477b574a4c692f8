"""A real standalone cluster and a real Spark Connect server, each in processes of its own: the sample of the laptop."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

pytestmark = pytest.mark.skipif(
    find_spec("pyspark") is None or not (shutil.which("java") or os.environ.get("JAVA_HOME")),
    reason="PySpark or Java not found; `make test-spark` installs PySpark, Java 17 comes from the system",
)
PATIENCE = 60.0  # seconds for a server to answer
DESIGN = "wor:size=300,population=20000"  # two passes


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def running(log: Path, *command: str) -> Iterator[None]:
    """A program of Spark's own, ended with all its children."""
    import pyspark

    home = Path(pyspark.__file__).parent
    surroundings = os.environ | {
        "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable,
    }  # fmt: skip
    with log.open("w") as told:
        process = subprocess.Popen(
            ["bash", str(home / "bin" / command[0]), *command[1:]], stdout=told, stderr=told, env=surroundings,
            cwd=log.parent, start_new_session=True,
        )  # fmt: skip
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def answers(port: int) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    pytest.fail(f"nothing answers on port {port} after {PATIENCE:.0f} seconds")


@contextmanager
def standalone(folder: Path) -> Iterator[str]:
    port, pages = free_port(), ["--webui-port", "0"]
    master = "org.apache.spark.deploy.master.Master"
    worker = "org.apache.spark.deploy.worker.Worker"
    url = f"spark://127.0.0.1:{port}"
    where = ["--host", "127.0.0.1", "--port", str(port)]
    with running(folder / "master.log", "spark-class", master, *where, *pages):
        answers(port)
        with running(folder / "worker.log", "spark-class", worker, url, "--cores", "2", "--memory", "1G", *pages):
            yield url


@contextmanager
def connect(folder: Path) -> Iterator[str]:
    port = free_port()
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    settings = ["--conf", f"spark.connect.grpc.binding.port={port}", "--conf", "spark.ui.enabled=false"]
    command = ["spark-submit", "--class", server, "--master", "local[2]", *settings, "spark-internal"]
    with running(folder / "connect.log", *command):
        answers(port)
        yield f"sc://127.0.0.1:{port}"


def sampled(folder: Path, design: str, out: str, *more: str) -> dict[str, list[float]]:
    file = ["people.parquet", "--id", "person", "--label", "people", "--design", design]
    file += ["--key-file", "people.key", "--out", out]
    done = subprocess.run(
        [sys.executable, "-m", "privamp", "sample", *file, *more], cwd=folder, capture_output=True, text=True,
        check=False, timeout=180, env=os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, list[float]] = parquet.read_table(folder / out).to_pydict()
    return found


@pytest.mark.parametrize("started", [standalone, connect])
def test_a_cluster_draws_the_sample_of_the_laptop(started, tmp_path):
    if started is connect:
        pytest.importorskip("grpc", reason="pyspark[connect] is not installed")
    rng, n = np.random.default_rng(0), 20_000
    parquet.write_table(pa.table({"person": rng.permutation(n), "x": rng.normal(size=n)}), tmp_path / "people.parquet")
    subprocess.run([sys.executable, "-m", "privamp", "sample", "--new-key", "people.key"], cwd=tmp_path, check=True)
    here = sampled(tmp_path, DESIGN, "here.parquet")
    with started(tmp_path) as url:
        there = sampled(tmp_path, DESIGN, "there.parquet", "--spark", url)
    order = np.argsort(here["person"])
    assert len(order) == 300
    assert {name: np.asarray(column)[order].tolist() for name, column in here.items()} == there
