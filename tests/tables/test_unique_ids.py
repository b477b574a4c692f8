"""Repeated ids are found exactly, by each of the three ways."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privamp.errors import InvalidInput
from privamp.tables import unique_ids
from privamp.tables.unique_ids import SeenIds


def repeated(batches):
    seen = SeenIds()
    for batch in batches:
        seen.add(batch)
    scans = []

    def rescan():
        scans.append(1)
        return iter(batches)

    return seen.repeated(rescan), len(scans)


def whole(*batches):
    return [np.array(batch, dtype=np.uint64) for batch in batches]


def test_growing_ids_need_no_second_look():
    assert repeated(whole(range(10), range(20, 30), range(10, 20))) == (0, 0)
    assert repeated(whole(range(10), range(9, 20))) == (1, 1)
    assert repeated([]) == (0, 0)


@pytest.mark.parametrize("far", [0, 2**60], ids=["small range", "wide range"])
def test_unordered_whole_numbers(far):
    ids = np.random.default_rng(1).permutation(1000).astype(np.uint64)
    ids[0] += np.uint64(far)
    assert repeated(np.split(ids, 10))[0] == 0
    assert repeated([*np.split(ids, 10), ids[:7], ids[:2]])[0] == 9


@given(st.lists(st.one_of(st.integers(0, 5), st.integers(0, 2**64 - 1)), max_size=60), st.integers(1, 9))
def test_the_number_is_exact(ids, size):
    batches = whole(*(ids[k : k + size] for k in range(0, len(ids), size)))
    assert repeated(batches)[0] == len(ids) - len(set(ids))
    texts = [batch.astype(str).astype(object) for batch in batches]
    assert repeated(texts)[0] == len(ids) - len(set(ids))


@pytest.mark.parametrize("kind", ["whole", "text"])
def test_on_disk_where_memory_is_bounded(monkeypatch, tmp_path, kind):
    monkeypatch.setattr(unique_ids, "_BUCKET", 64)
    monkeypatch.setattr(unique_ids, "_RANGE", 1)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ids = np.random.default_rng(1).permutation(5000).astype(np.uint64)
    if kind == "text":
        ids = ids.astype(str).astype(object)
    assert repeated(np.split(ids, 10))[0] == 0
    assert repeated([*np.split(ids, 10), ids[:123]])[0] == 123
    assert not list(tmp_path.iterdir())


def test_texts_whose_hashes_meet_are_compared_themselves(monkeypatch):
    real = unique_ids.keyed_numbers
    monkeypatch.setattr(unique_ids, "keyed_numbers", lambda key, ids: real(key, ids) % np.uint64(8))
    texts = np.array([f"p{k}" for k in range(100)], dtype=object)
    assert repeated([texts[:50], texts[50:]])[0] == 0
    assert repeated([texts, texts[:3]])[0] == 3


def test_the_message_counts_and_shows_no_id():
    seen = SeenIds()
    ids = np.array([777, 777, 5], dtype=np.uint64)
    seen.add(ids)
    with pytest.raises(InvalidInput, match="some repeat") as caught:
        seen.check(lambda: [ids])
    assert "777" not in str(caught.value)
