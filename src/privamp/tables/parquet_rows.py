"""Rows of a local Parquet file, decoded in the thread that asks for them.

A scan of an Arrow data set decodes in other threads, holds a row group of all columns, and costs more for each column.
Here columns pass through a small buffer into their arrays. A row group that is too large is streamed: decoded page by
page, in batches of a bounded number of bytes.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..extras import missing

try:
    import pyarrow as pa
    from pyarrow import dataset
except ModuleNotFoundError as error:
    raise missing(error, "reading files and frames") from None

_BUFFER = 1 << 18  # bytes of a column that are read at once
_STREAMED = 1 << 24  # bytes of a batch of a row group that is streamed
_FEWEST = 1024  # rows of such a batch

Group = Any  # pyarrow's description of a row group


def is_plain(fragment: Any) -> bool:
    """Whether the columns of a Parquet file have the same types in a data set and by themselves."""
    with _opened(fragment) as file:
        return bool(file.schema_arrow.equals(fragment.physical_schema))


def decoded(fragment: Any, schema: pa.Schema, columns: Sequence[str], most: int) -> Iterator[pa.RecordBatch]:
    """The rows in order, in batches of at most so many; the columns of one row group are in memory at a time."""
    constant = dataset.get_partition_keys(fragment.partition_expression)
    stored = [name for name in columns if name not in constant]
    with _opened(fragment) as file:
        for group in fragment.row_groups:
            table = file.read_row_groups([group.id], stored, use_threads=False) if stored else _rows(group)
            for batch in table.to_batches(max_chunksize=most):
                yield _arranged(batch, schema, columns, constant)


def whole(fragment: Any, schema: pa.Schema, columns: Sequence[str]) -> list[pa.ChunkedArray]:
    """These columns, all rows of all row groups by one call: threads wait for each other at every one."""
    constant = dataset.get_partition_keys(fragment.partition_expression)
    stored = [name for name in columns if name not in constant]
    groups = fragment.row_groups
    rows = sum(group.num_rows for group in groups)
    table = pa.table({})
    if stored:
        with _opened(fragment) as file:
            table = file.read_row_groups([group.id for group in groups], stored, use_threads=False)
    found = []
    for name in columns:
        kind = schema.field(name).type
        if name in constant:
            found.append(pa.chunked_array([pa.repeat(pa.scalar(constant[name], kind), rows)]))
        else:
            found.append(_of_type(table.column(name), kind))
    return found


def taken(
    fragment: Any, schema: pa.Schema, columns: Sequence[str], positions: NDArray[np.int64]
) -> dict[str, pa.ChunkedArray]:
    """These columns of the rows at ascending positions; one column is in memory at a time, and of the row groups that
    have some of the rows."""
    constant = dataset.get_partition_keys(fragment.partition_expression)
    groups, within = _with_some(fragment.row_groups, positions)
    places, found = pa.array(within), {}
    with _opened(fragment) as file:
        for name in columns:
            kind = schema.field(name).type
            if name in constant:
                found[name] = pa.chunked_array([pa.repeat(pa.scalar(constant[name], kind), len(positions))])
            else:
                column = file.read_row_groups(groups, [name], use_threads=False).column(name)
                found[name] = _of_type(chosen_of(column, places), kind)
                del column  # before the next one is decoded
    return found


def chosen_of(column: pa.ChunkedArray, places: pa.Array) -> pa.ChunkedArray:
    """The values at ascending positions."""
    if column.num_chunks == 1:
        return column.take(places)
    positions, parts, start = places.to_numpy(), [], 0
    for chunk in column.chunks:  # each by itself: those of a dictionary type may have different dictionaries
        first, last = np.searchsorted(positions, [start, start + len(chunk)])
        if last > first:
            parts.append(chunk.take(pa.array(positions[first:last] - start)))
        start += len(chunk)
    return pa.chunked_array(parts, column.type)


def streamed(
    fragment: Any, schema: pa.Schema, columns: Sequence[str], most: int, *, use_threads: bool
) -> Iterator[pa.RecordBatch]:
    """The same in batches of a bounded number of bytes, without a whole row group in memory."""
    constant = dataset.get_partition_keys(fragment.partition_expression)
    stored = [name for name in columns if name not in constant]
    if not stored:
        yield from decoded(fragment, schema, columns, most)
        return
    groups = fragment.row_groups
    rows = sum(group.num_rows for group in groups)
    size = max(sum(sizes(fragment, group).get(name, 0) for group in groups for name in stored), 1)
    most = min(max(_STREAMED * rows // size, _FEWEST), most)
    with _opened(fragment) as file:
        for batch in file.iter_batches(most, [group.id for group in groups], stored, use_threads=use_threads):
            yield _arranged(batch, schema, columns, constant)


def sizes(fragment: Any, group: Group) -> dict[str, int]:
    """About what every column of a row group takes in memory: its bytes once decompressed, but 8 for every value where
    repeated values are stored once. A column with parts is listed by its own name, too."""
    stored = fragment.metadata.row_group(group.id)
    found: dict[str, int] = {}
    for chunk in (stored.column(k) for k in range(stored.num_columns)):
        path = chunk.path_in_schema
        for name in {path, path.partition(".")[0]}:
            found[name] = found.get(name, 0) + max(chunk.total_uncompressed_size, 8 * chunk.num_values)
    return found


def _with_some(groups: Sequence[Group], positions: NDArray[np.int64]) -> tuple[list[int], NDArray[np.int64]]:
    """The row groups with some of these rows, and where the rows are in those alone."""
    if len(groups) == 1:
        return [groups[0].id], positions
    ends = np.cumsum([group.num_rows for group in groups])
    counts = np.diff(np.searchsorted(positions, ends), prepend=0)
    omitted = np.where(counts > 0, 0, [group.num_rows for group in groups])
    ids = [group.id for group, count in zip(groups, counts.tolist(), strict=True) if count]
    return ids, positions - np.repeat(np.cumsum(omitted), counts)


def _of_type(column: Any, kind: pa.DataType) -> Any:
    return column if column.type == kind else column.cast(kind)


@contextmanager
def _opened(fragment: Any) -> Iterator[Any]:
    from pyarrow import parquet

    with parquet.ParquetFile(
        fragment.open(), metadata=fragment.metadata, pre_buffer=False, buffer_size=_BUFFER
    ) as file:
        yield file


def _rows(group: Group) -> pa.Table:
    """As many rows as the group has, without its columns."""
    return pa.table([pa.nulls(group.num_rows)], names=[""])


def _arranged(
    batch: pa.RecordBatch, schema: pa.Schema, columns: Sequence[str], constant: Mapping[str, Any]
) -> pa.RecordBatch:
    """The columns as the data set has them: in this order, of these types, with those that folders name."""
    arrays = []
    for name in columns:
        kind = schema.field(name).type
        if name in constant:
            arrays.append(pa.repeat(pa.scalar(constant[name], kind), batch.num_rows))
        else:
            arrays.append(_of_type(batch.column(name), kind))
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))
