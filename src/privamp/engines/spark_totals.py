"""Whole-number totals of a Spark table: rows are clipped and rounded toward zero where they lie, whole numbers add up.

The sum is exact, so it does not depend on partitions, order or retries. The workers add modulo 2^64, Spark adds their
sums as decimals: its own 64-bit sum stops with an error when it runs over, and that would depend on the data.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..core.influence import clipped
from ..errors import InvalidInput
from ..mechanisms.fixed_point import ExactGaussian, ExactLaplace, toward_zero
from ..numerics.log_domain import FloatArray
from .columns import array_of
from .kernel import COUNT, WEIGHT
from .spark import arrow_schema, column
from .spark_session import sentences

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Whole = NDArray[np.int64]
Exact = ExactLaplace | ExactGaussian
Units = Callable[[pa.RecordBatch], Whole]  # one row of whole numbers per record


def whole_totals(rows: "DataFrame", columns: Sequence[str], units: Units, width: int) -> Whole:
    """The sum over all rows of `units` of their `columns`, shape (width,), modulo 2^64."""
    from pyspark.sql import functions

    def add(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        total = np.zeros(width, dtype=np.int64)
        for batch in batches:
            total += np.sum(units(batch), axis=0, dtype=np.int64).reshape(width)
        cells = np.flatnonzero(total)
        yield pa.RecordBatch.from_arrays([pa.array(cells, pa.int64()), pa.array(total[cells])], names=["cell", "total"])

    parts = rows.select(*map(column, columns)).mapInArrow(add, "cell long, total long")
    with sentences():
        found = (
            parts.groupBy("cell")
            .agg(functions.sum(functions.col("total").cast("decimal(20,0)")).alias("total"))
            .collect()
        )
    totals = np.zeros(width, dtype=np.uint64)
    for row in found:
        totals[row.cell] = int(row.total) % 2**64
    return totals.view(np.int64)


def units_of(noise: Exact, values: Sequence[str]) -> Units:
    """The records' rows (ones where no column is named), clipped, weighted and rounded for this noise."""

    def units(batch: pa.RecordBatch) -> Whole:
        x = numbers(batch, values) if values else np.ones((batch.num_rows, 1))
        return rounded(noise, x, batch)

    return units


def rounded(noise: Exact, x: FloatArray, batch: pa.RecordBatch) -> Whole:
    """Rows of reals as whole rows on the noise's grid, with the weights and counts of the batch."""
    weights, counts = batch.column(WEIGHT).to_numpy(), batch.column(COUNT).to_numpy()
    whole = toward_zero(clipped(x, noise.sensitivity, noise.p), noise.grid, weights)
    return np.asarray(whole * counts[:, None])


def numbers(batch: pa.RecordBatch, values: Sequence[str]) -> FloatArray:
    """Finite numbers, one row per record."""
    x = array_of(batch, tuple(values), "+".join(values))
    if x.dtype.kind not in "iuf":
        raise InvalidInput(f"the columns {', '.join(map(repr, values))} must hold numbers")
    x = x.astype(np.float64)
    wrong = int(np.count_nonzero(~np.isfinite(x).reshape(len(x), -1).all(axis=1)))
    if wrong:
        raise InvalidInput(f"{wrong} records here hold nan or infinity; drop or fill them first, by a public rule")
    return x[:, None] if x.ndim == 1 else x


def by_group(units: Units, by: str, groups: Sequence[Any]) -> Units:
    """The same rows, each in the place of its group; groups are public, and records outside them are not counted."""
    place = {group: k for k, group in enumerate(groups)}

    def placed(batch: pa.RecordBatch) -> Whole:
        own = units(batch)
        where = np.array([place.get(label, -1) for label in batch.column(by).to_pylist()], dtype=np.int64)
        totals = np.zeros((len(groups), own.shape[1]), dtype=np.int64)
        np.add.at(totals, where[where >= 0], own[where >= 0])
        return totals.reshape(1, -1)

    return placed


def dimension_of(df: "DataFrame", values: Sequence[str], dimension: int | None) -> int:
    """How many numbers a record holds: one per column, or those of one array column, which must be said."""
    schema = arrow_schema(df)
    for name in values:
        if name not in schema.names:
            raise InvalidInput(f"the data has no column {name!r}; it has {', '.join(map(repr, schema.names[:12]))}")
    if len(values) == 1 and pa.types.is_list(schema.field(values[0]).type):
        if dimension is None:
            raise InvalidInput(f"column {values[0]!r} holds arrays; say how long they are by dimension=…")
        return dimension
    return len(values) or 1
