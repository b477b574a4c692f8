"""One number per record, from whatever a column holds: a public rule, entry by entry.

An entry that is no number (missing, None, masked, text that does not read as a number, another object) becomes nan, and
a whole number beyond the largest double becomes an infinity of its sign. What an entry becomes depends on that entry
and on the type of the array alone, and no entry is refused: an error would reveal that such a record is there. The type
and the shape of an array are public, and an array of another type (text, dates, complex numbers) is refused by them. A
list has no type: its entries are read one by one.

Sums take rows of any shape (`rows_of`) and keep the type of an array that has one: whole numbers stay whole. Masked
entries contribute 0, as missing entries do once `row_norms` reads them.
"""

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput
from .log_domain import FloatArray


def column_of(values: Any, what: str = "values") -> FloatArray:
    """One column, shape (n,).

    >>> column_of([1, "2.5", None, "two", 10**400, True]).tolist()
    [1.0, 2.5, nan, nan, inf, 1.0]
    """
    if isinstance(values, (list, tuple)):
        return each(values)
    found = _array(values, what)
    if found.ndim != 1:
        raise InvalidInput(f"{what} must be one column of numbers, got an array of {found.ndim} dimensions instead")
    return found


def table_of(values: Any, what: str = "values") -> FloatArray:
    """A table with one row per record, shape (n, d); rows of a list must be of one length, which is public."""
    if not isinstance(values, (list, tuple)):
        found = _array(values, what)
        if found.ndim != 2:
            raise InvalidInput(
                f"{what} must be a table with one row per record, got an array of {found.ndim} dimensions instead"
            )
        return found
    rows = [row if isinstance(row, (list, tuple)) else np.asarray(row).tolist() for row in values]
    if not rows or any(not isinstance(row, (list, tuple)) or len(row) != len(rows[0]) for row in rows):
        raise InvalidInput(f"{what} must be a table with one row per record, all of one length; give it as an array")
    return each([entry for row in rows for entry in row]).reshape(len(rows), -1)


def rows_of(values: Any) -> NDArray[Any]:
    """One row (or number) per record: booleans, whole numbers or floats, of any shape.

    >>> rows_of([[1, "2.5"], [None, 10**400]]).tolist(), rows_of(np.ma.masked_array([1, 2], [False, True])).tolist()
    ([[1.0, 2.5], [nan, inf]], [1, 0])
    """
    if isinstance(values, (list, tuple)):
        return _listed_rows(values)
    array = values if isinstance(values, np.ndarray) else np.asarray(values)
    if array.ndim == 0:
        raise InvalidInput("rows must be a list, an array or a frame, one row per record")
    if array.dtype.kind == "O":
        return _array(array, "rows")
    if array.dtype.kind not in "biuf":
        raise InvalidInput(f"rows must be numbers, one row per record, got an array of {array.dtype} instead")
    if _masked(array):
        data = np.ma.getdata(array)
        return np.where(np.ma.getmaskarray(array), np.zeros((), data.dtype), data)
    return array


def _listed_rows(values: Sequence[Any]) -> FloatArray:
    """The rows of a list; it has the shape that most of its entries have."""
    shape = [len(values)]
    while not is_flat(values):
        rows = [row if isinstance(row, (list, tuple)) else np.asarray(row).tolist() for row in values]
        lengths = {len(row) if isinstance(row, (list, tuple)) else None for row in rows}
        if len(lengths) > 1 or None in lengths:
            raise InvalidInput("rows must have the same number of entries for every record, one row per record")
        values = [entry for row in rows for entry in row]
        shape.append(len(rows[0]))
    return each(values).reshape(shape)


def texts_of(values: Sequence[str]) -> NDArray[Any]:
    """A column of text as Python strings, so that one long entry does not make the others long.

    NULs at the end are dropped, as NumPy's text of a fixed width drops them: both are the same labels.
    """
    found = np.empty(len(values), dtype=object)
    found[:] = [value.rstrip("\0") for value in values]
    return found


def is_text(array: NDArray[Any]) -> bool:
    """Whether this is a column of text."""
    if array.dtype.kind != "O":
        return array.dtype.kind in "UT"
    return bool(array.size) and all(isinstance(entry, str) for entry in array.ravel().tolist())


def is_flat(values: Any) -> bool:
    """Whether this is one column and not a table; for a list, most of its entries decide, never a single one."""
    if isinstance(values, (list, tuple)):
        rows = sum(isinstance(row, (list, tuple)) or (isinstance(row, np.ndarray) and row.ndim > 0) for row in values)
        return not values or 2 * rows < len(values)
    return np.ndim(values) == 1


def _array(values: Any, what: str) -> FloatArray:
    array = values if isinstance(values, np.ndarray) else np.asarray(values)
    if array.dtype.kind == "O":
        return each(array.ravel().tolist()).reshape(array.shape)  # masked entries are None in a list
    if array.dtype.kind not in "biuf":
        raise InvalidInput(f"{what} must be numbers, got an array of {array.dtype} instead")
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.array(np.ma.getdata(array), dtype=np.float64)
    if _masked(array):
        found[np.ma.getmaskarray(array)] = np.nan
    return found


def _masked(array: NDArray[Any]) -> bool:
    return isinstance(array, np.ma.MaskedArray)


def each(entries: Sequence[Any]) -> FloatArray:
    """A number for every entry, each by itself; no warning about an odd one, because a warning would leak
    information."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.fromiter(map(_number, entries), dtype=np.float64, count=len(entries))


def _number(entry: Any) -> float:
    if type(entry) is float:  # by far the most
        return entry
    if isinstance(entry, (complex, np.complexfloating, np.ndarray)):  # NumPy would read some of them
        return math.nan
    try:
        return float(entry)
    except OverflowError:
        return math.inf if entry > 0 else -math.inf
    except Exception:  # an entry may be any object, with errors of its own
        return math.nan
