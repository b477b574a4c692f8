"""Fixed sizes in one scan: rows below the public cut are brought together once, and decided about where they meet.

All of them together are a few more than the design draws, so one task can hold them. They go there in encrypted
messages, so files of a shuffle hold no record that can be read. Nothing comes to the driver but the number of rows of
the table, which a design must not be told too large.

A second pass would notice a table that is made anew at every evaluation, and this does not, so it is only for tables
whose plan shows the files that they come from. Wide values stay where they are too: other tables take two passes.
"""

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..chance.known_answer import check_known_answer
from ..errors import InvalidInput
from .kernel import Kernel
from .spark_digest import SIZE
from .spark_draw import Draw, pages, rows_of, with_weights
from .spark_messages import Batches, column, guarded, new_secret, opened, sent
from .spark_plan import comes_from_files
from .spark_reading import contribution
from .spark_session import answer, arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_CELLS = 2_000_000  # values of drawn records that one task may hold
_WIDE = {"array", "binary", "map", "struct", "variant"}
_CHUNK = 1 << 14  # rows that leave together


def gathered(draw: Draw) -> "DataFrame | None":
    """The drawn rows as a lazy table of one partition; None where one scan is not enough, by public facts."""
    df, kernel, source = draw.df, draw.kernel, draw.source
    if source is df or not (_is_small(draw) and comes_from_files(df)):
        return None
    from pyspark.sql import functions

    schema = arrow_schema(df)
    records = answer(df.select(column(str(kernel.id))).count)
    _told(kernel, [_nobody(schema)], records)  # a population that is declared too large is refused here
    make, key, secret = draw.keeper(), new_secret(), kernel.secret_bytes()

    def bring(batches: Batches) -> list[bytes]:
        keeper = make()
        rows = [keeper.seen(batch) for batch in batches]
        return pages(keeper.tally(), pa.Table.from_batches(rows) if rows else None)

    def decide(batches: Batches) -> Batches:
        return guarded(lambda every: _decided(Kernel.from_secret_bytes(secret), every, key, records, schema), batches)

    again = df.agg(functions.expr("-1 AS task"), functions.expr("cast(cast(count(1) AS string) AS binary) AS message"))
    return sent(source, None, bring, key).union(again).repartition(1).mapInArrow(decide, with_weights(df))


def _is_small(draw: Draw) -> bool:
    kernel, fields = draw.kernel, draw.df.schema.fields
    most = None if kernel.streams else kernel.design.most_held
    kinds = {field.dataType.typeName() for field in fields}
    return most is not None and most * len(fields) <= _CELLS and not kinds & _WIDE


def _decided(kernel: Kernel, batches: Batches, key: bytes, records: int, schema: pa.Schema) -> Batches:
    """The drawn rows among all that may be, in the order of the partitions they come from."""
    check_known_answer()
    parts = pa.Table.from_batches(batches).sort_by("task")
    now, *sealed = (message.as_py() for message in parts["message"])
    if int(now) != records:
        raise InvalidInput("the table has more or fewer rows than when the sample was drawn; draw it again")
    found = [opened(key, message) for message in sealed]
    rows = rows_of([message[SIZE:] for message in found], schema).combine_chunks().to_batches(_CHUNK)
    chosen = kernel.finish(_told(kernel, rows or [_nobody(schema)], records))
    kept = [kernel.chosen(batch, chosen) for batch in rows]
    chosen.check(sum(batch.num_rows for batch in kept))
    yield from kept


def _told(kernel: Kernel, rows: list[pa.RecordBatch], records: int) -> Any:
    """What these rows contribute, of so many records in all."""
    return kernel.design.counted(kernel.folded(contribution(kernel, batch) for batch in rows), records)


def _nobody(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=schema)
