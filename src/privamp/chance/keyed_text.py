"""The keyed function of text: AES-256 in CBC-MAC over (stage, length) and the text in UTF-8, 16 bytes.

The length comes first, so no message is a prefix of another, and CBC-MAC is then a pseudo-random function if AES
is (Petrank & Rackoff 2000; after n texts of up to b blocks an attacker gains about (n b)^2 / 2^128; the argument is in
docs/decisions/keyed_draws.md). A hash per text in Python costs several times as much: here the first blocks of many
texts are one call, then their second ones, and the block (stage, length) is coded once for each length that occurs.
A long text is one call of its own: the last block of AES in CBC mode is the same number.
"""

from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from .texts import Texts

Words = NDArray[np.uint64]

_LONG = 1024  # bytes of a text that is coded by itself

# the low k of 16 bytes, as two words; k = 0 to 16
_LOW_BYTES = np.array([[(1 << 8 * min(k, 8)) - 1, (1 << 8 * max(k - 8, 0)) - 1] for k in range(17)], dtype="<u8")


def text_blocks(secret: bytes, stage: int, texts: Texts) -> Words:
    """Two 64-bit numbers per text, shape (texts, 2)."""
    encrypt = Cipher(algorithms.AES(secret), modes.ECB()).encryptor()
    data, starts, lengths = texts.data, texts.starts, texts.lengths
    # every 16 bytes in a row, at any place; the padding lets the last text be read past its end
    blocks: Any = np.ndarray(len(data) - 15, "V16", data, strides=(1,))
    state = _started(encrypt, stage, lengths)
    done, at = 0, _where(slice(None), (lengths > 0) & (lengths <= _LONG))
    while (left := lengths[at] - done).size:
        block = blocks[starts[at] + done].view("<u8").reshape(-1, 2)
        block &= _LOW_BYTES.take(np.minimum(left, 16), axis=0)
        block ^= state[at].view("<u8").reshape(-1, 2)
        state[at] = _encrypted(encrypt, block).view("V16")[:, 0]
        done, at = done + 16, _where(at, left > 16)
    coded = state.view("<u8").reshape(-1, 2)
    for long in np.flatnonzero(lengths > _LONG).tolist():
        coded[long] = _of_long_text(secret, stage, data[starts[long] : starts[long] + lengths[long]].tobytes())
    return coded


def _where(at: Any, these: NDArray[np.bool_]) -> Any:
    """Positions of the texts of `at` that are also among `these`; a slice where that is all of them."""
    if these.all():
        return at
    return np.flatnonzero(these) if isinstance(at, slice) else at[these]


def _started(encrypt: Any, stage: int, lengths: NDArray[np.int64]) -> NDArray[Any]:
    """The code of (stage, length) for every text, each as one item of 16 bytes."""
    short = np.minimum(lengths, _LONG + 1)  # longer ones are coded by themselves
    counts = np.bincount(short)
    occurring = np.flatnonzero(counts)
    first = np.empty((len(occurring), 2), "<u8")
    first[:, 0], first[:, 1] = stage, occurring
    table = np.empty(len(counts), "V16")
    table[occurring] = _encrypted(encrypt, first).view("V16")[:, 0]
    return table.take(short)


def _of_long_text(secret: bytes, stage: int, text: bytes) -> NDArray[Any]:
    """CBC-MAC as the last block of AES in CBC mode, which starts from zeros."""
    encrypt = Cipher(algorithms.AES(secret), modes.CBC(bytes(16))).encryptor()
    first = np.array([stage, len(text)], "<u8").tobytes()
    coded = encrypt.update(first + text + bytes(-len(text) % 16))
    return np.frombuffer(coded[-16:], "<u8")


def _encrypted(encrypt: Any, blocks: NDArray[Any]) -> NDArray[Any]:
    coded = np.empty((len(blocks) + 1, 2), "<u8")  # update_into needs one spare block
    encrypt.update_into(blocks.data.cast("B"), coded.data.cast("B"))
    return coded[: len(blocks)]
