"""The Spark engine: the keyed kernel through `mapInArrow`. The sample is the one every other engine draws.

Designs that decide each record independently (such as Poisson) take one lazy pass. Fixed-size designs take two: each
partition sends what it contributes to the draw (a bottom-k of keyed numbers, never a record) to the driver, the driver
decides, and the second pass filters. Evaluating the result twice, retries and repartitioning give the same rows,
because whether a row is drawn depends only on the key and its id; rows have no stable order in Spark, so an id column
is required.

The subkey of the draw travels inside the pickled function, as data does: not in a column, a plan or a log. Whoever can
read the cluster's memory, its traffic or its spill files can read it, and the records as well.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

import pyarrow as pa

from ..chance.keys import Key, given_key
from ..core.design import Design
from ..errors import InvalidInput
from ..validation import options_of
from .kernel import Kernel, Reads
from .options import DRIVER_RECORDS, SparkKeywords, SparkOptions
from .spark_digest import MISSING, SIZE, TableDigest, joined
from .spark_draw import Draw, View
from .spark_frames import plain
from .spark_gathered import gathered
from .spark_messages import Batches, column, merged, new_secret, padded, received, sent, unpadded
from .spark_plan import check_repeatable
from .spark_reading import check_types, contribution
from .spark_session import answer, arrow_schema, check_pyspark
from .spark_session import session as session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SMALL = 1000  # records of a bottom-k up to which the driver merges the parts of all partitions itself
_AT_ONCE = 10_000_000  # records of parts that the driver takes together, some 240 MB
_WIDTH = 32  # parts that one task merges
_EVERYONE = 1 << 64  # keyed numbers below this
_ROWS = 1 << 17  # that contribute together


def sample(
    df: "DataFrame",
    design: Design,
    *,
    id: str,
    key: Key | None = None,
    label: str | None = None,
    round: int = 0,
    options: SparkOptions | None = None,
    **asked: Unpack[SparkKeywords],
) -> "DataFrame":
    """The drawn rows of `df` with their `privamp_weight` and `privamp_count`: secret, as the records are.

    `id` names a column of unique whole numbers or text. `reads` maps the design's columns to the table's columns if
    their names differ: {"stratum": "region", "x": ["age", "income"]}. `clip` lets an importance rule decide by the
    record clipped to its ball. Repeated and missing ids are counted first, which shuffles the ids; skip this with
    `trust_ids=True` only if the ids are a primary key. Key, label and round determine the sample, as in `Design.draw`.
    """
    read = options_of(SparkOptions, options, asked)
    df = plain(df, design, read.reads)
    kernel = kernel_for(df, design, id=id, key=key, label=label, round=round, reads=read.reads, clip=read.clip)
    if not read.trust_ids:
        check_unique(df, id)
    if (rows := gathered(Draw(df, kernel, is_shown=True))) is not None:
        return rows
    draw = drawn(df, kernel, trust_ids=True, driver_records=read.driver_records, pin=False, is_shown=True)
    if draw.chosen is not None:
        draw.check_table()
    return draw.rows()


def kernel_for(
    df: "DataFrame",
    design: Design,
    *,
    id: str | None,
    key: Key | None = None,
    label: str | None = None,
    round: int = 0,
    reads: Reads | None = None,
    clip: bool = False,
    view: View | None = None,
) -> Kernel:
    """The kernel of a draw from this table, after a check of its columns; nothing runs yet."""
    check_pyspark()
    if not isinstance(id, str):
        raise InvalidInput("rows have no stable order in Spark, so id= must name a column of unique ids")
    kernel = Kernel.of(design, given_key(key), id=id, label=label, round=round, reads=reads, clip=clip)
    seen = kernel if view is None else replace(kernel, reads=tuple((name, (name,)) for name in view.uses))
    schema = arrow_schema(df)
    seen.schema(schema)
    if view is None:
        check_types(kernel, schema)
    check_repeatable(df.select(*map(column, seen.uses)))
    return kernel


def drawn(
    df: "DataFrame",
    kernel: Kernel,
    view: View | None = None,
    *,
    trust_ids: bool = False,
    driver_records: int = DRIVER_RECORDS,
    pin: bool = True,
    is_shown: bool = False,
) -> Draw:
    """The draw of the kernel, with the digest of its table; without it where a design of one pass is read once.

    Where Spark may show how many rows are drawn, fixed sizes are decided among the candidates; the digest is theirs.
    """
    if not trust_ids:
        check_unique(df, str(kernel.id))
    if kernel.streams:
        draw = Draw(df, kernel, view)
        return draw.pinned() if pin else draw
    _check_room(df, kernel, driver_records)
    return _decided(Draw(df, kernel, is_shown=is_shown))


def check_unique(df: "DataFrame", id: str) -> None:
    """Raise unless ids are unique and present. How many are not is not revealed."""
    from pyspark.sql import functions

    times, own = functions.col("times"), functions.col("id")
    each = df.groupBy(column(id).alias("id")).agg(functions.count(functions.lit(1)).alias("times"))
    both = each.agg(
        functions.max(own.isNull()).alias("missing"), functions.max(own.isNotNull() & (times > 1)).alias("repeated")
    )
    row = answer(both.first)
    if row["missing"]:
        raise InvalidInput(MISSING.format(id))
    if row["repeated"]:
        raise InvalidInput(
            f"ids must be unique, but some in column {id!r} repeat; records that share an id are drawn together, so "
            "give "
            "every record its own id or treat a person's records as a cluster"
        )


def _decided(draw: Draw) -> Draw:
    """First pass of two: parts from the workers, merged, finished on the driver; the digest comes with them."""
    df, kernel, source = draw.df, draw.kernel, draw.source
    nobody = pa.RecordBatch.from_pylist([], schema=arrow_schema(df.select(*map(column, kernel.uses))))
    secret, key = kernel.secret_bytes(), new_secret()
    make = draw.keeper()

    def contribute(batches: Batches) -> list[bytes]:
        own, keeper = Kernel.from_secret_bytes(secret), make()
        usable = (keeper.seen(batch) for batch in batches)
        parts = (contribution(own, batch) for batch in _larger(usable))
        whole = own.folded([contribution(own, nobody), *parts])
        return [keeper.tally() + padded(whole)]

    def merge(several: list[bytes]) -> bytes:
        own = Kernel.from_secret_bytes(secret)
        whole = own.folded(unpadded(message[SIZE:]) for message in several)
        return joined(message[:SIZE] for message in several) + padded(whole)

    found = _few(sent(source, kernel.uses, contribute, key), kernel, merge, key)
    parts = [unpadded(message[SIZE:]) for message in found] or [contribution(kernel, nobody)]
    whole = kernel.folded(parts)
    if source is not df:
        whole = kernel.design.counted(whole, answer(df.select(column(str(kernel.id))).count))
    return replace(draw, chosen=kernel.finish(whole), pin=TableDigest(message[:SIZE] for message in found))


def _few(parts: "DataFrame", kernel: Kernel, merge: Callable[[list[bytes]], bytes], secret: bytes) -> list[bytes]:
    """The messages on the driver; where they are many and large, the workers merge them in a tree before.

    Below a public bound there are about as many records in all parts together as are drawn.
    """
    records, bound = kernel.design.most_held, kernel.design.number_bound
    if records is None or records <= _SMALL or bound is not None:
        return received(parts, secret)
    held = parts = parts.persist()
    try:
        tasks = answer(held.count)
        while tasks > 1 and tasks * records > _AT_ONCE:
            tasks = -(-tasks // _WIDTH)
            parts = merged(parts, merge, tasks, secret)
        return received(parts, secret)
    finally:
        held.unpersist()


def _larger(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches put together: one search for the smallest numbers instead of many."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(some.num_rows for some in held) >= _ROWS:
            yield from _together(held)
            held = []
    yield from _together(held)


def _together(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """One batch, or none if there are no rows."""
    together: list[pa.RecordBatch] = pa.Table.from_batches(batches).combine_chunks().to_batches() if batches else []
    return together


def _check_room(df: "DataFrame", kernel: Kernel, most: int) -> None:
    """Raise if more records than `most` may meet on the driver: by public bounds, or by the number of rows."""
    bounds = [(part.most_on_driver, part.drawn_below) for part in kernel.designs]
    bounded = sum(held for held, _ in bounds if held is not None)
    growing = max((below or _EVERYONE for held, below in bounds if held is None), default=0)
    if not growing and bounded <= most:
        return
    rows = answer(df.select(column(str(kernel.id))).count)
    if min(bounded, rows) + rows * growing // _EVERYONE > most:
        raise InvalidInput(
            f"{type(kernel.design).__name__} needs about 24 bytes on the driver for every record that it may draw, "
            f"which may be more than the {most} records that driver_records allows; raise it, or use Poisson, "
            "PoissonPPS, ImportanceSampling, or a smaller sample by WithoutReplacement, WithReplacement or MultiStage"
        )
