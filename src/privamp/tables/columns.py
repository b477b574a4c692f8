"""From Arrow columns to what designs read: numbers and labels (ids: id_columns.py).

A missing number counts as 0 or NaN, as the reader of the column requests, a missing label as none. Wrong types are
rejected. Each value is read by itself, whatever the others are. No message shows or counts values.
"""

import re
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput
from ..extras import missing
from ..numerics.entries import texts_of

try:
    import pyarrow as pa
    from pyarrow import compute
except ModuleNotFoundError as error:
    raise missing(error, "reading files and frames") from None

_TEXT = (pa.types.is_string, pa.types.is_large_string)
_NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
_PLAIN = re.compile("-?(0|[1-9][0-9]*)")  # as a whole number is written


def is_text(kind: pa.DataType) -> bool:
    """Whether values of this type are text, a dictionary of texts included."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    return any(test(kind) for test in _TEXT)


def can_hold(kind: pa.DataType, label: str | int, *, as_text: bool = False) -> bool:
    """Whether a value of a column of this type may be this label; with `as_text` a whole number means its text."""
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return can_hold(kind.value_type, label, as_text=as_text)
    if is_text(kind) or str(kind) == "string_view":
        return as_text or isinstance(label, str)
    if pa.types.is_null(kind):
        return True
    if as_text:
        is_written = not pa.types.is_integer(kind) or _PLAIN.fullmatch(str(label)) is not None
        return is_written and any(test(kind) for test in _NUMBERS)
    return not isinstance(label, str) and any(test(kind) for test in (*_NUMBERS, pa.types.is_boolean))


def array_of(batch: pa.RecordBatch, places: Sequence[str], name: str, order: Literal["C", "F"] = "C") -> NDArray[Any]:
    """One column, or several side by side as one row each."""
    columns = [_values(batch.column(place), place) for place in places]
    if len(columns) == 1:
        return columns[0]
    if any(column.dtype.kind not in "iuf" for column in columns):
        raise InvalidInput(f"the columns {' and '.join(map(repr, places))} must hold numbers to be read as {name!r}")
    together = np.empty((batch.num_rows, len(columns)), order=order)
    for k, column in enumerate(columns):
        together[:, k] = column
    return together


def labels_of(column: pa.Array, name: str) -> NDArray[Any]:
    """One label per record, each read by itself: one that is missing is None, or NaN among floats, and changes no
    other."""
    column = _plain(column)
    may_be_missing = is_text(column.type) or str(column.type) in ("string_view", "bool", "null")
    if not column.null_count or not (may_be_missing or pa.types.is_integer(column.type)):
        return _values(column, name)
    found = np.empty(len(column), dtype=object)
    found[:] = [entry.rstrip("\0") if isinstance(entry, str) else entry for entry in column.to_pylist()]
    return found


def numbers_of(batch: pa.RecordBatch, places: Sequence[str]) -> NDArray[np.float64]:
    """One column of numbers, or several side by side; missing entries are 0. Only their types, which are public, can be
    rejected."""
    columns = [_numbers(batch.column(place), place) for place in places]
    return columns[0] if len(columns) == 1 else np.column_stack(columns)


def _numbers(column: pa.Array, name: str) -> NDArray[np.float64]:
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return np.asarray(_rows(column, name), dtype=np.float64)
    if pa.types.is_decimal(kind):
        kind = pa.float64()
        column = compute.cast(column, kind)
    elif not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        if not pa.types.is_null(kind):
            raise InvalidInput(f"the column {name!r} must hold numbers to be summed, got {kind} instead; cast it first")
        return np.zeros(len(column))
    if column.null_count:
        column = compute.fill_null(column, pa.scalar(False if pa.types.is_boolean(kind) else 0, kind))
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def _plain(column: pa.Array) -> pa.Array:
    """One value per record, with its nulls; decimals as doubles."""
    if pa.types.is_dictionary(column.type):
        return _plain(column.dictionary_decode())
    return compute.cast(column, pa.float64()) if pa.types.is_decimal(column.type) else column


def _values(column: pa.Array, name: str) -> NDArray[Any]:
    column = _plain(column)
    numeric = pa.types.is_floating(column.type) or pa.types.is_integer(column.type)
    if column.null_count and not numeric:  # a missing number is nan, which every design handles by a public rule
        raise InvalidInput(
            f"the column {name!r} has missing values, but the design needs one for every record; fill or drop them"
        )
    if is_text(column.type):
        return texts_of(compute.cast(column, pa.string()).to_pylist())
    if pa.types.is_fixed_size_list(column.type) or pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        return _rows(column, name)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _rows(column: pa.Array, name: str) -> NDArray[np.float64]:
    """Lists of a fixed size (part of the type) as one row each; missing entries are 0."""
    if not pa.types.is_fixed_size_list(column.type):
        raise InvalidInput(
            f"the column {name!r} must hold lists of a fixed size, got lists of any length; cast it first"
        )
    entries = compute.cast(column.flatten(), pa.float64(), safe=False).fill_null(0.0)  # of lists that are not missing
    found = np.zeros((len(column), column.type.list_size))
    found[column.is_valid().to_numpy(zero_copy_only=False)] = entries.to_numpy(zero_copy_only=False).reshape(
        -1, column.type.list_size
    )
    return found
