"""CSV files as text: how a cell is read depends on that cell alone, and no cell is rejected.

A reader that guesses types takes 01 for a number until another record of the column says Guam, and stops where a row is
too long or has a cell too few. One record would then change how all others are read. Here every column is text, and

- an empty cell is missing, and so is one that is not UTF-8;
- the last cells of a short row are missing, and cells beyond the header's columns are ignored;
- an empty line is not a record, except in a file of one column, where it is a record without a value.

Arrow reads a file as far as it can; the rest is read row by row (csv_rows.py), with the same cells.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from ..errors import InvalidInput
from ..extras import missing
from .csv_rows import Row, rows_of

try:
    import pyarrow as pa
    from pyarrow import compute, csv
except ModuleNotFoundError as error:
    raise missing(error, "reading files and frames") from None

TEXT = pa.large_string()
_BLOCK = 1 << 20  # bytes that Arrow reads at once
_ROWS = 1 << 14  # that are read one by one and handed on together


@dataclass(frozen=True, slots=True)
class CsvText:
    """A CSV file that is read like a fragment of a data set.

    `keys` are columns that its folders name. They replace its own of the same name, as in Arrow's files of other kinds.
    """

    path: str
    names: tuple[str, ...]
    before: int = 0  # empty lines ahead of the header
    keys: dict[str, str | None] = field(default_factory=dict)

    @classmethod
    def of(cls, path: str | os.PathLike[str], keys: dict[str, str | None] | None = None) -> "CsvText":
        """A file whose first row names its columns."""
        where = os.fspath(path)
        before = 0
        with pa.input_stream(where) as stream:
            for row in rows_of(stream):
                if row:
                    return cls(where, _names(row, where), before, keys or {})
                before += 1
        raise InvalidInput(f"{Path(where).name!r} is empty; the first row of a CSV file must name its columns")

    @property
    def schema(self) -> pa.Schema:
        """The columns, all of them text."""
        own = [pa.field(name, TEXT) for name in self.names]
        return pa.schema([*own, *(pa.field(name, TEXT) for name in self.keys if name not in self.names)])

    def to_batches(self, columns: Sequence[str], batch_size: int, **_: Any) -> Iterator[pa.RecordBatch]:
        """The rows in order, with these columns."""
        own = [self.names.index(name) for name in columns if name not in self.keys]
        for batch in self._cells(own or [0]):
            for start in range(0, batch.num_rows, batch_size):
                yield self._part(batch.slice(start, batch_size), columns, own)

    def _part(self, batch: pa.RecordBatch, columns: Sequence[str], own: list[int]) -> pa.RecordBatch:
        texts = {place: text_of(batch.column(str(place))) for place in own}
        found = [
            pa.array([self.keys[name]] * batch.num_rows, TEXT) if name in self.keys else texts[self.names.index(name)]
            for name in columns
        ]
        return pa.RecordBatch.from_arrays(found, names=list(columns))

    def _cells(self, places: list[int]) -> Iterator[pa.RecordBatch]:
        """Bytes of the columns at these positions, named by position."""
        done = 0
        try:
            for batch in self._fast(places):
                yield batch
                done += batch.num_rows
        except pa.ArrowInvalid:
            yield from self._slow(places, done)

    def _fast(self, places: list[int]) -> Iterator[pa.RecordBatch]:
        every = [str(k) for k in range(len(self.names))]
        kinds = dict.fromkeys(every, pa.large_binary())
        with pa.input_stream(self.path) as stream:
            yield from csv.open_csv(
                pa.PythonFile(_Blocks(stream), mode="r"),
                csv.ReadOptions(
                    use_threads=False, block_size=_BLOCK, skip_rows_after_names=self.before + 1, column_names=every
                ),
                csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=len(every) > 1),
                csv.ConvertOptions(
                    column_types=kinds, check_utf8=False, strings_can_be_null=False,
                    include_columns=[str(place) for place in dict.fromkeys(places)],
                ),
            )  # fmt: skip

    def _slow(self, places: list[int], done: int) -> Iterator[pa.RecordBatch]:
        with pa.input_stream(self.path) as stream:
            every = islice(rows_of(stream), self.before + 1, None)
            rows = islice((row for row in every if row or len(self.names) == 1), done, None)
            while some := list(islice(rows, _ROWS)):
                wanted = {str(place): _column(some, place) for place in places}
                yield pa.RecordBatch.from_pydict(wanted)


@dataclass(slots=True)
class _Blocks:
    """A stream whose blocks never end in CR: Arrow would drop an LF at the start of the next one, even in quotes."""

    stream: Any
    kept: bytes = b""
    closed: bool = False

    def read(self, size: int) -> bytes:
        """A block of at most this size, empty at the end."""
        data: bytes = self.kept + self.stream.read(size - len(self.kept))
        if len(data) == len(self.kept):  # the end
            self.kept = b""
            return data
        block: bytes = data.rstrip(b"\r")
        self.kept = data[len(block) :]
        if not block:
            raise pa.ArrowInvalid("a block of nothing but CR")
        return block

    def close(self) -> None:
        """Does nothing: the caller closes the stream."""


def text_of(cells: pa.Array) -> pa.Array:
    """Cells as text; empty cells and those that are not UTF-8 are missing."""
    try:
        text = cells.cast(TEXT)
    except pa.ArrowInvalid:
        text = pa.array([_decoded(cell) for cell in cells.to_pylist()], TEXT)
    return compute.if_else(compute.equal(text, ""), pa.scalar(None, TEXT), text)


def _decoded(cell: bytes | None) -> str | None:
    try:
        return None if cell is None else cell.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _column(rows: list[Row], place: int) -> pa.Array:
    return pa.array([row[place] if place < len(row) else b"" for row in rows], pa.large_binary())


def _names(row: Row, where: str) -> tuple[str, ...]:
    found = [_decoded(cell) for cell in row]
    names = tuple(name for name in found if name is not None and "\0" not in name)
    if len(names) < len(row):
        raise InvalidInput(f"the columns of {Path(where).name!r} must be named in UTF-8; convert the file")
    return names
