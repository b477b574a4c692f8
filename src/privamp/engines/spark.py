"""The Spark engine: the keyed kernel through `mapInArrow`. The sample is the one every other engine draws.

Records that decide alone (Poisson and its kin) take one lazy pass. Fixed-size designs take two: each partition sends
what it contributes to the draw (a bottom-k of keyed numbers, never a record) to the driver, the driver decides, and the
second pass filters. Evaluating the result twice, retries and repartitioning give the same rows, because a row's fate is
a function of the key and its id; rows have no stable order in Spark, so an id column is required.

The subkey of the draw travels inside the pickled function, as data does: not in a column, a plan or a log. Whoever can
read the cluster's memory, its traffic or its spill files can read it, and the records as well.
"""

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..chance.keys import Key
from ..core.design import Design
from ..designs.clustered import Clustered
from ..designs.fixed_size import FixedSize
from ..designs.stratified import Stratified
from ..errors import InvalidInput
from .columns import is_text
from .kernel import COUNT, WEIGHT, Chosen, Kernel, Reads, weighted
from .spark_session import check_pyspark, sentences
from .spark_session import session as session

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

DRIVER_RECORDS = 20_000_000  # about half a gigabyte of keyed numbers
_SMALL = 1000  # records of a bottom-k up to which the driver merges the parts of all partitions itself
_AT_ONCE = 10_000_000  # records of parts that the driver takes together, some 240 MB
_WIDTH = 32  # parts that one task merges
_ROWS = 1 << 17  # that contribute together
_PARTS = "task int, part binary"


@dataclass(frozen=True, slots=True)
class View:
    """What a streaming design looks at, if it is made from the table's columns: `make(batch)` has it, and the id."""

    uses: tuple[str, ...]  # the table's columns that it is made from
    make: Callable[[pa.RecordBatch], pa.RecordBatch]


def sample(
    df: "DataFrame",
    design: Design,
    *,
    id: str,
    key: Key | None = None,
    label: str = "population",
    round: int = 0,
    reads: Reads | None = None,
    clip: bool = False,
    trust_ids: bool = False,
    driver_records: int = DRIVER_RECORDS,
) -> "DataFrame":
    """The drawn rows of `df` with their `privamp_weight` and `privamp_count`: secret, as the records are.

    `id` names a column of unique whole numbers or text. `reads` says which columns hold what the design looks at, where
    they have other names: {"stratum": "region", "x": ["age", "income"]}. `clip` lets an importance rule decide by the
    record clipped to its ball. Repeated and missing ids are counted first, which shuffles the ids; leave it out by
    `trust_ids=True` only where the ids are a primary key. Key, label and round are the sample, as in `Design.draw`.
    """
    kernel = kernel_for(df, design, id=id, key=key, label=label, round=round, reads=reads, clip=clip)
    return drawn_rows(df, kernel, trust_ids=trust_ids, driver_records=driver_records)


def kernel_for(
    df: "DataFrame",
    design: Design,
    *,
    id: str | None,
    key: Key | None = None,
    label: str = "population",
    round: int = 0,
    reads: Reads | None = None,
    clip: bool = False,
    view: View | None = None,
) -> Kernel:
    """The kernel of a draw from this table, after a look at its columns; nothing runs yet."""
    check_pyspark()
    if not isinstance(id, str):
        raise InvalidInput("Spark keeps rows in no order, so id= must name a column with an id of its own in every row")
    kernel = Kernel.of(design, key or Key.generate(), id=id, label=label, round=round, reads=reads, clip=clip)
    seen = kernel if view is None else replace(kernel, reads=tuple((name, (name,)) for name in view.uses))
    seen.schema(arrow_schema(df))
    _check_repeatable(df.select(*map(column, seen.uses)))
    return kernel


def drawn_rows(
    df: "DataFrame",
    kernel: Kernel,
    view: View | None = None,
    *,
    trust_ids: bool = False,
    driver_records: int = DRIVER_RECORDS,
) -> "DataFrame":
    """The rows that the kernel draws."""
    if not trust_ids:
        check_unique(df, str(kernel.id))
    if kernel.streams:
        return _streamed(df, kernel, view)
    if _carries_everyone(kernel.design):
        _check_room(df, kernel.design, driver_records)
    chosen = _decide(df, kernel)
    if is_text(arrow_schema(df).field(str(kernel.id)).type):  # named by 64 bits between the passes
        with sentences():
            chosen.check(_filtered(df.select(column(str(kernel.id))), kernel, chosen).count())
    return _filtered(df, kernel, chosen)


def check_unique(df: "DataFrame", id: str) -> None:
    """Every record needs an id of its own: repeated and missing ones are counted, never shown."""
    from pyspark.sql import functions

    times, own = functions.col("times"), functions.col("id")
    each = df.groupBy(column(id).alias("id")).agg(functions.count(functions.lit(1)).alias("times"))
    row = each.agg(
        functions.sum(functions.when(own.isNull(), times)).alias("missing"),
        functions.sum(functions.when(own.isNotNull(), times - 1)).alias("repeated"),
    ).first()
    missing, repeated = (int(row[name] or 0) for name in ("missing", "repeated"))
    if missing:
        raise InvalidInput(f"the id column {id!r} has {missing} missing ids; every record needs an id of its own")
    if repeated:
        raise InvalidInput(
            f"ids must be unique, but {repeated} in column {id!r} repeat; records that share an id share a coin, so "
            "give every record its own id or treat a person's records as a cluster"
        )


def column(name: str) -> "Column":
    """A column by its exact name, dots and all."""
    from pyspark.sql import functions

    return functions.col("`" + name.replace("`", "``") + "`")


def arrow_schema(df: "DataFrame") -> pa.Schema:
    """The table's columns as the workers see them."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(df.schema)


def _streamed(df: "DataFrame", kernel: Kernel, view: View | None) -> "DataFrame":
    """One lazy pass: every batch decides alone."""
    secret = kernel.secret_bytes()

    def keep(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        own = Kernel.from_secret_bytes(secret)
        for batch in batches:
            drawn = own.verdict(batch if view is None else view.make(batch))
            yield weighted(batch.take(pa.array(drawn.positions)), drawn.weights, drawn.counts)

    return df.mapInArrow(keep, _with_weights(df))


def _filtered(df: "DataFrame", kernel: Kernel, chosen: Chosen) -> "DataFrame":
    """Second pass: the rows that were chosen."""
    secret = kernel.secret_bytes()

    def keep(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        own = Kernel.from_secret_bytes(secret)
        return (own.chosen(batch, chosen) for batch in batches)

    return df.mapInArrow(keep, _with_weights(df))


def _with_weights(df: "DataFrame") -> Any:
    from pyspark.sql import types

    extra = [types.StructField(WEIGHT, types.DoubleType()), types.StructField(COUNT, types.LongType())]
    return types.StructType([*df.schema.fields, *extra])


def _decide(df: "DataFrame", kernel: Kernel) -> Chosen:
    """First pass: parts from the workers, merged, finished on the driver."""
    needed = df.select(*map(column, kernel.uses))
    parts = needed.mapInArrow(_contribution(kernel), _PARTS)
    with sentences():
        found = [pickle.loads(row.part) for row in _few(parts, kernel)]
    return kernel.finish(kernel.folded(found or [kernel.partial(_nobody(needed))]))


def _few(parts: "DataFrame", kernel: Kernel) -> list[Any]:
    """The parts as rows on the driver; where they are many and large, the workers merge them in a tree before."""
    records = _bottom_k(kernel.design)
    if records is None or records <= _SMALL:
        return list(parts.collect())
    held = parts = parts.persist()
    try:
        tasks = held.count()
        while tasks > 1 and tasks * records > _AT_ONCE:
            tasks = -(-tasks // _WIDTH)
            parts = _merged(parts, kernel, tasks)
        return list(parts.collect())
    finally:
        held.unpersist()


def _contribution(kernel: Kernel) -> Any:
    secret = kernel.secret_bytes()

    def contribute(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        own, context = Kernel.from_secret_bytes(secret), TaskContext.get()
        parts = (own.partial(batch) for batch in _larger(batches))
        first = next(parts, None)
        if first is not None:
            whole = own.folded(part for group in ([first], parts) for part in group)
            yield _row(context.partitionId() if context else 0, whole)

    return contribute


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


def _merged(parts: "DataFrame", kernel: Kernel, groups: int) -> "DataFrame":
    """The parts, merged to at most so many."""
    from pyspark.sql import functions

    secret = kernel.secret_bytes()

    def merge(table: pa.Table) -> pa.Table:
        own = Kernel.from_secret_bytes(secret)
        whole = own.folded(pickle.loads(part.as_py()) for part in table["part"])
        return pa.Table.from_batches([_row(table["task"][0].as_py() % groups, whole)])

    return parts.groupBy(functions.expr(f"task % {groups}")).applyInArrow(merge, _PARTS)


def _row(task: int, part: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([task], pa.int32()), pa.array([pickle.dumps(part)], pa.binary())], names=["task", "part"]
    )


def _nobody(df: "DataFrame") -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=arrow_schema(df))


def _bottom_k(design: Design) -> int | None:
    """How many records a part holds at most, for designs whose parts shrink when they are merged."""
    if isinstance(design, FixedSize):
        return design.most_distinct
    if isinstance(design, Stratified):
        sizes = [_bottom_k(part) for _, part in design.strata]
        return None if None in sizes else sum(size or 0 for size in sizes)
    return None


def _carries_everyone(design: Design) -> bool:
    """Whether the driver must hold a number for every record: size or odds depend on all of them."""
    if isinstance(design, Stratified):
        return any(_carries_everyone(part) for _, part in design.strata)
    return not (isinstance(design, (FixedSize, Clustered)) or Kernel(design, Key.generate()).streams)


def _check_room(df: "DataFrame", design: Design, most: int) -> None:
    if df.limit(most + 1).count() > most:
        raise InvalidInput(
            f"{type(design).__name__} decides from numbers of all records together, some 24 bytes each on the driver, "
            f"and there are more than the {most} that driver_records allows; raise it, or take Poisson, PoissonPPS, "
            "ImportanceSampling, WithoutReplacement, WithReplacement, MultiStage or ClusterSampling, which do not"
        )


def _check_repeatable(seen: "DataFrame") -> None:
    """Ids that are made anew at every evaluation would draw a new sample each time."""
    plan = getattr(seen, "_jdf", None)  # Spark Connect does not show its plans
    if plan is not None and not plan.queryExecution().optimizedPlan().deterministic():
        raise InvalidInput(
            "the columns that decide come from rand(), uuid(), monotonically_increasing_id() or the like, so every "
            "evaluation would be another sample; write the table out first, then sample what was written"
        )
