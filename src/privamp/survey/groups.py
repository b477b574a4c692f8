"""Groups that are estimated together: the group of each record, and the public number of records of each group.

Where records are replaced (fixed sizes) the column of the groups is public, and so are the groups that occur and their
sizes. Under add/remove neither is: a group may exist because of one record. Its groups, and their sizes where an
estimate needs them, are declared; a record of another group counts in none, and the answers have one shape and one
normaliser for every population.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray
from ..validation import nonnegative
from .frame import Frame

PUBLIC_BY = "the column given as `by` is public, and a replaced record keeps its value of it"


@dataclass(frozen=True, slots=True)
class Groups:
    """Names, the group of each record, and sizes by group and stratum."""

    names: tuple[Any, ...]
    which: NDArray[np.intp] = field(repr=False)  # (n,), len(names) for a record in no group
    sizes: FloatArray = field(repr=False)  # (G, H) public numbers of records, nan where they are secret
    is_one: bool = False  # the whole population: there are no groups
    assumes: tuple[str, ...] = ()

    @property
    def records(self) -> FloatArray:
        """N of each group, nan where it is secret."""
        return np.asarray(self.sizes.sum(axis=1))


def groups_of(frame: Frame, by: ArrayLike | None, declared: Any) -> Groups:
    """The groups of an estimate, from public facts only."""
    n = frame.values.size
    if by is None:
        return Groups(("everybody",), np.zeros(n, dtype=np.intp), frame.records[None, :], is_one=True)
    labels = labels_of(by)
    if len(labels) != n:
        raise InvalidInput("by must have one value per record, in the order of the values")
    if declared is None and not frame.fixed:
        raise InvalidInput(
            "a Poisson sample by groups needs groups=, the public list of them, or a dictionary with their public "
            "numbers of records: which groups occur, and how large they are, is secret under add/remove"
        )
    names = in_order(labels) if declared is None else tuple(declared)
    if len(set(names)) < len(names) or not names:
        raise InvalidInput("groups must name at least one group, and each once")
    which = places(labels, names)
    if frame.fixed:
        return Groups(names, which, _counted(which, frame, len(names)), assumes=(PUBLIC_BY,))
    return Groups(names, which, _declared(declared, names, frame))


def in_order(labels: list[Any]) -> tuple[Any, ...]:
    """The different labels of a public column, sorted."""
    try:
        different = list(dict.fromkeys(labels))
    except TypeError:
        different = list(dict.fromkeys(label for label in labels if isinstance(label, Hashable)))
    try:
        return tuple(sorted(different))
    except TypeError:  # several types
        return tuple(sorted(different, key=lambda label: (type(label).__name__, str(label))))


def _counted(which: NDArray[np.intp], frame: Frame, groups: int) -> FloatArray:
    sizes = np.zeros((groups + 1, len(frame.names)))
    np.add.at(sizes, (which, frame.which), 1.0)
    for at in frame.strangers:
        sizes[which[at], frame.which[at]] -= 1.0
    return sizes[:groups]


def _declared(declared: Any, names: tuple[Any, ...], frame: Frame) -> FloatArray:
    """Sizes as declared: numbers, or one number per stratum; nan for a list of names."""
    strata = frame.names
    if not isinstance(declared, Mapping):
        return np.full((len(names), len(strata)), np.nan)
    return np.array([_per_stratum(declared[name], strata) for name in names])


def _per_stratum(size: Any, strata: tuple[Any, ...]) -> list[float]:
    if len(strata) == 1 and not isinstance(size, Mapping):
        nonnegative(**{"size of a group": size})
        return [float(size)]
    if not isinstance(size, Mapping) or set(size) != set(strata):
        raise InvalidInput("sizes of groups must be dictionaries that name every stratum, as {'a': {'north': 120, …}}")
    for number in size.values():
        nonnegative(**{"size of a group": number})
    return [float(size[name]) for name in strata]


def labels_of(column: ArrayLike) -> list[Any]:
    """The entries of a column of names, each as it is: an odd one does not change the type of others.

    Missing ones, masked or nan, are None: two nan would not be one name.
    """
    entries: Any = column
    if not isinstance(column, (list, tuple)):
        array = np.asanyarray(column)  # a masked array stays one, and lists its masked entries as None
        if array.ndim != 1:
            raise InvalidInput(f"a column of names must have one dimension, got {array.ndim} instead")
        entries = array.tolist()
    return [None if isinstance(label, float) and label != label else label for label in entries]


def places(labels: list[Any], names: tuple[Any, ...]) -> NDArray[np.intp]:
    """Where each label stands among the names; len(names) for one that is not among them."""
    place = {name: at for at, name in enumerate(names)}
    none = len(names)
    try:
        return np.fromiter(map(place.get, labels, repeat(none)), dtype=np.intp, count=len(labels))
    except Exception:  # one of them is odd: each by itself
        return np.fromiter((_place(place, label, none) for label in labels), dtype=np.intp, count=len(labels))


def _place(place: dict[Any, int], label: Any, none: int) -> int:
    try:
        return place.get(label, none)
    except Exception:  # a label may be any object: some cannot be compared, some say that they can be hashed and cannot
        return none
