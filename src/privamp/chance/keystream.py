"""Random bytes in bulk: AES-256 in counter mode under a key of its own.

Block j of nonce p is AES(p as 12 bytes, j as 4 bytes), j = 2, 3, ..., both big-endian. That is what GCM adds to a
plaintext of zeros, and the GCM code of OpenSSL works on several blocks at a time where its plain counter mode does not.
"""

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from .stream import Stream

_ZEROS = bytes(2**16)  # encrypted piece by piece: small enough to stay in cache
_PER_NONCE = 2**35  # bytes, below what one nonce allows (2^36 - 32)


class Keystream:
    """Bytes under four words drawn from a stream: a function of the stream's next 256 bits."""

    def __init__(self, stream: Stream) -> None:
        self._key = stream.words(4).astype("<u8").tobytes()
        self._nonce, self._left = -1, 0

    def fill(self, out: NDArray[np.uint8]) -> None:
        """Overwrite `out`, whose last 16 bytes are spare: they are not random."""
        view, end = out.data, out.size - 16
        for at in range(0, end, len(_ZEROS)):
            size = min(len(_ZEROS), end - at)
            if self._left < size:
                self._begin()
            self._cipher.update_into(memoryview(_ZEROS)[:size], view[at:])
            self._left -= size

    def bytes(self, n: int) -> NDArray[np.uint8]:
        """The next `n` bytes."""
        held = np.empty(n + 16, np.uint8)
        self.fill(held)
        return held[:n]

    def _begin(self) -> None:
        self._nonce, self._left = self._nonce + 1, _PER_NONCE
        mode = modes.GCM(self._nonce.to_bytes(12, "big"))
        self._cipher = Cipher(algorithms.AES(self._key), mode).encryptor()
