from fractions import Fraction

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from privamp.chance.keyed import below, keep, keyed_numbers, keyed_pairs, smallest, threshold
from privamp.chance.keys import Key, derive
from privamp.errors import InvalidInput

KEY = Key.from_bytes(bytes(range(32)))
IDS = np.arange(100_000, dtype=np.uint64)
GOLDEN_WHOLE = [18187559963735246914, 15687451621256389076]
GOLDEN_TEXT = [13831590124760404463, 16470822464933338247]


def test_whole_numbers_are_aes_of_id_and_stage():
    encrypt = Cipher(algorithms.AES(derive(KEY, b"whole-number ids")), modes.ECB()).encryptor()
    for number, stage in [(0, 0), (7, 0), (7, 3), (2**64 - 1, 2**64 - 1)]:
        block = encrypt.update(number.to_bytes(8, "little") + stage.to_bytes(8, "little"))
        high, low = keyed_pairs(KEY, np.array([number], dtype=np.uint64), stage)
        assert high[0] == int.from_bytes(block[:8], "little")
        assert low[0] == int.from_bytes(block[8:], "little")


def chained_aes(text: str, stage: int) -> bytes:
    """CBC-MAC by the library's own CBC mode: the last block of the padded message, length first."""
    data = text.encode()
    message = stage.to_bytes(8, "little") + len(data).to_bytes(8, "little") + data + bytes(-len(data) % 16)
    encrypt = Cipher(algorithms.AES(derive(KEY, b"text ids, AES")), modes.CBC(bytes(16))).encryptor()
    return encrypt.update(message)[-16:]


def test_text_is_aes_chained_over_stage_length_and_utf8():
    texts = ["", "é7", "x" * 500, "a", "0123456789abcdef", "0123456789abcdefg", "12345678", "123456789", "ü" * 24]
    for stage in (0, 5):
        for piece in ([text] for text in texts), [texts], [[text for text in texts if text.isascii()]]:
            for some in piece:
                high, low = keyed_pairs(KEY, np.array(some), stage)
                expected = [chained_aes(text, stage) for text in some]
                assert high.tolist() == [int.from_bytes(block[:8], "little") for block in expected]
                assert low.tolist() == [int.from_bytes(block[8:], "little") for block in expected]


def test_padding_and_length_tell_texts_apart():
    texts = ["a", "a\0b", "a\0\0b", "", "0" * 16, "0" * 15, "0" * 17, "0" * 32]
    assert len(set(keyed_numbers(KEY, np.array(texts)).tolist())) == len(texts)


def test_the_numbers_never_change_between_versions():
    """Made by this function in version 0.1.0; a change would draw other samples under stored keys."""
    assert keyed_numbers(KEY, IDS[:2], 1).tolist() == GOLDEN_WHOLE
    assert keyed_numbers(KEY, np.array(["a", "b"]), 1).tolist() == GOLDEN_TEXT


@pytest.mark.parametrize("ids", [IDS[:40_000], IDS[:20_000].astype(str)], ids=["whole", "text"])
def test_a_number_depends_on_its_own_id_only(ids):
    at_once = keyed_numbers(KEY, ids, 2)
    for cut in (1, 16_383, 16_384, 16_385):
        parts = [keyed_numbers(KEY, ids[:cut], 2), keyed_numbers(KEY, ids[cut:], 2)]
        assert np.array_equal(np.concatenate(parts), at_once)
    assert np.array_equal(keyed_numbers(KEY, ids[::-1], 2), at_once[::-1])
    high, low = keyed_pairs(KEY, ids, 2)
    assert np.array_equal(high, at_once)
    assert not np.any(high == low)


def test_key_stage_and_kind_of_id_all_count():
    columns = [
        keyed_numbers(KEY, IDS[:1000]),
        keyed_numbers(KEY, IDS[:1000], 1),
        keyed_numbers(KEY.subkey("other"), IDS[:1000]),
        keyed_numbers(KEY, IDS[:1000].astype(str)),
    ]
    assert len(np.unique(np.concatenate(columns))) == 4000


def test_the_representation_of_an_id_does_not_count():
    expected = keyed_numbers(KEY, IDS[:100])
    for dtype in (np.int8, np.uint16, np.int64, ">u8"):
        assert np.array_equal(keyed_numbers(KEY, IDS[:100].astype(dtype)), expected)
    text = IDS[:100].astype(str)
    for other in (text.astype("U300"), text.astype(object)):
        assert np.array_equal(keyed_numbers(KEY, other), keyed_numbers(KEY, text))
    lone = np.array(["\ud800", "a"])
    assert keyed_numbers(KEY, lone)[1] == keyed_numbers(KEY, lone[1:])[0]


@pytest.mark.parametrize(
    "bad",
    [
        np.array([-1, 2]),
        np.array([1.0]),
        np.array([True]),
        np.array([b"a"]),
        np.array([1, "a"], dtype=object),
        np.array(["a\0"], dtype=object),
        np.zeros((2, 2), np.uint64),
        [1, 2],
    ],
)
def test_ids_that_could_collide_are_refused(bad):
    with pytest.raises(InvalidInput, match="id"):
        keyed_numbers(KEY, bad)


def test_empty():
    assert keyed_numbers(KEY, IDS[:0]).size == 0
    assert keyed_numbers(KEY, np.array([], dtype=str)).size == 0


def test_bad_stage():
    with pytest.raises(InvalidInput, match="stage"):
        keyed_numbers(KEY, IDS[:1], -1)


@pytest.mark.parametrize("shift", [0, 29, 58])
def test_numbers_are_uniform_and_a_biased_twin_is_caught(fits, shift):
    def cells(numbers):
        return ((numbers >> np.uint64(shift)) & np.uint64(63)).astype(int)

    assert fits(cells(keyed_numbers(KEY, IDS)), np.full(64, 1 / 64))
    assert fits(cells(keyed_numbers(KEY, IDS) ^ keyed_numbers(KEY, IDS, 1)), np.full(64, 1 / 64))
    assert fits(cells(keyed_numbers(KEY, IDS[:30_000].astype(str))), np.full(64, 1 / 64))
    twin = keyed_numbers(KEY, IDS) | (keyed_numbers(KEY, IDS, 1) & keyed_numbers(KEY, IDS, 2))
    assert not fits(cells(twin), np.full(64, 1 / 64))


def test_thresholds():
    assert threshold(0) == 0
    assert threshold(1) == threshold(1.0) == 2**64
    assert threshold(2.0**-64) == 1
    assert threshold(2.0**-65) == threshold(5e-324) == 0
    assert threshold(1 - 2.0**-53) == 2**64 - 2**11
    assert threshold(Fraction(1, 3)) == 2**64 // 3
    assert threshold(1 - Fraction(1, 2**70)) == 2**64 - 1
    for bad in (-0.1, 1.1, float("nan"), "1"):
        with pytest.raises(InvalidInput, match="probability"):
            threshold(bad)


EXTREMES = np.array([0, 1, 2, 2**63, 2**64 - 2**11 - 1, 2**64 - 2**11, 2**64 - 1], dtype=np.uint64)


def test_certain_keeps_all_and_impossible_none():
    n = len(EXTREMES)
    for one, zero in [(1, 0), (1.0, 0.0), (np.ones(n), np.zeros(n)), (Fraction(1), Fraction(0))]:
        assert keep(EXTREMES, one).all()
        assert not keep(EXTREMES, zero).any()
    assert keep(EXTREMES, 2.0**-64).tolist() == [True] + [False] * 6
    assert keep(EXTREMES, 1 - 2.0**-53).tolist() == [True] * 5 + [False] * 2


@given(st.floats(0, 1))
def test_comparison_is_exact_at_the_border(p):
    limit = int(Fraction(p) * 2**64)
    assert threshold(p) == limit
    border = [x for x in (limit - 2, limit - 1, limit, limit + 1, 0, 2**64 - 1) if 0 <= x < 2**64]
    numbers = np.array(border, dtype=np.uint64)
    expected = [x < limit for x in border]
    assert keep(numbers, p).tolist() == expected
    assert keep(numbers, np.full(len(border), p)).tolist() == expected


def test_floats_would_get_it_wrong():
    """Broken twin: comparing as floats drops the certain record 2^64 - 1."""
    assert keep(EXTREMES[-1:], 1.0)[0]
    assert not (EXTREMES[-1:].astype(float) * 2.0**-64 < 1.0)[0]


@pytest.mark.parametrize("bad", [[0.5, np.nan], [-0.1, 0.5], [0.5, 1.5], [1.0, 1.0, 1.0]])
def test_bad_probabilities(bad):
    with pytest.raises(InvalidInput, match="probability"):
        keep(EXTREMES[:2], np.array(bad))


def test_kept_share(fits):
    kept = keep(keyed_numbers(KEY, IDS), 0.01)
    assert fits(kept.astype(int), [0.99, 0.01])
    assert not fits(keep(keyed_numbers(KEY, IDS), 0.013).astype(int), [0.99, 0.01])


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2**64 - 1)), max_size=40), st.data())
def test_smallest_sorts_by_pair_even_with_ties(pairs, data):
    k = data.draw(st.integers(0, len(pairs)))
    high = np.array([a for a, _ in pairs], dtype=np.uint64)
    low = np.array([b for _, b in pairs], dtype=np.uint64)
    chosen = smallest(high, low, k)
    assert [pairs[i] for i in chosen] == sorted(pairs)[:k]
    assert len(set(chosen.tolist())) == k


def test_smallest_in_bulk():
    high, low = keyed_pairs(KEY, IDS)
    order = np.lexsort((low, high))
    for k in (1, 1000, 60_000, len(IDS)):
        assert np.array_equal(smallest(high, low, k), order[:k])
    with pytest.raises(InvalidInput, match="k must"):
        smallest(high, low, len(IDS) + 1)


@pytest.mark.parametrize("count", [0, 1, 64, 65, 16383, 16384, 16385, 50_000])
@pytest.mark.parametrize("limit", [0, 1, 2**57, 2**63 + 1, 2**64 - 1, 2**64])
def test_below_is_comparing_all_numbers(count, limit):
    ids = np.arange(2**40, 2**40 + count, dtype=np.uint64)
    expected = [k for k, number in enumerate(keyed_numbers(KEY, ids).tolist()) if number < limit]
    assert below(KEY, ids, limit).tolist() == expected
    assert below(KEY, range(2**40, 2**40 + count), limit).tolist() == expected
    texts = ids[:500].astype(str)
    assert below(KEY, texts, limit).tolist() == np.flatnonzero(keep(keyed_numbers(KEY, texts), limit / 2**64)).tolist()


def test_below_is_exact_at_the_limit():
    numbers = keyed_numbers(KEY, IDS)
    middle = int(np.sort(numbers)[500])
    assert below(KEY, IDS, middle).size == 500
    assert below(KEY, IDS, middle + 1).size == 501
