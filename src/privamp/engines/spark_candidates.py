"""Rows that may be drawn, found by Spark's own JVM, so that most rows never reach Python.

Handing a row to Python costs several times as much as reading it. Many designs have a public bound that the keyed
number of every drawn record lies below (`Design.number_bound`), so Spark filters by it first and the kernel decides
among the rest, as it would among all. The filter never decides that a record is drawn.

It is a Java function (KeyedBelow.java) that the compiler inside Spark compiles on the driver; the workers get it as a
jar, with the key in the serialised task, as a Python function has it: not in a plan, a page or a log. Spark shows how
many rows pass a filter, so it is used only for rows that are handed out as a DataFrame, never for sums and counts.
"""

import logging
import zipfile
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from ..chance.keyed import keyed_numbers
from ..chance.keys import derive
from .kernel import Kernel
from .spark_messages import column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CLASS = "privamp.KeyedBelow"
_SOURCE = Path(__file__).with_name("KeyedBelow.java")
_MOST = 1 << 63  # where more than half of the rows pass, a filter does not pay
_NUMBERS = (0, 1, (1 << 63) - 1)
_TEXTS = ("", "a", "ä" * 20)


def candidates(df: "DataFrame", kernel: Kernel) -> "DataFrame":
    """The rows of `df` that the kernel may draw: no others, or all where Spark cannot tell."""
    bound, kind = kernel.design.drawn_below, _id_type(df, str(kernel.id))
    if bound is None or bound > _MOST or kind is None:
        return df
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        function = _function(df.sparkSession, kernel, bound, kind)
        own = column(str(kernel.id)).cast(kind)
        seen = df.sparkSession._jvm.PythonUtils.toSeq([own._jc])
        return type(df)(df._jdf.filter(function.apply(seen)), df.sparkSession)
    except (Py4JError, PySparkException) as error:  # a platform that closes its JVM
        logging.getLogger(__name__).info("rows are not filtered in the JVM: %s", type(error).__name__)
        return df


def _id_type(df: "DataFrame", id: str) -> str | None:
    """What the Java function takes ids as, if it can; None behind Spark Connect, which has no JVM of ours."""
    from pyspark.sql.types import IntegralType, StringType

    kind = df.schema[id].dataType
    if not hasattr(df, "_jdf") or not isinstance(kind, (IntegralType, StringType)):
        return None
    return "long" if isinstance(kind, IntegralType) else "string"


def _function(session: "SparkSession", kernel: Kernel, bound: int, kind: str) -> Any:
    """The filter as a function of Spark; the key is in the object, and not in what it says of itself."""
    jvm: Any = session._jvm
    loader = _loaded(session)
    known = np.array(_NUMBERS, np.uint64) if kind == "long" else np.array(_TEXTS, object)
    numbers = keyed_numbers(kernel.subkey, known).view(np.int64).tolist()
    ids = list(_NUMBERS if kind == "long" else _TEXTS)
    secret = derive(kernel.subkey, b"whole-number ids" if kind == "long" else b"text ids, AES")
    (constructor,) = loader.loadClass(_CLASS).getConstructors()
    signed = int(np.uint64(bound).view(np.int64))
    made = constructor.newInstance(
        _array(session, jvm.Object, [secret, signed, _array(session, jvm.Object, ids), _longs(session, numbers)])
    )
    return _as_udf(session, loader, made)


def _as_udf(session: "SparkSession", loader: Any, made: Any) -> Any:
    """Found by its types, because Py4J would take the function for a Scala one."""
    jvm: Any = session._jvm
    taken = [loader.loadClass(f"org.apache.spark.sql.{name}") for name in ("api.java.UDF1", "types.DataType")]
    functions = loader.loadClass("org.apache.spark.sql.functions")
    udf = functions.getMethod("udf", _array(session, jvm.java.lang.Class, taken))
    boolean = jvm.org.apache.spark.sql.types.DataTypes.BooleanType
    return udf.invoke(None, _array(session, jvm.Object, [made, boolean])).withName("privamp_may_draw")


def _loaded(session: "SparkSession") -> Any:
    """A class loader with the Java class, which the workers have been given."""
    state = session._jsparkSession.sessionState()
    state.resourceLoader().addJar(_jar(session))
    return session._jsparkSession.sharedState().jarClassLoader()


@cache
def _folder() -> "TemporaryDirectory[str]":
    return TemporaryDirectory(prefix="privamp")  # until the driver ends: workers may come late


def _jar(session: "SparkSession") -> str:
    """The compiled class in a file on the driver, made once in a process."""
    path = Path(_folder().name, "privamp.jar")
    if not path.exists():
        compiler = session._jvm.org.codehaus.janino.SimpleCompiler()
        compiler.cook(_SOURCE.read_text(encoding="utf-8"))
        with zipfile.ZipFile(path, "w") as jar:
            for name, code in compiler.getBytecodes().items():
                jar.writestr(f"{name.replace('.', '/')}.class", bytes(code))
    return str(path)


def _array(session: "SparkSession", kind: Any, items: list[Any]) -> Any:
    made = session.sparkContext._gateway.new_array(kind, len(items))
    for k, item in enumerate(items):
        made[k] = item
    return made


def _longs(session: "SparkSession", numbers: list[int]) -> Any:
    return _array(session, session._jvm.long, numbers)
