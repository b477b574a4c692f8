"""Public groups: the values of a column by which an answer is split. They are declared, never read off the records."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from ..errors import InvalidInput

MISSING = "(missing)"
_MOST = 100_000


@dataclass(frozen=True, slots=True)
class Groups:
    """The declared values of one column; None among them is the group of records without a value.

    A record whose value is not declared belongs to no group: refusing it, or showing its value, would tell of it.
    """

    column: str
    values: tuple[Any, ...]

    @classmethod
    def of(cls, column: str, values: Iterable[Any]) -> "Groups":
        """Checked: every value is named once."""
        if isinstance(values, str) or not hasattr(values, "__iter__"):
            raise InvalidInput(
                f"by({column!r}, …) needs the list of its values, which must be public knowledge: which values occur "
                f"in the data is private; got {values!r} instead"
            )
        named = tuple(values)
        if not named:
            raise InvalidInput(f"by({column!r}, …) needs at least one value, got none")
        if len(named) > _MOST:
            raise InvalidInput(f"by({column!r}, …) takes at most {_MOST} values, got {len(named)} instead")
        for value in named:
            if not (value is None or isinstance(value, (str, bool, int, np.integer, np.bool_))):
                raise InvalidInput(
                    f"groups are named by text, whole numbers, True, False or None (missing), got {value!r} instead"
                )
        if len({written(value) for value in named}) < len(named):
            raise InvalidInput(f"the values of {column!r} must each be named once")
        return cls(str(column), named)

    @property
    def names(self) -> tuple[str, ...]:
        """For people."""
        return tuple(MISSING if value is None else str(value) for value in self.values)

    def places(self, batch: pa.RecordBatch) -> NDArray[np.int64]:
        """Which group each record is in, -1 for none."""
        found = compute.index_in(as_text(batch.column(self.column)), value_set=self._written(), skip_nulls=False)
        return np.asarray(found.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)

    def _written(self) -> pa.Array:
        return pa.array([written(value) for value in self.values], pa.large_string())


def written(value: Any) -> str | None:
    """A value as Arrow writes it."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    return None if value is None else str(value)


def check_groups(kind: pa.DataType, column: str) -> None:
    """Only the type of the column is refused, which is public."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_boolean, pa.types.is_integer, pa.types.is_null)
    if not any(test(kind) for test in texts):
        raise InvalidInput(
            f"the column {column!r} must hold text, whole numbers or yes and no to be grouped by, got {kind} instead; "
            "cast it first, or cut it into public classes"
        )


def as_text(column: pa.Array) -> pa.Array:
    """A column of labels as text."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return compute.cast(column, pa.large_string())
