"""The noise of a step, made on the GPU that adds it: only a key is copied there.

The numbers are those of `chance/grid_normals.py`, floor(2^31 x) for standard normal x, by the same tables and
comparisons. Only the words differ: they are ChaCha20's under a key drawn from the step's stream, because the AES
instructions of a processor have no counterpart on a GPU. Number i takes word i of the blocks under nonce 0, and byte
i mod 16 of block i/16 under nonce 1; if its bucket belongs to no cell, it takes block i under nonces 2, 3, 4, … until
it is drawn. So a number depends on the key and its place alone. What a double does not decide is decided by the
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
PIECE = 2**22  # numbers made together; a multiple of 16
_LOW = 2**32 - 1
_BELOW_ALL = MARK // 2 * 256
_UNCLEAR = -(2**60)  # less the number of attempts before
_KNOWN = 2**14  # numbers compared before a device is used


class _Tables(NamedTuple):
    """`exact.CurveTables`, on a device."""

    first: Tensor
    guide: Tensor
    start: Tensor
    floor: Tensor
    margin: Tensor
    scaled: Tensor
    width: Tensor


@cache
def _tables(device: Any) -> _Tables:
    made = exact.curve_tables()
    numbers = (np.array([made.scaled]), np.array([WIDTH]))
    arrays = (made.first, made.guide, made.start.view(np.int64), made.floor, made.margin, *numbers)
    return _Tables(*(torch.from_numpy(array.copy()).to(device) for array in arrays))


def normal_pieces(stream: Stream, count: int, device: Any) -> Iterator[tuple[int, Tensor]]:
    """(place, numbers) for pieces of `count` numbers, as int64 on the device."""
    key = stream.words(4).astype("<u8").tobytes()
    words = torch.from_numpy(np.frombuffer(key, "<i4").astype(np.int32)).to(device)
    for at in range(0, count, PIECE):
        size = min(PIECE, count - at)
        if device.type == "cpu":
            numbers = _by_torch(key, at, size)
        else:
            from . import device_kernels

            numbers = torch.empty(-(-size // 16) * 16, dtype=torch.int64, device=device)
            device_kernels.fill(words, numbers, _tables(device), at, _BELOW_ALL, _UNCLEAR, CELLS)
            numbers = numbers[:size]
        if int(numbers.amin()) <= _UNCLEAR // 2:
            _decide(stream, key, at, numbers)
        yield at, numbers


def _by_torch(key: bytes, at: int, size: int) -> Tensor:
    """What the kernels compute, with words of OpenSSL."""
    tables, groups = _tables(torch.device("cpu")), -(-size // 16)
    words = _blocks(key, 0, at // 16, groups).view(-1)[:size]
    fine = _blocks(key, 1, at // 16, groups)[:, :4].contiguous().view(torch.uint8).view(-1)[:size]
    numbers = _by_words(words, fine, tables)
    todo, attempt = (numbers < _BELOW_ALL).nonzero().view(-1), 0
    while todo.numel():
        rows = [_blocks(key, 2 + attempt, at + i, 1) for i in todo.tolist()]
        numbers[todo] = _attempted(torch.cat(rows), attempt, tables)
        todo, attempt = todo[(numbers[todo] < _BELOW_ALL) & (numbers[todo] > _UNCLEAR // 2)], attempt + 1
    return numbers


def _blocks(key: bytes, nonce: int, first: int, count: int) -> Tensor:
    """Consecutive blocks of ChaCha20, as rows of 16 int32: the counter is the place's low half."""
    place = b"".join(word.to_bytes(4, "little") for word in (first & _LOW, nonce, first >> 32, 0))
    made = Cipher(algorithms.ChaCha20(key, place), None).encryptor().update(bytes(64 * count))
    return torch.from_numpy(np.frombuffer(made, "<i4").astype(np.int32)).view(count, 16)


def _by_words(words: Tensor, fine: Tensor, tables: _Tables) -> Tensor:
    """A number for each word and byte, or one far below all where the bucket belongs to no cell."""
    coarse = tables.first[(words >> 16 & 0xFFFF).long()] + (words & 0xFFFF)
    return coarse.long() * 256 + fine


def _attempted(block: Tensor, attempt: int, tables: _Tables) -> Tensor:
    """Numbers under the rest of the curve, or from the next words, or where doubles do not decide, a mark."""
    cell, v, place, sign = _points(block, tables)
    x = cell * WIDTH + place.double() * (WIDTH * 2.0**-63)
    excess = torch.exp(-0.5 * x * x) * tables.scaled - tables.floor[cell] - v.double()
    is_cell = cell < CELLS
    is_done = is_cell & (excess > tables.margin[cell])
    is_unclear = (is_cell & (excess.abs() <= tables.margin[cell])) | (cell == CELLS)
    again = torch.where(is_unclear, _UNCLEAR - attempt, _by_words(block[:, 4], block[:, 5] & 255, tables))
    return torch.where(is_done, (cell << 24 | place >> 39) ^ sign, again)


def _points(block: Tensor, tables: _Tables) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Cell, offset in it, place and sign (0 or -1) of the points in the first four words."""
    words = block[:, :4].long()
    point, placed = (words[:, i] & _LOW | words[:, i + 1] << 32 for i in (0, 2))
    cell = tables.guide[point >> 48 & 0xFFFF]
    return cell, point - tables.start[cell], placed >> 1 & 2**63 - 1, -(placed & 1)


def _decide(stream: Stream, key: bytes, at: int, numbers: Tensor) -> None:
    """Replace the marks, in order, by as many digits as it takes."""
    for i in (numbers <= _UNCLEAR // 2).nonzero().view(-1).tolist():
        numbers[i] = _decided(stream, key, at + i, _UNCLEAR - int(numbers[i]))


def _decided(stream: Stream, key: bytes, place: int, attempt: int) -> int:
    """The number at a place whose attempts before `attempt` were rejected."""
    tables = _tables(torch.device("cpu"))
    while True:
        block = _blocks(key, 2 + attempt, place, 1)
        found = int(_attempted(block, attempt, tables)[0])
        if found <= _UNCLEAR // 2:
            cell, v, along, sign = (int(part[0]) for part in _points(block, tables))
            made, is_done = exact.decided(stream, cell, v, along, exact.curve_tables())
            again = int(_by_words(block[:, 4], block[:, 5] & 255, tables)[0])
            found = made ^ sign if is_done else again
        if found >= _BELOW_ALL:
            return found
        attempt += 1


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
