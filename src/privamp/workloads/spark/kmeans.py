"""PrivateKMeans of a Spark table: the first look and the sample on the cluster, Lloyd's steps on the driver.

Plan, rule, noise and guarantee are those of a fit in memory. Norms and squares for the first look are added up where
the records are; then only the drawn rows travel.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...chance.keys import Key
from ...core.sample import Drawn, Sample
from ...designs.importance import ImportanceSampling
from ...engines.kernel import COUNT, WEIGHT
from ...engines.spark import View, check_unique, column, drawn_rows, kernel_for
from ...engines.spark_session import sentences
from ...engines.spark_totals import dimension_of, numbers
from ...errors import InvalidInput
from ...numerics.log_domain import FloatArray
from ...rules.rule import Rule
from ..kmeans.ball import Ball, lengths_and_squares
from ..kmeans.bill import Bill
from ..kmeans.estimator import PrivateKMeans
from ..kmeans.first_look import MIDDLES, norm_counts, priced
from ..kmeans.fit import Request, after_first_look
from ..kmeans.threads import Crew

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
    dimension: int | None = None,
    trust_ids: bool = False,
) -> PrivateKMeans:
    """Fit `model` to columns of numbers, or to one array column of length `dimension`; returns the model.

    Radius and centre must be public here. The drawn rows come to the driver, so its memory bounds `sample_size`.
    """
    values = (columns,) if isinstance(columns, str) else tuple(columns)
    d = dimension_of(df, values, dimension)
    request = Request.of(model, d)
    if request.radius is None or request.center is None:
        raise InvalidInput('on Spark, radius and center must be public numbers, got "private" instead')
    if not trust_ids:
        check_unique(df, id)
    key = key or model._key()
    bill, ball = Bill(request.epsilon, request.delta, key), Ball(request.center, request.radius)
    counts, squares = _first_look(df, values, ball, d)
    seen = priced(bill, counts, squares, request.first_look * request.epsilon)

    def draw(rule: Rule) -> tuple[Sample, NDArray[Any], FloatArray]:
        return _drawn(df, rule, ball, values, id, key)

    with Crew(model.n_jobs) as crew:
        fitted, privacy = after_first_look(request, bill, ball, seen, draw, crew, model.progress)
    model.n_features_in_ = d
    return model._adopt(fitted, privacy)


def _first_look(df: "DataFrame", values: tuple[str, ...], ball: Ball, d: int) -> tuple[FloatArray, FloatArray]:
    """Counts of norms and sums of squares over all records."""

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        counts, squares = np.zeros(MIDDLES.size), np.zeros(d)
        for batch in batches:
            lengths, more = lengths_and_squares(ball, numbers(batch, values))
            counts += norm_counts(lengths)
            squares += more
        yield pa.RecordBatch.from_arrays([pa.array([np.concatenate([counts, squares]).tobytes()])], names=["sums"])

    with sentences():
        parts = df.select(*map(column, values)).mapInArrow(look, "sums binary").collect()
    sums = np.sum([np.frombuffer(part.sums) for part in parts] or [np.zeros(MIDDLES.size + d)], axis=0)
    return sums[: MIDDLES.size], sums[MIDDLES.size :]


def _drawn(
    df: "DataFrame", rule: Rule, ball: Ball, values: tuple[str, ...], id: str, key: Key
) -> tuple[Sample, NDArray[Any], FloatArray]:
    """The drawn rows, brought to the driver, as a sample whose positions count in them."""

    def measured(batch: pa.RecordBatch) -> pa.RecordBatch:
        lengths, _ = lengths_and_squares(ball, numbers(batch, values))
        return pa.RecordBatch.from_arrays([batch.column(id), pa.array(np.minimum(lengths, 1.0))], names=[id, _LENGTH])

    design, view = ImportanceSampling(rule), View(values, measured)
    kernel = kernel_for(df, design, id=id, key=key, reads={design.column: _LENGTH}, view=view)
    needed = df.select(*map(column, dict.fromkeys((id, *values))))
    with sentences():
        table = drawn_rows(needed, kernel, view, trust_ids=True).toArrow()
    batch = table.combine_chunks().to_batches()[0] if table.num_rows else pa.RecordBatch.from_pylist([], table.schema)
    X = numbers(batch, values).reshape(batch.num_rows, ball.center.size)
    lengths = lengths_and_squares(ball, X)[0] if len(X) else np.empty(0)
    drawn = Drawn(np.arange(len(X)), batch.column(COUNT).to_numpy(), batch.column(WEIGHT).to_numpy())
    return Sample(design, np.arange(len(X), dtype=np.uint64), drawn, kernel.subkey), X, lengths
