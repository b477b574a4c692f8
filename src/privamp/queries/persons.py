"""A limit on the records per person: the others are left out by a keyed choice.

The records of one person are numbered in the order of the table, and those with the smallest keyed hashes of (person,
number) are kept. So which records of a person are kept depends on that person's records and the key alone. Adding a
person with all of their records adds at most J records to what is kept, and changes nothing else: the theorems about
persons with J records (docs/persons.md) hold, however many records a person has. Records without a person are left out.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from ..chance.keys import Key, derive
from ..errors import InvalidInput
from ..tables.columns import is_text
from ..tables.csv_text import TEXT
from ..tables.pieces import Piece
from ..tables.sources import Source
from .values import decoded, words_of

Flags = NDArray[np.bool_]


def assumed(column: str) -> str:
    """The assumption that cannot be checked."""
    return f"the column {column!r} names the person of every record"


def check_person(schema: pa.Schema, column: str) -> None:
    """Persons have whole numbers or text as names."""
    if schema.names.count(column) != 1:
        raise InvalidInput(f"the table has no column {column!r}; it has {', '.join(map(repr, schema.names))}")
    kind = decoded(schema.field(column).type)
    if not (is_text(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind)):
        raise InvalidInput(f"the column {column!r} must identify persons by whole numbers or text, got {kind} instead")


def capped(source: Source, column: str, most: int, key: Key) -> Source:
    """The same source with at most so many records of each person."""
    named = [list(_named(piece, column)) for piece in source.pieces]
    sizes = [sum(map(len, chunks)) for chunks in named]
    chunks = [chunk for several in named for chunk in several]
    flags = kept(pa.chunked_array(chunks, type=TEXT), most, key)
    pieces, start = [], 0
    for piece, size in zip(source.pieces, sizes, strict=True):
        own = flags[start : start + size]
        pieces.append(Piece(piece.name, int(np.sum(own)), KeptRows(piece, own), piece.schema))
        start += size
    return replace(source, pieces=tuple(pieces), assumes=(*source.assumes, assumed(column)))


def kept(persons: pa.ChunkedArray, most: int, key: Key) -> Flags:
    """Whether each record is kept."""
    encoded = persons.combine_chunks()
    encoded = (
        pa.concat_arrays(encoded.chunks) if isinstance(encoded, pa.ChunkedArray) else encoded
    ).dictionary_encode()
    missing = np.asarray(encoded.indices.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)
    codes = np.where(missing, -1, encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)).astype(np.int64)
    flags = ~missing
    order = np.argsort(codes, kind="stable")
    ranked = codes[order]
    starts = np.flatnonzero(np.append(True, ranked[1:] != ranked[:-1])) if len(ranked) else np.empty(0, dtype=np.int64)
    secret = derive(key, b"persons")
    for start, size in zip(starts, np.diff(np.append(starts, len(ranked))), strict=True):
        if ranked[start] < 0 or size <= most:
            continue
        name = encoded.dictionary[int(ranked[start])].as_py()
        hashes = [_hash(secret, name.encode(), number) for number in range(size)]
        late = sorted(range(size), key=hashes.__getitem__)[most:]
        flags[order[start + np.array(late)]] = False
    return flags


def _hash(secret: bytes, person: bytes, number: int) -> bytes:
    return blake2b(number.to_bytes(8, "little") + person, key=secret, digest_size=32).digest()


def _named(piece: Piece, column: str) -> Iterator[pa.Array]:
    """The persons of a piece as text, without spaces around it; an empty one is not a person."""
    for batch in piece.batches([column]):
        words = words_of(batch.column(column)).cast(TEXT)
        yield compute.if_else(compute.equal(compute.binary_length(words), 0), None, words)


@dataclass(frozen=True, slots=True)
class KeptRows:
    """Some rows of a piece, read like a fragment of a data set."""

    piece: Piece
    flags: Flags = field(repr=False)

    def to_batches(self, *, columns: list[str], **_: Any) -> Iterator[pa.RecordBatch]:
        """The rows that are kept, in order."""
        start = 0
        for batch in self.piece.batches(columns):
            own = self.flags[start : start + batch.num_rows]
            start += batch.num_rows
            yield batch.filter(pa.array(own))
