"""The noise of a step, made on the GPU that adds it: only a key is copied there.

The numbers are those of `chance/grid_normals.py`, floor(2^31 x) for standard normal x, by the same tables and
comparisons. Only the words differ: they are ChaCha20's under a key drawn from the step's stream, because the AES
instructions of a processor have no counterpart on a GPU. Number i takes word i under nonce 0 and byte i under nonce 1;
those that belong to no cell take one block each under nonce 2, in turn. What a double does not decide is decided by the
processor, exactly as there. So the noise of a key is the same on every device.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from ..chance import grid_normals as exact
from ..chance.grid_normals import CELLS, MARK, WIDTH
from ..chance.keys import Key
from ..chance.stream import Stream
from ..extras import is_installed

Tensor = Any
CHACHA20 = "ChaCha20 is a pseudo-random function (noise made on a GPU)"
PIECE = 2**22  # numbers made together; a multiple of 64, the bytes of a block
_LOW = 2**32 - 1
_BELOW_ALL = MARK // 2 * 256
_KNOWN = 2**14  # numbers compared before a device is used


class _Tables(NamedTuple):
    """`exact.CurveTables`, on a device."""

    first: Tensor
    guide: Tensor
    start: Tensor
    floor: Tensor
    margin: Tensor


@cache
def _tables(device: Any) -> _Tables:
    made = exact.curve_tables()
    arrays = (made.first, made.guide, made.start.view(np.int64), made.floor, made.margin)
    return _Tables(*(torch.from_numpy(array.copy()).to(device) for array in arrays))


class Blocks:
    """Blocks of ChaCha20 under four words of a stream, as rows of 16 int32."""

    def __init__(self, stream: Stream, device: Any) -> None:
        self._key = stream.words(4).astype("<u8").tobytes()
        self._device, self._used = device, 0

    def under(self, nonce: int, first: int, count: int) -> Tensor:
        """Blocks `first` to `first + count - 1` of a nonce."""
        place = first.to_bytes(4, "little") + nonce.to_bytes(4, "little")
        if self._device.type == "cpu":
            cipher = Cipher(algorithms.ChaCha20(self._key, place + bytes(8)), None)
            made = np.frombuffer(cipher.encryptor().update(bytes(64 * count)), "<i4")
            return torch.from_numpy(made.astype(np.int32)).view(count, 16)
        from . import chacha_kernel

        start = torch.from_numpy(np.frombuffer(self._key + place, "<i4").astype(np.int32)).to(self._device)
        found = torch.empty((count, 16), dtype=torch.int32, device=self._device)
        chacha_kernel.fill(start, found)
        return found

    def next(self, count: int) -> Tensor:
        """The next blocks for numbers that belong to no cell."""
        self._used += count
        return self.under(2, self._used - count, count)


def normal_pieces(stream: Stream, count: int, device: Any) -> Iterator[tuple[int, Tensor]]:
    """(place, numbers) for pieces of `count` numbers, as int64 on the device."""
    blocks = Blocks(stream, device)
    for at in range(0, count, PIECE):
        size = min(PIECE, count - at)
        words = blocks.under(0, at // 16, -(-size // 16)).view(-1)[:size]
        fine = blocks.under(1, at // 64, -(-size // 64)).view(torch.uint8).view(-1)[:size]
        numbers = _by_words(words, fine, _tables(device))
        _finish(blocks, stream, numbers, _tables(device))
        yield at, numbers


def _by_words(words: Tensor, fine: Tensor, tables: _Tables) -> Tensor:
    """A number for each word and byte, or one far below all where the bucket belongs to no cell."""
    coarse = tables.first[(words >> 16 & 0xFFFF).long()] + (words & 0xFFFF)
    return coarse.long() * 256 + fine


def _finish(blocks: Blocks, stream: Stream, numbers: Tensor, tables: _Tables) -> None:
    """Draw the numbers that belong to no cell under the rest of the curve, or again."""
    todo = (numbers < _BELOW_ALL).nonzero().view(-1)
    while todo.numel():
        block = blocks.next(todo.numel())
        numbers[todo], is_done = _from_rest(block, stream, tables)
        todo, block = todo[~is_done], block[~is_done]
        again = _by_words(block[:, 4], block[:, 5] & 255, tables)
        numbers[todo] = again
        todo = todo[again < _BELOW_ALL]


def _from_rest(block: Tensor, stream: Stream, tables: _Tables) -> tuple[Tensor, Tensor]:
    """Numbers under the rest of the curve, from the first four words of a row, and which of them are accepted."""
    words = block[:, :4].long()
    point, placed = (words[:, i] & _LOW | words[:, i + 1] << 32 for i in (0, 2))
    cell = tables.guide[point >> 48 & 0xFFFF]
    v, place = point - tables.start[cell], placed >> 1 & 2**63 - 1
    x = cell * WIDTH + place.double() * (WIDTH * 2.0**-63)
    excess = torch.exp(-0.5 * x * x) * exact.curve_tables().scaled - tables.floor[cell] - v.double()
    is_cell = cell < CELLS
    is_done = is_cell & (excess > tables.margin[cell])
    numbers = cell << 24 | place >> 39
    unclear = (is_cell & (excess.abs() <= tables.margin[cell])) | (cell == CELLS)
    for i in unclear.nonzero().view(-1).tolist():
        given = exact.curve_tables()
        numbers[i], is_done[i] = exact.decided(stream, int(cell[i]), int(v[i]), int(place[i]), given)
    return numbers ^ -(placed & 1), is_done


@cache
def makes_noise(device: Any) -> bool:
    """Whether noise is made on this device: a GPU with Triton that computes the numbers which the processor computes.

    If it does not, the processor makes the noise and it is copied. Neither depends on the data.
    """
    if device.type != "cuda" or not is_installed("triton"):
        return False
    try:
        found = [_known_numbers(place) for place in (device, torch.device("cpu"))]
    except Exception:  # Triton's own errors are many: an old driver, no compiler, an unknown chip
        return False
    return bool(torch.equal(*found))


def _known_numbers(device: Any) -> Tensor:
    stream = Stream(Key.from_bytes(bytes(range(32))))
    return torch.cat([numbers.cpu() for _, numbers in normal_pieces(stream, _KNOWN, device)])
