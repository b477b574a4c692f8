"""Columns of names (strata, groups): every record's place in a public list, whatever the other records are."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InvalidInput


def labels_of(column: ArrayLike) -> list[Any]:
    """The entries of a column of names, each as it is: an odd one does not change the type of others."""
    if isinstance(column, (list, tuple)):
        return list(column)
    array = np.asarray(column)
    if array.ndim != 1:
        raise InvalidInput(f"a column of names must have one dimension, got {array.ndim} instead")
    return list(array.tolist())


def places(labels: list[Any], names: tuple[Any, ...]) -> NDArray[np.intp]:
    """Where each label stands among the names; len(names) for one that is not among them."""
    place = {name: at for at, name in enumerate(names)}
    none = len(names)
    return np.fromiter((_place(place, label, none) for label in labels), dtype=np.intp, count=len(labels))


def _place(place: dict[Any, int], label: Any, none: int) -> int:
    try:
        return place.get(label, none)
    except Exception:  # a label may be any object: some cannot be compared, some say that they can be hashed and cannot
        return none
