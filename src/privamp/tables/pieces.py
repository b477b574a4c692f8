"""Pieces of a source: consecutive rows that one thread reads by itself.

A piece of a Parquet file is some of its row groups, of another file the whole file. Row groups that take much memory
are streamed. Errors never repeat Arrow's messages, because these quote values.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput
from ..extras import missing
from . import parquet_rows

try:
    import pyarrow as pa
except ModuleNotFoundError as error:
    raise missing(error, "reading files and frames") from None

BATCH = 1 << 18  # rows
_PIECE = 1 << 20  # rows of a piece, unless one row group has more,
_BYTES = 1 << 26  # and what its columns take
_LARGE = 1 << 27  # bytes of a row group that is not held as a whole


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive rows; `rows` is None if their number is known only after reading."""

    name: str
    rows: int | None
    fragment: Any = field(repr=False)
    schema: pa.Schema = field(repr=False)
    is_plain: bool = False  # of a local Parquet file, read without options of the user

    @property
    def reads_columns_apart(self) -> bool:
        """Whether columns lie one after the other, so that reading them one by one costs no more."""
        return hasattr(self.fragment, "row_groups") or isinstance(self.fragment, InMemory)

    def batches(self, columns: Sequence[str], size: int | None = None) -> Iterator[pa.RecordBatch]:
        """The rows in order, with these columns."""
        with readable(self.name):
            if self.is_plain:
                yield from parquet_rows.decoded(self.fragment, self.schema, columns, size or BATCH)
                return
            yield from self.fragment.to_batches(
                schema=self.schema,
                columns=list(columns),
                batch_size=size or BATCH,
                batch_readahead=0,
                fragment_readahead=0,
                use_threads=False,
            )

    def in_memory(self, columns: Sequence[str]) -> "Piece":
        """The same rows with these columns, decoded."""
        schema = pa.schema([self.schema.field(name) for name in columns])
        if self.is_plain and self.rows:
            with readable(self.name):
                data = pa.Table.from_arrays(parquet_rows.whole(self.fragment, self.schema, columns), schema=schema)
        else:
            data = pa.Table.from_batches(self.batches(columns, size=self.rows), schema=schema)
        return Piece(self.name, data.num_rows, InMemory(data), schema)

    def taken(self, columns: Sequence[str], positions: NDArray[np.int64]) -> dict[str, pa.ChunkedArray]:
        """These columns of the rows at ascending positions, of which there are some."""
        if self.is_plain:
            with readable(self.name):
                return parquet_rows.taken(self.fragment, self.schema, columns, positions)
        places = pa.array(positions)
        if isinstance(self.fragment, InMemory):
            return {name: parquet_rows.chosen_of(self.fragment.data.column(name), places) for name in columns}
        found: dict[str, pa.ChunkedArray] = {}
        for names in [[name] for name in columns] if self.reads_columns_apart else [columns]:
            data = self.in_memory(names).fragment.data
            found |= {name: parquet_rows.chosen_of(data.column(name), places) for name in names}
        return found

    def parts(self, positions: NDArray[np.int64]) -> list[slice]:
        """Which of the rows at ascending positions lie in the same row group."""
        groups = getattr(self.fragment, "row_groups", ())
        ends = np.searchsorted(positions, np.cumsum([group.num_rows for group in groups][:-1])).tolist()
        return [slice(a, b) for a, b in pairwise([0, *ends, len(positions)]) if a < b]

    def bytes_of(self, columns: Sequence[str]) -> list[int]:
        """About what each of these columns takes in memory, of a plain piece."""
        groups = [parquet_rows.sizes(self.fragment, group) for group in self.fragment.row_groups]
        return [sum(sizes.get(name, 0) for sizes in groups) for name in columns]

    def held(self, columns: Sequence[str], *, use_threads: bool = False) -> Iterator["Piece"]:
        """The same rows as pieces in memory, one per batch."""
        batches = self._streamed(columns, use_threads) if self.is_plain else self.batches(columns)
        for batch in batches:
            data = pa.Table.from_batches([batch])
            yield Piece(self.name, batch.num_rows, InMemory(data), data.schema)

    def is_large(self, columns: Sequence[str], share: float = 1.0, *, apart: bool = False) -> bool:
        """Whether this share of the rows takes too much memory to be held, with these columns or with one at a time."""
        if not self.is_plain or not any(map(_may_be_large, self.fragment.row_groups)):
            return False
        bytes_of = self.bytes_of(columns)
        return (max(bytes_of, default=0) if apart else sum(bytes_of)) * share > _LARGE

    def halves(self) -> "tuple[Piece, ...]":
        """The same rows as two pieces of about the same size, where they can be divided."""
        if isinstance(self.fragment, InMemory):
            return self._halves_of_table(self.fragment.data)
        groups = list(getattr(self.fragment, "row_groups", ()))
        if len(groups) < 2:
            return (self,)
        ends = np.cumsum([group.num_rows for group in groups])
        at = int(np.clip(np.searchsorted(ends, ends[-1] / 2), 1, len(groups) - 1))
        return tuple(replace(self, **_part(self.fragment, some)) for some in (groups[:at], groups[at:]))

    @classmethod
    def empty(cls, schema: pa.Schema) -> "Piece":
        """A piece with these columns and no rows."""
        return cls("nothing", 0, InMemory(schema.empty_table()), schema)

    def _streamed(self, columns: Sequence[str], use_threads: bool) -> Iterator[pa.RecordBatch]:
        with readable(self.name):
            yield from parquet_rows.streamed(self.fragment, self.schema, columns, BATCH, use_threads=use_threads)

    def _halves_of_table(self, data: pa.Table) -> "tuple[Piece, ...]":
        if data.num_rows <= BATCH:
            return (self,)
        parts = data.slice(0, data.num_rows // 2), data.slice(data.num_rows // 2)
        return tuple(replace(self, rows=part.num_rows, fragment=InMemory(part)) for part in parts)


def pieces_of(name: str, schema: pa.Schema, fragment: Any, *, is_local: bool = False) -> Iterator[Piece]:
    """The pieces of one file."""
    if not hasattr(fragment, "row_groups"):
        yield Piece(name, None, fragment, schema)
        return
    with readable(name):
        groups, is_plain = list(fragment.row_groups), is_local and parquet_rows.is_plain(fragment)
        if not groups:  # a table without rows, which has a schema all the same
            yield Piece(name, 0, fragment, schema)
        first = 0
        while first < len(groups):
            last, rows, size = first + 1, groups[first].num_rows, groups[first].total_byte_size
            while last < len(groups):
                rows, size = rows + groups[last].num_rows, size + groups[last].total_byte_size
                if rows > _PIECE or size > _BYTES:
                    break
                last += 1
            yield Piece(name=name, schema=schema, is_plain=is_plain, **_part(fragment, groups[first:last]))
            first = last


def divided(pieces: Sequence[Piece], least: int) -> tuple[Piece, ...]:
    """The same rows in at least so many pieces, or in as many as there can be."""
    found: Sequence[Piece] = pieces
    while len(found) < least:
        more = [half for piece in found for half in piece.halves()]
        if len(more) == len(found):
            break
        found = more
    return tuple(found)


def _may_be_large(group: Any) -> bool:
    return bool(group.total_byte_size > _LARGE or group.num_rows > _PIECE)


def _part(fragment: Any, groups: Sequence[Any]) -> dict[str, Any]:
    """Some row groups of a fragment, which may itself be a part of a file."""
    some = fragment.subset(row_group_ids=[group.id for group in groups])
    return {"rows": sum(group.num_rows for group in groups), "fragment": some}


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Turn Arrow's errors, which may quote records, into one sentence."""
    try:
        yield
    except FileNotFoundError:
        raise InvalidInput(f"{name!r} does not exist; check the path") from None
    except PermissionError:
        raise InvalidInput(f"{name!r} cannot be read; check its permissions") from None
    except (OSError, pa.ArrowException):
        raise InvalidInput(
            f"{name!r} is not a valid file of the kind its name says: it is corrupt, truncated, or was changed while "
            "it was read"
        ) from None


@dataclass(frozen=True, slots=True)
class InMemory:
    """A table that is read like a fragment."""

    data: pa.Table

    def to_batches(self, columns: list[str], batch_size: int, **_: Any) -> Iterator[pa.RecordBatch]:
        """The rows in order."""
        yield from self.data.select(columns).to_batches(max_chunksize=batch_size)
