"""PrivateKMeans of a Spark table: the first look and the sample on the cluster, Lloyd's steps on the driver.

Plan, rule, noise and guarantee are those of a fit in memory. Norms and squares for the first look are added up where
the records are; then only the drawn rows travel.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

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
from ..engines.spark_draw import Draw, View
from ..engines.spark_frames import plain
from ..engines.spark_messages import Batches, column, messages
from ..engines.spark_plan import check_values
from ..engines.spark_totals import dimension_of
from ..errors import InvalidInput
from ..kmeans.ball import Ball, added, lengths_and_squares
from ..kmeans.estimator import PrivateKMeans
from ..kmeans.first_look import MIDDLES, norm_counts, priced
from ..kmeans.fit import Request, after_first_look
from ..kmeans.privacy_spend import PrivacySpend
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

    Radius and centre must be public here. The drawn rows come to the driver, so its memory bounds `sample_size`.
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

        def draw(rule: Rule) -> tuple[Sample, NDArray[Any], FloatArray]:
            return _drawn(table, rule, key, pin)

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


def _drawn(table: _Table, rule: Rule, key: Key, pin: TableDigest) -> tuple[Sample, NDArray[Any], FloatArray]:
    """The drawn rows, brought to the driver, as a sample whose positions count in them."""
    id, values, ball = table.id, table.values, table.ball
    d = ball.center.size

    def measured(batch: pa.RecordBatch) -> pa.RecordBatch:
        lengths, _ = lengths_and_squares(ball, raw_numbers(batch, values, d))
        return pa.RecordBatch.from_arrays([batch.column(id), pa.array(np.minimum(lengths, 1.0))], names=[id, _LENGTH])

    design, view = ImportanceSampling(rule), View(values, measured)
    kernel = kernel_for(table.df, design, id=id, key=key, label=UNNAMED, reads={design.column: _LENGTH}, view=view)
    rows = Draw(table.df, kernel, view, None, pin, table.pin_key).to_arrow((id, *values)).sort_by(id)
    batch = rows.combine_chunks().to_batches()[0] if rows.num_rows else pa.RecordBatch.from_pylist([], rows.schema)
    X = raw_numbers(batch, values, d)
    lengths = lengths_and_squares(ball, X)[0] if len(X) else np.empty(0)
    drawn = Drawn(np.arange(len(X)), batch.column(COUNT).to_numpy(), batch.column(WEIGHT).to_numpy())
    return Sample(design, np.arange(len(X), dtype=np.uint64), drawn, kernel.subkey), X, lengths
