"""A Spark session: embedded, on a cluster, or through Spark Connect; and what to install if it fails."""

import logging
import os
import re
import shutil
import socket
import sys
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import pyarrow as pa

from ..errors import InvalidInput
from ..extras import need

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")
_OLDEST = 4  # mapInArrow and the types of columns as they are used here
EMBEDDED = "local[*]"
_CONNECT_PORT = 15002
_MASTER = re.compile(r"local(\[[\d*]+(,\s*\d+)?\])?|spark://.+|k8s://.+|yarn")
_SENTENCE = re.compile(r"^privamp\.errors\.InvalidInput: (.+)$", re.MULTILINE)
_LACKS = re.compile(r"^ModuleNotFoundError: No module named '([\w.]+)'$", re.MULTILINE)


def session(url: str | None = None) -> "SparkSession":
    """A session at `url`: "local[*]" (the default: embedded, all cores), "spark://…", "k8s://…", "yarn", "connect"
    (the server named by SPARK_REMOTE, or the one on this machine) or "sc://…". A running session is reused.
    """
    url = url or EMBEDDED
    check_pyspark()
    if url == "connect" or url.startswith("sc://"):
        return _connected(os.environ.get("SPARK_REMOTE", "sc://localhost") if url == "connect" else url)
    if not _MASTER.fullmatch(url):
        raise InvalidInput(
            f"spark must be local[*], spark://host:port, k8s://…, yarn, connect or sc://host, got {url!r}"
        )
    check_java()
    return _started(url)


def check_pyspark() -> None:
    """Raise unless PySpark and what it needs for Arrow are installed."""
    for module in ("pyspark", "pandas"):
        need(module, "privamp.spark")
    found = version("pyspark")
    if int(found.partition(".")[0]) < _OLDEST:
        raise InvalidInput(f"privamp.spark needs PySpark {_OLDEST}.0 or newer, got {found} instead; upgrade it")


def check_java() -> None:
    """Raise unless Java is found: the embedded Spark and the driver of a cluster need it."""
    home = os.environ.get("JAVA_HOME")
    found = (Path(home, "bin", "java").exists() if home else False) or shutil.which("java")
    if not found:
        raise InvalidInput(
            "Spark needs Java 17 or newer, and none was found; install it (Debian: apt install "
            "openjdk-17-jre-headless) "
            "and set JAVA_HOME if it is not on the PATH"
        )


def _started(master: str) -> "SparkSession":
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers with the same packages
    builder = SparkSession.builder.appName("privamp").master(master)
    if master.startswith("local"):
        builder = builder.config("spark.ui.enabled", "false").config("spark.driver.bindAddress", "127.0.0.1")
        builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.ui.showConsoleProgress", "false")
    return builder.getOrCreate()


def _connected(url: str) -> "SparkSession":
    for module in ("grpc", "grpc_status", *(() if version("pyspark").startswith("4.0.") else ("zstandard",))):
        if find_spec(module) is None:
            raise InvalidInput("Spark Connect needs more packages; install them with: pip install 'pyspark[connect]'")
    address = urlsplit(url.split(";")[0])
    try:  # PySpark itself would try for ten minutes
        socket.create_connection((address.hostname or "localhost", address.port or _CONNECT_PORT), timeout=10).close()
    except (OSError, ValueError):
        raise InvalidInput(f"no Spark Connect server answers at {url}; start one, or set SPARK_REMOTE") from None
    from pyspark.sql import SparkSession

    return SparkSession.builder.remote(url).getOrCreate()


def arrow_schema(df: "DataFrame") -> pa.Schema:
    """The table's columns as the workers see them; types that cannot be sent to them are null."""
    from pyspark.sql.pandas.types import to_arrow_type

    own = {"timezone": "UTC"} if "timezone" in signature(to_arrow_type).parameters else {}  # 4.0 has UTC anyway

    def kind(field: Any) -> pa.DataType:
        try:
            return to_arrow_type(field.dataType, **own)
        except Exception:  # PySpark has several for this
            return pa.null()

    kinds = [(field, kind(field)) for field in df.schema.fields]
    return pa.schema([pa.field(f.name, found, f.nullable or pa.types.is_null(found)) for f, found in kinds])


def answer(job: Callable[[], T]) -> T:
    """The result of a Spark job. If it fails, our own sentence: Spark's message may show a record's value."""
    talks = logging.getLogger("SQLQueryContextLogger")  # PySpark writes the message there before it raises
    was, talks.disabled = talks.disabled, True
    try:
        return job()
    except Exception as error:
        if type(error).__module__.split(".")[0] not in ("pyspark", "py4j", "grpc"):
            raise
        said = _sentence(error)
    finally:
        talks.disabled = was
    raise InvalidInput(said)  # outside the handler, so that Spark's error is not chained


def _sentence(error: Exception) -> str:
    stack = str(error)
    if ours := _SENTENCE.search(stack):
        return ours[1]
    if lacks := _LACKS.search(stack):
        return (
            f"the workers' Python has no module {lacks[1]!r}; install privamp on every machine of the cluster, or "
            "set PYSPARK_PYTHON to a Python that has it"
        )
    condition = getattr(error, "getCondition", lambda: None)() or type(error).__name__
    return (
        f"Spark could not evaluate the table ({condition}); its message is left out because it may show a record's "
        "value; see Spark's own log"
    )
