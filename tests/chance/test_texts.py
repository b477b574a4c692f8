"""Texts as bytes: the same ids and the same numbers as arrays of Python strings."""

import pickle

import numpy as np
import pytest

from privamp.chance.keyed import keyed_numbers, keyed_pairs
from privamp.chance.texts import Texts
from privamp.errors import InvalidInput
from privamp.testing import seeded_key

KEY = seeded_key(11)
IDS = ["", "a", "x" * 15, "x" * 16, "x" * 17, "é漢😀", "12\034", "0123456789abcdef" * 3, "long " * 300, "\ud800"]


def objects(texts):
    found = np.empty(len(texts), dtype=object)
    found[:] = texts
    return found


def packed(texts):
    pieces = [text.encode("utf-8", "surrogatepass") for text in texts]
    ends = np.cumsum([3, *map(len, pieces)])
    return Texts.of_bytes(np.frombuffer(b"???" + b"".join(pieces) + b"!!!", np.uint8), ends.astype(np.int32))


@pytest.mark.parametrize("stage", [0, 9])
def test_bytes_and_strings_have_the_same_numbers(stage):
    for ours, theirs in zip(keyed_pairs(KEY, packed(IDS), stage), keyed_pairs(KEY, objects(IDS), stage), strict=True):
        assert np.array_equal(ours, theirs)


def test_slices_masks_and_positions_pick_the_same_texts():
    texts, whole = packed(IDS), keyed_numbers(KEY, objects(IDS))
    mask = np.arange(len(IDS)) % 3 == 1
    for which in (slice(2, 7), slice(None, None, -1), mask, np.array([4, 4, 0, 8]), slice(0, 0)):
        assert np.array_equal(keyed_numbers(KEY, texts[which]), whole[which])
        assert texts[which].tolist() == objects(IDS)[which].tolist()
        assert texts[which].size == len(texts[which]) == texts[which].shape[0]


def test_numpy_makes_strings_of_them():
    assert np.asarray(packed(IDS)).tolist() == IDS
    assert np.concatenate([packed(IDS), packed(["b"])]).tolist() == [*IDS, "b"]


def test_fixed_width_text_of_any_byte_order_and_stride_has_the_same_numbers():
    texts = ["", "a", "bc", "12345678901234567", "a\0b"]
    expected = keyed_numbers(KEY, objects(texts))
    for array in (np.array(texts), np.array(texts).astype(">U20"), np.repeat(np.array(texts), 2)[::2]):
        assert np.array_equal(keyed_numbers(KEY, array), expected)


def test_a_trailing_nul_is_refused_in_every_form():
    for ids in (lambda: packed(["a", "b\0"]), lambda: keyed_numbers(KEY, objects(["a", "b\0"]))):
        with pytest.raises(InvalidInput, match="NUL"):
            ids()


def test_bytes_that_are_no_utf8_stay_apart():
    odd = [b"\xff", b"\xfe", b"\xc3", b"ok"]
    texts = Texts.of_bytes(np.frombuffer(b"".join(odd), np.uint8), np.cumsum([0, *map(len, odd)]))
    assert len(set(keyed_numbers(KEY, texts).tolist())) == len(set(texts.tolist())) == 4


def test_what_stands_behind_a_text_does_not_count():
    apart = keyed_numbers(KEY, packed(["abc", "def"]))
    assert keyed_numbers(KEY, packed(["abc"]))[0] == apart[0] == keyed_numbers(KEY, packed(["abc", "zzz"]))[0]


def test_a_forgotten_mask_would_be_seen(monkeypatch):
    """The planted mistake: without the mask the bytes of the next text count."""
    from privamp.chance import keyed_text

    monkeypatch.setattr(keyed_text, "_LOW_BYTES", np.full((17, 2), 2**64 - 1, dtype=np.uint64))
    assert keyed_numbers(KEY, packed(["abc", "def"]))[0] != keyed_numbers(KEY, packed(["abc", "zzz"]))[0]


def test_no_text_holds_no_bytes():
    """An empty part of a batch is kept and sent on: not with all ids of the batch in it."""
    assert len(pickle.dumps(packed(["x" * 1000])[:0])) < 1000
    assert keyed_numbers(KEY, packed(IDS)[:0]).size == 0
