"""From files on a cluster to one private file on the driver: `privamp sample … --spark`.

The rows of the sample, not the data, come to the driver and are sorted by id, so that the file is the same whatever the
partitions were; it is written as the local engine writes it.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..chance.keys import Key
from ..core.design import Design
from ..errors import InvalidInput
from ..tables.csv_ids import ODDLY_WRITTEN, WRITTEN
from ..tables.secret_files import check_output, described, private_writer
from .kernel import COUNT, WEIGHT
from .options import WriteOptions
from .spark import drawn, kernel_for
from .spark_digest import CLUSTER
from .spark_frames import plain
from .spark_messages import column
from .spark_sample import SparkSample
from .spark_session import answer, session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TABLE = "table:"
_OPTIONS = {"csv": {"header": True, "inferSchema": True}, "parquet": {"mergeSchema": False}}


def read(
    spark: "SparkSession", source: str | Sequence[str], id: str | None = None, format: str | None = None
) -> "DataFrame":
    """Parquet or CSV files and folders, by any address that the cluster can read; ids of CSV files as local ones.

    "table:NAME" is a table of the session's catalogs, and `format` names another kind of files (delta, iceberg, orc)
    that the session can read.
    """
    if isinstance(source, (list, tuple)) and len(source) == 1:
        source = source[0]
    if isinstance(source, str) and source.startswith(_TABLE):
        return _catalogued(spark, source[len(_TABLE) :])
    paths = [source] if isinstance(source, str) else [str(path) for path in source]
    if format is not None and format not in _OPTIONS:
        return _formatted(spark, paths, format)
    kinds = {format} if format else {"csv" if Path(path).suffix.lower() == ".csv" else "parquet" for path in paths}
    is_arrow = format is None and any(Path(path).suffix.lower() in (".feather", ".arrow") for path in paths)
    if is_arrow or len(kinds) > 1:
        raise InvalidInput(
            "files for Spark must be Parquet or CSV, all of one kind; convert other files to Parquet first"
        )
    kind = kinds.pop()
    from pyspark.errors import AnalysisException

    try:
        found = spark.read.options(**_OPTIONS[kind]).format(kind).load(paths)
    except AnalysisException:
        raise InvalidInput(
            f"Spark cannot read {', '.join(map(repr, paths[:3]))} as {kind}; check the path on every machine of the "
            "cluster"
        ) from None
    if kind == "csv" and id is not None and found.columns.count(id) == 1:
        _check_written(spark, found, paths, id)
    return found


def _catalogued(spark: "SparkSession", name: str) -> "DataFrame":
    from pyspark.errors import AnalysisException, ParseException

    try:
        return spark.table(name)
    except (AnalysisException, ParseException):
        raise InvalidInput(f"Spark has no table {name!r} in its catalogs; check the name, or give a path") from None


def _formatted(spark: "SparkSession", paths: list[str], format: str) -> "DataFrame":
    try:
        return spark.read.format(format).load(paths if len(paths) > 1 else paths[0])
    except Exception as error:  # PySpark's, or Java's for a format without its package
        if type(error).__module__.split(".")[0] not in ("pyspark", "py4j"):
            raise
        raise InvalidInput(
            f"Spark cannot read {', '.join(map(repr, paths[:3]))} as {format}; check the path and the format, and that "
            "the session has the package for it"
        ) from None


def _check_written(spark: "SparkSession", df: "DataFrame", paths: list[str], id: str) -> None:
    """Spark reads 00007 as a number: whole-number ids must be written without leading zeros in the file."""
    from pyspark.sql.types import DecimalType, IntegralType, StringType, StructType

    if not isinstance(df.schema[id].dataType, (IntegralType, DecimalType)):
        return
    as_text = StructType().fromJson(df.schema.jsonValue())
    as_text[id].dataType = StringType()
    text = spark.read.options(header=True).schema(as_text).format("csv").load(paths)
    if answer(text.filter(~column(id).rlike(WRITTEN)).limit(1).count):
        raise InvalidInput(ODDLY_WRITTEN.format(id))


def write(
    source: "str | Sequence[str] | DataFrame",
    design: Design,
    out: str | os.PathLike[str],
    *,
    spark: str | None = None,
    key: Key,
    id: str | None,
    label: str | None = None,
    round: int = 0,
    options: WriteOptions | None = None,
) -> SparkSample:
    """Draw on the session at `spark` and write the rows to a Parquet or Feather file that only its owner can read.

    `source` names files or a table, as for `read`, or is what `read` gave.
    """
    options = options or WriteOptions()
    check_output(out, options.overwrite)
    table = read(session(spark), source, id) if isinstance(source, (str, list, tuple)) else source
    df = plain(table, design, options.reads)
    kernel = kernel_for(df, design, id=id, key=key, label=label, round=round, reads=options.reads, clip=options.clip)
    wanted = df.columns if options.columns is None else list(options.columns)
    if missing := [name for name in wanted if name not in df.columns]:
        raise InvalidInput(f"the data has no column {missing[0]!r}; it has {', '.join(map(repr, df.columns[:12]))}")
    draw = drawn(df, kernel, trust_ids=options.trust_ids, pin=False)
    rows = draw.to_arrow(list(dict.fromkeys([*wanted, str(id)]))).sort_by(str(id)).select([*wanted, WEIGHT, COUNT])
    facts = {**kernel.facts(key, label, round, options.spec), "assumes": [CLUSTER]}
    with private_writer(out, described(rows.schema, facts), id=id, overwrite=options.overwrite) as write_batch:
        for batch in rows.to_batches():
            write_batch(batch)
    return SparkSample(draw)
