"""Every draw of a stream, made again from its words by the rule in its description."""

import hashlib
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy.special import ndtri

from privamp.chance import exp_coins as coins
from privamp.chance.discrete import discrete_gaussian, discrete_laplace, rational_scale
from privamp.chance.exp_coins import exp_coins, geometrics, scaled_exp
from privamp.chance.keys import Key, derive, given_key
from privamp.chance.keystream import Keystream
from privamp.chance.stream import Stream
from privamp.errors import InvalidInput
from privamp.testing import seeded_stream


class Told(Stream):
    """A stream that hands out given words and counts how many were asked for."""

    __slots__ = ("asked", "left")

    def __init__(self, *words):
        super().__init__(Key.generate())
        self.left, self.asked = list(words), 0

    def words(self, n):
        self.asked += n
        found, self.left = self.left[:n], self.left[n:]
        return np.array(found + [0] * (n - len(found)), dtype=np.uint64)


def words_of(seed, n):
    return seeded_stream(seed).words(n).tolist()


# --- words


@pytest.mark.parametrize("sizes", [[1, 63, 64], [64, 1], [65, 3000], [1, 2000, 1023, 1024, 1025, 5], [20_000, 1, 1]])
def test_words_are_aes_in_counter_mode_from_zero(sizes):
    key = Key.from_bytes(bytes(range(32)))
    secret = derive(key, b"stream")
    encrypt = Cipher(algorithms.AES(secret), modes.CTR(bytes(16))).encryptor()
    expected = np.frombuffer(encrypt.update(bytes(8 * sum(sizes))), "<u8")
    stream = Stream(key)
    found = np.concatenate([stream.words(n) for n in sizes])
    assert np.array_equal(found, expected)
    assert found.dtype == np.uint64


def test_a_first_request_makes_few_words_and_a_second_one_many(monkeypatch):
    made = []
    real = Stream._generate
    monkeypatch.setattr(Stream, "_generate", lambda self, n: made.append(n) or real(self, n))
    stream = Stream(Key.from_bytes(bytes(32)))
    for n in (3, 61, 1, 1022, 1, 1024, 5000, 2):
        assert stream.words(n).size == n
    assert made == [64, 1024, 1024, 5000, 1024]
    wide = Stream(Key.from_bytes(bytes(32)))
    made.clear()
    wide.words(65)
    assert made == [1024]
    wide.words(959)
    assert made == [1024]
    wide.words(1)
    assert made == [1024, 1024]
    wide.words(1023 + 1024)
    assert made == [1024, 1024, 1024]


# --- whole numbers


@pytest.mark.parametrize("bound", [1, 2, 2**20, 2**63])
def test_powers_of_two_take_the_low_bits(bound):
    assert seeded_stream(4).below(bound, 50).tolist() == [w % bound for w in words_of(4, 50)]


def test_late_words_are_drawn_again_until_none_is_left():
    bound = 3 * 2**61
    last = 2 * bound - 1
    stream = Told(5, last + 1, last, 2**64 - 1, last + 2, 7, 9)
    assert stream.below(bound, 4).tolist() == [5, 9, bound - 1, 7]
    assert stream.asked == 7  # four; then two, of which one is late; then one
    assert Told(2**64 - 1).below(3, 1).tolist() == [0]  # 2^64 - 1 is a multiple of 3: the last word is late
    assert Told(2**64 - 2).below(3, 1).tolist() == [(2**64 - 2) % 3]


def test_few_of_many_are_first_appearances_and_most_are_a_shuffle():
    stream = Told(4, 7, 4, 1, 7, 2)
    assert stream.choose(9, 4).tolist() == [4, 7, 1, 2]
    assert stream.asked == 6
    assert Told(30, 10, 20, 5).choose(4, 3).tolist() == np.argsort([30, 10, 20, 5])[:3].tolist()
    assert Told(1, 3).choose(4, 2).tolist() == [1, 3]
    assert Told().choose(0, 0).size == 0
    for n, k in ((5, 6), (5, -1)):
        with pytest.raises(InvalidInput, match=f"k must be a whole number from 0 to {n}"):
            Told().choose(n, k)


def test_a_permutation_is_the_order_of_the_words():
    words = words_of(5, 300)
    assert seeded_stream(5).permutation(300).tolist() == sorted(range(300), key=words.__getitem__)
    tied = Told(3, 3, 1, 9, 8, 7)
    assert tied.permutation(3).tolist() == [2, 1, 0]
    assert tied.asked == 6


# --- idealised numbers


def test_uniforms_signs_normals_and_laplaces_are_functions_of_one_word():
    words = words_of(6, 400)
    unit = [((w >> 12) + 0.5) / 2.0**52 for w in words]
    sign = [-1 if w % 2 else 1 for w in words]
    assert seeded_stream(6).uniforms((20, 20)).ravel().tolist() == unit
    assert seeded_stream(6).signs(400).tolist() == sign
    assert seeded_stream(6).normals(400) == pytest.approx(ndtri(unit), rel=1e-15)
    expected = [math.log(u) * s for u, s in zip(unit, sign, strict=True)]
    assert seeded_stream(6).laplaces(400) == pytest.approx(expected, rel=1e-15)
    for bad in (-1, (2, -1), 1.5):
        with pytest.raises(InvalidInput, match="shape must be a whole number of at least 0"):
            seeded_stream(6).uniforms(bad)


@pytest.mark.parametrize("a", [0.3, 0.999, 1.0, 4.5])
def test_gammas_are_those_of_marsaglia_and_tsang(a):
    """Their algorithm, one number at a time, over the same words in the same order."""
    stream, n = seeded_stream(7), 200
    d = (a + 1.0 if a < 1.0 else a) - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    expected, todo = [0.0] * n, list(range(n))
    while todo:
        normals, uniforms = stream.normals(len(todo)).tolist(), stream.uniforms(len(todo)).tolist()
        left = []
        for place, x, u in zip(todo, normals, uniforms, strict=True):
            v = (1.0 + c * x) ** 3
            if v > 0 and math.log(u) < 0.5 * x * x + d - d * v + d * math.log(v):
                expected[place] = d * v
            else:
                left.append(place)
        assert len(left) < len(todo)
        todo = left
    if a < 1.0:
        expected = [y * u ** (1.0 / a) for y, u in zip(expected, stream.uniforms(n).tolist(), strict=True)]
    assert seeded_stream(7).gammas(a, n) == pytest.approx(expected, rel=1e-11)


# --- coins


def digits_of(g):
    """floor(2^64 e^-g), and how much of a word is left."""
    with mpmath.workdps(60):
        scaled = mpmath.exp(-mpmath.mpf(g.numerator) / g.denominator) * mpmath.mpf(2) ** 64
        return int(mpmath.floor(scaled))


@pytest.mark.parametrize("g", [Fraction(1, 3), Fraction(2), Fraction(7, 2)])
def test_only_words_beside_the_chance_are_looked_at_again(g, monkeypatch):
    """2^-38 of it on either side; whether they are decided so or so, the coin is the word below 2^64 e^-g."""
    asked = []
    real = coins._Uniform.is_below_exp
    monkeypatch.setattr(coins._Uniform, "is_below_exp", lambda self, g: asked.append(self._drawn) or real(self, g))
    edge = digits_of(g)
    near, wide = int(edge * 2.0**-38 * 0.98), int(edge * 2.0**-38 * 1.02)
    for away, is_clear in ((-wide, True), (-near, False), (near, False), (wide, True)):
        asked.clear()
        stream = Told(edge + away)
        assert exp_coins(stream, np.array([float(g)]), lambda _: g).tolist() == [away < 0]
        assert asked == ([] if is_clear else [edge + away])
        assert stream.asked == 1


def test_a_coin_of_chance_one_is_always_up():
    words = np.array([0, 5, 2**63, 2**64 - 2, 2**64 - 1], dtype=np.uint64)
    assert exp_coins(Told(*words.tolist()), np.zeros(5), lambda _: Fraction(0)).all()


@pytest.mark.parametrize("v", [1, 2, 9])
def test_geometric_numbers_count_how_far_below_one_a_word_is(v, monkeypatch):
    asked = []
    real = coins._Uniform.is_below_exp
    monkeypatch.setattr(coins._Uniform, "is_below_exp", lambda self, g: asked.append(g) or real(self, g))
    edge = digits_of(Fraction(v))
    near, wide = int(edge * 2.0**-38 * 0.98), int(edge * 2.0**-38 * 1.02)
    for away, is_clear in ((-wide, True), (-near, False), (near, False), (wide, True)):
        asked.clear()
        assert geometrics(Told(edge + away), 1).tolist() == [v if away < 0 else v - 1]
        assert (asked == []) == is_clear


def test_words_with_few_digits_are_read_to_the_end(monkeypatch):
    """Below 2^40: ln(2^64/w) is not known to 2^-38, so digits decide, and more words follow a small one."""
    asked = []
    real = coins._Uniform.is_below_exp
    monkeypatch.setattr(coins._Uniform, "is_below_exp", lambda self, g: asked.append(g) or real(self, g))
    for word, count, is_clear, words in ((2**40, 16, True, 1), (2**40 - 1, 16, False, 1), (1, 43, False, 2)):
        asked.clear()
        stream = Told(word, 2**63)
        assert geometrics(stream, 1).tolist() == [count]
        assert (asked == []) == is_clear
        assert stream.asked == words
    assert geometrics(Told(0, 2**63), 1).tolist() == [45]  # 65 ln 2 = 45.05


def test_the_share_of_an_exponential_is_bounded_to_a_few_units():
    for g in (Fraction(0), Fraction(1, 3), Fraction(10), Fraction(100), Fraction(5000)):
        for bits in (64, 192, 1024):
            low, high = scaled_exp(g, bits)
            with mpmath.workdps(700):
                truth = mpmath.exp(-mpmath.mpf(g.numerator) / g.denominator) * mpmath.mpf(2) ** bits
                assert low <= truth <= high
            assert high - low == 3  # a unit on either side of the whole part


# --- discrete noise


def plain_laplace(stream, a, b, m):
    """Algorithm 2 on m tries with the same words, in whole numbers and fractions only."""
    u = stream.below(a, m).tolist()
    words = stream.words(m).tolist()
    kept = [x for x, w in zip(u, words, strict=True) if is_up(w, Fraction(x, a))]
    counts = [geometric(w) for w in stream.words(len(kept)).tolist()]
    sizes = [(x + a * v) // b for x, v in zip(kept, counts, strict=True)]
    bits = [w >> k & 1 for w in stream.words(-(-len(sizes) // 64)).tolist() for k in bit_order()]
    return [-y if bit else y for y, bit in zip(sizes, bits, strict=False) if y or not bit]


def bit_order():
    """Bytes from the lowest on, in each the highest bit first."""
    return [8 * byte + bit for byte in range(8) for bit in range(7, -1, -1)]


def is_up(word, g):
    with mpmath.workdps(40):
        return word < mpmath.exp(-mpmath.mpf(g.numerator) / g.denominator) * mpmath.mpf(2) ** 64


def geometric(word):
    v = 0
    while is_up(word, Fraction(v + 1)):
        v += 1
    return v


def in_rounds(n, attempt):
    found = []
    while len(found) < n:
        missing = n - len(found)
        found += attempt(max(missing, 16) + missing // 2)[:missing]
    return found


SCALES = [Fraction(1, 3), Fraction(2), Fraction(7, 3), Fraction(10**6 + 1, 10)]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("n", [1, 20, 150])
def test_discrete_laplace_is_its_algorithm_in_whole_numbers(scale, n):
    stream = seeded_stream(8)
    a, b = scale.numerator, scale.denominator
    expected = in_rounds(n, lambda m: plain_laplace(stream, a, b, m))
    assert discrete_laplace(seeded_stream(8), scale, n).tolist() == expected


@pytest.mark.parametrize("sigma", SCALES)
@pytest.mark.parametrize("n", [1, 20, 150])
def test_discrete_gaussian_is_its_algorithm_in_whole_numbers(sigma, n):
    stream = seeded_stream(9)
    a, b = sigma.numerator, sigma.denominator

    def attempt(m):
        proposed = plain_laplace(stream, a, b, m)
        words = stream.words(len(proposed)).tolist()
        chances = [Fraction(abs(y) * b - a, a) ** 2 / 2 for y in proposed]
        return [y for y, w, g in zip(proposed, words, chances, strict=True) if is_up(w, g)]

    assert discrete_gaussian(seeded_stream(9), sigma, n).tolist() == in_rounds(n, attempt)


def test_many_draws_are_made_in_pieces_of_65536_tries():
    """A saved digest of version 0.2: 100 000 draws, and the word after them."""
    stream = seeded_stream(10)
    found = discrete_laplace(stream, 12.5, 100_000), discrete_gaussian(stream, 12.5, 100_000)
    text = b"".join(part.astype("<i8").tobytes() for part in found) + stream.words(1).astype("<u8").tobytes()
    assert hashlib.sha256(text).hexdigest()[:16] == "54a51e207e65de8e"


@pytest.mark.parametrize(
    ("scale", "drawn"),
    [
        (Fraction(1, 2**20), Fraction(1, 2**20)),
        (Fraction(1, 2**20 + 1), Fraction(1, 2**20)),
        (Fraction(2, 2**20 + 1), Fraction(2, 2**20)),
        (Fraction(2**50), Fraction(2**50)),
        (Fraction(2**30) + Fraction(1, 2**21), Fraction(2**50 + 2, 2**20)),
        (Fraction(2**30 - 1) + Fraction(1, 2**21), Fraction((2**30 - 1) * 2**20 + 1, 2**20)),
        (Fraction(2**49) + Fraction(1, 4), Fraction(2**49 + 1)),
        (Fraction(2**49) + Fraction(3, 4), Fraction(2**49 + 1)),
    ],
)
def test_scales_are_rounded_up_to_the_finest_fraction_that_fits(scale, drawn):
    assert rational_scale(scale) == drawn


def test_scales_beyond_2_to_the_50_are_refused():
    with pytest.raises(InvalidInput, match=r"scale must be at most 2\^50, got .* instead; use a coarser grid"):
        rational_scale(Fraction(2**50) + Fraction(1, 2))
    for call in (discrete_laplace, discrete_gaussian):
        with pytest.raises(InvalidInput, match="n must be a whole number of at least 0"):
            call(seeded_stream(1), 2.0, -1)


# --- keystream and keys


def test_a_keystream_is_the_same_in_any_pieces_of_64_kibibytes():
    whole = Keystream(seeded_stream(11)).bytes(3 * 2**16)
    pieces = Keystream(seeded_stream(11))
    assert np.array_equal(np.concatenate([pieces.bytes(2**16) for _ in range(3)]), whole)
    held = np.full(100 + 16, 7, np.uint8)
    Keystream(seeded_stream(11)).fill(held)
    assert np.array_equal(held[:100], whole[:100])


def test_a_nonce_ends_before_its_bytes_do(monkeypatch):
    monkeypatch.setattr("privamp.chance.keystream._PER_NONCE", 100)
    source = Keystream(seeded_stream(11))
    first = source.bytes(100)
    assert source._nonce == 0
    assert source._left == 0
    second = source.bytes(60)
    assert (source._nonce, source._left) == (1, 40)
    assert not np.array_equal(first[:60], second)
    source.bytes(41)  # does not fit: the next nonce begins
    assert (source._nonce, source._left) == (2, 59)


def test_a_key_is_given_or_made():
    key = Key.generate()
    assert given_key(key) is key
    assert given_key(None) != given_key(None)
    with pytest.raises(InvalidInput, match="key must be a Key, got a bytes instead"):
        given_key(bytes(32))
    assert Key.from_bytes(bytes(32)).is_kept
    assert Key.from_bytes(bytearray(32)).subkey("a").is_kept
    assert not Key.generate().is_kept
    assert not Key.generate().subkey("a").is_kept
