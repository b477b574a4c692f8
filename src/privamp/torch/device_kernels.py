"""The numbers of `device_normals.py` on a GPU: ChaCha20 (RFC 8439), the tables, and the comparison under the curve.

Written by hand because torch has no cipher, and as Triton kernels because separate tensor operations would take
hundreds of launches. Triton comes with torch for CUDA. `device_normals.py` compares the numbers with those that OpenSSL
and torch on a processor give before they are used.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# Triton compiles the kernels below from their source and knows no other annotations than its own.

from typing import Any

import triton  # type: ignore[import-not-found,import-untyped,unused-ignore]
import triton.language as tl  # type: ignore[import-not-found,import-untyped,unused-ignore]

Tensor = Any
_GROUPS = 64  # groups of 16 numbers of one program
_NUMBERS = 128  # numbers of one program


def _turned(x, left):
    return (x << left) | (x >> (32 - left))


_turned = triton.jit(_turned)


def _quarter(a, b, c, d):
    a += b
    d = _turned(d ^ a, 16)
    c += d
    b = _turned(b ^ c, 12)
    a += b
    d = _turned(d ^ a, 8)
    c += d
    b = _turned(b ^ c, 7)
    return a, b, c, d


_quarter = triton.jit(_quarter)


def _block(key, nonce, place):
    """The 16 words of a block for each place: its low half is the counter, its high half the second nonce word."""
    low, high = place.to(tl.uint32), (place >> 32).to(tl.uint32)
    none = low * 0
    k0 = none + tl.load(key).to(tl.uint32, bitcast=True)
    k1 = none + tl.load(key + 1).to(tl.uint32, bitcast=True)
    k2 = none + tl.load(key + 2).to(tl.uint32, bitcast=True)
    k3 = none + tl.load(key + 3).to(tl.uint32, bitcast=True)
    k4 = none + tl.load(key + 4).to(tl.uint32, bitcast=True)
    k5 = none + tl.load(key + 5).to(tl.uint32, bitcast=True)
    k6 = none + tl.load(key + 6).to(tl.uint32, bitcast=True)
    k7 = none + tl.load(key + 7).to(tl.uint32, bitcast=True)
    c0, c1, c2, c3 = none + 0x61707865, none + 0x3320646E, none + 0x79622D32, none + 0x6B206574
    number = none + nonce.to(tl.uint32)
    x0, x1, x2, x3 = c0, c1, c2, c3
    x4, x5, x6, x7, x8, x9, x10, x11 = k0, k1, k2, k3, k4, k5, k6, k7
    x12, x13, x14, x15 = low, number, high, none
    for _ in range(10):
        x0, x4, x8, x12 = _quarter(x0, x4, x8, x12)
        x1, x5, x9, x13 = _quarter(x1, x5, x9, x13)
        x2, x6, x10, x14 = _quarter(x2, x6, x10, x14)
        x3, x7, x11, x15 = _quarter(x3, x7, x11, x15)
        x0, x5, x10, x15 = _quarter(x0, x5, x10, x15)
        x1, x6, x11, x12 = _quarter(x1, x6, x11, x12)
        x2, x7, x8, x13 = _quarter(x2, x7, x8, x13)
        x3, x4, x9, x14 = _quarter(x3, x4, x9, x14)
    x0, x1, x2, x3, x4, x5, x6, x7 = x0 + c0, x1 + c1, x2 + c2, x3 + c3, x4 + k0, x5 + k1, x6 + k2, x7 + k3
    x8, x9, x10, x11, x12, x13 = x8 + k4, x9 + k5, x10 + k6, x11 + k7, x12 + low, x13 + number
    return x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14 + high, x15


_block = triton.jit(_block)


def _by_word(word, fine, first):
    """The number of a word and a byte, or one far below all where the bucket belongs to no cell."""
    coarse = tl.load(first + (word >> 16).to(tl.int64)).to(tl.int64) + (word & 0xFFFF).to(tl.int64)
    return coarse * 256 + fine.to(tl.int64)


_by_word = triton.jit(_by_word)


def _four(at, w0, w1, w2, w3, fine, first, is_real):
    """Store the numbers of four words and the four bytes of a fifth."""
    tl.store(at, _by_word(w0, fine & 255, first), mask=is_real)
    tl.store(at + 1, _by_word(w1, fine >> 8 & 255, first), mask=is_real)
    tl.store(at + 2, _by_word(w2, fine >> 16 & 255, first), mask=is_real)
    tl.store(at + 3, _by_word(w3, fine >> 24, first), mask=is_real)


_four = triton.jit(_four)


def _words(key, numbers, first, start, groups, together: tl.constexpr):
    """Sixteen numbers for each group: the words of a block under nonce 0, and 16 bytes of one under nonce 1."""
    group = tl.program_id(0).to(tl.int64) * together + tl.arange(0, together)
    place, is_real = group + start, group < groups
    none = tl.program_id(0) * 0
    f0, f1, f2, f3, _4, _5, _6, _7, _8, _9, _10, _11, _12, _13, _14, _15 = _block(key, none + 1, place)
    w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11, w12, w13, w14, w15 = _block(key, none, place)
    at = numbers + group * 16
    _four(at, w0, w1, w2, w3, f0, first, is_real)
    _four(at + 4, w4, w5, w6, w7, f1, first, is_real)
    _four(at + 8, w8, w9, w10, w11, f2, first, is_real)
    _four(at + 12, w12, w13, w14, w15, f3, first, is_real)


_WORDS: Any = triton.jit(_words, do_not_specialize=["start", "groups"])


def _rest(
    key, numbers, first, guide, starts, floor, margin, scaled, width, start, count, below, unclear, cells: tl.constexpr,
    together: tl.constexpr,
):  # fmt: skip
    """Draw the numbers that belong to no cell under the rest of the curve, or again, until none is left.

    What a double does not decide becomes `unclear` less the number of attempts before.
    """
    i = tl.program_id(0).to(tl.int64) * together + tl.arange(0, together)
    number = tl.load(numbers + i, mask=i < count, other=0)
    was = number
    todo = number < below
    attempt = tl.program_id(0) * 0
    while tl.max(todo.to(tl.int32), axis=0) > 0:
        w0, w1, w2, w3, w4, w5, _6, _7, _8, _9, _10, _11, _12, _13, _14, _15 = _block(key, attempt + 2, i + start)
        point = w0.to(tl.int64) | w1.to(tl.int64) << 32
        placed = w2.to(tl.int64) | w3.to(tl.int64) << 32
        cell = tl.load(guide + (w1 >> 16).to(tl.int64))
        v = point - tl.load(starts + cell)
        place = placed >> 1 & 0x7FFFFFFFFFFFFFFF
        scale = tl.load(width)
        x = cell.to(tl.float64) * scale + place.to(tl.float64) * (scale * 1.0842021724855044e-19)  # 2^-63
        excess = tl.exp(-0.5 * x * x) * tl.load(scaled) - tl.load(floor + cell) - v.to(tl.float64)
        room = tl.load(margin + cell)
        is_cell = cell < cells
        is_done = is_cell & (excess > room)
        is_unclear = (is_cell & (tl.abs(excess) <= room)) | (cell == cells)
        made = (cell << 24 | place >> 39) ^ -(placed & 1)
        again = _by_word(w4, w5 & 255, first)
        found = tl.where(is_done, made, tl.where(is_unclear, unclear - attempt, again))
        number = tl.where(todo, found, number)
        todo = todo & (found < below) & ~is_unclear & ~is_done
        attempt += 1
    tl.store(numbers + i, number, mask=(i < count) & (number != was))


_REST: Any = triton.jit(_rest, do_not_specialize=["start", "count", "below", "unclear"])


def fill(key: Tensor, numbers: Tensor, tables: Any, start: int, below: int, unclear: int, cells: int) -> None:
    """Overwrite `numbers` (int64, a multiple of 16) with the numbers from place `start` on, a multiple of 16 too.

    `key` is eight words (int32) on the same device.
    """
    count = numbers.shape[0]
    groups = count // 16
    _WORDS[(triton.cdiv(groups, _GROUPS),)](key, numbers, tables.first, start // 16, groups, _GROUPS)
    _REST[(triton.cdiv(count, _NUMBERS),)](
        key, numbers, tables.first, tables.guide, tables.start, tables.floor, tables.margin, tables.scaled,
        tables.width, start, count, below, unclear, cells, _NUMBERS,
    )  # fmt: skip
