"""Scores and squares of rows in the vector registers of the processor, for compiled passes (numba).

Loops of numba keep the sums of a product in memory, and its call of BLAS takes three times as long on such narrow
tables. Here LLVM is given vectors: a tile of some rows by two vectors of points stays in registers, and the best
score of a row is found without a branch. LLVM splits vectors that a processor does not have.

Scores are single precision and used only with the margin of nearest.py, which holds for products added in any order,
fused or not. The largest score less the margin is rounded too, by u(m·r + m²/2), which 4E covers many times over.
Squares are double precision; their whole parts are exact, and their sums in a row are used only with the margin of
ball.py, which holds in any order.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..numerics.log_domain import FloatArray
from .emitter import Emitter, as_doubles, check_rows, lanes

_VECTORS = 2  # of a tile
_AHEAD = 32  # rows that are brought into the cache meanwhile
_LINE = 64  # bytes of the cache
_PANEL = 4  # vectors of columns whose squares are added up in registers


def tile_rows() -> int:
    """Rows of a tile: as many as registers hold."""
    return 10 if lanes() == 16 else 4


def padded_width() -> int:
    """Points of a tile."""
    return _VECTORS * lanes()


def padded(points: FloatArray, half: FloatArray) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Points column by column, and what is subtracted from their scores; padding is never nearest."""
    k, d = points.shape
    width = padded_width()
    table = np.zeros((d, -(-k // width) * width), dtype=np.float32)
    table[:, :k] = points.T
    less = np.full(table.shape[1], np.inf, dtype=np.float32)
    less[:k] = half
    return table, less


@cache
def tile(rows: int) -> Any:
    """f(table, start, points, at, scores): products of `rows` rows from `start` on with the points from `at` on."""
    from numba import types  # type: ignore[import-not-found,import-untyped,unused-ignore]
    from numba.core import cgutils  # type: ignore[import-not-found,import-untyped,unused-ignore]
    from numba.extending import intrinsic  # type: ignore[import-not-found,import-untyped,unused-ignore]

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        e = Emitter.single(context, builder)
        table, (_, d) = e.array(signature.args[0], arguments[0])
        points, (_, width) = e.array(signature.args[2], arguments[2])
        scores, _ = e.array(signature.args[4], arguments[4])
        first, at = builder.mul(arguments[1], d), arguments[3]
        tiles = [(r, v) for r in range(rows) for v in range(_VECTORS)]
        sums = {place: cgutils.alloca_once_value(builder, e.ir.Constant(e.vector, None)) for place in tiles}
        with cgutils.for_range(builder, d) as loop:
            line = builder.add(builder.mul(loop.index, width), at)
            ones = [e.load(points, builder.add(line, e.whole(v * e.width))) for v in range(_VECTORS)]
            starts = [builder.add(first, builder.mul(d, e.whole(r))) for r in range(rows)]
            entries = [e.spread(builder.load(builder.gep(table, [builder.add(at, loop.index)]))) for at in starts]
            for (r, v), total in sums.items():
                e.added_product(entries[r], ones[v], total)
        for (r, v), total in sums.items():
            place = builder.add(builder.add(builder.mul(width, e.whole(r)), at), e.whole(v * e.width))
            e.store(builder.load(total), scores, place)
        return context.get_dummy_value()

    def typed(
        context: Any, table: Any, start: Any, points: Any, at: Any, scores: Any
    ) -> tuple[Any, Callable[..., Any]]:
        check_rows(table, points, scores)
        return types.void(table, types.intp, points, types.intp, scores), emit

    return intrinsic(typed)


@cache
def decided() -> Any:
    """f(scores, row, less, room): the place of the row's largest score, or -1 if another one is within `room` of it.

    `less` is subtracted from the scores.
    """
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        e = Emitter.single(context, builder)
        scores, (_, width) = e.array(signature.args[0], arguments[0])
        less, _ = e.array(signature.args[2], arguments[2])
        start, step = builder.mul(arguments[1], width), e.whole(e.width)

        def score(at: Any) -> Any:
            return builder.fsub(e.load(scores, builder.add(start, at)), e.load(less, at))

        lowest = e.ir.Constant(e.vector, [float("-inf")] * e.width)
        most = cgutils.alloca_once_value(builder, lowest)
        with cgutils.for_range_slice(builder, e.whole(0), width, step) as (at, _):
            here, before = score(at), builder.load(most)
            builder.store(builder.select(builder.fcmp_ordered(">", here, before), here, before), most)
        limit = e.spread(builder.fsub(e.largest(builder.load(most)), arguments[3]))
        near, place = (cgutils.alloca_once_value(builder, e.whole(0)) for _ in range(2))
        with cgutils.for_range_slice(builder, e.whole(0), width, step) as (at, _):
            lanes_near = builder.bitcast(builder.fcmp_ordered(">=", score(at), limit), e.ir.IntType(e.width))
            mask = builder.zext(lanes_near, e.index)
            builder.store(builder.add(builder.load(near), builder.ctpop(mask)), near)
            found = builder.add(at, builder.cttz(mask, e.ir.Constant(e.ir.IntType(1), 0)))
            is_here = builder.icmp_unsigned("!=", mask, e.whole(0))
            builder.store(builder.select(is_here, found, builder.load(place)), place)
        is_alone = builder.icmp_unsigned("==", builder.load(near), e.whole(1))
        return builder.select(is_alone, builder.load(place), e.whole(-1))

    def typed(context: Any, scores: Any, row: Any, less: Any, room: Any) -> tuple[Any, Callable[..., Any]]:
        check_rows(scores, less)
        return types.intp(scores, types.intp, less, types.float32), emit

    return intrinsic(typed)


@cache
def squares(rows: int) -> Any:
    """f(table, start, center, factor, parts, sums, total): squares of `rows` rows from `start` on, less the center,
    times the factor, in double precision.

    Their sum in each row is written into `sums`, added in some order; their whole parts are added to `total`, column by
    column. `parts` is work space with as many rows.
    """
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        squared = _Squared(context, builder, signature.args, arguments, rows)
        e, d = squared.e, squared.columns
        rest = builder.urem(d, e.whole(e.width))
        whole, several = builder.sub(d, rest), e.whole(_PANEL * e.width)
        wide = builder.sub(whole, builder.urem(whole, several))
        squared.clear()
        with cgutils.for_range_slice(builder, e.whole(0), wide, several) as (at, _):
            squared.add(at, _PANEL)
        with cgutils.for_range_slice(builder, wide, whole, e.whole(e.width)) as (at, _):
            squared.add(at, 1)
        is_left = builder.icmp_unsigned("!=", rest, e.whole(0))
        is_wide = builder.icmp_unsigned("!=", whole, e.whole(0))
        with builder.if_then(builder.and_(is_left, is_wide)):
            squared.add(builder.sub(d, e.whole(e.width)), 1, rest)
        squared.finish()
        with builder.if_then(builder.not_(is_wide)):
            squared.add_one_by_one()
        return context.get_dummy_value()

    def typed(
        context: Any, table: Any, start: Any, center: Any, factor: Any, parts: Any, sums: Any, total: Any
    ) -> tuple[Any, Callable[..., Any]]:
        check_rows(table, center, parts, sums, total)
        return types.void(table, types.intp, center, types.float64, parts, sums, total), emit

    return intrinsic(typed)


class _Squared:
    """Squares of some rows, column by column and row by row."""

    def __init__(self, context: Any, builder: Any, kinds: Any, arguments: Any, rows: int) -> None:
        self.e, self.builder = Emitter.double(context, builder), builder
        self.rows = self.e.whole(rows)
        self.entry, self.factor, self.start = kinds[0].dtype, arguments[3], arguments[1]
        places = [self.e.array(kinds[k], arguments[k]) for k in (0, 2, 4, 5, 6)]
        (self.table, (_, self.columns)), *others = places
        self.center, self.parts, self.sums, self.total = (start for start, _ in others)

    def clear(self) -> None:
        """Start the rows' sums at 0."""
        with self._each_row() as (row, _):
            self.e.store(self.e.ir.Constant(self.e.vector, None), self.parts, self._part(row))

    def add(self, at: Any, vectors: int, last: Any = None) -> None:
        """The squares of some vectors of columns from `at` on; only the `last` ones, if that is given."""
        e, builder = self.e, self.builder
        places = [builder.add(at, e.whole(v * e.width)) for v in range(vectors)]
        centers = [e.load(self.center, place) for place in places]
        totals = [e.variable(e.load(self.total, place)) for place in places]
        factor = e.spread(self.factor)
        mask = None if last is None else e.last_lanes(last)
        with self._each_row() as (row, first):
            part = e.load(self.parts, self._part(row))
            for place, center, total in zip(places, centers, totals, strict=True):
                at = builder.add(first, place)
                e.fetch(self.table, builder.add(at, builder.mul(self.columns, e.whole(_AHEAD))))
                here = as_doubles(builder, self.entry, e.load(self.table, at), e.vector)
                away = builder.fmul(builder.fsub(here, center), factor)
                square = builder.fmul(away, away)
                if mask is not None:
                    square = builder.select(mask, square, e.ir.Constant(e.vector, None))
                part = builder.fadd(part, square)
                builder.store(builder.fadd(builder.load(total), e.cut(square)), total)
            e.store(part, self.parts, self._part(row))
        for place, total in zip(places, totals, strict=True):
            e.store(builder.load(total), self.total, place)

    def finish(self) -> None:
        """Write the rows' sums."""
        with self._each_row() as (row, _):
            found = self.e.sum(self.e.load(self.parts, self._part(row)))
            self.builder.store(found, self.builder.gep(self.sums, [row]))

    def add_one_by_one(self) -> None:
        """The same for tables with fewer columns than a vector has lanes."""
        from numba.core import cgutils

        e, builder = self.e, self.builder
        with self._each_row() as (row, first), cgutils.for_range(builder, self.columns) as loop:
            entry = builder.load(builder.gep(self.table, [builder.add(first, loop.index)]))
            here = as_doubles(builder, self.entry, entry, e.number)
            away = builder.fsub(here, builder.load(builder.gep(self.center, [loop.index])))
            away = builder.fmul(away, self.factor)
            square = builder.fmul(away, away)
            for start, at, more in ((self.sums, row, square), (self.total, loop.index, e.cut(square))):
                place = builder.gep(start, [at])
                builder.store(builder.fadd(builder.load(place), more), place)

    @contextmanager
    def _each_row(self) -> Iterator[tuple[Any, Any]]:
        """Its number, and where it starts in the table."""
        from numba.core import cgutils

        with cgutils.for_range(self.builder, self.rows) as loop:
            yield loop.index, self.builder.mul(self.builder.add(self.start, loop.index), self.columns)

    def _part(self, row: Any) -> Any:
        return self.builder.mul(row, self.e.whole(self.e.width))


@cache
def fetched() -> Any:
    """f(table, row): have a row brought into the cache, of a table that is stored row by row; returns at once."""
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        e = Emitter.double(context, builder)
        table, (_, d) = e.array(signature.args[0], arguments[0])
        start, step = builder.mul(arguments[1], d), e.whole(_LINE * 8 // signature.args[0].dtype.bitwidth)
        with cgutils.for_range_slice(builder, e.whole(0), d, step) as (at, _):
            e.fetch(table, builder.add(start, at))
        return context.get_dummy_value()

    def nothing(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.get_dummy_value()

    def typed(context: Any, table: Any, row: Any) -> tuple[Any, Callable[..., Any]]:
        return types.void(table, types.intp), emit if table.layout == "C" else nothing

    return intrinsic(typed)


@cache
def whole_part() -> Any:
    """f(number): rounded toward zero, in one instruction that loops use for many numbers at once."""
    from llvmlite.ir import FunctionType  # type: ignore[import-not-found,import-untyped,unused-ignore]
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        double = arguments[0].type
        kind = FunctionType(double, [double])
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.trunc.f64"), arguments)

    def typed(context: Any, number: Any) -> tuple[Any, Callable[..., Any]]:
        return types.float64(types.float64), emit

    return intrinsic(typed)
