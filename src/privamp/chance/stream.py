"""A cryptographic stream of random words, and the draws made from it.

The words are AES-256 in counter mode under a key. Two kinds of stream:

- `Stream.from_os()`: keyed from the operating system. After a fork the child reseeds from the operating
  system, so parent and child never share noise.
- `Stream(key)`: a pure function of its key, on purpose (the same key draws the same sample). A fork does not
  change that: every process that holds the key draws the same numbers, so give each use a subkey.

Words are handed out under a lock: two threads never receive the same word, though which thread gets which
word depends on their timing. `uniforms`, `normals`, `laplaces` and `gammas` are floats: a guarantee built on
them is labelled "idealised real arithmetic". The exact integer samplers are in `discrete.py`.
"""

import math
import os
import sys
import threading
from types import FrameType
from typing import Any, NoReturn

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray
from scipy.special import ndtri

from ..errors import InvalidInput, PrivampError
from ..validation import positive, whole
from .keys import Key, derive

Shape = int | tuple[int, ...]

_REFUSED = "a Stream is not pickled or copied (a copy repeats its noise); make another with Stream.from_os()"
_BUFFER = 1024  # words kept ready for small requests,
_FIRST = 64  # and for a stream's first request: many streams have only one
_ZEROS = bytes(8 * 8192)  # encrypted piece by piece: small enough to stay in cache


# One lock for all streams, held across a fork so that no child starts with a half-advanced stream. A signal handler
# runs in the thread that it interrupts: in the middle of a draw it must neither receive the same words nor wait for
# them forever. So the lock lets its own thread in again, and `_refuse_inside` stops it there.
_LOCK = threading.RLock()
_drawing: FrameType | None = None  # the call that holds the lock
_forks = 0


def _refuse_inside() -> None:
    """Raise if this thread is already in the middle of a draw."""
    frame: FrameType | None = sys._getframe(2) if _drawing is not None else None
    while frame is not None:
        if frame is _drawing:
            raise PrivampError(
                "a signal handler asked for noise in the middle of a draw; only set a flag in the handler, and draw "
                "later"
            )
        frame = frame.f_back


def _in_child() -> None:
    global _forks
    _forks += 1
    _LOCK.release()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_in_child)


def _process() -> tuple[int, int]:
    """Differs between a process and its forks; the id also catches a fork made outside Python."""
    return os.getpid(), _forks


class Stream:
    """Random words from a key, and what is drawn from them."""

    __slots__ = ("_buffer", "_cipher", "_home", "_used", "is_test")

    def __init__(self, key: Key) -> None:
        if not isinstance(key, Key):
            raise InvalidInput(f"key must be a Key, got a {type(key).__name__} instead; see Key.generate()")
        self._home: tuple[int, int] | None = None  # the process that owns a stream from the system
        self.is_test = key.is_test  # from a seed: nothing drawn here is private
        self._start(key)

    @classmethod
    def from_os(cls) -> "Stream":
        """Make a fresh stream from the operating system, safe across forks."""
        stream = cls(Key.generate())
        stream._home = _process()
        return stream

    def _start(self, key: Key) -> None:
        secret = derive(key, b"stream")
        self._cipher = Cipher(algorithms.AES(secret), modes.CTR(bytes(16))).encryptor()
        self._buffer: NDArray[np.uint64] = np.empty(0, np.uint64)
        self._used = 0

    def _generate(self, n: int) -> NDArray[np.uint64]:
        out = np.empty(n + 2, "<u8")  # update_into needs one spare block
        view, end = out.data.cast("B"), 8 * n
        for at in range(0, end, len(_ZEROS)):
            self._cipher.update_into(memoryview(_ZEROS)[: end - at], view[at:])
        return out[:n].astype(np.uint64, copy=False)

    def words(self, n: int) -> NDArray[np.uint64]:
        """Return `n` uniform 64-bit words; asking for 3 and then 5 gives the same words as asking for 8."""
        whole(0, n=n)
        global _drawing
        with _LOCK:
            _refuse_inside()
            try:
                _drawing = sys._getframe()
                return self._unshared(n)
            finally:
                _drawing = None

    def _unshared(self, n: int) -> NDArray[np.uint64]:
        """The next words, never the same as those of a parent process."""
        here = _process()
        if self._home is not None and self._home != here:
            self._start(Key.generate())
            self._home = here
        found = self._next(n)
        if self._home is not None and _process() != here:
            raise PrivampError(
                "this process was forked in the middle of a draw, so its words belong to the parent; draw again "
                "after the fork"
            )
        return found

    def _next(self, n: int) -> NDArray[np.uint64]:
        ready = self._buffer[self._used : self._used + n]
        self._used += len(ready)
        missing = n - len(ready)
        if not missing:
            return ready.copy()
        if missing >= _BUFFER:
            rest = self._generate(missing)
        else:
            ready_now = _BUFFER if self._buffer.size or missing > _FIRST else _FIRST
            self._buffer, self._used = self._generate(ready_now), missing
            rest = self._buffer[:missing].copy()
        return np.concatenate([ready, rest]) if len(ready) else rest

    def below(self, bound: int, n: int) -> NDArray[np.int64]:
        """Return `n` whole numbers from 0 to bound - 1, exactly uniform, for a bound up to 2^63."""
        whole(1, 2**63, bound=bound)
        if bound & (bound - 1) == 0:
            return (self.words(n) & np.uint64(bound - 1)).astype(np.int64)
        last = np.uint64(2**64 - 2**64 % bound - 1)  # later words would favour small results
        words = self.words(n)
        while (late := np.flatnonzero(words > last)).size:
            words[late] = self.words(late.size)
        return (words % np.uint64(bound)).astype(np.int64)

    def uniforms(self, shape: Shape) -> NDArray[np.float64]:
        """Return numbers strictly between 0 and 1: the odd multiples of 2^-53, equally likely."""
        return _unit(self.words(_count(shape))).reshape(shape)

    def signs(self, shape: Shape) -> NDArray[np.int64]:
        """Return -1 or +1, equally likely."""
        return _sign(self.words(_count(shape))).reshape(shape)

    def normals(self, shape: Shape) -> NDArray[np.float64]:
        """Return standard normal numbers, in idealised real arithmetic (cut at 8.3 by the 53 bits)."""
        return np.asarray(ndtri(self.uniforms(shape)), dtype=np.float64)

    def laplaces(self, shape: Shape) -> NDArray[np.float64]:
        """Return Laplace numbers of scale 1, in idealised real arithmetic."""
        words = self.words(_count(shape))  # the size from the high bits, the sign from the lowest
        logs: NDArray[np.float64] = np.log(_unit(words)) * _sign(words)
        return logs.reshape(shape)

    def gammas(self, shape_parameter: float, size: Shape) -> NDArray[np.float64]:
        """Return Gamma numbers of scale 1, in idealised real arithmetic (Marsaglia & Tsang 2000)."""
        positive(shape_parameter=shape_parameter)
        n = _count(size)
        boosted = shape_parameter < 1  # Gamma(a) = Gamma(a + 1) U^(1/a)
        d = shape_parameter + boosted - 1 / 3
        out, todo = np.empty(n), np.arange(n)
        while todo.size:
            x, u = self.normals(todo.size), self.uniforms(todo.size)
            v = (1 + x / math.sqrt(9 * d)) ** 3
            fits = v > 0
            fits &= np.log(u) < x * x / 2 + d - d * v + d * np.log(np.where(fits, v, 1.0))
            out[todo[fits]] = d * v[fits]
            todo = todo[~fits]
        if boosted:
            out *= np.exp(np.log(self.uniforms(n)) / shape_parameter)
        return out.reshape(size)

    def permutation(self, n: int) -> NDArray[np.int64]:
        """Return 0 to n - 1 in an order drawn exactly uniformly."""
        while True:
            words = self.words(n)
            order = np.argsort(words)
            ranked = words[order]
            if not np.any(ranked[1:] == ranked[:-1]):  # a tie would favour an order: draw all again
                return order.astype(np.int64, copy=False)

    def choose(self, n: int, k: int) -> NDArray[np.int64]:
        """Return `k` distinct numbers out of 0 to n - 1, in random order, exactly uniformly."""
        whole(0, n=n)
        whole(0, n, k=k)
        if 2 * k > n:
            return self.permutation(n)[:k]
        chosen = np.empty(0, np.int64)
        while chosen.size < k:  # draw with replacement and keep first appearances
            chosen = np.concatenate([chosen, self.below(n, k - chosen.size)])
            _, first = np.unique(chosen, return_index=True)
            chosen = chosen[np.sort(first)]
        return chosen

    def __repr__(self) -> str:
        return "Stream(secret)"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise InvalidInput(_REFUSED)

    def __getstate__(self) -> NoReturn:
        raise InvalidInput(_REFUSED)


def _count(shape: Shape) -> int:
    sides = shape if isinstance(shape, tuple) else (shape,)
    for side in sides:
        whole(0, shape=side)
    return math.prod(sides)


def _unit(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    # 52 bits plus one half: exact, never 0 or 1. With 53 bits plus one half the top value would round to 1.
    return ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def _sign(words: NDArray[np.uint64]) -> NDArray[np.int64]:
    return 1 - 2 * (words & np.uint64(1)).astype(np.int64)
