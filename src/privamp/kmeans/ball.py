"""The public ball: records are centred, divided by its radius, and clipped to it.

No record is ever dropped or rejected. A missing entry (NaN) counts as the centre's, an infinite or very large one as
2^500 radii. Norms are rounded up and shortened records toward zero, so that no contribution is longer than the norm
its probability was computed from.

What is computed from a record is a function of that record and the ball, bit for bit. The length of a row is
*defined* as the norm of numerics.row_norms, rounded up to 30 bits. A quick sum of squares, in whatever order the
machine adds, finds the same number for nearly every row: with d columns and u = 2^-53, z the differences to the
centre as they are rounded,

    quick    sqrt(fl(sum z²)/radius²) or sqrt(fl(sum (z/radius)²))
                                  = L(1 + e),    |e| <= (d + 6)u      (any order of d - 1 additions, fused or not)
    defined  norms(z/radius)      = L(1 + e'),  |e'| <= (3d + 24)u   (rounded up by (d + 8)·2^-52)

so that both lie within a factor 1 ± 8(d + 8)u of each other. If the two ends of that interval about the quick length
round up to the same 30 bits, so does the defined length; otherwise, once in some ten thousand rows, the row is
measured as defined.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..numerics.log_domain import FloatArray
from ..numerics.row_norms import norms
from . import exact
from .compiled import DROPPED, FAR, NEAR, SQUARE_UNITS, UNIT, gather, is_worth_compiling, measure
from .threads import ThreadPool

Count = Callable[[FloatArray], FloatArray]
Places = slice | NDArray[np.intp]

MOST = 2.0**33  # where sums of counts or squares are cut; below, sums of multiples of 1/SQUARE_UNITS are exact
_BYTES = 1 << 22  # one chunk of float64 rows: more leave the cache, fewer make threads wait for the interpreter
_QUICK = (2.0**-100, 2.0**100)  # radii for which squares neither over- nor underflow where it matters


def rows_of(columns: int) -> int:
    """Rows of a chunk."""
    return min(max(256, _BYTES // (8 * max(columns, 1))), exact.BLOCK)


def chunks(span: slice, columns: int) -> Iterator[slice]:
    """Pieces of a span of rows that fit the cache."""
    step = rows_of(columns)
    return (slice(at, min(at + step, span.stop)) for at in range(span.start, span.stop, step))


@dataclass(frozen=True, slots=True)
class Ball:
    """Centre and radius: public, or estimated with noise."""

    center: FloatArray = field(repr=False)  # (d,)
    radius: float

    def unit(self, X: NDArray[Any], columns: Any = slice(None)) -> FloatArray:
        """Some columns about the centre in units of the radius, float64, all finite, not shortened."""
        with np.errstate(all="ignore"):
            v = np.subtract(X[:, columns], self.center[columns], dtype=np.float64)
            v *= 1.0 / self.radius
            if not (v.min(initial=0.0) >= -FAR and v.max(initial=0.0) <= FAR):  # otherwise nothing would change
                np.clip(v, -FAR, FAR, out=v)
                v[np.isnan(v)] = 0.0
        return np.asarray(v)

    def back(self, points: FloatArray) -> FloatArray:
        """Points of the unit ball in the units of the data."""
        return np.asarray(self.center + self.radius * points)


def lengths(ball: Ball, X: NDArray[Any]) -> FloatArray:
    """The length of every row in units of the radius, rounded up."""
    if not _is_quick(ball):
        return _defined(ball, X)
    with np.errstate(all="ignore"):
        z = np.subtract(X, ball.center, dtype=np.float64) if np.any(ball.center) else X.astype(np.float64, copy=False)
        quick = np.sqrt(np.einsum("ij,ij->i", z, z) * ball.radius**-2)
        found, lower = _around(quick, _off(X))
        unsure = np.flatnonzero(~((found == lower) & (quick < FAR)))  # also where it is not a number
    if unsure.size:
        found[unsure] = _defined(ball, X[unsure])
    return found


def _is_quick(ball: Ball) -> bool:
    return _QUICK[0] < ball.radius < _QUICK[1]


def _off(X: NDArray[Any]) -> float:
    """By which share the quick length may differ from the defined one."""
    return 8.0 * (int(X.shape[1]) + 8.0) * 2.0**-53


def _defined(ball: Ball, X: NDArray[Any]) -> FloatArray:
    return _up(norms(ball.unit(X), 2.0))


def _around(quick: FloatArray, off: float) -> tuple[FloatArray, FloatArray]:
    """What the length may be at most and at least; it is certain where these are equal."""
    return _up(quick * (1.0 + off)), _up(quick * (1.0 - off))


def _up(found: FloatArray) -> FloatArray:
    """Rounded up to 30 bits after the first, at least `NEAR`; overwrites what it is given."""
    np.maximum(found, NEAR, out=found)
    bits = found.view(np.int64)
    bits += DROPPED
    bits &= ~DROPPED
    return found


def squares(ball: Ball, X: NDArray[Any], found: FloatArray) -> FloatArray:
    """Column sums of squares of the shortened rows, given their lengths; exact, for at most 2^16 rows.

    A row adds multiples of 2^-20, rounded down, that are at most 1 together: v²/max(1, length²), length >= ||v||.
    """
    units = np.square(ball.unit(X))
    units *= (SQUARE_UNITS / np.square(np.maximum(found, 1.0)))[:, None]
    return np.asarray(np.sum(np.trunc(units, out=units), axis=0) / SQUARE_UNITS)


def lengths_and_squares(ball: Ball, X: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
    """Lengths of the rows, and the column sums of squares of the shortened rows."""
    found = np.empty(len(X))
    return found, _squares_of(ball, X, slice(0, len(X)), found)


def _squares_of(ball: Ball, X: NDArray[Any], places: Places, found: FloatArray) -> FloatArray:
    """The sums of the rows at some places, whose lengths are written into `found`."""
    total, work = np.zeros(X.shape[1]), np.empty((min(len(found), rows_of(X.shape[1])), X.shape[1]))
    for rows in _pieces(places, X.shape[1]):
        found[rows], more = _looked_at(ball, X[rows], work)
        total = added(total, more)
    return total


def _looked_at(ball: Ball, X: NDArray[Any], work: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Lengths and sums of squares of at most 2^16 rows: at once for rows in the ball whose quick length is certain,
    and with the same result for the others. `work` is space for them, because fresh memory takes a while."""
    if not _is_quick(ball):
        found = _defined(ball, X)
        return found, squares(ball, X, found)
    with np.errstate(all="ignore"):
        units = work[: len(X)]
        units[:] = X
        if np.any(ball.center):
            units -= ball.center
        units *= UNIT / ball.radius
        units *= units
        found, lower = _around(np.sqrt(units @ np.ones(X.shape[1])) / UNIT, _off(X))
        left = np.flatnonzero(~((found == lower) & (found <= 1.0)))
    if left.size:
        found[left], units[left] = lengths(ball, X[left]), 0.0
    total = np.ones(len(X)) @ np.trunc(units, out=units) / SQUARE_UNITS  # whole numbers: exact in any order
    return found, total + squares(ball, X[left], found[left]) if left.size else total


def _pieces(places: Places, columns: int) -> Iterator[Places]:
    """Rows of a span, or at some places, that fit the cache."""
    if isinstance(places, slice):
        return chunks(places, columns)
    return (places[some] for some in chunks(slice(0, places.size), columns))


def added(one: FloatArray, other: FloatArray) -> FloatArray:
    """Sums of counts or squares: at least 0, exact, and clamped the same way in any order of addition."""
    return np.minimum(one + other, MOST)


def scan(ball: Ball, X: NDArray[Any], pool: ThreadPool, count: Count | None = None) -> tuple[FloatArray, FloatArray]:
    """The same for a whole table, by threads; the sums go on with what `count` finds in the lengths of a part."""
    every, counted = np.empty(len(X)), count or _nothing

    def part(places: Places) -> FloatArray:
        return np.concatenate([_squares_of(ball, X, places, every), counted(every[places])])

    if is_worth_compiling(X) and _is_quick(ball):
        parts, left = _in_one_pass(ball, X, pool, every, X.shape[1], counted)
        parts.append(part(left))
    else:
        parts = pool.map(part, pool.spans(len(X)))
    return every, reduce(added, parts)


def measured(ball: Ball, X: NDArray[Any], pool: ThreadPool) -> FloatArray:
    """The rows' norms, without cutting them."""
    every = np.empty(len(X))

    def part(some: Places) -> None:
        for rows in _pieces(some, X.shape[1]):
            every[rows] = lengths(ball, X[rows])

    if is_worth_compiling(X) and _is_quick(ball):
        part(_in_one_pass(ball, X, pool, every, 0, _nothing)[1])
    else:
        pool.map(part, pool.spans(len(X)))
    return every


def _nothing(found: FloatArray) -> FloatArray:
    return np.empty(0)


def _in_one_pass(
    ball: Ball, X: NDArray[Any], pool: ThreadPool, found: FloatArray, columns: int, count: Count
) -> tuple[list[FloatArray], NDArray[np.intp]]:
    """Lengths, and sums of squares of the first columns and counts, of all rows but those whose places are returned."""

    def part(span: slice) -> tuple[FloatArray, list[NDArray[np.intp]]]:
        total, unsure = np.zeros(columns), []
        for rows in [span] if X.flags.c_contiguous else chunks(span, X.shape[1]):
            table, places = np.ascontiguousarray(X[rows]), np.empty(rows.stop - rows.start, dtype=np.intp)
            left = measure()(table, ball.center, 1.0 / ball.radius, _off(X), found[rows], total, places)
            unsure.append(places[:left] + rows.start)
        counts = count(found[span]) - count(found[np.concatenate(unsure)])
        return np.concatenate([total / SQUARE_UNITS, counts]), unsure

    parts = pool.map(part, pool.spans(len(X)))
    return [sums for sums, _ in parts], np.concatenate([places for _, several in parts for places in several])


def taken_inside(
    ball: Ball,
    X: NDArray[Any],
    taken: NDArray[np.intp],
    columns: NDArray[np.intp],
    found: FloatArray,
    pool: ThreadPool,
    bits: int = exact.ROW_BITS,
) -> NDArray[np.float32]:
    """Some columns of some rows in the unit ball, on the grid, given all rows' lengths before they are shortened."""
    fast, bits = is_worth_compiling(X), min(bits, exact.ROW_BITS)
    rows = np.empty((taken.size, columns.size), dtype=np.float32)

    def part(span: slice) -> None:
        for some in chunks(span, X.shape[1]):
            which = taken[some]
            shrink = shrunk(found[which])
            if fast:
                gather()(X, which, columns, ball.center, 1.0 / ball.radius, shrink, 2.0**bits, rows[some])
            else:
                v = ball.unit(X[which], columns)
                v *= shrink[:, None]
                rows[some] = exact.toward_zero(v, bits)

    pool.map(part, pool.spans(len(rows)))
    return rows


def shrunk(found: FloatArray) -> FloatArray:
    """What rows in units of the radius are multiplied with to be inside, whatever rounding adds."""
    return np.asarray((1.0 - 2.0**-44) / np.maximum(found, 1.0))
