"""Whole-number ids in CSV files: 7 and 00007 are the same number, but different text ids.

Other readers keep 00007 as text, so the same people would get other random numbers there. The column is read as text
and converted only if every id is a plain whole number: no leading zeros, no sign, no spaces.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..errors import InvalidInput
from ..extras import missing
from .id_columns import ids_of

try:
    import pyarrow as pa
    from pyarrow import compute, csv, dataset
except ModuleNotFoundError as error:
    raise missing(error, "reading files and frames") from None

WRITTEN = r"^(0|[1-9][0-9]*)$"
ODDLY_WRITTEN = (
    "the id column {!r} of a CSV file must hold whole numbers without leading zeros, signs or spaces, because 7 and "
    "00007 are the same number but different text ids; write such ids to Parquet, as text"
)


def exactly_read(fragment: Any, schema: pa.Schema, id: str | None) -> Any:
    """The fragment; for a CSV file with whole-number ids, one that checks how they are written."""
    own = fragment.physical_schema
    if id is None or own.names.count(id) != 1 or not isinstance(fragment.format, dataset.CsvFileFormat):
        return fragment
    if not pa.types.is_integer(own.field(id).type):
        return fragment
    text = dataset.CsvFileFormat(convert_options=csv.ConvertOptions(column_types={id: pa.string()}))
    same = text.make_fragment(fragment.path, fragment.filesystem, fragment.partition_expression)
    return _ExactIds(same, id, schema.field(id).type)


@dataclass(frozen=True, slots=True)
class _ExactIds:
    """A file that is read like a fragment."""

    fragment: Any
    id: str
    kind: pa.DataType

    def to_batches(self, *, schema: pa.Schema, columns: list[str], **options: Any) -> Iterator[pa.RecordBatch]:
        at = schema.get_field_index(self.id)
        as_text = schema.set(at, pa.field(self.id, pa.string()))
        for batch in self.fragment.to_batches(schema=as_text, columns=columns, **options):
            if self.id not in columns:
                yield batch
                continue
            arrays = [self._numbers(batch.column(name)) if name == self.id else batch.column(name) for name in columns]
            yield pa.RecordBatch.from_arrays(arrays, names=columns)

    def _numbers(self, column: pa.Array) -> pa.Array:
        column = compute.if_else(compute.equal(column, ""), None, column)  # missing, which is rejected elsewhere
        if compute.all(compute.match_substring_regex(column, WRITTEN)).as_py() is False:
            raise InvalidInput(ODDLY_WRITTEN.format(self.id))
        return compute.cast(column, self.kind)


def ids_of_text(column: pa.ChunkedArray, name: str) -> Any:
    """The ids of a CSV column that was read as text: whole numbers if all are written as such, else text. Readers that
    guess the column's type get the same ids, and reject leading zeros.
    """
    text = column.combine_chunks()
    if not len(text) or compute.all(compute.match_substring_regex(text, WRITTEN)).as_py() is not True:
        return ids_of(text, name)
    try:
        return ids_of(compute.cast(text, pa.int64()), name)
    except pa.lib.ArrowInvalid:
        raise InvalidInput(
            f"the id column {name!r} of a CSV file has whole numbers from 2^63 on; write such ids to Parquet"
        ) from None
