"""Sources of a table: files and frames, every column read by its declared type, never by its values.

A column of Python objects (pandas) has no declared type. It is read as text, cell by cell: text as it is, numbers,
dates, True and False as Python writes them, bytes where they are UTF-8, and everything else is missing.
"""

import datetime
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow.dataset import Dataset, Scanner

from ..engines import frames
from ..errors import InvalidInput
from ..tables import sources
from ..tables.csv_text import TEXT
from ..tables.id_columns import check_id_type, ids_of
from ..tables.unique_ids import SeenIds

_WRITTEN = (bool, int, float, Decimal, datetime.date, np.bool_, np.integer, np.floating)


FRAME = "the types of a pandas frame's columns are public, also where pandas guesses them from the records"
_BY_PANDAS = {b"privamp": b"types of a pandas frame"}


def held(source: Any) -> Any:
    """A frame as an Arrow table; paths and data sets stay as they are."""
    kind = frames.kind_of(source)
    if kind is not None:
        table = frames.plain(_table(frames.held(source)))
        return table.replace_schema_metadata(_BY_PANDAS) if kind == "pandas" else table
    if isinstance(source, Scanner):
        raise InvalidInput("a table must not be a scanner, whose columns Arrow may have guessed; give its data set")
    if isinstance(source, Dataset):
        if sources.arrow_dataset(source).assumes:
            raise InvalidInput(
                "a table must not be a data set of CSV files, whose columns Arrow guesses; give their path"
            )
        return source
    if isinstance(source, (str, list, tuple)) or hasattr(source, "__fspath__"):
        return source
    raise InvalidInput(
        "the table must be a file, a folder, an Arrow data set, or a pandas, Polars, DuckDB, Arrow or Spark frame, "
        f"got {type(source).__name__} instead"
    )


def read(source: Any, id: str | None = None) -> sources.Source:
    """The rows of what `held` gave."""
    if isinstance(source, Dataset):
        return sources.arrow_dataset(source)
    if not isinstance(source, pa.Table):
        return sources.files(source, id=id, as_text=True)
    is_pandas = source.schema.metadata == _BY_PANDAS
    return replace(sources.table(source), assumes=(FRAME,)) if is_pandas else sources.table(source)


def check_ids(source: sources.Source, id: str) -> None:
    """Raise unless ids are unique, which is public; checked before anything is charged."""
    check_id_type(source.schema.field(id))
    seen = SeenIds()
    for ids in _ids(source, id):
        seen.add(ids)
    seen.check(lambda: _ids(source, id))


def _ids(source: sources.Source, id: str) -> Iterable[Any]:
    return (ids_of(batch.column(id), id) for piece in source.pieces for batch in piece.batches([id]))


def _table(frame: Any) -> pa.Table:
    """The columns that have a name of their own and a type that Arrow knows."""
    columns = [_column(frame, k) for k in range(len(frames.names_of(frame)))]
    names = [str(name) for name in frames.names_of(frame)]
    known = {
        name: column
        for name, column in zip(names, columns, strict=True)
        if column is not None and names.count(name) == 1
    }
    return pa.table(known or {"": pa.nulls(len(frame))})


def _column(frame: Any, place: int) -> Any:
    """One column, or None where Arrow has no such type."""
    kind = frames.kind_of(frame)
    if kind == "arrow":
        return frame.column(place)
    if kind == "polars":
        column = frame.to_series(place)
        return None if str(column.dtype) == "Object" else _converted(column.to_arrow)
    series = frame.iloc[:, place]
    if series.dtype == object:
        return _texts(series)
    if hasattr(series.dtype, "fill_value"):
        series = series.sparse.to_dense()
    series = series.copy()  # Arrow would share its memory: numbers changed later would stand beside today's texts
    found = _converted(lambda: pa.array(series, from_pandas=True))
    is_text = series.dtype.name.startswith("str")  # one cell that is not UTF-8 must not remove the column
    return _texts(series) if found is None and is_text else found


def _converted(convert: Any) -> Any:
    try:
        return convert()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None


def _texts(series: Any) -> pa.Array:
    return pa.array([_text(cell) for cell in series], TEXT)


def _text(cell: Any) -> str | None:
    """A cell as text; None if it is missing or cannot be written, whatever it raises (no record stops a job)."""
    try:
        if isinstance(cell, str):
            cell.encode("utf-8")
            return cell
        if isinstance(cell, bytes):
            return cell.decode("utf-8")
        return str(cell) if isinstance(cell, _WRITTEN) and bool(cell == cell) else None
    except Exception:
        return None
