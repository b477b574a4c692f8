"""Ids from Python objects, in the form the keyed function takes: whole numbers from 0 to 2^64 - 1, or text.

A record's coin is a keyed function of its id, where 7 and "7" are two ids. Values with one obvious reading are
converted: NumPy's and other libraries' numbers and strings, decimals without places, UUIDs (their usual text).
Ambiguous values are rejected: floats, booleans, bytes, dates, and numbers mixed with text.
"""

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput

_RULE = "ids must be whole numbers from 0 to 2**64-1 or text"


def id_array(ids: Iterable[Any]) -> NDArray[Any]:
    """One-dimensional: uint64, or text as Python strings, so that one long id does not make the others long."""
    if isinstance(getattr(ids, "dtype", None), np.dtype) and ids.dtype.kind in "iu":  # type: ignore[attr-defined]
        ids = np.asarray(ids)
    if isinstance(ids, np.ndarray):
        if ids.ndim != 1:
            raise InvalidInput(f"ids must be one-dimensional, got {ids.ndim} dimensions instead")
        if ids.dtype.kind in "iu":
            return _not_negative(ids)
        if ids.dtype.kind not in "UTO":
            raise InvalidInput(f"{_RULE}, got an array of {ids.dtype} instead; cast it first")
    return _of_values(_listed(ids))


def _listed(ids: Iterable[Any]) -> list[Any]:
    """Python values, from an array, a column of another library, or any iterable."""
    for name in ("to_pylist", "to_list", "tolist"):
        if callable(getattr(ids, name, None)):
            return list(getattr(ids, name)())
    return list(ids)


def _of_values(values: list[Any]) -> NDArray[Any]:
    kinds = set(map(type, values))
    if any(issubclass(kind, np.generic) for kind in kinds):
        return _of_values([value.item() if isinstance(value, np.generic) else value for value in values])
    if not kinds:
        return np.empty(0, dtype=np.uint64)
    if len(kinds) == 1:
        kind = kinds.pop()
        if kind in _DECODED:
            return _DECODED[kind](values)
        what = f"some of type {kind.__name__}"
    elif type(None) in kinds:
        raise InvalidInput("every record needs an id of its own, but some are missing; fill them first")
    else:
        what = f"{' and '.join(sorted(kind.__name__ for kind in kinds))} mixed"
    raise InvalidInput(f"{_RULE}, got {what} instead; turn all of them into numbers, or all into text")


def _whole_numbers(values: list[int]) -> NDArray[np.uint64]:
    if min(values) < 0 or max(values) >= 2**64:
        raise InvalidInput(f"{_RULE}, got some outside; give them as text")
    return np.array(values, dtype=np.uint64)


def _decimals(values: list[Decimal]) -> NDArray[np.uint64]:
    if any(value.as_tuple().exponent != 0 for value in values):
        raise InvalidInput(f"{_RULE}, got decimals with places instead; give them as text")
    return _whole_numbers([int(value) for value in values])


def _texts(values: list[str]) -> NDArray[Any]:
    if any(value.endswith("\0") for value in values):  # fixed-width text of NumPy drops them
        raise InvalidInput("a text id must not end with a NUL character, got one instead; strip it")
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def _not_negative(ids: NDArray[Any]) -> NDArray[np.uint64]:
    if ids.dtype.kind == "i" and ids.size and int(ids.min()) < 0:
        raise InvalidInput(f"{_RULE}; give negative ids as text")
    return ids.astype(np.uint64)


_DECODED: dict[type, Callable[[list[Any]], NDArray[Any]]] = {
    int: _whole_numbers,
    str: _texts,
    Decimal: _decimals,
    UUID: lambda values: _texts([str(value) for value in values]),
}
