"""Reading a source for a kernel: piece by piece, on threads, few pieces at a time, results in order.

Memory use is a few pieces, whatever the number of rows. A piece of a Parquet file is read column by column: first those
that decide the draw, then, if any of its rows is kept, the others one by one; no column is decoded twice. A thread
reads a piece alone as long as there are many pieces to come; the columns of the last ones are shared by all threads.
Row groups that take too much memory are streamed in batches of all columns.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..tables.id_columns import ids_of
from ..tables.pieces import BATCH, InMemory, Piece
from ..tables.sources import Source
from ..tables.unique_ids import SeenIds
from .kernel import COUNT, WEIGHT, Chosen, Kernel
from .options import Progress
from .steps import Steps, Task, alone, shared


class _Placed(NamedTuple):
    """A piece, the offset of its first row, and in how many tasks for all threads it is divided."""

    piece: Piece
    offset: int
    tasks: int = 1

    @property
    def batch(self) -> int:
        """Rows whose draw is decided at once: few calls, because threads wait for each other at every one, unless there
        are fewer pieces than threads."""
        return BATCH if self.tasks > _TASKS else _ROWS


_TASKS = 8  # for every thread, of the last pieces, which all threads share: as many pieces as threads
_ROWS = 1 << 20  # rows whose draw one thread decides at once
_AHEAD = 1 << 26  # bytes of columns read before the draw is decided

_Batch = tuple[int, pa.RecordBatch]  # with the position of its first row
Columns = Mapping[str, Piece]  # columns of a piece in memory
Held = dict[tuple[int, int | None], Columns]  # those of pieces, by offset and number of rows


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
            for tables in self._in_order(partial(self._kept, seen=seen), every, passes=1):
                for table in tables:
                    yield from table.to_batches()
            self._check(seen)
            return
        held: Held = {}
        chosen, found = self._chosen(held), 0
        drawn = partial(self._drawn, chosen=chosen, held=held)
        for tables in self._in_order(drawn, self.columns, after=1):
            for table in tables:
                found += table.num_rows
                yield from table.to_batches()
        chosen.check(found)

    def chosen(self) -> Chosen:
        """The drawn rows by position: the first of two passes."""
        return self._chosen({})

    def _chosen(self, held: Held) -> Chosen:
        seen = SeenIds()
        work = partial(self._partial, seen=seen, held=held)
        whole = self.kernel.folded(self._in_order(work, self.kernel.uses))
        self._check(seen)
        return self.kernel.finish(whole)

    def _in_order(
        self, work: Callable[[_Placed], Steps], columns: Sequence[str], passes: int = 2, after: int = 0
    ) -> Iterator[Any]:
        """The results of all pieces, with at most one more of them in progress than there are threads."""
        done, rows = 0, self.source.rows
        pending: deque[tuple[Future[Any], int]] = deque()
        pool = ThreadPoolExecutor(self.threads, thread_name_prefix="privamp")
        try:
            for place in self._placed(columns):
                steps = work(place)
                future = shared(pool, steps) if place.tasks > 1 else pool.submit(alone, steps)
                pending.append((future, place.piece.rows or 0))
                if len(pending) > self.threads:
                    done += pending[0][1]
                    yield pending.popleft()[0].result()
                    self._report_progress(done, rows, passes, after)
            while pending:
                done += pending[0][1]
                yield pending.popleft()[0].result()
                self._report_progress(done, rows, passes, after)
            if done == 0:  # a source without rows still has a result
                yield alone(work(_Placed(Piece.empty(self.source.schema), 0)))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _report_progress(self, done: int, rows: int | None, passes: int, after: int) -> None:
        if self.progress is not None:
            self.progress(done + after * (rows or 0), None if rows is None else passes * rows)

    def _placed(self, columns: Sequence[str]) -> Iterator[_Placed]:
        """Every piece; batch by batch where a piece cannot be held or its length is unknown."""
        offset, pieces = 0, self.source.divided(self.threads).pieces
        read = columns or self.source.schema.names[:1]
        last = min(self.threads, len(pieces))
        for k, piece in enumerate(pieces):
            is_whole = piece.rows is not None and not self._is_large(piece, read)
            is_shared = is_whole and len(pieces) - k <= last and self.threads > 1
            tasks = -(-_TASKS * self.threads // last) if is_shared else 1
            for part in (piece,) if is_whole else piece.held(read, use_threads=self.threads > 1):
                yield _Placed(part, offset, tasks)
                offset += part.rows or 0

    def _is_large(self, piece: Piece, columns: Sequence[str]) -> bool:
        """Whether the columns that are held at a time take too much memory."""
        together = [name for name in columns if name in self.kernel.uses]
        return piece.is_large(together) or piece.is_large(columns, apart=True)

    def _deciding(self, place: _Placed, early: Sequence[str] = ()) -> Generator[Sequence[Task], list[Any], Columns]:
        """The columns that decide the draw, and those of `early` that other threads read meanwhile."""
        piece, apart = place.piece, _divided(place, self.kernel.uses)
        awaited = deque(apart)

        def decisive(names: Sequence[str]) -> Piece:
            found = piece.in_memory(names)
            awaited.pop()
            return found

        def meanwhile(names: Sequence[str]) -> Piece | None:
            return piece.in_memory(names) if awaited else None

        ahead = [[name] for name in early]
        tasks: list[Task] = [partial(decisive, names) for names in apart]
        tasks += [partial(meanwhile, names) for names in ahead]
        found = yield tasks
        read = zip([*apart, *ahead], found, strict=True)
        return {name: each for names, each in read if each is not None for name in names}

    def _batches(self, place: _Placed, read: Columns) -> Iterator[_Batch]:
        """The columns that decide the draw, with the position of each batch in the piece."""
        if not self.kernel.uses:
            rows = pa.table({"": pa.nulls(place.piece.rows or 0)})
        else:
            columns = [read[name].fragment.data.column(name) for name in self.kernel.uses]
            rows = pa.Table.from_arrays(columns, schema=_part(self.source.schema, self.kernel.uses))
        return _placed(rows.to_batches(max_chunksize=place.batch) or [_empty(rows.schema)])

    def _ids(self, batch: pa.RecordBatch, seen: SeenIds) -> Any:
        if self.kernel.id is None:
            return None
        ids = ids_of(batch.column(self.kernel.id), self.kernel.id)
        if not self.trust_ids:
            seen.add(ids)
        return ids

    def _check(self, seen: SeenIds) -> None:
        name = str(self.kernel.id)

        def ids(place: _Placed) -> Steps:
            (found,) = yield [lambda: [ids_of(batch.column(name), name) for batch in place.piece.batches([name])]]
            return found

        quietly = replace(self, progress=None)
        seen.check(lambda: (each for several in quietly._in_order(ids, [name]) for each in several))

    def _partial(self, place: _Placed, seen: SeenIds, held: Held) -> Steps:
        """What a piece contributes to the draw; `held` gets the first columns for the second pass."""
        piece, offset, _ = place
        read = yield from self._deciding(place)

        def part(start: int, batch: pa.RecordBatch) -> Any:
            return self.kernel.partial(batch, offset + start, self._ids(batch, seen))

        parts = yield [partial(part, start, batch) for start, batch in self._batches(place, read)]
        wanted = {name: each for name, each in read.items() if name in self.columns}
        size = sum(each.fragment.data.column(name).nbytes for name, each in wanted.items())
        if piece.rows and (offset + piece.rows) * size <= _AHEAD * piece.rows:
            held[offset, piece.rows] = wanted
        return self.kernel.folded(parts)

    def _kept(self, place: _Placed, seen: SeenIds) -> Steps:
        """The kept rows of a piece."""
        read = yield from self._deciding(place, self._early(place.piece))

        def drawn(start: int, batch: pa.RecordBatch) -> Chosen:
            verdict = self.kernel.verdict(batch, place.offset + start, self._ids(batch, seen))
            return Chosen(verdict.positions + start, verdict.counts, verdict.weights)

        found = yield [partial(drawn, start, batch) for start, batch in self._batches(place, read)]
        chosen = Chosen(*(np.concatenate([getattr(one, what) for one in found]) for what in Chosen.__slots__))
        return (yield from self._assembled(place, chosen, read))

    def _drawn(self, place: _Placed, chosen: Chosen, held: Held) -> Steps:
        """The rows of a piece that were chosen."""
        piece, offset, _ = place
        here = chosen.within(offset, piece.rows or 0)
        return (yield from self._assembled(place, here, held.pop((offset, piece.rows), {})))

    def _early(self, piece: Piece) -> list[str]:
        """Columns that threads without work may read before the draw is decided, if they take little memory: threads
        are without work if the columns that decide, of all pieces, are fewer."""
        uses, pieces = self.kernel.uses, len(self.source.pieces)
        if not uses or pieces * len(uses) >= self.threads or not piece.is_plain:
            return []
        some = [name for name in self.columns if name not in uses]
        until = np.cumsum(piece.bytes_of(some))
        return some[: int(np.searchsorted(until, _AHEAD / pieces, side="right"))]

    def _assembled(self, place: _Placed, chosen: Chosen, read: Columns) -> Steps:
        """The chosen rows, in tables; columns that were `read` already are not decoded again."""
        piece = place.piece
        if not chosen.tickets.size:
            return []
        if piece.is_large(self.columns, chosen.tickets.size / (piece.rows or 1)):
            return self._streamed(piece, chosen)
        apart = _divided(place, [name for name in self.columns if name not in read])
        tasks: list[Task] = [partial(piece.taken, names, chosen.tickets) for names in apart]
        again = {name: read[name].fragment.data.column(name) for name in self.columns if name in read}
        if again:
            held = pa.table(again)
            held_piece = Piece(piece.name, held.num_rows, InMemory(held), held.schema)
            tasks.append(partial(held_piece.taken, list(again), chosen.tickets))
        found: dict[str, pa.ChunkedArray] = {}
        for taken in (yield tasks):
            found |= taken
        arrays = [*(found[name] for name in self.columns), pa.array(chosen.weights), pa.array(chosen.counts)]
        rows = pa.Table.from_arrays(arrays, schema=self.schema)  # as it would be row group by row group
        return [rows.slice(part.start, part.stop - part.start) for part in piece.parts(chosen.tickets)]

    def _streamed(self, piece: Piece, chosen: Chosen) -> Iterator[pa.Table]:
        """The same for rows that are too many to be held: decoded by whoever takes them, all columns at a time."""
        start = 0
        for part in piece.held(self.columns, use_threads=self.threads > 1):
            yield from alone(self._assembled(_Placed(part, 0), chosen.within(start, part.rows or 0), {}))
            start += part.rows or 0


def _divided(place: _Placed, columns: Sequence[str]) -> list[list[str]]:
    """The columns by task."""
    if not columns or place.tasks == 1 or not place.piece.reads_columns_apart:
        return [list(columns)] * bool(columns)
    several = -(-len(columns) // place.tasks)
    return [list(columns[k : k + several]) for k in range(0, len(columns), several)]


def _placed(batches: Iterable[pa.RecordBatch]) -> Iterator[_Batch]:
    """Each batch with the position of its first row."""
    start = 0
    for batch in batches:
        yield start, batch
        start += batch.num_rows


def _part(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    return pa.schema([schema.field(name) for name in names])


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=schema)
