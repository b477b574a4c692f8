"""Records as rows of numbers, whatever came in: only public facts (number type, shape) are refused, never a value.

An array has a number type, which is public. A list, an array of Python objects or a frame of mixed columns has none, so
every entry is read by itself: a real number as it is, everything else (missing, text, a list) as 0. Masked entries are
missing. A list has the shape that most of its entries have: a row among numbers is no number, and a number among rows
is refused like a row of another length, because in a column all the rows would be lost. What is not finite stays so
here: `row_norms.clipped` counts NaN as 0 and clips infinities.
"""

from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput
from .entries import is_flat

_LARGEST = float(np.finfo(np.float64).max)


def rows_of(values: Any) -> NDArray[Any]:
    """One row (or number) per record: booleans, whole numbers or floats."""
    if isinstance(values, np.ma.MaskedArray):
        unmasked = rows_of(np.ma.getdata(values))
        return np.where(np.ma.getmaskarray(values), np.zeros((), unmasked.dtype), unmasked)
    if isinstance(values, np.ndarray) and values.dtype != object:
        return _checked(values)
    try:
        array = np.asarray(values)
    except ValueError:  # lists of different lengths
        array = np.empty(0, dtype=object)
    if array.dtype.kind in "biuf" or (hasattr(values, "dtype") and array.dtype != object):
        is_typed = (
            hasattr(values, "dtype") or array.dtype.kind != "b"
        )  # that all of a list are truths is no public fact
        return _checked(array if is_typed else array.astype(np.float64))
    return _one_by_one(values)


def _checked(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.kind not in "biuf":
        raise InvalidInput(f"rows must be numbers, one row per record, got an array of {array.dtype} instead")
    return array


def _one_by_one(values: Any) -> NDArray[Any]:
    """Entries of any type; lists of different lengths are a wrong shape, which is public."""
    try:
        entries = np.array(values, dtype=object)
    except ValueError:
        entries = np.empty((), dtype=object)
    is_list = isinstance(values, (list, tuple))  # an array has a shape of its own, whatever is in it
    if entries.ndim == 0 or (is_list and entries.ndim == 1 and not is_flat(values)):
        raise InvalidInput("rows must have the same number of entries for every record, one row per record")
    return np.array([_number(entry) for entry in entries.flat], dtype=np.float64).reshape(entries.shape)


def _number(entry: Any) -> float:
    if not isinstance(entry, (Real, Decimal)):  # bool, int, float and NumPy's own are Real
        return 0.0
    try:
        return float(entry)
    except OverflowError:
        return _LARGEST if entry > 0 else -_LARGEST  # type: ignore[operator]
    except (TypeError, ValueError):  # a signalling NaN
        return 0.0
