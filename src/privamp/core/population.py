"""A population: the ids records are drawn by, and public facts about them. Never the records themselves."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput


class Population:
    """Unique ids (whole numbers or strings) under a label.

    `Population(1000)` is short for ids 0..999. The label names the data set: one key, one label and one
    round make one sample.

    >>> Population(3)
    Population(label='population')
    """

    __slots__ = ("_ids", "facts", "label")

    def __init__(
        self, ids: int | Iterable[Any], label: str = "population", facts: Mapping[str, Any] | None = None
    ) -> None:
        self._ids = _validated(ids)
        self.label = label
        self.facts = dict(facts or {})

    @property
    def ids(self) -> NDArray[Any]:
        """The ids, uint64 or a string array, in the order given."""
        return self._ids

    @property
    def size(self) -> int:
        """How many records there are: public under replace-one, secret under add/remove."""
        return int(self._ids.size)

    def __repr__(self) -> str:
        return f"Population(label={self.label!r})"


def _validated(ids: int | Iterable[Any]) -> NDArray[Any]:
    if isinstance(ids, (int, np.integer)) and not isinstance(ids, bool):
        if ids < 0:
            raise InvalidInput(f"a population needs a size of at least 0, got {int(ids)} instead")
        return np.arange(int(ids), dtype=np.uint64)
    array = np.asarray(ids if isinstance(ids, np.ndarray) else list(ids))  # type: ignore[arg-type]
    if array.ndim != 1:
        raise InvalidInput(f"ids must be one-dimensional, got {array.ndim} dimensions instead")
    if array.size == 0:
        return np.empty(0, dtype=np.uint64)
    if array.dtype.kind in "iu":
        if array.dtype.kind == "i" and int(array.min()) < 0:
            raise InvalidInput("ids must be whole numbers from 0 to 2**64-1 or strings; give negative ids as strings")
        array = array.astype(np.uint64)
    elif array.dtype.kind != "U":
        raise InvalidInput(f"ids must be whole numbers or strings, got an array of {array.dtype} instead")
    repeated = array.size - np.unique(array).size
    if repeated:
        raise InvalidInput(
            f"ids must be unique, but {repeated} of them repeat; records that share an id share a coin, "
            "so give every record its own id or treat a person's records as a cluster"
        )
    return array
