"""Public groups: the values of a column by which an answer is split. They are declared, never taken from the records.

Which records have a value is decided cell by cell, by the column's declared type and by what the values are:

- values that are text, in a column of text (as all columns of CSV files are): the cell is the same text;
- values that are whole numbers, True or False, in any column: the cell is that number, where True is 1, False is 0, and
  text is read as everywhere else (01 and 1.0 are 1, yes is 1);
- text for a column of numbers means the number that it writes, and is rejected if it is not a number.

Spaces around text do not count, and an empty text is a missing value.
"""

import datetime
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from ..errors import InvalidInput
from ..tables.columns import is_text
from ..tables.csv_text import TEXT
from .values import decoded, number_in, numbers_of, words_of

MISSING = "(missing)"
_MOST = 100_000
_SPACE = " \t\n\v\f\r"  # what is trimmed from cells, too
_WHOLE = re.compile(r"-?(0|[1-9][0-9]*)")


@dataclass(frozen=True, slots=True)
class Groups:
    """The declared values of one column; None among them is the group of records without a value.

    A record whose value is not declared belongs to no group: rejecting it, or showing its value, would reveal it.
    """

    column: str
    values: tuple[Any, ...]
    wanted: pa.Array = field(repr=False, compare=False)  # the values as cells of the column are read

    @classmethod
    def of(cls, column: str, values: Iterable[Any], kind: pa.DataType) -> "Groups":
        """Checked: every value is named once, and a column of this type can have it."""
        check_groups(kind, column)
        named = tuple(_plain(value, column) for value in _listed(column, values))
        wanted = _wanted(column, named, decoded(kind))
        if len(set(wanted.to_pylist())) < len(named):
            raise InvalidInput(f"the values of {column!r} must each be given once, and two of these are the same")
        return cls(str(column), named, wanted)

    @property
    def names(self) -> tuple[str, ...]:
        """For people; no two are the same."""
        named = {str(value) for value in self.values if value is not None}
        missing = MISSING
        while missing in named:
            missing = f"({missing})"
        return tuple(missing if value is None else str(value) for value in self.values)

    def read(self, batch: pa.RecordBatch) -> pa.Array:
        """The cells of the column as values of the same kind; null where there is none."""
        column = batch.column(self.column)
        if self.wanted.type == pa.float64():
            return pa.array(numbers_of(column) + 0.0, from_pandas=True)  # NaN is missing, and -0.0 is 0.0
        return words_of(column)

    def places(self, batch: pa.RecordBatch) -> NDArray[np.int64]:
        """Which group each record is in, -1 for none."""
        found = compute.index_in(self.read(batch), value_set=self.wanted, skip_nulls=False)
        return np.asarray(found.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)


def check_groups(kind: pa.DataType, column: str) -> None:
    """Raise for a type that cannot be grouped by; types are public."""
    numbers = (pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    if not (_has_words(decoded(kind)) or any(test(decoded(kind)) for test in numbers)):
        raise InvalidInput(
            f"the column {column!r} must hold text, numbers, dates or yes and no to be grouped by, got {kind} instead; "
            "cast it first, or divide it into public classes"
        )


def _has_words(kind: pa.DataType) -> bool:
    return is_text(kind) or bool(pa.types.is_null(kind)) or bool(pa.types.is_date(kind))


def _listed(column: str, values: Iterable[Any]) -> tuple[Any, ...]:
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise InvalidInput(
            f"by({column!r}, …) needs the public list of its values, because which values occur in the data is "
            f"private; got {values!r} instead"
        )
    named = tuple(values)
    if not named:
        raise InvalidInput(f"{column!r} needs at least one value, got none")
    if len(named) > _MOST:
        raise InvalidInput(f"{column!r} takes at most {_MOST} public values, got {len(named)} instead")
    return named


def _plain(value: Any, column: str) -> Any:
    """Text, a whole number, True, False or None, in Python's own types."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return value.isoformat()
    if not (value is None or isinstance(value, (str, bool, int))):
        raise InvalidInput(
            f"the values of {column!r} must be text, dates, whole numbers, True, False or None (missing), got "
            f"{value!r} instead"
        )
    if isinstance(value, str) and not value.strip(_SPACE):
        raise InvalidInput(f"an empty text is a missing value in {column!r}; write it as None")
    return value


def _wanted(column: str, values: tuple[Any, ...], kind: pa.DataType) -> pa.Array:
    """The values as cells of this type are read: text, or numbers."""
    texts = [isinstance(value, str) for value in values if value is not None]
    if any(texts) and not all(texts):
        raise InvalidInput(f"the values of {column!r} must be all text, or all numbers, True and False")
    if _has_words(kind) and (all(texts) or not is_text(kind)):
        return pa.array([None if value is None else str(value).strip(_SPACE) for value in values], TEXT)
    numbers = [None if value is None else _number(column, value, kind) for value in values]
    if not pa.types.is_integer(kind):
        return pa.array([None if number is None else float(number) for number in numbers], pa.float64())
    return pa.array([None if number is None else str(number) for number in numbers], TEXT)


def _number(column: str, value: Any, kind: pa.DataType) -> int:
    """The whole number that a value stands for in a column of this type."""
    found = value
    if isinstance(value, str):
        is_written = pa.types.is_boolean(kind) or _WHOLE.fullmatch(value.strip(_SPACE))
        found = (number_in(value) if pa.types.is_boolean(kind) else int(value)) if is_written else None
    if found is None or (pa.types.is_boolean(kind) and found not in (0, 1)):
        raise InvalidInput(
            f"the column {column!r} holds {kind}, and {value!r} is not one of those; give values of that type, or "
            "cast the column"
        )
    if not pa.types.is_integer(kind) and abs(found) >= 2**53:
        raise InvalidInput(f"whole numbers in a column of {kind} must be below 2^53 to be told apart, got {value}")
    return int(found)
