"""Tables on a Spark cluster: the same sample and the same whole-number sums, added up on the workers.

A partition sends the sums of its records' rows, in units of the noise's grid and what is beyond them in fine units
(fine_sums.py): one message whose length depends on the questions alone. Whole numbers add up in any order, so the total
before noise is the one that files with the same records give, whatever the partitions; the driver holds one message for
each of them and no record.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ..core.design import Design
from ..engines.stored_sample import ExactNoise
from ..errors import InvalidInput
from .fine_sums import FineSums

if TYPE_CHECKING:
    from ..chance.keys import Key
    from ..engines.spark_sample import SparkSample
    from .plan import Layout


def is_spark(source: Any) -> bool:
    """Whether this is a DataFrame of Spark, classic or behind Spark Connect."""
    return type(source).__module__.startswith("pyspark.sql.") and type(source).__name__ == "DataFrame"


def check_table(id: str | None, person: str | None) -> None:
    """Raise for options that a table on a cluster does not support."""
    if id is None:
        raise InvalidInput("a Spark table has no order, so it needs a column of unique ids; give id='…'")
    if person is not None:
        raise InvalidInput(
            "person= needs all records of a person in one place, which a Spark table does not have; write the table "
            "to Parquet files and open those, or keep at most one record per person"
        )


def schema_of(df: Any) -> pa.Schema:
    """The columns that can be sent to the workers."""
    from ..engines.spark_session import arrow_schema, check_pyspark

    check_pyspark()
    fields = zip(arrow_schema(df), df.schema.fields, strict=True)
    return pa.schema([a for a, b in fields if not pa.types.is_null(a.type) or b.dataType.typeName() == "void"])


def size_of(df: Any) -> int:
    """The number of records."""
    from ..engines.spark_session import answer

    return int(answer(df.count))


def draw(df: Any, design: Design, columns: Sequence[str], *, id: str, key: "Key", label: str | None) -> "SparkSample":
    """The sample that every other engine draws with this key; repeated and missing ids are rejected. Only these columns
    are read: others may have types that cannot be sent to the workers.
    """
    from ..engines import spark_sample
    from ..engines.spark_messages import column

    needed = df.select(*map(column, dict.fromkeys((id, *columns))))
    return spark_sample.draw(needed, design, id=id, key=key, label=label)


def release(sample: Any, columns: Sequence[str], layout: "Layout", noise: ExactNoise) -> Any:
    """The noisy sums of all questions."""
    nowhere: Any = None  # tables hold keys, and stay here
    bare = replace(layout, questions=tuple(replace(question, table=nowhere) for question in layout.questions))
    size, grid = layout.size, noise.grid

    def total(found: Any) -> Any:
        return FineSums(grid, found[0], found[1]).rounded()

    return sample.release_total(noise, columns, _adder(bare, noise), (2, size), total)


def refuse_chosen(source: Any) -> None:
    """Quantiles that are chosen need the counts of a million cells from every partition."""
    if is_spark(source):
        raise InvalidInput(
            "quantiles without intervals are chosen among a million cells, which are not counted on a cluster; use "
            "interval=True for a Spark table, or open its files"
        )


def _adder(layout: "Layout", noise: ExactNoise) -> Callable[[pa.RecordBatch], Any]:
    """What one batch adds: a row of units, then of fine units. Sent to the workers: it holds no key and no table."""

    def add(batch: pa.RecordBatch) -> Any:
        sums = FineSums.of(layout.size, noise.grid)
        layout.add(sums, batch, noise)
        return np.concatenate([sums.units, sums.beyond])[None, :]

    return add
