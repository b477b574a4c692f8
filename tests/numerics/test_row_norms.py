"""A record's norm and its clipped row depend on that record alone, bit for bit, and every record has them."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest

from privamp.numerics.row_norms import clipped, finite, norms
from privamp.numerics.whole_sums import clipped_total, toward_zero

PS = [1.0, 1.5, 2.0, 3.0, 64.0, 3000.0, math.inf]
LARGEST = np.finfo(np.float64).max
ODD = [0.0, -0.0, 5e-324, -5e-324, 2.0**-1022, 1e-200, 1e200, LARGEST, -LARGEST, math.inf, -math.inf, math.nan, 1.0]


def table(width, rows=300, seed=3):
    """Ordinary rows, and among them rows of odd values."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, width))
    x[:: max(rows // 40, 1)] = rng.choice(ODD, size=x[:: max(rows // 40, 1)].shape)
    return x


def bits(x):
    return np.ascontiguousarray(x).view(np.uint64)


def layouts(x):
    """The same rows in other memory."""
    wide = np.zeros((len(x), 2 * x.shape[1] + 1), x.dtype)
    wide[:, 1::2] = x
    bytes_ = np.zeros(x.nbytes + 1, np.uint8)
    crooked = bytes_[1:].view(x.dtype).reshape(x.shape) if x.size else x.copy()
    crooked[:] = x
    reverse = x[::-1].copy()[::-1]
    return {"C": x.copy(), "F": np.asfortranarray(x), "strided": wide[:, 1::2], "unaligned": crooked, "back": reverse}


@pytest.mark.parametrize("width", [1, 2, 3, 7, 8, 16, 17, 33, 130])
@pytest.mark.parametrize("p", PS)
def test_a_row_is_measured_and_clipped_the_same_alone_and_among_others(width, p):
    x = table(width)
    size, short = bits(norms(x, p)), bits(clipped(x, 1.25, p))
    for i in range(0, len(x), 3 if width < 20 else 11):
        assert bits(norms(x[i : i + 1], p))[0] == size[i]
        assert np.array_equal(bits(clipped(x[i : i + 1], 1.25, p))[0], short[i])
    order = np.random.default_rng(4).permutation(len(x))
    assert np.array_equal(bits(norms(x[order], p)), size[order])
    assert np.array_equal(bits(clipped(x[order], 1.25, p)), short[order])
    for first, last in [(0, 1), (0, 2), (1, 8), (3, 300), (17, 81), (128, 257)]:
        assert np.array_equal(bits(norms(x[first:last], p)), size[first:last])
    for name, again in layouts(x).items():
        assert np.array_equal(bits(norms(again, p)), size), name
        assert np.array_equal(bits(clipped(again, 1.25, p)), short), name
    limits = np.random.default_rng(5).uniform(0.0, 3.0, len(x))
    each = bits(clipped(x, limits, p))
    for i in range(0, len(x), 29):
        assert np.array_equal(bits(clipped(x[i : i + 1], limits[i], p))[0], each[i])


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", "longdouble", "i1", "i8", "u8", "bool"])
def test_tables_of_other_types_count_as_their_doubles(kind):
    x = np.nan_to_num(table(16, 500)).clip(-2.0, 2.0) * 50.0
    x = np.abs(x).astype(kind) if kind == "u8" else x.astype(kind)
    doubles = x.astype(np.float64)
    for p in (1.0, 2.0, math.inf):
        for again in layouts(x).values():
            assert np.array_equal(bits(norms(again, p)), bits(norms(doubles, p)))
            assert np.array_equal(bits(clipped(again, 2.0, p)), bits(clipped(doubles, 2.0, p)))


def test_many_rows_are_measured_like_few():
    """Across every boundary a chunk could have."""
    x = np.random.default_rng(6).normal(size=(70_001, 3))
    size = norms(x, 2.0)
    x[[5, 16_384, 40_000]] = [[0.0] * 3, [math.nan] * 3, [LARGEST] * 3]
    untouched = np.delete(np.arange(len(x)), [5, 16_384, 40_000])
    assert np.array_equal(bits(norms(x, 2.0)[untouched]), bits(size[untouched]))
    gone = np.delete(x, 7, axis=0)
    assert np.array_equal(bits(norms(gone, 2.0)[8:]), bits(norms(x, 2.0)[9:]))


def test_a_row_wider_than_a_chunk_is_measured_too():
    wide = np.ones((3, 40_000))
    assert norms(wide, 1.0) == pytest.approx(40_000.0)
    assert np.all(norms(clipped(wide, 5.0, 1.0), 1.0) <= 5.0)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("width", [1, 2, 5, 40])
def test_norms_are_never_too_short_nor_clipped_rows_too_long(p, width):
    x = table(width, 120)
    for radius in (0.75, 3e-200, 1e150):
        short = clipped(x, radius, p)
        for row, size, after in zip(finite(x).tolist(), norms(x, p).tolist(), short.tolist(), strict=True):
            exact = sum(abs(Fraction(v)) ** int(p) for v in row)
            assert math.isinf(size) or exact <= Fraction(size) ** int(p)
            assert sum(abs(Fraction(v)) ** int(p) for v in after) <= Fraction(radius) ** int(p)
            if exact <= Fraction(radius * (1 - 1e-12)) ** int(p):
                assert after == row
        assert np.all(norms(short, p) <= radius)


def test_long_rows_keep_their_direction_whatever_their_size():
    for top in (1e3, 1e160, 1e300, LARGEST):
        short = clipped(np.array([[top, -top / 2, 0.0]]), 3.0, 2.0)
        assert np.allclose(short, np.array([[2.0, -1.0, 0.0]]) * 3.0 / math.sqrt(5.0), rtol=1e-12)
    assert np.allclose(clipped(np.array([[math.inf, 5.0, math.nan, -math.inf]]), 1.0, 1.0), [[0.5, 0.0, 0.0, -0.5]])


def test_every_value_has_an_answer_and_nothing_is_said():
    x = np.array([[math.nan, 3.0], [math.inf, 1.0], [LARGEST, LARGEST], [5e-324, 0.0]])
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        assert norms(x, 2.0).tolist()[1:3] == [math.inf, math.inf]
        assert norms(x, 2.0)[0] == pytest.approx(3.0)
        assert np.all(np.isfinite(clipped(x, 2.0, 2.0)))
        assert clipped(x[:, 0], 2.0).tolist() == [0.0, 2.0, 2.0, 5e-324]
        assert norms(np.empty((0, 3)), 2.0).shape == (0,)
        assert clipped(np.empty((0, 3)), 1.0).shape == (0, 3)
        assert norms(np.empty((2, 0)), 2.0).tolist() == [0.0, 0.0]
        assert clipped(np.zeros((2, 2)), 0.0).tolist() == [[0.0, 0.0]] * 2


def test_the_old_formulas_would_be_caught():
    """Negative control: one formula for a whole chunk, or NumPy's own sums, give a row other bits beside others."""

    def by_chunk(x):
        size = np.sqrt(np.einsum("ij,ij->i", x, x))
        if not np.all((size > 1e-140) & (size < 1e140)):
            top = np.max(np.abs(x), axis=1, initial=0.0)
            scale = np.where((top > 0) & np.isfinite(top), top, 1.0)
            size = scale * np.sqrt(np.sum((x / scale[:, None]) ** 2, axis=1))
        return size

    x = np.random.default_rng(7).normal(size=(2000, 16))
    with_zero = np.concatenate([x, np.zeros((1, 16))])
    assert np.count_nonzero(bits(by_chunk(with_zero)[:-1]) != bits(by_chunk(x))) > 100
    assert not np.array_equal(bits(np.sum(x, axis=1)), bits(np.sum(np.asfortranarray(x), axis=1)))


@pytest.mark.parametrize("p", [1.0, 2.0])
@pytest.mark.parametrize("grid", [2.0**-30, 2.0**-990, 8.0])
def test_a_total_is_the_sum_of_what_rows_add_alone(p, grid):
    """Modulo 2^64, for more rows than are added at once, with weights and counts, in any memory."""
    x, rng = table(7, rows=10_000), np.random.default_rng(6)
    weights, counts = np.where(rng.random(len(x)) < 0.5, 1.0, rng.uniform(1.0, 1e6, len(x))), rng.integers(0, 4, len(x))
    alone = toward_zero(clipped(x, 1.25, p), grid, weights) * counts[:, None]
    for name, again in layouts(x).items():
        assert np.array_equal(clipped_total(again, 1.25, p, grid, weights, counts), alone.sum(axis=0)), name
    for i in range(0, len(x), 997):
        some = slice(i, i + 1)
        assert np.array_equal(clipped_total(x[some], 1.25, p, grid, weights[some], counts[some]), alone[i])
    assert clipped_total(x[:, 0], 1.25, p, grid, weights, counts).shape == ()
    assert np.array_equal(clipped_total(x[:0], 1.25, p, grid, weights[:0], counts[:0]), np.zeros(7))
