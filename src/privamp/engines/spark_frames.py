"""Frames as people have them on Spark, made into ones that can be sampled, or refused in a sentence."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..core.design import Design
from ..core.reads import Labels
from ..errors import InvalidInput
from ..tables.lakes import check_plain
from .kernel import Reads
from .spark_session import check_pyspark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ABOVE = 8  # folders above a file that may be the table it belongs to
_DIGITS = 18  # of a decimal that fits in a long


def plain(frame: Any, design: Design | None = None, reads: Reads | None = None) -> "DataFrame":
    """A table that can be sampled. Vectors of pyspark.ml become arrays; labels that are decimals without places become
    whole numbers; a frame of pyspark.pandas gives its columns, without its index."""
    check_pyspark()
    df = frame.to_spark() if type(frame).__module__.startswith("pyspark.pandas") else frame
    if type(df).__name__ != "DataFrame" or not type(df).__module__.startswith("pyspark.sql."):
        raise InvalidInput(f"the table must be a Spark DataFrame, got {type(frame).__name__} instead")
    if df.isStreaming:
        raise InvalidInput("a stream has no end, so no sample of it can be drawn; write it to a table, and sample that")
    _check_names(df.columns)
    _check_files(df)
    return _with_labels(_with_arrays(df), design, reads or {})


def _check_names(names: Sequence[str]) -> None:
    """Spark finds columns by name, whatever the case."""
    seen: dict[str, str] = {}
    for name in names:
        if name.lower() in seen:
            raise InvalidInput(f"the table has two columns named {name!r}, if case is ignored; rename or drop one")
        seen[name.lower()] = name


def _with_arrays(df: "DataFrame") -> "DataFrame":
    from .spark_messages import column

    vectors = [field.name for field in df.schema.fields if type(field.dataType).__name__ == "VectorUDT"]
    if not vectors:
        return df
    from pyspark.ml.functions import vector_to_array

    return df.withColumns({name: vector_to_array(column(name)) for name in vectors})


def _with_labels(df: "DataFrame", design: Design | None, reads: Reads) -> "DataFrame":
    from pyspark.sql.types import DecimalType

    from .spark_messages import column

    labels = [name for name, read in (design.reads if design else {}).items() if isinstance(read, Labels)]
    named = [reads.get(name, name) for name in labels]  # a label is one column
    kinds = {field.name: field.dataType for field in df.schema.fields if field.name in named}
    whole = [
        name
        for name, kind in kinds.items()
        if isinstance(kind, DecimalType) and kind.scale == 0 and kind.precision <= _DIGITS
    ]
    return df.withColumns({name: column(name).cast("long") for name in whole}) if whole else df


def _check_files(df: "DataFrame") -> None:
    """Raise if plain Parquet files are read that belong to a table with a log. Spark Connect does not show them."""
    plan = getattr(df, "_jdf", None)
    if plan is None:
        return
    from .spark_plan import leaves

    conf = df.sparkSession._jsparkSession.sessionState().newHadoopConf()
    jvm: Any = df.sparkSession._jvm
    for relation in leaves(plan.queryExecution().analyzed(), "LogicalRelation"):
        files = relation.relation()
        if str(files.getClass().getSimpleName()) != "HadoopFsRelation":
            continue
        if str(files.fileFormat().getClass().getSimpleName()) != "ParquetFileFormat":
            continue
        roots = files.location().rootPaths()
        for path in (roots.apply(k) for k in range(min(roots.size(), 1000))):
            system = path.getFileSystem(conf)
            above = [path]
            while len(above) < _ABOVE and above[-1].getParent() is not None:
                above.append(above[-1].getParent())

            def exists(folder: str, pattern: str, system: Any = system) -> bool:
                found = system.globStatus(jvm.org.apache.hadoop.fs.Path(folder, pattern))
                return found is not None and len(found) > 0

            check_plain([str(each.toString()) for each in above], exists, "read it by its own format or as a table")
