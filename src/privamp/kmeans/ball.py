"""The public ball: records are centred, divided by its radius, and clipped to it.

No record is ever dropped or rejected. A missing entry (NaN) counts as the centre's, an infinite or very large one as
2^500 radii. Norms are rounded up and shortened records toward zero, so that no contribution is longer than the norm
its probability was computed from.

What is computed from a record is a function of that record and the ball, bit for bit. The length of a row is
*defined* as the norm of numerics.row_norms, rounded up to 30 bits. A quick sum of squares, in whatever order the
machine adds, finds the same number for nearly every row: with d columns and u = 2^-53, z the differences to the
centre as they are rounded,

    quick    sqrt(fl(sum z²)/radius²) = L(1 + e),   |e| <= (d + 6)u      (any order of d - 1 additions, fused or not)
    defined  norms(z/radius)          = L(1 + e'),  |e'| <= (3d + 24)u   (rounded up by (d + 8)·2^-52)

so that both lie within a factor 1 ± 8(d + 8)u of each other. If the two ends of that interval about the quick length
round up to the same 30 bits, so does the defined length; otherwise, once in some ten thousand rows, the row is
measured as defined.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..numerics.log_domain import FloatArray
from ..numerics.row_norms import norms
from . import exact
from .compiled import add_squares, gather, is_worth_compiling, sum_squares
from .threads import ThreadPool

Count = Callable[[FloatArray], FloatArray]

SQUARE_BITS = 20  # of a squared coordinate in the unit ball: sums are exact up to 2^33 records
MOST = 2.0**33  # where they are cut
_BYTES = 1 << 20  # one chunk of float64 rows: in the cache
_FAR = 2.0**500  # radii
_NEAR = 2.0**-300  # radii: shorter lengths are rounded up to this
_QUICK = (2.0**-100, 2.0**100)  # radii for which squares neither over- nor underflow where it matters
_DROPPED = (1 << 22) - 1  # of 52 bits


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
            if not (v.min(initial=0.0) >= -_FAR and v.max(initial=0.0) <= _FAR):  # otherwise nothing would change
                np.clip(v, -_FAR, _FAR, out=v)
                v[np.isnan(v)] = 0.0
        return np.asarray(v)

    def back(self, points: FloatArray) -> FloatArray:
        """Points of the unit ball in the units of the data."""
        return np.asarray(self.center + self.radius * points)


def lengths(ball: Ball, X: NDArray[Any], *, fast: bool = False) -> FloatArray:
    """The length of every row in units of the radius, rounded up."""
    d = X.shape[1]
    if not _QUICK[0] < ball.radius < _QUICK[1]:
        return _defined(ball, X)
    with np.errstate(all="ignore"):
        quick = np.sqrt(_squared(ball, X, fast) * ball.radius**-2)
        off = 8.0 * (d + 8.0) * 2.0**-53
        found, lower = _up(quick * (1.0 + off)), _up(quick * (1.0 - off))
        unsure = np.flatnonzero(~((found == lower) & (quick < _FAR)))  # also where it is not a number
    if unsure.size:
        found[unsure] = _defined(ball, X[unsure])
    return found


def _squared(ball: Ball, X: NDArray[Any], fast: bool) -> FloatArray:
    """Squared distances to the centre, added in any order."""
    if fast:
        squared: FloatArray = np.empty(len(X))
        sum_squares()(X, ball.center, squared)
        return squared
    z = np.subtract(X, ball.center, dtype=np.float64) if np.any(ball.center) else X.astype(np.float64, copy=False)
    return np.asarray(np.einsum("ij,ij->i", z, z))


def _defined(ball: Ball, X: NDArray[Any]) -> FloatArray:
    return _up(norms(ball.unit(X), 2.0))


def _up(found: FloatArray) -> FloatArray:
    """Rounded up to 30 bits after the first, at least `_NEAR`; overwrites what it is given."""
    np.maximum(found, _NEAR, out=found)
    bits = found.view(np.int64)
    bits += _DROPPED
    bits &= ~_DROPPED
    return found


def squares(ball: Ball, X: NDArray[Any], found: FloatArray, *, fast: bool = False) -> FloatArray:
    """Column sums of squares of the shortened rows, given their lengths; exact, for at most 2^16 rows.

    A row adds multiples of 2^-20, rounded down, that are at most 1 together: v²/max(1, length²), length >= ||v||.
    """
    share = 2.0**SQUARE_BITS / np.square(np.maximum(found, 1.0))
    if fast:
        total: FloatArray = np.zeros(X.shape[1])
        add_squares()(X, ball.center, 1.0 / ball.radius, share, total)
    else:
        units = np.square(ball.unit(X))
        units *= share[:, None]
        total = np.sum(np.trunc(units, out=units), axis=0)
    return np.asarray(total * 2.0**-SQUARE_BITS)


def lengths_and_squares(ball: Ball, X: NDArray[Any], *, fast: bool = False) -> tuple[FloatArray, FloatArray]:
    """Lengths of the rows, and the column sums of squares of the shortened rows."""
    found, total = np.empty(len(X)), np.zeros(X.shape[1])
    for rows in chunks(slice(0, len(X)), X.shape[1]):
        found[rows] = lengths(ball, X[rows], fast=fast)
        total = added(total, squares(ball, X[rows], found[rows], fast=fast))
    return found, total


def added(one: FloatArray, other: FloatArray) -> FloatArray:
    """Sums of counts or squares: at least 0, exact, and clamped the same way in any order of addition."""
    return np.minimum(one + other, MOST)


def scan(ball: Ball, X: NDArray[Any], pool: ThreadPool, count: Count | None = None) -> tuple[FloatArray, FloatArray]:
    """The same for a whole table, by threads; the sums go on with what `count` finds in the lengths of a part.

    Counting while other parts are measured costs almost nothing, unlike counting afterwards.
    """
    every, fast = np.empty(len(X)), is_worth_compiling(X)

    def part(span: slice) -> FloatArray:
        every[span], total = lengths_and_squares(ball, X[span], fast=fast)
        return total if count is None else np.concatenate([total, count(every[span])])

    first, *others = pool.map(part, pool.spans(len(X)))
    for other in others:
        first = added(first, other)
    return every, first


def measured(ball: Ball, X: NDArray[Any], pool: ThreadPool) -> FloatArray:
    """The rows' norms, without cutting them."""
    every, fast = np.empty(len(X)), is_worth_compiling(X)

    def part(span: slice) -> None:
        for rows in chunks(span, X.shape[1]):
            every[rows] = lengths(ball, X[rows], fast=fast)

    pool.map(part, pool.spans(len(X)))
    return every


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
