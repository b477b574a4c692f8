"""Frames of other libraries, in and out. None of these libraries is imported: a frame has its own methods."""

import sys
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyarrow import compute

from ..errors import InvalidInput
from .kernel import COUNT, WEIGHT, Chosen, Kernel


def kind_of(source: Any) -> str | None:
    """pandas, polars, lazy polars, duckdb or arrow; None for everything else."""
    library, name = type(source).__module__.partition(".")[0].lstrip("_"), type(source).__name__
    return {
        ("pandas", "DataFrame"): "pandas",
        ("polars", "DataFrame"): "polars",
        ("polars", "LazyFrame"): "lazy polars",
        ("duckdb", "DuckDBPyRelation"): "duckdb",
        ("pyarrow", "Table"): "arrow",
    }.get((library, name))


def names_of(frame: Any) -> list[str]:
    """The columns, before anything is converted."""
    if kind_of(frame) == "lazy polars":
        return list(frame.collect_schema().names())
    return list(frame.column_names if kind_of(frame) == "arrow" else frame.columns)


def held(frame: Any) -> Any:
    """The frame with its rows in memory, in one order."""
    kind = kind_of(frame)
    if kind == "lazy polars":
        return frame.collect()
    if kind == "duckdb":
        return frame.to_arrow_table()
    return plain(frame) if kind == "arrow" else frame


def plain(table: pa.Table) -> pa.Table:
    """A table with columns from which Arrow can take rows: some newer column types do not support it."""
    for at, field in enumerate(table.schema):
        if str(field.type) == "string_view":
            table = table.set_column(at, field.name, table.column(at).cast(pa.large_string()))
        elif pa.types.is_run_end_encoded(field.type):
            table = table.set_column(at, field.name, compute.run_end_decode(table.column(at)))
    return table


def as_table(frame: Any, columns: Sequence[str]) -> pa.Table:
    """Some columns of a frame in memory, for the first pass; at least the number of rows."""
    kind = kind_of(frame)
    missing = [name for name in columns if name not in names_of(frame)]
    if missing:
        raise InvalidInput(f"the data has no column {missing[0]!r}; it has {', '.join(map(repr, names_of(frame)))}")
    if not columns:
        return pa.table({"": pa.nulls(len(frame))})
    if kind == "arrow":
        return frame.select(list(columns))
    try:
        if kind == "polars":
            return frame.select(list(columns)).to_arrow()
        return pa.Table.from_pandas(frame[list(columns)], preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):  # its own message quotes a cell
        raise InvalidInput(
            f"the columns {', '.join(map(repr, columns))} must each hold one type that Arrow supports; cast them first"
        ) from None


def rows_of(frame: Any, chosen: Chosen, columns: Sequence[str] | None, like: Any) -> Any:
    """The chosen rows with weight and count, as the kind of frame `like` is; `frame` is `like`, held."""
    kind = kind_of(frame)
    extra = {WEIGHT: chosen.weights, COUNT: chosen.counts}
    if kind == "pandas":
        rows = frame if columns is None else frame[list(columns)]
        return rows.iloc[chosen.tickets].assign(**extra)
    if kind == "polars":
        rows = (frame if columns is None else frame.select(list(columns)))[chosen.tickets]
        series = sys.modules["polars"].Series
        rows = rows.with_columns([series(name, values) for name, values in extra.items()])
        return rows.lazy() if kind_of(like) == "lazy polars" else rows
    rows = (frame if columns is None else frame.select(list(columns))).take(pa.array(chosen.tickets))
    arrays = [*rows.columns, *map(pa.array, extra.values())]  # a table without columns would have no rows
    rows = pa.Table.from_arrays(arrays, schema=Kernel.extended(rows.schema))
    return sys.modules["duckdb"].from_arrow(rows) if kind_of(like) == "duckdb" else rows
