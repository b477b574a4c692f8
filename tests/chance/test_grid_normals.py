import hashlib
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy.special import ndtr

from privamp.chance import grid_normals as module
from privamp.chance.grid_normals import GRID_BITS, grid_normals, normal_blocks
from privamp.chance.keystream import Keystream
from privamp.testing import seeded_stream

MANY = 400_000
CELLS, BUCKETS, SCALE = module.CELLS, module._BUCKETS, module._SCALE
PLACES = 32  # of each cell, and points of each cell, in the enumeration


class Given:
    """A keystream whose bytes are written down."""

    def __init__(self, *parts):
        self._bytes = np.concatenate([np.asarray(part, dtype="<u8") for part in parts]).view(np.uint8)

    def bytes(self, n):
        assert n == self._bytes.size
        return self._bytes


def units(tables):
    return np.bincount(tables.guide, minlength=CELLS + 2)


def law(tables):
    """The mass that the algorithm gives to each cell, by enumeration of points and places in `_from_rest`."""
    counts, half = units(tables)[:CELLS], 2**63 // PLACES
    starts = zip(tables.start[:CELLS].tolist(), counts.tolist(), strict=True)
    points = [start + count * 2**48 * k // (2 * PLACES) for start, count in starts for k in range(1, 2 * PLACES, 2)]
    places = np.arange(PLACES, dtype=np.uint64) * np.uint64(half) + np.uint64(half // 2) << np.uint64(1)
    points = np.repeat(np.array(points, dtype=np.uint64), PLACES)
    source = Given(points, np.tile(places, CELLS * PLACES))
    _, accepted = module._from_rest(source, seeded_stream(0), points.size, tables)
    share = accepted.reshape(CELLS, -1).mean(axis=1)
    return tables.given / BUCKETS + share * counts * 2.0**48 / SCALE, counts * 2.0**48 / SCALE / PLACES


def follows_the_normal(tables):
    mass, error = law(tables)
    edges = ndtr(np.arange(CELLS + 1) / 128)
    truth = float(tables.height) * 128 * np.sqrt(2 * np.pi) * np.diff(edges)
    return bool(np.all(np.abs(mass - truth) <= error))


def test_the_law_of_the_algorithm_is_the_normal_one():
    assert follows_the_normal(module.curve_tables())


CHANGES = ["forgets the buckets", "wrong height", "one bucket too many", "points of half the size"]


@pytest.mark.parametrize("change", CHANGES)
def test_the_enumeration_catches_mistakes(change):
    right = module.curve_tables()
    wrong = {
        "forgets the buckets": right._replace(floor=np.zeros_like(right.floor)),
        "wrong height": right._replace(scaled=right.scaled * 1.001),
        "one bucket too many": right._replace(given=right.given + (np.arange(CELLS) == 100)),
        "points of half the size": right._replace(floor=right.floor / 2, scaled=right.scaled / 2),
    }[change]
    assert not follows_the_normal(wrong)


def test_the_tables_bound_the_curve_from_both_sides():
    """T_i below the curve, the points above the rest of it, the tail's weights above the tail: in 60 digits."""
    tables, counts = module.curve_tables(), units(module.curve_tables())
    with mpmath.workdps(60):
        height = mpmath.mpf(tables.height.numerator) / tables.height.denominator
        curve = [height * mpmath.exp(-((mpmath.mpf(i) / 128) ** 2) / 2) for i in range(CELLS + 1)]
        for i in range(CELLS):
            assert mpmath.mpf(int(tables.given[i])) / BUCKETS <= curve[i + 1]
            assert int(counts[i]) * 2**48 >= SCALE * (curve[i] - mpmath.mpf(int(tables.given[i])) / BUCKETS)
        assert mpmath.mpf(tables.tail.numerator) / tables.tail.denominator >= mpmath.exp(-32)
        assert mpmath.exp(-mpmath.mpf(8) / 128) <= mpmath.mpf(31) / 32
    assert tables.tail == tables.beyond * (1 - Fraction(31, 32)) / (tables.height * SCALE)
    assert tables.beyond <= int(counts[CELLS]) * 2**48
    assert counts.sum() == 2**16
    assert tables.given.sum() == BUCKETS - module._SLOW == BUCKETS - BUCKETS // 64
    signed = tables.first[tables.first > module.MARK] + 2**26 >> 16
    expected = np.concatenate([tables.given[::-1], tables.given])
    assert np.array_equal(np.bincount(signed, minlength=2 * CELLS), expected)


def test_unclear_points_are_decided_by_digits():
    """Points within 1 of the curve: a double cannot tell, 60 digits can."""
    tables, stream = module.curve_tables(), seeded_stream(5)
    for cell in (0, 3, 128, 700):
        for place in (0, 2**40 + 7, 2**62, 2**63 - 1):
            with mpmath.workdps(60):
                x = (mpmath.mpf(cell) + mpmath.mpf(place) / 2**63) / 128
                height = mpmath.mpf(tables.height.numerator) / tables.height.denominator
                edge = SCALE * (height * mpmath.exp(-x * x / 2) - mpmath.mpf(int(tables.given[cell])) / BUCKETS)
                v, slope = int(mpmath.floor(edge)), int(SCALE * height / 2**63) + 2
            assert module.decided(stream, cell, v - slope, place, tables)[1]
            assert not module.decided(stream, cell, v + slope, place, tables)[1]
            points = np.array([tables.start[cell] + np.uint64(max(v + d, 0)) for d in (-slope, slope)], dtype=np.uint64)
            source = Given(points, np.full(2, place << 1, dtype=np.uint64))
            assert module._from_rest(source, stream, 2, tables)[1].tolist() == [v >= slope, False]


def test_the_fraction_of_a_point_on_the_curve_is_drawn():
    """Where v + fraction straddles the curve, both answers come, in the proportion of the fraction."""
    stream, unit = seeded_stream(6), Fraction(1, 2**20)
    edge = mpmath.mpf(2) ** 20 * mpmath.exp(-mpmath.mpf(1) / 2)
    part = float(edge - mpmath.floor(edge))
    found = [module._is_below_curve(stream, Fraction(0), unit, int(edge), 128, 0) for _ in range(2000)]
    assert abs(np.mean(found) - part) < 6 * np.sqrt(part * (1 - part) / 2000)


@pytest.mark.parametrize("cell", [100, 720, 900, 1023])
def test_the_fraction_is_drawn_in_every_cell(cell):
    """The last point below the curve is accepted in the proportion of its part below, far out too."""
    tables, stream, many = module.curve_tables(), seeded_stream(11), 2000
    place = next(k for k in range(2**61, 2**62, 2**57 + 1) if 0.2 < height_of(cell, k, tables) % 1 < 0.8)
    edge = height_of(cell, place, tables)
    point = int(tables.start[cell]) + int(edge)
    source = Given(np.full(many, point, dtype=np.uint64), np.full(many, place << 1, dtype=np.uint64))
    part = float(edge % 1)
    found = module._from_rest(source, stream, many, tables)[1].mean()
    assert abs(found - part) < 6 * np.sqrt(part * (1 - part) / many)


def height_of(cell, place, tables):
    """Where the curve stands among the points of the cell, with 60 digits."""
    with mpmath.workdps(60):
        x = (mpmath.mpf(cell) + mpmath.mpf(place) / 2**63) / 128
        height = mpmath.mpf(tables.height.numerator) / tables.height.denominator
        return SCALE * (height * mpmath.exp(-x * x / 2) - mpmath.mpf(int(tables.given[cell])) / BUCKETS)


def test_numbers_beyond_8_follow_the_tail():
    tables, stream = module.curve_tables(), seeded_stream(7)
    found = []
    for place in seeded_stream(8).words(3000).tolist():
        number, is_done = module._from_tail(stream, place >> 1, tables)
        if is_done:
            found.append(number / 2**GRID_BITS)
    assert min(found) >= 8.0
    assert len(found) > 500
    uniform = ndtr(-np.array(found)) / ndtr(-8.0)  # uniform on (0, 1) under the tail's law
    assert abs(uniform.mean() - 0.5) < 6 * np.sqrt(1 / 12 / len(found))
    assert abs((uniform**2).mean() - 1 / 3) < 6 * np.sqrt(4 / 45 / len(found))


def test_draws_fit_and_mistakes_are_caught(fits_cdf):
    draws = grid_normals(seeded_stream(1), MANY)
    x = draws * 2.0**-GRID_BITS
    assert fits_cdf(x, ndtr)
    assert fits_cdf((draws & 2**16 - 1) * 2.0**-16, lambda u: u)  # the low bits are uniform
    assert fits_cdf((draws & 255) / 256 + 1 / 512, lambda u: u)
    assert not fits_cdf(x * 1.02, ndtr)
    assert not fits_cdf(x[np.abs(x) > 0.03], ndtr)


def test_the_rest_of_the_curve_is_needed():
    """Planted: buckets without a cell are drawn again, as if the steps were the curve."""
    tables = module.curve_tables()
    mass, _ = law(tables)
    steps = tables.given / tables.given.sum()
    assert np.abs(mass / mass.sum() - steps).sum() / 2 > 1e-3


def test_the_numbers_belong_to_the_key():
    """A saved digest: the same key gives the same noise on every machine and in every version."""
    draws = grid_normals(seeded_stream(3), 300_000)
    assert np.array_equal(draws, grid_normals(seeded_stream(3), 300_000))
    first = grid_normals(seeded_stream(3), module.BLOCK)
    assert np.array_equal(draws[: module.BLOCK], first)
    digest = hashlib.sha256(draws.astype("<i8").tobytes()).hexdigest()
    assert digest[:16] == "c32b94320b21cea1"


def test_any_number_of_them():
    for n in (0, 1, 5, module._PIECE + 1):
        assert grid_normals(seeded_stream(4), n).size == n
    assert list(normal_blocks(seeded_stream(4), 0)) == []


def test_the_keystream_is_aes_in_counter_mode(monkeypatch):
    """Also where it goes on under the next nonce."""
    monkeypatch.setattr("privamp.chance.keystream._PER_NONCE", 2**16)
    words = seeded_stream(9).words(4).astype("<u8").tobytes()
    found = Keystream(seeded_stream(9)).bytes(3 * 2**16 - 40).tobytes()
    expected = b""
    for nonce in range(3):
        start = nonce.to_bytes(12, "big") + (2).to_bytes(4, "big")
        expected += Cipher(algorithms.AES(words), modes.CTR(start)).encryptor().update(bytes(2**16))
    assert found == expected[: len(found)]
