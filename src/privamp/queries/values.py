"""One column as words or numbers, a record at a time: what cannot be read is missing, and no value is rejected.

How a cell is read depends on the cell and on the column's declared type. Columns of CSV files have none: they are text.
"""

import numpy as np
import pyarrow as pa
from pyarrow import compute

from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray
from ..tables.columns import is_text
from ..tables.csv_text import TEXT, text_of

_YES = ("yes", "y", "true", "t", "1")
_NO = ("no", "n", "false", "f", "0")
_NUMBER = r"^[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|infinity)$"


def check_numbers(kind: pa.DataType, column: str) -> None:
    """Raise for a type that is not numeric; types are public."""
    tests = (pa.types.is_floating, pa.types.is_integer, pa.types.is_boolean, pa.types.is_decimal, pa.types.is_null)
    if not (any(test(decoded(kind)) for test in tests) or is_text(kind)):
        raise InvalidInput(f"the column {column!r} must hold numbers, or yes and no, got {kind} instead; cast it first")


def decoded(kind: pa.DataType) -> pa.DataType:
    """The type itself, or that of a dictionary's values."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def is_whole(kind: pa.DataType) -> bool:
    """Whether a column of this type holds whole numbers only."""
    return bool(pa.types.is_integer(decoded(kind)) or pa.types.is_boolean(decoded(kind)))


def numbers_of(column: pa.Array) -> FloatArray:
    """Numbers; yes and no count as 1 and 0, and entries that are missing or not numbers are NaN."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if is_text(kind):
        return _read(column)
    if pa.types.is_decimal(kind):  # as it is written, for Arrow's own cast makes 0.30000000000000004 of 0.3
        return _read(column.cast(TEXT))
    if pa.types.is_boolean(kind) or pa.types.is_float16(kind):
        column = column.cast(pa.float64())
    found = np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
    if column.null_count:
        found = np.where(np.asarray(column.is_null().to_numpy(zero_copy_only=False)), np.nan, found)
    return found


def words_of(column: pa.Array) -> pa.Array:
    """Text without surrounding spaces; entries that are empty or not UTF-8 are missing."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not is_text(column.type):
        return column.cast(TEXT)
    return text_of(compute.ascii_trim_whitespace(column.cast(TEXT)).cast(pa.large_binary()))


def number_in(word: str) -> float:
    """A public value as a number, by the rule for cells; NaN if it is not a number."""
    return float(numbers_of(pa.array([word], TEXT))[0])


def _read(column: pa.Array) -> FloatArray:
    words = compute.ascii_lower(words_of(column))
    found = np.full(len(words), np.nan)
    is_number = compute.match_substring_regex(words, _NUMBER).fill_null(False)
    mask = np.asarray(is_number.to_numpy(zero_copy_only=False))
    if mask.any():
        found[mask] = _floats(words.filter(is_number))
    for names, value in ((_YES, 1.0), (_NO, 0.0)):
        same = compute.is_in(words, value_set=pa.array(names, TEXT))
        found[np.asarray(same.to_numpy(zero_copy_only=False))] = value
    return found


def _floats(words: pa.Array) -> FloatArray:
    """The nearest doubles; Arrow's cast finds the same ones, but fails for all of them because of +5."""
    try:
        return np.asarray(words.cast(pa.float64()).to_numpy(zero_copy_only=False))
    except pa.ArrowInvalid:
        return np.array([float(word) for word in words.to_pylist()])
