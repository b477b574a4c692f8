"""PrivateKMeans of a Spark table: plan, rule, noise and guarantee are those of a fit in memory.

Norms and squares for the first look are added up where the records are. With a sample size, the drawn rows then come to
the driver, which runs Lloyd's steps. Without one no row travels: every step is a pass over the table, and partitions
send their sums, whole numbers that do not depend on how the table is divided.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..chance.keys import Key, given_key
from ..core.ledger import BudgetLike
from ..core.population import UNNAMED
from ..core.sample import Drawn, Sample
from ..designs.importance import ImportanceSampling
from ..designs.poisson import Poisson
from ..engines.kernel import COUNT, WEIGHT
from ..engines.row_numbers import raw_numbers
from ..engines.spark import check_unique, kernel_for
from ..engines.spark_digest import CLUSTER, SAME_TABLE, SIZE, TableDigest, tallies
from ..engines.spark_draw import Draw, Keeper, View
from ..engines.spark_frames import plain
from ..engines.spark_messages import Batches, Work, column, messages
from ..engines.spark_plan import check_values
from ..engines.spark_totals import dimension_of
from ..errors import InvalidInput
from ..kmeans import exact
from ..kmeans.ball import Ball, added, lengths_and_squares, taken_inside
from ..kmeans.estimator import PrivateKMeans
from ..kmeans.first_look import MIDDLES, norm_counts, priced
from ..kmeans.fit import Request, after_first_look
from ..kmeans.lloyd import in_reals, unit_totals
from ..kmeans.privacy_spend import PrivacySpend
from ..kmeans.steps import MakeSums, Rows
from ..kmeans.threads import ThreadPool
from ..numerics.log_domain import FloatArray
from ..rules.rule import Rule

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LENGTH = "privamp_length"


def fit(
    model: PrivateKMeans,
    df: "DataFrame",
    columns: str | Sequence[str],
    *,
    id: str,
    key: Key | None = None,
    budget: BudgetLike | None = None,
    dimension: int | None = None,
    trust_ids: bool = False,
) -> PrivateKMeans:
    """Fit `model` to columns of numbers, or to one array column of length `dimension`; returns the model.

    Radius and centre must be public here. With a `sample_size` the drawn rows come to the driver, so its memory bounds
    that size. Without one, nothing comes but sums: each step reads the table once more, so cache it if you can.
    """
    df, values = plain(df), (columns,) if isinstance(columns, str) else tuple(columns)
    d = dimension_of(df, values, dimension)
    request = Request.of(model, d)
    if request.radius is None or request.center is None:
        raise InvalidInput('on Spark, radius and center must be public numbers, got "private" instead')
    kernel_for(df, Poisson(1.0), id=id)  # ids and columns exist and can be recomputed
    check_values(df.select(*map(column, values)))
    if not trust_ids:
        check_unique(df, id)
    key = model._key() if key is None else given_key(key)
    bill, ball = PrivacySpend(request.epsilon, request.delta, key), Ball(request.center, request.radius)
    table = _Table(df, id, values, ball, key.subkey("pin", id))
    with ThreadPool(model.n_jobs) as pool, request.paid(key, budget) as done:
        counts, squares, pin = _first_look(table)
        seen = priced(bill, counts, squares, request.first_look * request.epsilon)

        def draw(rule: Rule) -> tuple[Sample, MakeSums]:
            drawn = _draw(table, rule, key, pin)
            return _left_there(table, drawn) if request.size is None else _brought(table, drawn, pool)

        fitted, found = after_first_look(request, bill, ball, seen, draw, pool, model.progress)
        found = replace(found, assumes=tuple(dict.fromkeys((*found.assumes, SAME_TABLE, CLUSTER))))
        done(found)
    model.n_features_in_ = d
    return model._adopt(fitted, found)


@dataclass(frozen=True, slots=True)
class _Table:
    """The columns that both passes read."""

    df: "DataFrame"
    id: str
    values: tuple[str, ...]
    ball: Ball
    pin_key: Key

    @property
    def uses(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.id, *self.values)))


def _first_look(table: _Table) -> tuple[FloatArray, FloatArray, TableDigest]:
    """Counts of norms and sums of squares over all records, and the digest of the table, in one pass."""
    start, values, ball = tallies(table.pin_key, table.uses), table.values, table.ball
    d = ball.center.size

    def look(batches: Batches) -> list[bytes]:
        tally, counts, squares = start(), np.zeros(MIDDLES.size), np.zeros(d)
        for batch in batches:
            tally.add(batch)
            lengths, more = lengths_and_squares(ball, raw_numbers(batch, values, d))
            counts, squares = added(counts, norm_counts(lengths)), added(squares, more)
        return [tally.to_bytes() + np.concatenate([counts, squares]).tobytes()]

    found = messages(table.df, table.uses, look)
    sums = reduce(added, (np.frombuffer(part[SIZE:]) for part in found), np.zeros(MIDDLES.size + d))
    return sums[: MIDDLES.size], sums[MIDDLES.size :], TableDigest(part[:SIZE] for part in found)


def _draw(table: _Table, rule: Rule, key: Key, pin: TableDigest) -> Draw:
    id, values, ball = table.id, table.values, table.ball

    def measured(batch: pa.RecordBatch) -> pa.RecordBatch:
        lengths, _ = lengths_and_squares(ball, raw_numbers(batch, values, ball.center.size))
        return pa.RecordBatch.from_arrays([batch.column(id), pa.array(np.minimum(lengths, 1.0))], names=[id, _LENGTH])

    design, view = ImportanceSampling(rule), View(values, measured)
    kernel = kernel_for(table.df, design, id=id, key=key, label=UNNAMED, reads={design.column: _LENGTH}, view=view)
    return Draw(table.df, kernel, view, None, pin, table.pin_key)


def _brought(table: _Table, draw: Draw, pool: ThreadPool) -> tuple[Sample, MakeSums]:
    """The drawn rows, brought to the driver, as a sample whose positions count in them."""
    rows = draw.to_arrow((table.id, *table.values)).sort_by(table.id)
    batch = rows.combine_chunks().to_batches()[0] if rows.num_rows else pa.RecordBatch.from_pylist([], rows.schema)
    X = raw_numbers(batch, table.values, table.ball.center.size)
    lengths = lengths_and_squares(table.ball, X)[0] if len(X) else np.empty(0)
    drawn = Drawn(np.arange(len(X)), batch.column(COUNT).to_numpy(), batch.column(WEIGHT).to_numpy())
    return _sample(draw, drawn), partial(Rows, table.ball, X, lengths, pool)


def _left_there(table: _Table, draw: Draw) -> tuple[Sample, MakeSums]:
    """A sample whose rows stay on the cluster; the driver knows none of them."""
    nobody = Drawn(np.arange(0), np.arange(0), np.empty(0))
    return _sample(draw, nobody), partial(_Remote, table, draw)


def _sample(draw: Draw, drawn: Drawn) -> Sample:
    ids = np.arange(len(drawn.positions), dtype=np.uint64)
    return Sample(draw.kernel.design, ids, drawn, draw.kernel.subkey)


@dataclass(frozen=True, slots=True)
class _Remote:
    """Sums of rows on the cluster: one job for every answer, and a message of constant length for every partition."""

    table: _Table
    draw: Draw
    columns: NDArray[np.intp]
    row_bits: int
    sum_bits: int

    def total(self, drawn: Drawn) -> tuple[FloatArray, FloatArray]:
        every = np.arange(self.table.ball.center.size)
        return self._added(every, np.zeros((1, every.size)))

    def around(self, centres: FloatArray, drawn: Drawn) -> tuple[FloatArray, FloatArray]:
        return self._added(self.columns, centres)

    def _added(self, columns: NDArray[np.intp], centres: FloatArray) -> tuple[FloatArray, FloatArray]:
        shape = (2, len(centres), columns.size + 1)
        add = _adding(
            self.draw.keeper(), self.table.ball, self.table.values, columns, centres, self.row_bits, self.sum_bits
        )
        found = messages(self.table.df, self.draw.uses, add)
        self.draw.check([message[:SIZE] for message in found])
        parts = [np.frombuffer(message[SIZE:], dtype="<i8").reshape(shape) for message in found]
        pair = np.asarray(np.sum([np.zeros(shape, dtype=np.int64), *parts], axis=0, dtype=np.int64))
        return in_reals(exact.joined(pair), self.sum_bits)


def _adding(
    make: Callable[[], Keeper],
    ball: Ball,
    values: Sequence[str],
    columns: NDArray[np.intp],
    centres: FloatArray,
    row_bits: int,
    sum_bits: int,
) -> Work:
    """What a partition does in a step; without the table, which cannot be sent to a worker."""

    def add(batches: Batches) -> list[bytes]:
        keeper, pair = make(), np.zeros((2, len(centres), columns.size + 1), dtype=np.int64)
        with ThreadPool(1) as pool:
            for batch in batches:
                kept = keeper.kept(batch)
                X = raw_numbers(kept, values, ball.center.size)
                taken, lengths = np.arange(len(X)), lengths_and_squares(ball, X)[0]
                rows = taken_inside(ball, X, taken, columns, lengths, pool, row_bits)
                weights = kept.column(COUNT).to_numpy() * kept.column(WEIGHT).to_numpy()
                pair += exact.halves(unit_totals(rows, weights, centres, pool, bits=sum_bits, fast=False))
        return [keeper.tally() + pair.astype("<i8").tobytes()]

    return add
