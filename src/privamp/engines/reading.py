"""Reading a source for a kernel: piece by piece, on threads, few pieces at a time, results in order.

Memory use is a few pieces, whatever the number of rows. A piece of a Parquet file is read twice: first the columns that
decide the draw, then, if any of its rows is kept, the others; no column is decoded twice.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import InvalidInput
from ..tables.id_columns import ids_of
from ..tables.sources import BATCH, Piece, Source
from ..tables.unique_ids import SeenIds
from .kernel import COUNT, WEIGHT, Chosen, Ints, Kernel
from .options import Progress

Placed = tuple[Piece, int]  # a piece and the offset of its first row


@dataclass(frozen=True, slots=True)
class Reading:
    """One draw from one source; reading it again gives the same rows."""

    source: Source
    kernel: Kernel
    columns: Sequence[str]  # of the kept rows
    trust_ids: bool = False
    threads: int = 1
    progress: Progress | None = None

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns of a kept row."""
        return self.kernel.extended(pa.schema([self.source.schema.field(name) for name in self.columns]))

    def rows(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The kept rows in the order of the source; of these columns alone, if some are given."""
        if columns is not None:
            wanted = tuple(dict.fromkeys(name for name in columns if name not in (WEIGHT, COUNT)))  # rows have both
            yield from replace(self, columns=wanted).rows()
            return
        if self.kernel.streams:
            seen = SeenIds()
            every = tuple(dict.fromkeys([*self.columns, *self.kernel.uses]))
            for table in self._in_order(lambda piece, offset: self._kept(piece, offset, seen), every, passes=1):
                yield from table.to_batches()
            self._check(seen)
            return
        chosen, found = self.chosen(), 0
        for table in self._in_order(lambda piece, offset: self._drawn(piece, offset, chosen), self.columns, after=1):
            found += table.num_rows
            yield from table.to_batches()
        chosen.check(found)

    def chosen(self) -> Chosen:
        """The drawn rows by position: the first of two passes."""
        seen = SeenIds()

        def partial(piece: Piece, offset: int) -> Any:
            batches = self._deciding(piece, seen)
            return self.kernel.folded(self.kernel.partial(batch, offset + start) for start, batch in batches)

        whole = self.kernel.folded(self._in_order(partial, self.kernel.uses))
        self._check(seen)
        return self.kernel.finish(whole)

    def _in_order(
        self, work: Callable[[Piece, int], Any], columns: Sequence[str], passes: int = 2, after: int = 0
    ) -> Iterator[Any]:
        """The results of all pieces, with at most one more of them in progress than there are threads."""
        done, rows = 0, self.source.rows
        pending: deque[tuple[Future[Any], int]] = deque()
        pool = ThreadPoolExecutor(self.threads, thread_name_prefix="privamp")
        try:
            placed = self._placed(columns)
            for piece, offset in placed:
                pending.append((pool.submit(work, piece, offset), piece.rows or 0))
                if len(pending) > self.threads:
                    done += pending[0][1]
                    yield pending.popleft()[0].result()
                    self._report_progress(done, rows, passes, after)
            while pending:
                done += pending[0][1]
                yield pending.popleft()[0].result()
                self._report_progress(done, rows, passes, after)
            if done == 0:  # a source without rows still has a result
                yield work(Piece.empty(self.source.schema), 0)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _report_progress(self, done: int, rows: int | None, passes: int, after: int) -> None:
        if self.progress is not None:
            self.progress(done + after * (rows or 0), None if rows is None else passes * rows)

    def _placed(self, columns: Sequence[str]) -> Iterator[Placed]:
        """Every piece with the offset of its first row; a file of unknown length batch by batch."""
        offset = 0
        for piece in self.source.pieces:
            known = (piece,) if piece.rows is not None else piece.held(columns or self.source.schema.names[:1])
            for part in known:
                yield part, offset
                offset += part.rows or 0

    def _deciding(self, piece: Piece, seen: SeenIds) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The columns that decide the draw, with the position of each batch in the piece; ids are checked in
        passing."""
        if not self.kernel.uses:
            rows = piece.rows or 0
            for start in range(0, max(rows, 1), BATCH):
                yield start, pa.record_batch([pa.nulls(min(BATCH, rows - start))], names=[""])
            return
        start = 0
        for batch in piece.batches(self.kernel.uses):
            if self.kernel.id is not None:
                self._look(batch.column(self.kernel.id), seen)
            yield start, batch
            start += batch.num_rows
        if start == 0:
            yield 0, pa.RecordBatch.from_pylist([], schema=_part(self.source.schema, self.kernel.uses))

    def _look(self, ids: pa.Array, seen: SeenIds) -> None:
        if ids.null_count:
            raise InvalidInput(
                f"the id column {self.kernel.id!r} has missing ids, but every record needs one; fill them first"
            )
        if not self.trust_ids:
            seen.add(ids_of(ids, str(self.kernel.id)))

    def _just_ids(self) -> Iterator[pa.RecordBatch]:
        for piece in self.source.pieces:
            yield from piece.batches([str(self.kernel.id)])

    def _check(self, seen: SeenIds) -> None:
        name = str(self.kernel.id)
        seen.check(lambda: (ids_of(batch.column(name), name) for batch in self._just_ids()))

    def _kept(self, piece: Piece, offset: int, seen: SeenIds) -> pa.Table:
        """The kept rows of a piece."""
        at_hand = [name for name in self.columns if name in self.kernel.uses]
        drawn, rows = [], []
        for start, batch in self._deciding(piece, seen):
            verdict = self.kernel.verdict(batch, offset + start)
            drawn.append(Chosen(verdict.positions + start, verdict.counts, verdict.weights))
            rows.append(batch.select(at_hand).take(pa.array(verdict.positions)))
        positions, counts, weights = (
            np.concatenate([getattr(d, what) for d in drawn]) for what in ("tickets", "counts", "weights")
        )
        known = pa.Table.from_batches(rows) if at_hand else None
        return self._assembled(piece, positions, counts, weights, known)

    def _drawn(self, piece: Piece, offset: int, chosen: Chosen) -> pa.Table:
        """The rows of a piece that were chosen."""
        first, last = np.searchsorted(chosen.tickets, [offset, offset + (piece.rows or 0)])
        mine = slice(first, last)
        return self._assembled(piece, chosen.tickets[mine] - offset, chosen.counts[mine], chosen.weights[mine], None)

    def _assembled(self, piece: Piece, positions: Ints, counts: Ints, weights: Any, known: pa.Table | None) -> pa.Table:
        if not positions.size:
            return self.schema.empty_table()
        found = {} if known is None else dict(zip(known.column_names, known.columns, strict=True))
        missing = [name for name in self.columns if name not in found]
        if missing:
            rest = pa.Table.from_batches(_taken(piece, positions, missing))
            found |= dict(zip(missing, rest.columns, strict=True))
        columns = [found[name] for name in self.columns]
        return pa.Table.from_arrays([*columns, pa.array(weights), pa.array(counts)], schema=self.schema)


def _taken(piece: Piece, positions: Ints, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Rows of a piece at ascending positions."""
    start = 0
    for batch in piece.batches(columns):
        first, last = np.searchsorted(positions, [start, start + batch.num_rows])
        if last > first:
            yield batch.take(pa.array(positions[first:last] - start))
        start += batch.num_rows


def _part(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    return pa.schema([schema.field(name) for name in names])
