"""Numbers from the columns of a table in files or on a cluster: every record has a value, whatever its row holds.

Types are public, and checked before anything is drawn. Values never stop a job: missing entries and NaN count as 0,
infinite ones as the largest double of their sign (a sum clips it), a list that is missing or has another length than
declared as zeros. Each row's numbers are a function of that row alone.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from ..core.influence import norms
from ..numerics.log_domain import FloatArray
from ..numerics.row_norms import finite


def is_number(kind: pa.DataType) -> bool:
    """Whether a column of this type can be summed."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def is_list(kind: pa.DataType) -> bool:
    """Whether a column of this type holds lists."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def numbers(batch: pa.RecordBatch, values: Sequence[str], width: int) -> FloatArray:
    """One row of `width` finite numbers per record: from as many columns, or from one column of lists."""
    return finite(raw_numbers(batch, values, width))


def raw_numbers(batch: pa.RecordBatch, values: Sequence[str], width: int) -> FloatArray:
    """The same with NaN for missing entries, for jobs with their own rule for them."""
    if len(values) == 1 and is_list(batch.column(values[0]).type):
        return _vectors(batch.column(values[0]), width)
    found = np.empty((batch.num_rows, len(values)))
    for k, name in enumerate(values):
        found[:, k] = _raw(batch.column(name))
    return found


def lengths_of(batch: pa.RecordBatch, values: Sequence[str], p: float) -> FloatArray:
    """The p-norm of every record, rounded up; a list has the norm of its own entries, however many there are."""
    one = batch.column(values[0])
    if len(values) > 1 or not is_list(one.type):
        rows = numbers(batch, values, len(values))
        return norms(rows[:, 0] if len(values) == 1 else rows, p)
    return of_lists(one, lambda rows: norms(rows, p))


def of_lists(column: pa.Array, norm: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """A number for every list, from its own entries alone; 0 for a list that is missing or empty."""
    sizes, entries = _sizes(column), doubles(column.flatten())
    starts = np.cumsum(sizes) - sizes
    found = np.zeros(len(column))
    for width in np.unique(sizes[sizes > 0]).tolist():
        mine = sizes == width
        found[mine] = norm(entries[starts[mine][:, None] + np.arange(width)])
    return found


def doubles(column: pa.Array) -> FloatArray:
    """The numbers of a column, all finite."""
    return finite(_raw(column))


def _raw(column: pa.Array) -> FloatArray:
    cast = compute.cast(
        column, pa.float64(), safe=False
    )  # a safe cast stops at a whole number beyond 2^53 and shows it
    return np.asarray(cast.fill_null(np.nan).to_numpy(zero_copy_only=False))


def _sizes(column: pa.Array) -> NDArray[np.int64]:
    lengths = compute.list_value_length(column).fill_null(0)
    return np.asarray(lengths.to_numpy(zero_copy_only=False), dtype=np.int64)


def _vectors(column: pa.Array, width: int) -> FloatArray:
    """Lists of the declared length as rows, all others as rows of NaN."""
    sizes, entries = _sizes(column), _raw(column.flatten())
    right = sizes == width
    found = np.full((len(column), width), np.nan)
    found[right] = entries[np.repeat(right, sizes)].reshape(-1, width)
    return found
