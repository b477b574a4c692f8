"""The keyed function of text: AES-256 in CBC-MAC over (stage, length) and the text in UTF-8, 16 bytes.

The length stands first, so no message is the beginning of another, and CBC-MAC is then a pseudo-random function if AES
is (Bellare, Kilian & Rogaway 2000; after n texts of up to b blocks an attacker gains about (n b)^2 / 2^128). A hash per
text in Python costs several times as much: here the first blocks of many texts are one call, then their second ones.
A long text is one call of its own: the last block of AES in CBC mode is the same number.
"""

from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from ..errors import InvalidInput

Words = NDArray[np.uint64]

_LONG = 1024  # bytes of a text that is coded by itself

# the low k bytes of a word, k = 0 to 8
_LOW_BYTES = np.array([(1 << 8 * k) - 1 for k in range(9)], dtype="<u8")


def text_blocks(secret: bytes, stage: int, ids: NDArray[Any]) -> Words:
    """Two 64-bit numbers per text, shape (texts, 2)."""
    encrypt = Cipher(algorithms.AES(secret), modes.ECB()).encryptor()
    data, lengths = _utf8(ids)
    starts = np.cumsum(lengths) - lengths
    state = np.empty((len(lengths), 2), "<u8")
    state[:, 0], state[:, 1] = stage, lengths
    state = _encrypted(encrypt, state)
    # every 8 bytes in a row, at any place; the padding lets the last text be read past its end
    words: Any = np.ndarray(len(data) - 7, "<u8", data, strides=(1,))
    for long in np.flatnonzero(lengths > _LONG).tolist():
        state[long] = _of_long_text(secret, stage, data[starts[long] : starts[long] + lengths[long]])
    done, at = 0, np.flatnonzero(lengths <= _LONG)
    while at.size:
        more = lengths[at] > done
        if not more.all():
            at = at[more]
            if not at.size:
                break
        left, first = lengths[at] - done, starts[at] + done
        block = state[at]
        block[:, 0] ^= words[first] & _LOW_BYTES[np.minimum(left, 8)]
        block[:, 1] ^= words[first + 8] & _LOW_BYTES[np.clip(left - 8, 0, 8)]
        state[at] = _encrypted(encrypt, block)
        done += 16
    return state


def _of_long_text(secret: bytes, stage: int, text: bytes) -> NDArray[Any]:
    """CBC-MAC as the last block of AES in CBC mode, which starts from zeros."""
    encrypt = Cipher(algorithms.AES(secret), modes.CBC(bytes(16))).encryptor()
    first = np.array([stage, len(text)], "<u8").tobytes()
    coded = encrypt.update(first + text + bytes(-len(text) % 16))
    return np.frombuffer(coded[-16:], "<u8")


def _encrypted(encrypt: Any, blocks: NDArray[Any]) -> NDArray[Any]:
    coded = np.empty((len(blocks) + 1, 2), "<u8")  # update_into wants one block to spare
    encrypt.update_into(blocks.data.cast("B"), coded.data.cast("B"))
    return coded[: len(blocks)]


def _utf8(ids: NDArray[Any]) -> tuple[bytes, NDArray[np.int64]]:
    """All texts in one piece, 16 bytes of padding behind, and the length of each."""
    texts: list[str] = ids.tolist()
    try:
        together = "".join(texts)
    except TypeError:
        raise InvalidInput(
            "ids must be a one-dimensional array of whole numbers (0 to 2^64 - 1) or of text, got objects that are not "
            "text instead; use ids.astype(str)"
        ) from None
    if together.isascii():
        data, sizes = together.encode() + bytes(16), map(len, texts)
    else:
        # surrogatepass: lone surrogates have bytes too, and the encoding stays one-to-one
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        data, sizes = b"".join([*encoded, bytes(16)]), map(len, encoded)
    lengths = np.fromiter(sizes, np.int64, len(texts))
    if ids.dtype.kind != "U" and "\0" in together:
        _refuse_nul_endings(texts)
    return data, lengths


def _refuse_nul_endings(texts: list[str]) -> None:
    # Fixed-width text drops trailing NULs, so the same id would get two numbers in two representations.
    if any(text.endswith("\0") for text in texts):
        raise InvalidInput("a text id must not end with a NUL character, got one instead; strip it")
