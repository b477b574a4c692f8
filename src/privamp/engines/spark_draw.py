"""A draw from a Spark table: who is kept is decided again in every job, row by row, and kept rows never leave it,
unless they are asked to be held.

`Draw` is what the driver holds: the table, the kernel, for fixed-size designs the list of drawn tickets, and the digest
of the table. `Keeper` is the same on a worker.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..chance.keys import Key
from ..chance.known_answer import check_known_answer
from .kernel import COUNT, WEIGHT, Chosen, Kernel, weighted
from .spark_candidates import candidates
from .spark_digest import SIZE, TableDigest, Tally, tallies
from .spark_messages import Batches, column, guarded, mapped, messages, padded, unpadded
from .spark_reading import readable, usable
from .spark_session import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PAGE = 1 << 26  # bytes


@dataclass(frozen=True, slots=True)
class View:
    """The columns a streaming design reads, if they are computed from the table's columns: `make(batch)` has them and
    the id."""

    uses: tuple[str, ...]  # the table's columns that it is made from
    make: Callable[[pa.RecordBatch], pa.RecordBatch]


class Keeper:
    """On a worker: keeps the drawn rows of every batch, and tallies all of them."""

    def __init__(
        self, kernel: Kernel, view: View | None, chosen: Chosen | None, tally: Tally, is_held: bool = False
    ) -> None:
        check_known_answer()
        self._kernel, self._view, self._chosen, self._tally = kernel, view, chosen, tally
        self._is_held = is_held

    def kept(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The drawn rows with their weights and counts."""
        self._tally.add(batch)
        rows = batch if self._is_held else self._drawn(usable(batch, self._kernel))
        self._tally.keep(rows.num_rows)
        return rows

    def seen(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that take part in the draw, tallied."""
        self._tally.add(batch)
        return usable(batch, self._kernel)

    def tally(self) -> bytes:
        """The counts so far."""
        return self._tally.to_bytes()

    def _drawn(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self._chosen is not None:
            return self._kernel.chosen(batch, self._chosen)
        kernel, seen = readable(self._kernel, batch) if self._view is None else (self._kernel, self._view.make(batch))
        drawn = kernel.verdict(seen)
        return weighted(batch.take(pa.array(drawn.positions)), drawn.weights, drawn.counts)


@dataclass(frozen=True, slots=True)
class Draw:
    """On the driver: everything that determines the sample."""

    df: "DataFrame" = field(repr=False)
    kernel: Kernel
    view: View | None = field(default=None, repr=False)
    chosen: Chosen | None = field(default=None, repr=False)
    pin: TableDigest | None = field(default=None, repr=False)  # None: the table is read once
    pin_key: Key | None = field(default=None, repr=False)  # None: the draw's own
    is_held: bool = False  # whether `df` is the drawn rows
    is_shown: bool = False  # whether Spark may show how many rows are drawn, so that it may filter them itself

    @property
    def uses(self) -> tuple[str, ...]:
        """The columns that every job reads, the id first: those that decide the draw, or rows as they were drawn."""
        return (str(self.kernel.id), WEIGHT, COUNT) if self.is_held else deciding(self.kernel, self.view)

    @property
    def source(self) -> "DataFrame":
        """The rows among which the kernel decides."""
        return candidates(self.df, self.kernel) if self.is_shown and not self.is_held else self.df

    def keeper(self) -> Callable[[], Keeper]:
        """Makes a keeper on a worker; to be sent there."""
        secret, view, chosen, is_held = self.kernel.secret_bytes(), self.view, self.chosen, self.is_held
        tally = tallies(self.pin_key or self.kernel.subkey.subkey("pin"), self.uses)
        return lambda: Keeper(Kernel.from_secret_bytes(secret), view, chosen, tally(), is_held)

    def check(self, tallies: Sequence[bytes]) -> None:
        """Raise unless the table is that of the draw and every drawn ticket has found its row."""
        later = TableDigest(tallies)
        if self.pin is not None:
            self.pin.check(later)
        if self.chosen is not None:
            self.chosen.check(later.secret_kept)

    def check_table(self) -> None:
        """The same in a separate job."""
        make = self.keeper()

        def work(batches: Batches) -> list[bytes]:
            keeper = make()
            for batch in batches:
                keeper.kept(batch)
            return [keeper.tally()]

        self.check(messages(self.source, self.uses, work))

    def pinned(self) -> "Draw":
        """The draw with the digest of its table."""
        make, is_held = self.keeper(), self.is_held

        def work(batches: Batches) -> list[bytes]:
            keeper = make()
            for batch in batches:
                keeper.kept(batch) if is_held else keeper.seen(batch)
            return [keeper.tally()]

        return replace(self, pin=TableDigest(messages(self.df, self.uses, work)))

    def held(self) -> "Draw":
        """The same draw, whose rows Spark keeps on the workers: jobs read them, and the table no more.

        Rows that Spark loses it draws again from the table, so jobs compare a digest of the drawn ids, weights and
        counts with that of the first time.
        """
        if self.is_held:
            return self
        self.check_table()
        return replace(self, df=self.rows().persist(), view=None, chosen=None, pin=None, is_held=True).pinned()

    def rows(self) -> "DataFrame":
        """The drawn rows as a lazy table. Spark shows how many rows leave it."""
        if self.is_held:
            return self.df
        make = self.keeper()

        def keep(batches: Batches) -> Batches:
            def work(every: Batches) -> Batches:
                keeper = make()
                return (keeper.kept(batch) for batch in every)

            return guarded(work, batches)

        return mapped(replace(self, is_shown=True).source, keep, with_weights(self.df))

    def to_arrow(self, columns: Sequence[str]) -> pa.Table:
        """These columns of the drawn rows, on the driver; Spark sees messages of a few rounded lengths."""
        make, wanted = self.keeper(), [*dict.fromkeys(columns), WEIGHT, COUNT]

        def work(batches: Batches) -> list[bytes]:
            keeper = make()
            kept = [keeper.kept(batch).select(wanted) for batch in batches]
            return pages(keeper.tally(), pa.Table.from_batches(kept) if kept else None)

        found = messages(self.df, (*self.uses, *columns), work)
        self.check([message[:SIZE] for message in found])
        needed = self.df.select(*(column(name) for name in dict.fromkeys(columns) if name not in (WEIGHT, COUNT)))
        return rows_of([message[SIZE:] for message in found], Kernel.extended(arrow_schema(needed)))


def deciding(kernel: Kernel, view: View | None) -> tuple[str, ...]:
    """The table's columns that decide the draw, the id first."""
    return kernel.uses if view is None else tuple(dict.fromkeys((str(kernel.id), *view.uses)))


def pages(tally: bytes, rows: pa.Table | None) -> list[bytes]:
    """Kept rows in messages of at most some 64 MB; the first has the tally, the others an empty one."""
    if rows is None:
        return [tally + padded(None)]
    step = max(1, int(_PAGE * rows.num_rows // max(rows.nbytes, 1)))
    parts = [rows.slice(at, step) for at in range(0, max(rows.num_rows, 1), step)]
    return [(tally if k == 0 else bytes(SIZE)) + padded(_ipc(part)) for k, part in enumerate(parts)]


def _ipc(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows.combine_chunks())
    return bytes(sink.getvalue())


def rows_of(found: Iterable[bytes], schema: pa.Schema) -> pa.Table:
    """The rows of messages again, without their tallies."""
    tables = [pa.ipc.open_stream(page).read_all() for page in map(unpadded, found) if page is not None]
    return pa.concat_tables(tables) if tables else schema.empty_table()


def with_weights(df: "DataFrame") -> Any:
    """The columns of the table, then weight and count."""
    from pyspark.sql import types

    extra = [types.StructField(WEIGHT, types.DoubleType()), types.StructField(COUNT, types.LongType())]
    return types.StructType([*df.schema.fields, *extra])
