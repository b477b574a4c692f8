"""Signed heads and trails: whatever is changed in them is noticed."""

import json
import random

import pytest

from privamp import Budget, InvalidInput, Key, PrivampError, PureDP
from privamp.accounting.budget_store import Store
from privamp.accounting.budget_trail import check_trail, read_head, signed_head, trail
from privamp.chance.signatures import is_signed, public_key, sign
from privamp.testing import seeded_key


@pytest.fixture
def store(tmp_path):
    budget = Budget.create(tmp_path / "study.db", population="patients", epsilon=1.0)
    nurses = Budget.create(tmp_path / "study.db", population="nurses", epsilon=2.0)
    for n in range(4):
        budget.spend(PureDP(0.01), note=f"release {n}")
        nurses.reserve(PureDP(0.01), certificate={"delta": 1e-300, "order": 0.1}, draw=bytes([n]) * 16).commit()
    budget.reserve(PureDP(0.01)).cancel("no reason")
    return Store(tmp_path / "study.db", read_only=True)


def test_a_trail_says_what_the_store_says(store):
    key = Key.generate()
    found = check_trail(trail(store, key), public_key(key))
    checked = store.verify()
    assert (found.head, found.totals) == (checked.head, checked.totals)
    assert found.signed_by == public_key(key)
    assert check_trail(trail(store, None)).signed_by is None


def test_whatever_is_changed_in_a_trail_is_noticed(store):
    key = Key.generate()
    lines, chance = list(trail(store, key)), random.Random(3)
    text = "\n".join(lines)
    for _ in range(400):
        where = chance.randrange(len(text))
        changed = text[:where] + chr(ord(text[where]) ^ (1 << chance.randrange(7))) + text[where + 1 :]
        with pytest.raises(PrivampError):
            check_trail(changed.split("\n"), public_key(key))
    for cut in (lines[:-1], lines[:5], lines[:5] + lines[-1:], lines[1:], lines + lines[-1:], lines[::-1], []):
        with pytest.raises(PrivampError):
            check_trail(cut, public_key(key))
    for wrong in ("null", "[]", "{}", "{", '{"format": "privamp budget"}', json.dumps({"draw": 3, "hash": 4})):
        with pytest.raises(PrivampError):
            check_trail([wrong])


def test_a_rewritten_chain_has_no_signature(store, tmp_path):
    """Negative control: who can compute hashes can forget an entry, and only the signature shows it."""
    key, other = Key.generate(), Key.generate()
    forged = Budget.create(tmp_path / "forged.db", population="patients", epsilon=1.0)
    lines = list(trail(Store(forged.path, read_only=True), other))
    assert check_trail(lines).signed_by == public_key(other)
    with pytest.raises(PrivampError, match="not signed by the given key"):
        check_trail(lines, public_key(key))
    with pytest.raises(PrivampError, match="not signed by the given key"):
        check_trail(trail(store, None), public_key(key))


def test_heads(store):
    key = Key.generate()
    head = signed_head(store.head(), key)
    assert read_head(json.dumps(head), public_key(key)) == (store.head(), public_key(key))
    for name, value in (
        ("number", 3),
        ("hash", "00" * 32),
        ("store", "x"),
        ("time", "then"),
        ("public_key", "00" * 32),
    ):
        with pytest.raises(PrivampError, match="signature"):
            read_head(json.dumps(head | {name: value}))
    with pytest.raises(InvalidInput, match="test key"):
        signed_head(store.head(), seeded_key(1))
    assert not is_signed("zz", b"", "")
    assert not is_signed(public_key(key), b"a", sign(key, b"b"))
    assert public_key(key) != key.secret_bytes().hex()
