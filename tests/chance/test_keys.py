import copy
import pickle
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privamp.chance.keys import Key
from privamp.errors import InvalidInput

SECRET = bytes(range(32))
KEY = Key.from_bytes(SECRET)
LABELS = st.lists(st.one_of(st.text(), st.integers(), st.binary()), min_size=1, max_size=4)


def test_same_bytes_same_key_and_generate_is_fresh():
    assert Key.from_bytes(SECRET) == KEY
    assert hash(Key.from_bytes(SECRET)) == hash(KEY)
    assert KEY.secret_bytes() == SECRET
    assert Key.generate() != Key.generate()
    assert len(Key.generate().secret_bytes()) == 32
    assert KEY != SECRET


@pytest.mark.parametrize("bad", [b"", bytes(31), bytes(33), "x" * 32, 7, None])
def test_only_32_bytes(bad):
    with pytest.raises(InvalidInput, match="32 bytes"):
        Key.from_bytes(bad)


def test_calling_the_class_names_the_way_out():
    with pytest.raises(InvalidInput, match=r"Key\.generate"):
        Key()


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (("a", "bc"), ("ab", "c")),
        ((1,), ("1",)),
        (("1",), (b"1",)),
        ((1,), (b"\x01",)),
        (("a",), ("a", "")),
        (("a", "b"), ("b", "a")),
        ((255,), (-1,)),
        ((0,), (b"\x00",)),
        ((2**64,), (2**72,)),
    ],
)
def test_subkeys_are_separate(one, two):
    assert KEY.subkey(*one) == KEY.subkey(*one)
    assert KEY.subkey(*one) != KEY.subkey(*two)


@given(LABELS, LABELS)
def test_subkeys_agree_only_for_equal_labels(one, two):
    same = [(type(x), x) for x in one] == [(type(x), x) for x in two]
    assert (KEY.subkey(*one) == KEY.subkey(*two)) == same


def test_nested_and_joint_subkeys_differ():
    assert KEY.subkey("a").subkey("b") != KEY.subkey("a", "b")


@pytest.mark.parametrize("labels", [(), (1.0,), (True,), (None,), (("a",),)])
def test_bad_labels(labels):
    with pytest.raises(InvalidInput, match="label"):
        KEY.subkey(*labels)


def test_fingerprint_is_stable_and_says_nothing():
    assert KEY.fingerprint == Key.from_bytes(SECRET).fingerprint
    assert len(KEY.fingerprint) == 16
    prints = [KEY.fingerprint, *(KEY.subkey(i).fingerprint for i in range(9))]
    assert all(a != b for a, b in pairwise(prints))
    assert KEY.fingerprint not in SECRET


def test_is_test_is_false_for_real_keys():
    assert not KEY.is_test
    assert not Key.generate().subkey("x").is_test


def test_repr_hides_the_secret():
    for shown in (repr(KEY), str(KEY), f"{KEY}", repr([KEY]), repr({"key": KEY})):
        assert "Key(secret)" in shown
        assert SECRET.hex()[:8] not in shown
        assert "\\x" not in shown


@pytest.mark.parametrize("leak", [pickle.dumps, copy.copy, copy.deepcopy, Key.__getstate__])
def test_pickle_and_copy_are_refused(leak):
    with pytest.raises(InvalidInput, match=r"secret_bytes.*from_bytes"):
        leak(KEY)


def test_a_key_cannot_be_changed():
    with pytest.raises(InvalidInput, match="cannot be changed"):
        KEY._is_test = True
    with pytest.raises(InvalidInput, match="cannot be changed"):
        del KEY._secret
    with pytest.raises(InvalidInput, match="cannot be changed"):
        KEY.other = 1


@pytest.mark.parametrize(
    ("labels", "fingerprint"),
    [
        ((5,), "78f6339f6b41ccd82338175a91583d30"),
        ((-1,), "a5383fbcc123437853d38d3b33202fb4"),
        ((300,), "87ec8878b02cc84d06c3c4f6bde4d26a"),
        (("round", 7), "d5ccadece07aac61d050e1387ce366f1"),
    ],
)
def test_a_subkey_stays_what_it_is(labels, fingerprint):
    """Stored samples are opened with it: another encoding of a label would draw other records (version 0.2)."""
    assert Key.from_bytes(bytes(range(32))).subkey(*labels).fingerprint.hex() == fingerprint
