"""The keyed function that gives every record its number, and the integer rules that read it.

A record is drawn because of its own number only: PRF(key, id, stage). The same key therefore draws the same
sample in one pass, in chunks or on many machines, and a retry cannot draw a second one. The guarantee is
computational: it assumes that AES-256 is pseudo-random, on one block (whole-number ids) or chained over the blocks of
a text (keyed_text.py).
Whole-number and text ids use separate derived keys, so 7 and "7" are unrelated.

A number keeps its record when it is below floor(p 2^64), as integers; the certified probability is
floor(p 2^64) / 2^64.
"""

import math
import threading
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import ArrayLike, NDArray

from ..errors import InvalidInput
from ..validation import in_range, whole
from .keyed_text import text_blocks
from .keys import Key, derive
from .texts import Texts

Numbers = NDArray[np.uint64]

_CHUNK = 16384  # records a piece, so that what is made of them stays in cache
_BLOCKS = 1 << 17  # whole-number ids a piece: 2 MiB in and out; threads wait for each other between pieces
_buffers = threading.local()
_FEW = 64  # records for which setting up the pieces takes longest
_RULE = "ids must be a one-dimensional array of whole numbers (0 to 2^64 - 1) or of text"


def keyed_numbers(key: Key, ids: NDArray[Any], stage: int = 0) -> Numbers:
    """Return one pseudo-random 64-bit number per id; equal ids get equal numbers.

    >>> first, second, again = keyed_numbers(Key.generate(), np.array([1, 2, 1], dtype=np.uint64))
    >>> bool(first == again), bool(first == second)
    (True, False)
    """
    whole(0, 2**64 - 1, stage=stage)
    out = np.empty(len(ids), np.uint64)
    _fill(key, ids, stage, out, None)
    return out


def keyed_pairs(key: Key, ids: NDArray[Any], stage: int = 0) -> tuple[Numbers, Numbers]:
    """Return two 64-bit numbers per id, the first as in `keyed_numbers`, the second to break ties.

    Distinct whole-number ids never share a pair, because AES is one-to-one on blocks.
    """
    whole(0, 2**64 - 1, stage=stage)
    high, low = np.empty(len(ids), np.uint64), np.empty(len(ids), np.uint64)
    _fill(key, ids, stage, high, low)
    return high, low


def below(key: Key, ids: NDArray[Any] | range, limit: int) -> NDArray[np.intp]:
    """Return the positions of the ids whose `keyed_numbers` are below `limit`, in order.

    Numbers are compared as they are made and never stored. A range stands for the ids of records by place.
    """
    if limit >= 2**64:
        return np.arange(len(ids))
    if len(ids) <= _FEW or not (isinstance(ids, range) or ids.dtype.kind == "u"):
        return np.flatnonzero(keyed_numbers(key, _array(ids)) < np.uint64(limit))
    is_below = np.empty(len(ids), np.bool_)
    for at, coded in _coded(key, ids, 0):
        np.less(coded[:, 0], np.uint64(limit), out=is_below[at : at + len(coded)])
    return is_below.nonzero()[0]


def threshold(probability: float | Fraction) -> int:
    """Return floor(p 2^64) exactly, from 0 to 2^64 (which does not fit 64 bits).

    >>> threshold(1.0) == 2**64, threshold(2**-64), threshold(2**-65)
    (True, 1, 0)
    """
    in_range(0, 1, probability=probability)
    if isinstance(probability, Fraction):
        return math.floor(probability * 2**64)
    return int(math.ldexp(float(probability), 64))  # scaling is exact, and the cast rounds down


def keep(numbers: Numbers, probability: ArrayLike | Fraction) -> NDArray[np.bool_]:
    """Return True where number < floor(p 2^64), compared as integers; p is one number or one per record."""
    if isinstance(probability, Fraction) or np.ndim(probability) == 0:
        limit = threshold(probability)  # type: ignore[arg-type]
        return numbers < np.uint64(limit) if limit < 2**64 else np.ones(numbers.shape, np.bool_)
    p = np.asarray(probability, dtype=np.float64)
    if p.shape != numbers.shape:
        raise InvalidInput(f"probability must have one entry per number, got shape {p.shape} instead")
    kept = np.empty(p.shape, np.bool_)
    for at in range(0, len(p), _CHUNK):
        piece = p[at : at + _CHUNK]
        if not (piece.min() >= 0 and piece.max() <= 1):  # also catches nan
            raise InvalidInput("every probability must be a number from 0 to 1, got one outside; clip them first")
        # Scaling by 2^64 is exact, and below 1 the largest product is 2^64 - 2^11, which fits; a cast rounds down.
        certain = piece == 1
        limits = np.where(certain, 0.0, piece) if certain.any() else piece
        np.less(numbers[at : at + _CHUNK], (limits * 2.0**64).astype(np.uint64), out=kept[at : at + _CHUNK])
        kept[at : at + _CHUNK] |= certain
    return kept


def among_smallest(numbers_hi: Numbers, k: int) -> NDArray[np.int64]:
    """Return the indices of the `k` smallest numbers, in no order, and of all that tie with the last of them."""
    if k >= len(numbers_hi):
        return np.arange(len(numbers_hi))
    return np.flatnonzero(numbers_hi <= np.partition(numbers_hi, k - 1)[k - 1]) if k else np.empty(0, np.int64)


def smallest(numbers_hi: Numbers, numbers_lo: Numbers, k: int) -> NDArray[np.int64]:
    """Return the indices of the `k` smallest pairs, in ascending order of (high, low)."""
    whole(0, len(numbers_hi), k=k)
    if 2 * k < len(numbers_hi):
        candidates = among_smallest(numbers_hi, k)
        return candidates[_ordered(numbers_hi[candidates], numbers_lo[candidates])[:k]]
    return _ordered(numbers_hi, numbers_lo)[:k]


def _ordered(high: Numbers, low: Numbers) -> NDArray[np.int64]:
    """The order of the pairs; the low halves, which take ten times as long, are compared only where high ones tie."""
    order = np.argsort(high)
    ascending = high[order]
    return np.lexsort((low, high)) if (ascending[1:] == ascending[:-1]).any() else order


def _fill(key: Key, ids: NDArray[Any], stage: int, high: Numbers, low: Numbers | None) -> None:
    if not isinstance(ids, (np.ndarray, Texts)) or ids.ndim != 1:
        raise InvalidInput(f"{_RULE}, got a {type(ids).__name__} of shape {np.shape(ids)} instead")
    if ids.dtype.kind == "u":
        _fill_from_whole_numbers(key, ids, stage, high, low)
    elif ids.dtype.kind == "i":
        if ids.size and ids.min() < 0:
            raise InvalidInput(f"{_RULE}, got a negative one instead; shift them or turn them into text")
        _fill_from_whole_numbers(key, ids, stage, high, low)
    elif ids.dtype.kind in "UOT":
        _fill_from_text(key, ids, stage, high, low)
    else:
        raise InvalidInput(f"{_RULE}, got dtype {ids.dtype} instead; use ids.astype(str)")


def _fill_from_whole_numbers(key: Key, ids: NDArray[Any], stage: int, high: Numbers, low: Numbers | None) -> None:
    """AES-256 of the 16-byte block (id, stage), little-endian, one independent block per record."""
    if len(ids) <= _FEW:
        encrypt = Cipher(algorithms.AES(derive(key, b"whole-number ids")), modes.ECB()).encryptor()
        few = np.empty((len(ids), 2), "<u8")
        few[:, 0], few[:, 1] = ids, stage
        found = np.frombuffer(encrypt.update(few.tobytes()), "<u8")
        high[:] = found[::2]
        if low is not None:
            low[:] = found[1::2]
        return
    for at, coded in _coded(key, ids, stage):
        high[at : at + len(coded)] = coded[:, 0]
        if low is not None:
            low[at : at + len(coded)] = coded[:, 1]


def _coded(key: Key, ids: NDArray[Any] | range, stage: int) -> Iterator[tuple[int, NDArray[np.uint64]]]:
    """The blocks of a chunk of ids after another, with its position; each is overwritten by the next."""
    encrypt = Cipher(algorithms.AES(derive(key, b"whole-number ids")), modes.ECB()).encryptor()
    blocks, coded = _taken_buffers(len(ids))
    blocks[:, 1] = stage
    source, target = blocks.data.cast("B"), coded.data.cast("B")
    for at in range(0, len(ids), _BLOCKS):
        n = min(_BLOCKS, len(ids) - at)
        if at and isinstance(ids, range):  # one call that makes no array: threads wait for each other at every call
            blocks[:, 0] += np.uint64(_BLOCKS)
        else:
            blocks[:n, 0] = _array(ids[at : at + n])
        encrypt.update_into(source[: 16 * n], target)
        yield at, coded[:n]
    if len(blocks) == _BLOCKS:
        _buffers.spare = blocks, coded


def _taken_buffers(size: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Blocks in and out, which have one spare block for update_into. Those of whole chunks are this thread's own until
    it gives them back: the system takes longer to find fresh memory than AES to fill it."""
    if size < _BLOCKS:
        return np.empty((size + 1, 2), "<u8"), np.empty((size + 2, 2), "<u8")
    spare = getattr(_buffers, "spare", None)
    _buffers.spare = None
    return spare or (np.empty((_BLOCKS, 2), "<u8"), np.empty((_BLOCKS + 1, 2), "<u8"))


def _array(ids: NDArray[Any] | range) -> NDArray[Any]:
    return np.arange(ids.start, ids.stop, dtype=np.uint64) if isinstance(ids, range) else ids


def _fill_from_text(key: Key, ids: NDArray[Any], stage: int, high: Numbers, low: Numbers | None) -> None:
    secret = derive(key, b"text ids, AES")
    for at in range(0, len(ids), _CHUNK):
        coded = text_blocks(secret, stage, Texts.of(ids[at : at + _CHUNK]))
        high[at : at + len(coded)] = coded[:, 0]
        if low is not None:
            low[at : at + len(coded)] = coded[:, 1]
