"""Rows of a local Parquet file, decoded in the thread that asks for them.

A scan of an Arrow data set decodes in other threads, holds a row group of all columns, and costs more for each column.
Here columns pass through a small buffer into their arrays. A row group that is too large is streamed: decoded page by
page, in batches of a bounded number of bytes.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

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
            table = file.read_row_group(group.id, stored, use_threads=False) if stored else _rows(group)
            for batch in table.to_batches(max_chunksize=most):
                yield _arranged(batch, schema, columns, constant)


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
            array = batch.column(name)
            arrays.append(array if array.type == kind else array.cast(kind))
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))
