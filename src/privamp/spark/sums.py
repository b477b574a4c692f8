"""PrivateSum and PrivateMean of the columns of a Spark table: drawn and added up there, noise on the driver.

The draw and the whole-number sum are those of `PrivateSum.release` for records whose ids are their row numbers, so both
engines give the same answer before noise, whatever the partitions.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from ..chance.keys import Key
from ..core.ledger import BudgetLike
from ..core.release import Release
from ..engines.kernel import WEIGHT
from ..engines.row_numbers import numbers
from ..engines.spark import drawn, kernel_for
from ..engines.spark_draw import View
from ..engines.spark_frames import plain
from ..engines.spark_sample import SparkSample
from ..engines.spark_totals import Whole, dimension_of, rounded
from ..errors import InvalidInput
from ..mechanisms.fixed_point import ExactGaussian, ExactLaplace
from ..sums.private_mean import PrivateMean
from ..sums.private_sum import PrivateSum
from ..sums.release import SumRelease

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_CLIPPED = "privamp_clipped"


def release(
    asked: PrivateSum | PrivateMean,
    df: "DataFrame",
    columns: str | Sequence[str],
    *,
    id: str,
    key: Key | None = None,
    budget: BudgetLike | None = None,
    dimension: int | None = None,
    trust_ids: bool = False,
) -> Release:
    """The private sum or mean of one column (a number), of several, or of one array column of length `dimension`."""
    df, values = plain(df), (columns,) if isinstance(columns, str) else tuple(columns)
    task = asked.task(dimension_of(df, values, dimension))
    noise = task.plan.mechanism.noise
    if not isinstance(noise, (ExactLaplace, ExactGaussian)):
        raise InvalidInput(
            f"{asked.noise} noise in {asked.arithmetic} arithmetic adds floats, whose sum depends on the order on a "
            "cluster; use laplace or gaussian noise with arithmetic='exact'"
        )
    sample = _drawn(task, df, values, id, key, trust_ids)
    privacy = task.certify(sample, budget)

    def units(batch: pa.RecordBatch) -> Whole:
        rows = task.rows_of(numbers(batch, values, task.rows.dimension), batch.column(WEIGHT).to_numpy())
        return rounded(noise, rows, batch)

    noisy = sample.release_total(task.plan.mechanism, values, units, (task.rows.width,))
    return asked.answer(task, privacy, task.taken_apart(noisy), isinstance(columns, str) and dimension is None)


def _drawn(
    task: SumRelease, df: "DataFrame", values: tuple[str, ...], id: str, key: Key | None, trust_ids: bool
) -> SparkSample:
    design, view = task.plan.design, None
    reads = dict.fromkeys(design.reads, _CLIPPED) if design.weighing_rule is not None else None
    if reads:
        view = View(values, lambda batch: _clipped(task, batch, values, id))
    kernel = kernel_for(df, design, id=id, key=key, label=task.asked.label, reads=reads, view=view)
    draw = drawn(df, kernel, view, trust_ids=trust_ids, pin=False)
    if task.plan.records is not None and draw.pin is not None:
        task.check_records(draw.pin.secret_rows)
    return SparkSample(draw)


def _clipped(task: SumRelease, batch: pa.RecordBatch, values: tuple[str, ...], id: str) -> pa.RecordBatch:
    """The records as the rule sees them: clipped, as in memory."""
    x = task.clip(numbers(batch, values, task.rows.dimension))
    rows = pa.FixedSizeListArray.from_arrays(pa.array(x.ravel()), x.shape[1])
    return pa.RecordBatch.from_arrays([batch.column(id), rows], names=[id, _CLIPPED])
