"""A table of numbers from any input: every cell has a value, and no message shows one.

Arrays of numbers are taken as they are. In tables of objects or text, and in lists, a cell that Python reads as a
number is that number, one beyond the doubles is infinite, and every other cell (text, None, a mask) is missing, NaN.
ball.py defines what NaN and infinities count as. Only public facts can be rejected: the number of dimensions and
columns, the type of an array, sparse tables.
"""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput
from ..numerics.entries import each

_UNEVEN = "X must have one row per record, all of one length: Expected 2D array; check its shape"


def table_of(X: Any) -> NDArray[Any]:
    """A two-dimensional array of real numbers, not copied where it is one already."""
    if hasattr(X, "tocsr") or hasattr(X, "toarray"):
        raise InvalidInput("X must be dense, got sparse data instead; use X.toarray()")
    table = numbers_of(X)
    if table.ndim != 2:
        raise InvalidInput(
            f"X must be a table, one row per record: Expected 2D array, got {table.ndim}D instead; Reshape your data"
        )
    if table.shape[1] == 0:
        raise InvalidInput("X has 0 feature(s) (shape=(, 0)) while a minimum of 1 is required.")
    return table


def numbers_of(X: Any) -> NDArray[Any]:
    """An array of real numbers of any shape."""
    if isinstance(X, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(X)
        return np.asarray(np.where(mask, np.nan, _numbers(np.asarray(X.data), X).astype(np.float64)))
    has_type = hasattr(X, "dtype") or hasattr(X, "dtypes") or hasattr(X, "schema")
    try:
        with warnings.catch_warnings():  # NumPy warns about masked entries in a list, which would leak information
            warnings.simplefilter("ignore")
            table = X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(X)
    except (TypeError, ValueError, OverflowError):
        if has_type:
            raise InvalidInput("X cannot be read as a table of numbers; give an array or a data frame") from None
        table = _objects(X)
    if not has_type and table.dtype.kind not in "biuf":
        table = _objects(X)
    return _numbers(table, X)


def column_of(values: Any) -> NDArray[Any]:
    """One number per record."""
    if isinstance(values, (list, tuple)):
        return each(values)
    return numbers_of(values)


def _objects(X: Any) -> NDArray[Any]:
    """The cells of rows in a list, whatever they are."""
    rows = [row.tolist() if isinstance(row, np.ndarray) else row for row in X] if isinstance(X, (list, tuple)) else [X]
    if not all(isinstance(row, (list, tuple)) and len(row) == len(rows[0]) for row in rows):
        raise InvalidInput(_UNEVEN)
    table = np.empty((len(rows), len(rows[0]) if rows else 0), dtype=object)
    for at, row in enumerate(rows):
        for j, cell in enumerate(row):
            table[at, j] = cell
    return table


def _numbers(table: NDArray[Any], X: Any) -> NDArray[Any]:
    """Floats of single or double precision, or whole numbers."""
    kind = table.dtype.kind
    if kind in "OUST":
        return cells(table)
    if kind == "c":
        raise InvalidInput(f"Complex data not supported: X must be a table of real numbers, got {table.dtype} instead")
    if kind not in "biuf":
        raise InvalidInput(f"X must be a table of real numbers, got {table.dtype} instead")
    if kind == "b" or not table.dtype.isnative or table.dtype in (np.float16, np.longdouble):
        with np.errstate(all="ignore"):
            return np.asarray(table, dtype=np.float64)
    return np.asarray(table)


def cells(table: NDArray[Any]) -> NDArray[np.float64]:
    """Objects or text as numbers, each by itself."""
    return each(table.ravel().tolist()).reshape(table.shape)
