"""Standard normals rounded down to multiples of 2^-31, exactly: as whole numbers, without a float in the result.

|x| is cut into cells of width w = 2^-7. Four bytes give a bucket (16 bits) and a place in the cell (16 bits), a fifth
one refines the place. Most buckets belong to a cell and a sign: T_i of 2^15 to cell i, so few that T_i/2^15 is at most
h e^{-x^2/2} everywhere in the cell, for a fixed rational h. A share 2^-6 of the buckets belongs to no cell. There one
more word is a point under the rest of the curve: E_i of its 2^64 values belong to cell i, at least
2^70 (h e^{-(iw)^2/2} - T_i/2^15), and the value v among them is accepted at x if v < 2^70 (h e^{-x^2/2} - T_i/2^15).
Otherwise everything is drawn again. As 2^64 = 2^70 2^-6, the density of what is accepted is proportional to e^{-x^2/2}
(proof in docs/exact_noise.md). Beyond 8, weights a (31/32)^j take the place of the cells' heights.

Doubles only say which comparisons are clear. The others (about one in 2^40) are decided by as many digits as they
need, of x too, whose bits are drawn on demand. So nothing depends on rounding or on the machine.
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import compiled_normals
from .exp_coins import scaled_exp
from .keystream import Keystream
from .stream import Stream

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Words = NDArray[np.uint64]
Bytes = NDArray[np.uint8]

GRID_BITS = 31  # a unit is 2^-31 standard deviations
BLOCK = 2**18  # numbers made together: part of the definition, since a block's further words follow its first ones
_PIECE = 2**15  # stays in cache
CELLS = 1024  # up to 8
WIDTH = 2.0**-7
_BUCKETS = 2**15  # of a sign
_SLOW = 512  # of them belong to no cell
_SCALE = 2**70
_TOP = np.uint64(48)  # the high 16 bits of a point say which cell it belongs to
_RATIO = Fraction(31, 32)  # at least e^{-8 w}
MARK = -(2**30)
_MARGIN = 2.0**-42  # of the curve at the cell's inner end: far above the errors of exp, x and v as doubles; at least 2,
# because v has a fraction that is not drawn yet


class CurveTables(NamedTuple):
    """How the curve is cut into buckets and points."""

    first: NDArray[np.int32]  # bucket -> the first number of its cell, in units of 2^-23
    guide: Integers  # high bits of a point -> cell; CELLS for the tail, then for nothing
    start: Words  # the first point of a cell
    given: Integers  # T_i
    floor: Floats  # 2^70 T_i / 2^15
    margin: Floats
    height: Fraction  # h
    scaled: float  # 2^70 h
    beyond: int  # points of the tail
    tail: Fraction  # a


@cache
def curve_tables() -> CurveTables:
    """Computed once."""
    inner = np.exp(-0.5 * (np.arange(CELLS + 1) * WIDTH) ** 2)
    tail = float(inner[-1]) / (1.0 - float(_RATIO))
    # every cell's points are a multiple of 2^48, so up to 2^48 more than it needs
    spare = (CELLS + 1) * 2.0**48 / _SCALE
    height = Fraction(int(2**50 * (1.0 - spare) * (1.0 - 1e-10) / (float(inner[:-1].sum()) + tail)), 2**50)
    scaled = float(height * _SCALE)
    given = _trimmed(np.floor(_BUCKETS * float(height) * inner[1:] * (1.0 - 1e-12)).astype(np.int64))
    tops = [int(scaled * value * (1.0 + 1e-12)) + 1 for value in inner[:-1].tolist()]
    beyond = int(scaled * tail * (1.0 + 1e-12)) + 1
    needed = [top - t * (_SCALE // _BUCKETS) for top, t in zip(tops, given.tolist(), strict=True)]
    units = np.array([-(-weight // 2**48) for weight in [*needed, beyond]])
    units = np.append(units, 2**16 - units.sum())
    cells = np.repeat(np.arange(CELLS), given) << 16
    return CurveTables(
        first=np.concatenate([cells, -cells - 2**16, np.full(2 * _SLOW, MARK)]).astype(np.int32),
        guide=np.repeat(np.arange(CELLS + 2), units),
        start=(np.cumsum(units) - units).astype(np.uint64) << _TOP,
        given=given,
        floor=np.append(given, [0, 0]) * float(_SCALE // _BUCKETS),
        margin=np.maximum(scaled * np.append(inner[:-1], [1.0, 1.0]) * _MARGIN, 2.0),
        height=height,
        scaled=scaled,
        beyond=beyond,
        tail=beyond * (1 - _RATIO) / (height * _SCALE),
    )


def _trimmed(given: Integers) -> Integers:
    """With 2^15 - _SLOW buckets in all: what is too many is taken from the first cells in turn."""
    surplus = int(given.sum()) - (_BUCKETS - _SLOW)
    return given - np.bincount(np.arange(surplus) % (CELLS // 4), minlength=CELLS)


def grid_normals(stream: Stream, n: int) -> Integers:
    """Return `n` whole numbers, floor(2^31 x) for independent standard normal x."""
    found = np.empty(n, np.int64)
    for at, coarse, fine in normal_blocks(stream, n):
        found[at : at + coarse.size] = coarse.astype(np.int64) << 8 | fine
    return found


def normal_blocks(stream: Stream, n: int) -> Iterator[tuple[int, NDArray[np.int32], Bytes]]:
    """The same as (place, a, b) for blocks of 256 a + b; their arrays are overwritten by the next block."""
    source, tables = Keystream(stream), curve_tables()
    size = min(n, BLOCK)
    coarse, fine = np.empty(size, np.int32), np.empty(size, np.uint8)
    held, buckets = np.empty(5 * _PIECE + 16, np.uint8), np.empty(_PIECE, np.int64)
    by_bytes = _compiled if compiled_normals.is_worth_compiling(n) else _by_bytes
    for start in range(0, n, BLOCK):
        a, b = coarse[: n - start], fine[: n - start]
        todo = [np.empty(0, np.int64)]
        for at in range(0, a.size, _PIECE):
            piece = a[at : at + _PIECE]
            source.fill(held[: 5 * piece.size + 16])
            slow = by_bytes(held[: 5 * piece.size], buckets[: piece.size], piece, b[at : at + _PIECE], tables)
            todo.append(slow + at)
        _finish(source, stream, a, b, np.concatenate(todo), tables)
        yield start, a, b


def _compiled(given: Bytes, slow: Integers, coarse: NDArray[np.int32], fine: Bytes, tables: CurveTables) -> Integers:
    """The same as `_by_bytes` in one pass."""
    n = coarse.size
    words = given[: 4 * n].view("<u4")
    found = compiled_normals.by_bytes()(words, given[4 * n :], tables.first, MARK // 2, coarse, fine, slow)
    return slow[:found]


def _by_bytes(given: Bytes, buckets: Integers, coarse: NDArray[np.int32], fine: Bytes, tables: CurveTables) -> Integers:
    """A number for each five bytes, or one far below all where the bucket belongs to no cell; the places of those."""
    n = coarse.size
    words = given[: 4 * n].view("<u4")
    np.right_shift(words, 16, out=buckets)
    np.take(tables.first, buckets, out=coarse, mode="clip")
    np.bitwise_and(words, 2**16 - 1, out=words)
    np.add(coarse, words.view("<i4"), out=coarse)
    fine[:] = given[4 * n :]
    return np.flatnonzero(coarse < MARK // 2)


def _finish(
    source: Keystream, stream: Stream, coarse: NDArray[np.int32], fine: Bytes, todo: Integers, tables: CurveTables
) -> None:
    """Draw the numbers at `todo` under the rest of the curve, or again."""
    while todo.size:
        numbers, is_done = _from_rest(source, stream, todo.size, tables)
        coarse[todo], fine[todo] = numbers >> 8, numbers & 255
        again = todo[~is_done]
        n = again.size
        a, b = np.empty(n, np.int32), np.empty(n, np.uint8)
        slow = _by_bytes(source.bytes(5 * n), np.empty(n, np.int64), a, b, tables)
        coarse[again], fine[again] = a, b
        todo = again[slow]


def _from_rest(source: Keystream, stream: Stream, n: int, tables: CurveTables) -> tuple[Integers, NDArray[np.bool_]]:
    """Numbers under the rest of the curve, and which of them are accepted."""
    words = source.bytes(16 * n).view("<u8")
    points, places = words[:n], words[n:]
    cells = tables.guide[points >> _TOP]
    offsets = points - tables.start[cells]
    place = places >> np.uint64(1)
    v = offsets.astype(np.float64)
    x = cells * WIDTH + place.astype(np.float64) * (WIDTH * 2.0**-63)
    excess = tables.scaled * np.exp(-0.5 * x * x) - tables.floor[cells] - v
    margin = tables.margin[cells]
    is_cell = cells < CELLS
    is_done = is_cell & (excess > margin)
    numbers = cells << 24 | (place >> np.uint64(39)).astype(np.int64)
    for i in np.flatnonzero((is_cell & (np.abs(excess) <= margin)) | (cells == CELLS)).tolist():
        numbers[i], is_done[i] = decided(stream, int(cells[i]), int(offsets[i]), int(place[i]), tables)
    return numbers ^ -(places & np.uint64(1)).astype(np.int64), is_done


def decided(stream: Stream, cell: int, v: int, place: int, tables: CurveTables) -> tuple[int, bool]:
    """The number at a point v of a cell or of the tail, without its sign, and whether it is accepted, exactly."""
    if cell == CELLS:
        return _from_tail(stream, place, tables) if v < tables.beyond else (0, False)
    start = Fraction(int(tables.given[cell]), _BUCKETS) / tables.height
    is_below = _is_below_curve(stream, start, 1 / (tables.height * _SCALE), v, cell, place)
    return cell << 24 | place >> 39, is_below


def _from_tail(stream: Stream, place: int, tables: CurveTables) -> tuple[int, bool]:
    """A number beyond 8, and whether it is accepted."""
    cell, height = CELLS, tables.tail
    while int(stream.below(_RATIO.denominator, 1)[0]) < _RATIO.numerator:
        cell, height = cell + 1, height * _RATIO
    v = int(stream.words(1)[0])
    return cell << 24 | place >> 39, _is_below_curve(stream, Fraction(0), height / 2**64, v, cell, place)


def _is_below_curve(stream: Stream, start: Fraction, unit: Fraction, v: int, cell: int, place: int) -> bool:
    """Whether start + unit (v + a fraction) < e^{-x^2/2}, for x in the cell at `place` of 2^63 and a fraction.

    Both fractions are uniform; their bits are drawn as they are needed.
    """
    bits = 0
    while True:
        low = start + unit * Fraction(v, 2**bits)
        near, far = (((cell + Fraction(place + end, 2 ** (63 + bits))) / 128) ** 2 / 2 for end in (0, 1))
        digits = 192 + bits
        if low + unit / 2**bits <= Fraction(scaled_exp(far, digits)[0], 2**digits):
            return True
        if low >= Fraction(scaled_exp(near, digits)[1], 2**digits):
            return False
        more = [int(word) for word in stream.words(2)]
        v, place, bits = v << 64 | more[0], place << 64 | more[1], bits + 64
