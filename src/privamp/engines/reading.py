"""Reading a source for a kernel: piece by piece, on threads, few pieces at a time, results in order.

Memory use is a few pieces, whatever the number of rows. A piece of a Parquet file is read column by column: first those
that decide the draw, then, if any of its rows is kept, the others one by one; no column is decoded twice. Row groups
that take too much memory, or are fewer than the threads, are streamed in batches of all columns.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ..tables.id_columns import ids_of
from ..tables.pieces import BATCH, Piece
from ..tables.sources import Source
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
            return self.kernel.folded(self.kernel.partial(batch, offset + start, ids) for start, batch, ids in batches)

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
        """Every piece with the offset of its first row; batch by batch where a piece cannot be held or its length is
        unknown."""
        offset, pieces = 0, self.source.divided(2 * self.threads if self.threads > 1 else 1).pieces
        read = columns or self.source.schema.names[:1]
        for piece in pieces:
            is_whole = piece.rows is not None and not self._is_streamed(piece, read, len(pieces))
            for part in (piece,) if is_whole else piece.held(read, use_threads=self.threads > 1):
                yield part, offset
                offset += part.rows or 0

    def _is_streamed(self, piece: Piece, columns: Sequence[str], pieces: int) -> bool:
        is_shared = piece.is_plain and pieces < self.threads and (piece.rows or 0) > BATCH
        return is_shared or piece.is_large(columns)

    def _deciding(self, piece: Piece, seen: SeenIds) -> Iterator[tuple[int, pa.RecordBatch, Any]]:
        """The columns that decide the draw, with the position of each batch in the piece, and the ids, if they are in a
        column; they are checked in passing."""
        if not self.kernel.uses:
            rows = piece.rows or 0
            for start in range(0, max(rows, 1), BATCH):
                yield start, pa.record_batch([pa.nulls(min(BATCH, rows - start))], names=[""]), None
            return
        start = 0
        for batch in piece.batches(self.kernel.uses):
            yield start, batch, self._ids(batch, seen)
            start += batch.num_rows
        if start == 0:
            yield 0, pa.RecordBatch.from_pylist([], schema=_part(self.source.schema, self.kernel.uses)), None

    def _ids(self, batch: pa.RecordBatch, seen: SeenIds) -> Any:
        if self.kernel.id is None:
            return None
        ids = ids_of(batch.column(self.kernel.id), self.kernel.id)
        if not self.trust_ids:
            seen.add(ids)
        return ids

    def _check(self, seen: SeenIds) -> None:
        name = str(self.kernel.id)

        def ids(piece: Piece, offset: int) -> list[Any]:
            return [ids_of(batch.column(name), name) for batch in piece.batches([name])]

        quietly = replace(self, progress=None)
        seen.check(lambda: (each for several in quietly._in_order(ids, [name]) for each in several))

    def _kept(self, piece: Piece, offset: int, seen: SeenIds) -> pa.Table:
        """The kept rows of a piece."""
        at_hand = [name for name in self.columns if name in self.kernel.uses]
        drawn, rows = [], []
        for start, batch, ids in self._deciding(piece, seen):
            verdict = self.kernel.verdict(batch, offset + start, ids)
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
        for together in [[name] for name in missing] if piece.reads_columns_apart else [missing]:
            found |= _taken(piece, positions, together)
        columns = [found[name] for name in self.columns]
        return pa.Table.from_arrays([*columns, pa.array(weights), pa.array(counts)], schema=self.schema)


def _taken(piece: Piece, positions: Ints, columns: Sequence[str]) -> dict[str, pa.ChunkedArray]:
    """Rows of a piece at ascending positions."""
    start, rows = 0, []
    for batch in piece.batches(columns, size=piece.rows) if columns else ():
        first, last = np.searchsorted(positions, [start, start + batch.num_rows])
        if last > first:
            rows.append(batch.take(pa.array(positions[first:last] - start)))
        start += batch.num_rows
    return dict(zip(columns, pa.Table.from_batches(rows).columns, strict=True)) if rows else {}


def _part(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    return pa.schema([schema.field(name) for name in names])
