"""The public ball: records are moved to its centre, divided by its radius, and shortened to it where they are longer.

No record is ever dropped. Norms are rounded up and shortened records are rounded down, in the precision in which
they are summed, so that no contribution is longer than the norm its probability was computed from.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core import influence
from ...errors import InvalidInput
from ...numerics.log_domain import FloatArray
from .compiled import gather, is_worth_compiling, measure, measure_single
from .threads import Crew

Count = Callable[[FloatArray], FloatArray]

_BYTES = 1 << 22  # one chunk of float64 rows: small for the cache, large for threads that wait for the interpreter
_NORMAL = {False: (1e-280, 1e280), True: (1e-30, 1e30)}  # squares in single precision that lost nothing, or in double
NOT_FINITE = (
    "X contains NaN or infinity in some rows; drop or fill those rows first (a public rule, the same for every row)"
)


def rows_of(columns: int) -> int:
    """Rows of a chunk."""
    return max(256, _BYTES // (8 * max(columns, 1)))


def chunks(span: slice, columns: int) -> Iterator[slice]:
    """Pieces of a span of rows that fit the cache."""
    step = rows_of(columns)
    return (slice(at, min(at + step, span.stop)) for at in range(span.start, span.stop, step))


@dataclass(frozen=True, slots=True)
class Ball:
    """Centre and radius: public, or estimated with noise."""

    center: FloatArray = field(repr=False)  # (d,)
    radius: float

    def unit(self, X: NDArray[Any]) -> FloatArray:
        """Rows about the centre in units of the radius, float64, not shortened."""
        z = np.subtract(X, self.center, dtype=np.float64)
        z *= 1.0 / self.radius
        return np.asarray(z)

    def inside(self, X: NDArray[Any], lengths: FloatArray) -> FloatArray:
        """Rows in the unit ball, float64, given their `lengths` before they are shortened."""
        return np.asarray(np.subtract(X, self.center, dtype=np.float64) * self.shrink(lengths, np.float64)[:, None])

    def shrink(self, lengths: FloatArray, dtype: Any) -> FloatArray:
        """What rows about the centre are multiplied with to be inside, whatever rounding to dtype adds."""
        room = 1.0 - 2.0 ** (-20 if dtype == np.float32 else -44)
        return np.asarray(room / self.radius / np.maximum(lengths, 1.0))

    def back(self, centres: FloatArray, columns: NDArray[np.intp]) -> FloatArray:
        """Points of the unit ball in the units of the data; columns that were left out stay at the centre."""
        points = np.tile(self.center, (len(centres), 1))
        points[:, columns] += self.radius * centres
        return points


def lengths_and_squares(
    ball: Ball, X: NDArray[Any], buffer: NDArray[Any] | None = None
) -> tuple[FloatArray, FloatArray]:
    """Lengths of the rows (rounded up), and the column sums of squares of the shortened rows."""
    z = np.empty(X.shape, dtype=_precision(ball, X)) if buffer is None else buffer[: len(X)]
    with np.errstate(over="ignore", invalid="ignore"):
        if np.any(ball.center):
            np.subtract(X, ball.center, out=z, dtype=z.dtype)
            np.multiply(z, z, out=z)
        else:
            np.multiply(X, X, out=z, dtype=z.dtype)
        squared = (z @ np.ones(z.shape[1], dtype=z.dtype)).astype(np.float64)
    small, large = _NORMAL[z.dtype == np.float32]
    if not np.all((squared > small) & (squared < large)) or not small**0.5 < ball.radius < large**0.5:
        return _carefully(ball, X)
    squared *= (1.0 + (z.shape[1] + 8.0) * 2.0 * float(np.finfo(z.dtype).eps)) / ball.radius**2
    shortened = np.minimum(1.0, 1.0 / squared) / ball.radius**2
    return np.sqrt(squared), np.asarray(shortened.astype(z.dtype) @ z, dtype=np.float64)


def _precision(ball: Ball, X: NDArray[Any]) -> Any:
    """Squares of float32 records are float32 when nothing is subtracted first: all roundings are then relative."""
    return np.float32 if X.dtype == np.float32 and not np.any(ball.center) else np.float64


def taken_inside(
    ball: Ball, X: NDArray[Any], taken: NDArray[np.intp], columns: NDArray[np.intp], lengths: FloatArray, crew: Crew
) -> NDArray[Any]:
    """Some columns of some rows in the unit ball, given all rows' `lengths` before they are shortened."""
    dtype, fast = np.float32 if X.dtype == np.float32 else np.float64, is_worth_compiling(X)
    rows = np.empty((taken.size, columns.size), dtype=dtype)

    def part(span: slice) -> None:
        for some in chunks(span, X.shape[1]):
            which = taken[some]
            shrink = ball.shrink(lengths[which], dtype)
            if fast:
                gather()(X, which, columns, ball.center, shrink, rows[some])
            else:
                z = np.subtract(X[which][:, columns], ball.center[columns], dtype=np.float64)
                rows[some] = z * shrink[:, None]

    crew.map(part, crew.spans(len(rows)))
    return rows


def scan(ball: Ball, X: NDArray[Any], crew: Crew, count: Count | None = None) -> tuple[FloatArray, FloatArray]:
    """The same for a whole table, a chunk at a time; the sums go on with what `count` finds in the lengths of a part.

    Counting beside the measuring of other parts costs next to nothing; counting afterwards does.
    """
    lengths, fast = np.empty(len(X)), is_worth_compiling(X)

    def part(span: slice) -> FloatArray:
        if fast:
            total = _compiled(ball, X[span], lengths[span])
        else:
            buffer, total = np.empty((rows_of(X.shape[1]), X.shape[1]), _precision(ball, X)), np.zeros(X.shape[1])
            for rows in chunks(span, X.shape[1]):
                lengths[rows], squares = lengths_and_squares(ball, X[rows], buffer)
                total += squares
        return total if count is None else np.concatenate([total, count(lengths[span])])

    return lengths, np.sum(crew.map(part, crew.spans(len(X))), axis=0)


def _compiled(ball: Ball, X: NDArray[Any], lengths: FloatArray) -> FloatArray:
    """Fills in the lengths; the column sums."""
    total, single = np.zeros(X.shape[1]), _precision(ball, X) == np.float32
    small, large = _NORMAL[single]
    if small**0.5 < ball.radius < large**0.5:
        eps = float(np.finfo(np.float32 if single else np.float64).eps)
        plain = 1.0 / ball.radius**2
        up = plain * (1.0 + (X.shape[1] + 8.0) * 2.0 * eps)
        if single:
            measure_single()(X, plain, up, lengths, total)
        else:
            measure()(X, ball.center, plain, up, lengths, total)
        if lengths.size == 0 or (lengths.min() > small * max(up, 1.0) and lengths.max() < large * min(up, 1.0)):
            np.sqrt(lengths, out=lengths)
            return total
    total[:] = 0.0
    for rows in chunks(slice(0, len(X)), X.shape[1]):
        lengths[rows], squares = _carefully(ball, X[rows])
        total += squares
    return total


def _carefully(ball: Ball, X: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
    """The same where squares over- or underflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        z = ball.unit(X)
        lengths = influence.norms(z, 2.0)
    if not np.all(np.isfinite(lengths)):
        raise InvalidInput(NOT_FINITE)
    z /= np.maximum(lengths, 1.0)[:, None]
    return lengths, np.einsum("ij,ij->j", z, z)
