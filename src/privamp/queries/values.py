"""One column as numbers, a record at a time: what cannot be read is missing, and nothing is refused by its value."""

import numpy as np
import pyarrow as pa
from pyarrow import compute

from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray
from ..tables.columns import is_text

_YES = ("yes", "y", "true", "t", "1")
_NO = ("no", "n", "false", "f", "0")


def check_numbers(kind: pa.DataType, column: str) -> None:
    """Only the type of the column is refused, which is public."""
    tests = (pa.types.is_floating, pa.types.is_integer, pa.types.is_boolean, pa.types.is_decimal, pa.types.is_null)
    if not (any(test(kind) for test in tests) or is_text(kind)):
        raise InvalidInput(f"the column {column!r} must hold numbers, or yes and no, got {kind} instead; cast it first")


def numbers_of(column: pa.Array) -> FloatArray:
    """Numbers; yes and no count as 1 and 0, and what is missing or no number is NaN."""
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if is_text(kind):
        return _read(column)
    if pa.types.is_decimal(kind) or pa.types.is_boolean(kind) or pa.types.is_float16(kind):
        column = column.cast(pa.float64())
    found = np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
    if column.null_count:
        found = np.where(np.asarray(column.is_null().to_numpy(zero_copy_only=False)), np.nan, found)
    return found


def _read(column: pa.Array) -> FloatArray:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    words = compute.ascii_lower(compute.ascii_trim_whitespace(column.cast(pa.large_string())))
    found = np.full(len(words), np.nan)
    is_number = compute.match_substring_regex(words, r"^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?$").fill_null(False)
    mask = np.asarray(is_number.to_numpy(zero_copy_only=False))
    if mask.any():  # float(), because Arrow's cast refuses a whole column for one odd cell
        found[mask] = [float(word) for word in words.filter(is_number).to_pylist()]
    for names, value in ((_YES, 1.0), (_NO, 0.0)):
        same = compute.is_in(words, value_set=pa.array(names, pa.large_string()))
        found[np.asarray(same.to_numpy(zero_copy_only=False))] = value
    return found
