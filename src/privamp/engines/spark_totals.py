"""Whole-number totals of a draw: rows are clipped and rounded toward zero on the workers, and whole numbers are added
up.

The sum is exact, so it does not depend on partitions, order or retries. Workers and driver add modulo 2^64: an overflow
makes the answer wrong, never less private, and raises no error.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..core.influence import clipped
from ..errors import InvalidInput
from ..mechanisms.fixed_point import ExactGaussian, ExactLaplace, toward_zero
from ..numerics.log_domain import FloatArray
from ..tables.columns import can_hold, is_text
from ..validation import whole
from .kernel import COUNT, WEIGHT
from .row_numbers import is_list, is_number, numbers
from .spark_digest import SIZE
from .spark_draw import Draw
from .spark_messages import Batches, column, messages
from .spark_plan import check_values
from .spark_session import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Whole = NDArray[np.int64]
Exact = ExactLaplace | ExactGaussian
Ball = tuple[float, float]  # radius, p
Units = Callable[[pa.RecordBatch], Whole]  # one row of whole numbers per record


def whole_totals(draw: Draw, columns: Sequence[str], units: Units, width: int) -> Whole:
    """The sum over the drawn rows of `units` of their `columns`, shape (width,), modulo 2^64: draw and sum in one job.

    Every partition sends one message of constant length, whatever it kept.
    """
    make, wanted = draw.keeper(), [*dict.fromkeys(columns), WEIGHT, COUNT]

    def add(batches: Batches) -> list[bytes]:
        keeper, total = make(), np.zeros(width, dtype=np.int64)
        for batch in batches:
            kept = keeper.kept(batch).select(wanted)
            total += np.sum(units(kept), axis=0, dtype=np.int64).reshape(width)
        return [keeper.tally() + total.astype("<i8").tobytes()]

    if columns:
        check_values(draw.df.select(*map(column, columns)))
    found = messages(draw.df, (*draw.uses, *columns), add)
    draw.check([message[:SIZE] for message in found])
    parts = [np.frombuffer(message[SIZE:], dtype="<i8") for message in found]
    return np.asarray(np.sum([np.zeros(width, dtype=np.int64), *parts], axis=0, dtype=np.int64))


def units_of(noise: Exact, values: Sequence[str], width: int, inside: Ball | None = None) -> Units:
    """The records' rows (ones if there is no column), clipped, weighted and rounded for this noise.

    `inside` is the ball of an importance rule: no row may be longer than its weight allows.
    """

    def units(batch: pa.RecordBatch) -> Whole:
        x = numbers(batch, values, width) if values else np.ones((batch.num_rows, 1))
        return rounded(noise, x if inside is None else clipped(x, *inside), batch)

    return units


def rounded(noise: Exact, x: FloatArray, batch: pa.RecordBatch) -> Whole:
    """Rows of reals as whole rows on the noise's grid, with the weights and counts of the batch."""
    weights, counts = batch.column(WEIGHT).to_numpy(), batch.column(COUNT).to_numpy()
    units = toward_zero(clipped(x, noise.sensitivity, noise.p), noise.grid, weights)
    return np.asarray(units * counts[:, None])


def by_group(units: Units, by: str, groups: Sequence[Any]) -> Units:
    """The same rows, each at the position of its group; groups are public, and records outside them are not counted."""
    place = {group: k for k, group in enumerate(groups)}

    def placed(batch: pa.RecordBatch) -> Whole:
        own = units(batch)
        where = np.array([place.get(label, -1) for label in batch.column(by).to_pylist()], dtype=np.int64)
        totals = np.zeros((len(groups), own.shape[1]), dtype=np.int64)
        np.add.at(totals, where[where >= 0], own[where >= 0])
        return totals.reshape(1, -1)

    return placed


def dimension_of(df: "DataFrame", values: Sequence[str], dimension: int | None) -> int:
    """How many numbers a record has: one per column, or the declared length of one array column."""
    kinds = [_kind(df, name) for name in values]
    if len(kinds) == 1 and is_list(kinds[0]) and is_number(kinds[0].value_type):
        if dimension is None:
            raise InvalidInput(f"column {values[0]!r} holds arrays; give their length with dimension=…")
        whole(1, dimension=dimension)
        return dimension
    for name, kind in zip(values, kinds, strict=True):
        if not is_number(kind):
            raise InvalidInput(f"the column {name!r} must hold numbers, got {kind} instead; cast it first")
    return len(values) or 1


def check_groups(df: "DataFrame", by: str, groups: Sequence[Any]) -> None:
    """A column of groups holds whole numbers, text or truth values, and the groups are such: public facts."""
    kind = _kind(df, by)
    if not (pa.types.is_integer(kind) or is_text(kind) or pa.types.is_boolean(kind)):
        raise InvalidInput(f"the column {by!r} of groups must hold whole numbers or text, got {kind} instead")
    for group in groups:
        if group is not None and not can_hold(kind, group):
            raise InvalidInput(f"no record can be in group {group!r}, because the column {by!r} holds {kind}; cast it")


def _kind(df: "DataFrame", name: str) -> pa.DataType:
    schema = arrow_schema(df)
    if name not in schema.names:
        raise InvalidInput(f"the data has no column {name!r}; it has {', '.join(map(repr, schema.names[:12]))}")
    return schema.field(name).type
