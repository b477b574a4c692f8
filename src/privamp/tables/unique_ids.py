"""Whether all ids are unique, exactly and in bounded memory.

Records that share an id are drawn together, so a guarantee for one record does not protect each of them. Three methods,
the cheapest that decides:

    1. ids that only grow, from batch to batch, are unique: checked in passing;
    2. whole numbers in a small range: one byte for every possible id, at most 128 MB;
    3. otherwise all ids once more, as 64-bit numbers spread over temporary files of about 8 million each, which are
       sorted one after the other: 8 bytes of disk a record, at most 200 MB of memory. Texts are compared by a keyed
       hash, and those with equal hashes in full.
"""

import os
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..chance.keyed import keyed_numbers
from ..chance.keys import Key
from ..errors import InvalidInput

Rescan = Callable[[], Iterable[NDArray[Any]]]  # all ids again, in batches

_RANGE = 1 << 27  # bytes of the map of a small range
_BUCKET = 1 << 23  # ids sorted at once
_MOST_FILES = 512
_MOST_TEXTS = 1 << 20  # compared in full


class SeenIds:
    """What is recorded about the ids during a pass, in any order of the batches."""

    def __init__(self) -> None:
        self.rows = 0
        self._ordered = True
        self._ends: list[tuple[int, int]] = []
        self._lock = threading.Lock()

    def add(self, ids: NDArray[Any]) -> None:
        """Record one batch of ids, from any thread."""
        if not ids.size:
            return
        whole = ids.dtype.kind == "u"
        grows = whole and bool(np.all(ids[1:] > ids[:-1]))
        ends = (int(ids[0]), int(ids[-1])) if grows else (int(ids.min()), int(ids.max())) if whole else (0, -1)
        with self._lock:
            self.rows += ids.size
            self._ordered &= grows
            self._ends.append(ends)

    def check(self, rescan: Rescan) -> None:
        """Raise InvalidInput if an id repeats."""
        repeated = self.repeated(rescan)
        if repeated:
            raise InvalidInput(
                "ids must be unique, but some repeat; records that share an id are drawn together, so give every "
                "record its own id or treat a person's records as a cluster"
            )

    def repeated(self, rescan: Rescan) -> int:
        """How many records repeat an id."""
        if self._ordered and _apart(self._ends):
            return 0
        low, high = min((a for a, _ in self._ends), default=0), max((b for _, b in self._ends), default=0)
        if high >= low and high - low < _RANGE:
            seen = np.zeros(high - low + 1, dtype=np.bool_)
            for ids in rescan():
                seen[ids - np.uint64(low)] = True
            return self.rows - int(np.count_nonzero(seen))
        return _repeated_by_sorting(rescan, self.rows)


def _apart(ends: list[tuple[int, int]]) -> bool:
    ordered = sorted(ends)
    return all(before[1] < after[0] for before, after in pairwise(ordered))


def _repeated_by_sorting(rescan: Rescan, rows: int) -> int:
    hidden = Key.generate()

    def numbers() -> Iterator[NDArray[np.uint64]]:
        for ids in rescan():
            # an odd factor is one-to-one and spreads whole numbers over the buckets
            yield ids * np.uint64(0x9E3779B97F4A7C15) if ids.dtype.kind == "u" else keyed_numbers(hidden, ids)

    repeated = 0
    suspects: list[NDArray[np.uint64]] = []
    for bucket in _buckets(numbers(), rows):
        bucket.sort()
        same = bucket[1:][bucket[1:] == bucket[:-1]]
        repeated += same.size
        suspects.append(np.unique(same))
    if not repeated:
        return 0
    doubtful = np.concatenate(suspects)
    if repeated > _MOST_TEXTS:
        return repeated
    return _compared(rescan, hidden, np.sort(doubtful), repeated)


def _compared(rescan: Rescan, hidden: Key, doubtful: NDArray[np.uint64], repeated: int) -> int:
    """Texts with equal hashes, compared in full; whole numbers need no hash."""
    found: Counter[str] = Counter()
    for ids in rescan():
        if ids.dtype.kind == "u":
            return repeated
        found.update(ids[np.isin(keyed_numbers(hidden, ids), doubtful)].tolist())
    return sum(found.values()) - len(found)


def _buckets(batches: Iterable[NDArray[np.uint64]], rows: int) -> Iterator[NDArray[np.uint64]]:
    """All numbers, in groups by their leading bits; on disk between unless one group holds them all."""
    bits = max(0, (-(-rows // _BUCKET) - 1).bit_length())
    bits = min(bits, _MOST_FILES.bit_length() - 1)
    if bits == 0:
        yield np.concatenate([*batches, np.empty(0, dtype=np.uint64)])
        return
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="privamp-"))  # readable by its owner only
        names = [os.path.join(folder, str(k)) for k in range(1 << bits)]
        handles = [stack.enter_context(open(name, "wb", buffering=0)) for name in names]
        for numbers in batches:
            which = (numbers >> np.uint64(64 - bits)).astype(np.uint16)
            ordered = numbers[np.argsort(which, kind="stable")]
            borders = np.concatenate([[0], np.cumsum(np.bincount(which, minlength=1 << bits))])
            for k, handle in enumerate(handles):
                handle.write(ordered[borders[k] : borders[k + 1]].tobytes())
        for name, handle in zip(names, handles, strict=True):
            handle.close()
            yield np.fromfile(name, dtype=np.uint64)
            os.unlink(name)
