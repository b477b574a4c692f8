"""Ids from Arrow columns, the same for the same people in any library and type.

A record's coin is a keyed function of its id, where 7 and "7" are two ids. So a type that names whole numbers in
another way (categories, decimals without places such as DuckDB's HUGEINT, run lengths) is decoded to whole numbers,
other forms of text and UUIDs to text, and ambiguous types (floats, dates, bytes, decimals with places) are rejected;
types are public.
"""

from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from ..chance.texts import Texts
from ..errors import InvalidInput
from ..extras import missing

try:
    import pyarrow as pa
    from pyarrow import compute
except ModuleNotFoundError as error:
    raise missing(error, "reading files and frames") from None

_WHOLE, _TEXT, _UUID, _NOTHING = "whole numbers", "text", "uuid", "nothing"
_UUID_TYPE = "arrow.uuid"


def check_id_type(field: pa.Field) -> None:
    """Ids are whole numbers, text or UUIDs; a column of a CSV file without rows has the type null."""
    if _kind(field.type) is None:
        raise InvalidInput(
            f"the id column {field.name!r} must hold whole numbers or text, got {field.type} instead, which can "
            "write one id in several ways; cast it first"
        )


def ids_of(column: pa.Array, name: str) -> Any:
    """Ids as the keyed function takes them: an array of uint64, of Python strings, or `Texts`, which stand for one."""
    kind, column = _kind(column.type), _flat(column)
    if kind is None:
        check_id_type(pa.field(name, column.type))
    if kind == _NOTHING and not len(column):
        return np.empty(0, dtype=np.uint64)
    if column.null_count:
        raise InvalidInput(f"the id column {name!r} has missing ids, but every record needs one; fill them first")
    if kind == _WHOLE:
        return _whole_numbers(column, name)
    if kind == _UUID:
        return np.array([str(UUID(bytes=value)) for value in _storage(column).to_pylist()], dtype=object)
    return _in_utf8(column, name)


def _kind(kind: pa.DataType) -> str | None:
    """What ids of a type are, or None if that is ambiguous."""
    if pa.types.is_dictionary(kind) or _is_run_lengths(kind):
        return _kind(kind.value_type)
    if pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and kind.scale == 0):
        return _WHOLE
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or str(kind) == "string_view":
        return _TEXT
    if getattr(kind, "extension_name", None) == _UUID_TYPE:
        return _UUID
    return _NOTHING if pa.types.is_null(kind) else None


def _flat(column: pa.Array) -> pa.Array:
    """One value for every record."""
    if pa.types.is_dictionary(column.type):
        return _flat(column.dictionary_decode())
    return _flat(compute.run_end_decode(column)) if _is_run_lengths(column.type) else column


def _is_run_lengths(kind: pa.DataType) -> bool:
    return bool(pa.types.is_run_end_encoded(kind))


def _storage(column: pa.Array) -> pa.Array:
    return getattr(column, "storage", column)


def _in_utf8(column: pa.Array, name: str) -> Any:
    """Text that Python can hold: two ids of other bytes could become the same string, and share a coin."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        raise InvalidInput(f"the id column {name!r} has ids that are not UTF-8; write them in UTF-8 first") from None
    return texts_of(column)


def texts_of(column: pa.Array) -> Any:
    """A column of text as `Texts`: its own bytes, without a Python string for each."""
    column = _flat(column)
    if column.type not in (pa.string(), pa.large_string()):
        column = compute.cast(column, pa.large_string())
    _, ends, data = column.buffers()
    size = np.int32 if column.type == pa.string() else np.int64
    first, last = column.offset, column.offset + len(column) + 1
    borders = np.frombuffer(ends, size, last)[first:] if len(column) else np.empty(0, size)
    return Texts.of_bytes(np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8), borders)


def _whole_numbers(column: pa.Array, name: str) -> NDArray[np.uint64]:
    if pa.types.is_decimal(column.type):
        try:
            column = compute.cast(column, pa.uint64())
        except pa.ArrowInvalid:
            raise InvalidInput(
                f"the id column {name!r} has ids below 0 or from 2^64 on; cast it to text, or renumber the records"
            ) from None
    ids = column.to_numpy(zero_copy_only=False)
    if ids.dtype.kind == "i" and ids.size and int(ids.min()) < 0:
        raise InvalidInput(f"the id column {name!r} has negative ids; cast it to text, or shift it")
    return ids.view(np.uint64) if ids.dtype == np.int64 else np.asarray(ids, dtype=np.uint64)
