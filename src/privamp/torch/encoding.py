"""Records as numbers for a network. Each record is encoded by itself: no statistic of the data set is used."""

from binascii import crc32
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

SLOTS = 32  # of one column
_FIRST, _STEP = -4.0, 0.5  # knots of asinh(number): numbers from -27 to 50,000 are told apart
PLACES = 80  # words of a text that are read, as in the paper


def pictures(pixels: NDArray[Any]) -> NDArray[np.float32]:
    """Bytes from 0 to 255 become -1 to 1, other numbers stay; grey pictures get a channel."""
    with np.errstate(over="ignore", invalid="ignore"):  # not a number: counts as nothing, without a warning
        scaled = pixels.astype(np.float32)
    if pixels.dtype == np.uint8:
        scaled /= 127.5
        scaled -= 1.0
    return scaled[:, None] if scaled.ndim == 3 else scaled


def sequences(tokens: NDArray[Any], offsets: NDArray[Any], places: int = PLACES) -> NDArray[np.int64]:
    """The first ids of every text, 0 before those that are shorter."""
    found = np.zeros((offsets.size - 1, places), np.int64)
    for row, (start, stop) in enumerate(pairwise(offsets)):
        ids = tokens[start : min(int(stop), int(start) + places)]
        if ids.size:
            found[row, -ids.size :] = ids
    return found


def table(columns: dict[str, Sequence[str]]) -> NDArray[np.float32]:
    """Each entry fills slots of its column: a word the one of its hash, a number the two knots around it."""
    rows = len(next(iter(columns.values()), ()))
    found = np.zeros((rows, SLOTS * len(columns)), np.float32)
    for at, (name, entries) in enumerate(columns.items()):
        for row, entry in enumerate(entries):
            slot, share = _slot(name, entry)
            found[row, at * SLOTS + slot] += 1.0 - share
            found[row, at * SLOTS + min(slot + 1, SLOTS - 1)] += share
    return found


@lru_cache(maxsize=2**18)
def _slot(column: str, entry: str) -> tuple[int, float]:
    """The first slot, and the share of the next one."""
    try:
        number = float(entry)
    except ValueError:
        number = np.nan
    if not np.isfinite(number):
        return crc32(f"{column}={entry}".encode("utf-8", "surrogatepass")) % SLOTS, 0.0
    place = min(max((float(np.arcsinh(number)) - _FIRST) / _STEP, 0.0), SLOTS - 1.0)
    return int(place), place - int(place)
