"""A keyed digest of a table's ids and of the columns that the design reads, to detect changes.

Spark may recompute a table at any time (a lost executor, an evicted cache), and files may change between two jobs. The
digest is the sum, modulo 2^64 twice, of a keyed number of every row: it does not depend on order or partitions, and a
change passes it with a chance of about 2^-64. It is taken at the draw and in every job that releases something, there
in the same pass, and compared on the driver before noise is drawn. It covers all records, not those drawn, so whether
it agrees reveals nothing about who was drawn. It is secret, because someone with the key could test guesses of the
table with it.
"""

import hmac
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from ..chance.keyed import keyed_numbers, keyed_pairs
from ..chance.keys import Key
from ..errors import InvalidInput
from ..tables.columns import is_text
from ..tables.id_columns import ids_of, texts_of
from .row_numbers import doubles, is_list, is_number

Words = NDArray[np.uint64]
SIZE = 32  # bytes: two sums, the number of rows, the number of kept rows
MISSING = "the id column {!r} has missing ids, but every record needs one; fill them first"
NEGATIVE = "the id column {!r} has negative ids; cast it to text, or shift it"
SAME_TABLE = (
    "the table does not change between the draw and its releases, and each of its rows is made from one record alone"
)
CLUSTER = (
    "whoever sees Spark's own pages, metrics and logs (rows of the table, sizes of messages, times) may see the records"
)


class Tally:
    """Counts and fingerprints of the rows of a partition."""

    def __init__(self, key: Key, id: str, others: Sequence[str]) -> None:
        self._key, self._id, self._others = key, id, tuple(others)
        self._sums = np.zeros(4, dtype=np.uint64)

    def add(self, batch: pa.RecordBatch) -> None:
        """Count the rows of one part of the table, and add up their fingerprints."""
        high, low = keyed_pairs(self._key.subkey("ids"), self._ids(batch.column(self._id)))
        for name in self._others:
            own = self._key.subkey("column", name)
            high, low = keyed_pairs(own, high ^ _words(batch.column(name), own))
        self._sums[:3] += np.array([np.sum(high), np.sum(low), batch.num_rows], dtype=np.uint64)

    def _ids(self, column: pa.Array) -> Any:
        """That ids are present and not negative is public; how many are not is secret."""
        if column.null_count:
            raise InvalidInput(MISSING.format(self._id))
        if pa.types.is_integer(column.type) and (compute.min(column).as_py() or 0) < 0:
            raise InvalidInput(NEGATIVE.format(self._id))
        return ids_of(column, self._id)

    def keep(self, rows: int) -> None:
        """Rows that were kept."""
        self._sums[3] += np.uint64(rows)

    def to_bytes(self) -> bytes:
        """A message of constant length."""
        return self._sums.astype("<u8").tobytes()


def tallies(key: Key, columns: Sequence[str]) -> Callable[[], Tally]:
    """Makes an empty tally on a worker, of the id and the other columns; to be sent there."""
    secret, (id, *others) = key.secret_bytes(), columns
    return lambda: Tally(Key.from_bytes(secret), id, others)


class TableDigest:
    """The digest of a table: secret, compared in constant time and never shown."""

    __slots__ = ("_digest", "_kept", "_rows")

    def __init__(self, tallies: Iterable[bytes]) -> None:
        sums = np.zeros(4, dtype=np.uint64)
        for tally in tallies:
            sums += np.frombuffer(tally[:SIZE], dtype="<u8")
        self._digest, self._rows, self._kept = sums[:3].tobytes(), int(sums[2]), int(sums[3])

    @property
    def secret_rows(self) -> int:
        """How many rows the table has."""
        return self._rows

    @property
    def secret_kept(self) -> int:
        """How many of them were kept."""
        return self._kept

    def check(self, later: "TableDigest") -> None:
        """Raise if the table is not that of the draw."""
        if not hmac.compare_digest(self._digest, later._digest):
            raise InvalidInput(
                "the table is not the one that was drawn from: ids or columns that decide the draw were changed, "
                "added or removed since, or Spark recomputed them; write the table to files first, then draw again "
                "with a fresh key"
            )


def joined(tallies: Iterable[bytes]) -> bytes:
    """Counts and fingerprints of several parts, which do not depend on their order."""
    sums = np.zeros(4, dtype=np.uint64)
    for tally in tallies:
        sums += np.frombuffer(tally, dtype="<u8")
    return sums.tobytes()


def _words(column: pa.Array, key: Key) -> Words:
    """64 bits for each value of a column."""
    if is_list(column.type):
        return _of_lists(column, key)
    if is_number(column.type):
        return np.ascontiguousarray(doubles(column)).view(np.uint64)
    text = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    text = text if is_text(text.type) else text.cast(pa.string(), safe=False)
    # a mark at the end: a text that ends with NUL must not stop the job
    marked = compute.binary_join_element_wise(text, "=", "").fill_null("missing")
    return keyed_numbers(key.subkey("text"), texts_of(marked))


def _of_lists(column: pa.Array, key: Key) -> Words:
    """Entries by their position in the list, added up list by list."""
    lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    ends = np.cumsum(lengths)
    places = np.arange(int(lengths.sum()), dtype=np.uint64) - np.repeat(ends - lengths, lengths).astype(np.uint64)
    entries = _words(column.flatten(), key.subkey("entry")) ^ keyed_numbers(key.subkey("place"), places)
    sums = np.concatenate([[np.uint64(0)], np.cumsum(keyed_numbers(key.subkey("list"), entries), dtype=np.uint64)])
    return np.asarray(sums[ends] - sums[ends - lengths], dtype=np.uint64)
