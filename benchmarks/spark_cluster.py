"""A standalone Spark cluster on this machine, for benchmarks: a master and workers of one core each, loopback only."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

PATIENCE = 60.0  # seconds for the master to answer


@contextmanager
def cluster(workers, memory="2g"):
    """The address of a running cluster; it is stopped afterwards."""
    with ExitStack() as running:
        port = _free_port()
        where = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
        running.enter_context(_program("org.apache.spark.deploy.master.Master", *where))
        _answers(port)
        url = f"spark://127.0.0.1:{port}"
        for _ in range(workers):
            own = [url, "--cores", "1", "--memory", memory, "--webui-port", "0"]
            running.enter_context(_program("org.apache.spark.deploy.worker.Worker", *own))
        yield url


@contextmanager
def _program(*command):
    import pyspark

    home = Path(pyspark.__file__).parent
    more = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    process = subprocess.Popen(
        ["bash", str(home / "bin" / "spark-class"), *command], env=os.environ | more, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def _answers(port):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    sys.exit(f"no master answers after {PATIENCE:.0f} seconds")
