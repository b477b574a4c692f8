"""A population: the ids of the records and public facts about them. Never the records themselves."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..chance.keys import Key, given_key
from ..errors import InvalidInput
from ..numerics.entries import rows_of, texts_of
from .ids import id_array

_BATCH = 1 << 18  # records
UNNAMED = "population"  # the label for keys that are not stored


def label_by(key: Key, label: str | None) -> str:
    """The label of a draw with this key. A stored key may draw from several data sets, so it needs a label."""
    given_key(key)
    if label is not None and (label.strip() or not key.is_kept):
        return label
    if key.is_kept:
        raise InvalidInput(
            "a stored key needs a population with a label: two data sets without one would share their random "
            "numbers and their ledger; give label='…', as in "
            f"Population(ids, 'people'); what was drawn without a label has the label {UNNAMED!r}"
        )
    return UNNAMED


@dataclass(frozen=True, slots=True)
class Batch:
    """Some records of a population, at positions offset, offset+1, ...: what an engine passes to a design."""

    ids: NDArray[Any] = field(repr=False)
    offset: int = 0
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict, repr=False)

    @property
    def positions(self) -> NDArray[np.int64]:
        """Positions in the population."""
        return np.arange(self.offset, self.offset + self.ids.size, dtype=np.int64)

    def at(self, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        """Positions in the population of some of the records."""
        return rows + self.offset

    def column(self, name: str) -> NDArray[Any]:
        """A column the design needs; raises if it is missing."""
        if name not in self.columns:
            raise InvalidInput(
                f"this design needs a column {name!r} for every record; give it as Population(ids, {name}=…)"
            )
        return self.columns[name]


class Population:
    """Unique ids (whole numbers or strings) under a label, and columns a design may need.

    `Population(1000)` is short for ids 0..999. The label names the data set: one key, one label and one round make one
    sample. A stored key (read from a file, say) needs a label, a fresh one does not. Columns such as `stratum=`,
    `cluster=` or `size=` hold one value per record and are never shown.

    >>> Population(3, stratum=["a", "b", "b"])
    Population(label='population')
    """

    __slots__ = ("_columns", "_ids", "_label")

    def __init__(self, ids: int | Iterable[Any], label: str | None = None, **columns: Any) -> None:
        self._ids = _validated(ids)
        self._label = label
        self._columns = {name: column_of(values) for name, values in columns.items()}
        for name, values in self._columns.items():
            if values.shape[:1] != self._ids.shape:
                raise InvalidInput(f"column {name!r} needs one value per record, in the order of the ids")

    @classmethod
    def of(cls, population: "int | Population") -> "Population":
        """A population as it is, or that of a given size."""
        return population if isinstance(population, cls) else cls(population)  # type: ignore[arg-type]

    @property
    def label(self) -> str:
        """The name of the data set; 'population' if none was given."""
        return UNNAMED if self._label is None else self._label

    def label_by(self, key: Key) -> str:
        """The label that this key draws under; raises if the key is stored and the population has no label."""
        return label_by(key, self._label)

    @property
    def ids(self) -> NDArray[Any]:
        """The ids, uint64 or text, in the order given."""
        return self._ids

    @property
    def columns(self) -> Mapping[str, NDArray[Any]]:
        """One array per column, in the order of the ids."""
        return self._columns

    @property
    def size(self) -> int:
        """How many records there are: public under replace-one, secret under add/remove."""
        return int(self._ids.size)

    def batch(self, start: int = 0, stop: int | None = None) -> Batch:
        """The records from position `start` to `stop`, all by default."""
        part = slice(start, stop)
        return Batch(self._ids[part], start, {name: values[part] for name, values in self._columns.items()})

    def batches(self) -> list[Batch]:
        """All records, in batches; one empty batch for no records."""
        return [self.batch(start, start + _BATCH) for start in range(0, max(self.size, 1), _BATCH)]

    def __repr__(self) -> str:
        return f"Population(label={self.label!r})"


def column_of(values: Any) -> NDArray[Any]:
    """An array; masked entries are missing: 0, or empty text. One entry of a list does not change the others."""
    if isinstance(values, (list, tuple)):
        return _listed(values)
    if not isinstance(values, np.ma.MaskedArray):
        array = np.asarray(values)
        return _objects(array.tolist()) if array.dtype.kind == "O" and array.ndim == 1 else array
    return rows_of(values) if values.dtype.kind in "biuf" else np.asarray(values.filled(""))


def _listed(values: Sequence[Any]) -> NDArray[Any]:
    """Text among numbers would turn all of them into text, and a missing label into objects: then each stays as it
    is."""
    if any(isinstance(entry, str) for entry in values):
        return texts_of(values) if all(isinstance(entry, str) for entry in values) else _objects(values)
    try:
        with warnings.catch_warnings():  # NumPy warns about masked entries in a list, which would leak information
            warnings.simplefilter("ignore")
            array = np.asarray(values)
    except (ValueError, TypeError, OverflowError):  # lists of different lengths, objects with errors of their own
        array = np.empty(0, dtype=object)
    is_exact = array.dtype.kind in "biu" or (array.dtype.kind == "f" and not any(map(_is_long, values)))
    return array if is_exact else _objects(values)


def _is_long(entry: Any) -> bool:
    """Whether this is a whole number that a double would round, as numbers beside it may make it one."""
    return isinstance(entry, (int, np.integer)) and abs(int(entry)) > 2**53


def _objects(values: Sequence[Any]) -> NDArray[Any]:
    """Each entry as it is, but numbers of NumPy or torch as Python's, which designs know."""
    found = np.empty(len(values), dtype=object)
    for at, entry in enumerate(values):
        found[at] = entry.item() if getattr(entry, "shape", None) == () and entry is not np.ma.masked else entry
    return found


def _validated(ids: int | Iterable[Any]) -> NDArray[Any]:
    if isinstance(ids, (int, np.integer)) and not isinstance(ids, bool):
        if ids < 0:
            raise InvalidInput(f"a population needs a size of at least 0, got {int(ids)} instead")
        return np.arange(int(ids), dtype=np.uint64)
    if isinstance(ids, Mapping) or hasattr(ids, "columns") or isinstance(ids, (str, bytes)):
        raise InvalidInput(
            f"a population needs ids, got a {type(ids).__name__} instead; give the id column, for example "
            "Population(frame['id']), the number of rows, or draw from a frame with privamp.engines.local"
        )
    if isinstance(ids, np.ma.MaskedArray) and np.ma.is_masked(ids):
        raise InvalidInput("every record needs an id, but some ids are masked; fill them first")
    array = id_array(ids)  # type: ignore[arg-type]
    repeated = array.size - (np.unique(array).size if array.dtype.kind == "u" else len(set(array.tolist())))
    if repeated:
        raise InvalidInput(
            "ids must be unique, but some repeat; records that share an id are drawn together, "
            "so give every record its own id or treat a person's records as a cluster"
        )
    return array
