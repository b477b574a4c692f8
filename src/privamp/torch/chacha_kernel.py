"""ChaCha20 (RFC 8439) on a GPU: the words of consecutive blocks under one key, in one pass.

Written by hand because torch has no cipher, and as a Triton kernel because separate tensor operations would take
hundreds of launches. Triton comes with torch for CUDA. `device_words.py` compares it with OpenSSL before it is used.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# Triton compiles the kernels below from their source and knows no other annotations than its own.

from typing import Any

import triton  # type: ignore[import-not-found,import-untyped,unused-ignore]
import triton.language as tl  # type: ignore[import-not-found,import-untyped,unused-ignore]

Tensor = Any
_TOGETHER = 128  # blocks of one program


def _turned(x, left):
    return (x << left) | (x >> (32 - left))


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


_turned = triton.jit(_turned)
_quarter = triton.jit(_quarter)


def _blocks(start, out, count, together: tl.constexpr):
    block = tl.program_id(0) * together + tl.arange(0, together)
    none = (block * 0).to(tl.uint32)
    k0 = none + tl.load(start).to(tl.uint32, bitcast=True)
    k1 = none + tl.load(start + 1).to(tl.uint32, bitcast=True)
    k2 = none + tl.load(start + 2).to(tl.uint32, bitcast=True)
    k3 = none + tl.load(start + 3).to(tl.uint32, bitcast=True)
    k4 = none + tl.load(start + 4).to(tl.uint32, bitcast=True)
    k5 = none + tl.load(start + 5).to(tl.uint32, bitcast=True)
    k6 = none + tl.load(start + 6).to(tl.uint32, bitcast=True)
    k7 = none + tl.load(start + 7).to(tl.uint32, bitcast=True)
    c0, c1, c2, c3 = none + 0x61707865, none + 0x3320646E, none + 0x79622D32, none + 0x6B206574
    counter = block.to(tl.uint32) + tl.load(start + 8).to(tl.uint32, bitcast=True)
    number = none + tl.load(start + 9).to(tl.uint32, bitcast=True)
    x0, x1, x2, x3 = c0, c1, c2, c3
    x4, x5, x6, x7, x8, x9, x10, x11 = k0, k1, k2, k3, k4, k5, k6, k7
    x12, x13, x14, x15 = counter, number, none, none
    for _ in range(10):
        x0, x4, x8, x12 = _quarter(x0, x4, x8, x12)
        x1, x5, x9, x13 = _quarter(x1, x5, x9, x13)
        x2, x6, x10, x14 = _quarter(x2, x6, x10, x14)
        x3, x7, x11, x15 = _quarter(x3, x7, x11, x15)
        x0, x5, x10, x15 = _quarter(x0, x5, x10, x15)
        x1, x6, x11, x12 = _quarter(x1, x6, x11, x12)
        x2, x7, x8, x13 = _quarter(x2, x7, x8, x13)
        x3, x4, x9, x14 = _quarter(x3, x4, x9, x14)
    at = out + block.to(tl.int64) * 16
    is_real = block < count
    tl.store(at, (x0 + c0).to(tl.int32, bitcast=True), mask=is_real)
    tl.store(at + 1, (x1 + c1).to(tl.int32, bitcast=True), mask=is_real)
    tl.store(at + 2, (x2 + c2).to(tl.int32, bitcast=True), mask=is_real)
    tl.store(at + 3, (x3 + c3).to(tl.int32, bitcast=True), mask=is_real)
    tl.store(at + 4, (x4 + k0).to(tl.int32, bitcast=True), mask=is_real)
    tl.store(at + 5, (x5 + k1).to(tl.int32, bitcast=True), mask=is_real)
    tl.store(at + 6, (x6 + k2).to(tl.int32, bitcast=True), mask=is_real)
    tl.store(at + 7, (x7 + k3).to(tl.int32, bitcast=True), mask=is_real)
    tl.store(at + 8, (x8 + k4).to(tl.int32, bitcast=True), mask=is_real)
    tl.store(at + 9, (x9 + k5).to(tl.int32, bitcast=True), mask=is_real)
    tl.store(at + 10, (x10 + k6).to(tl.int32, bitcast=True), mask=is_real)
    tl.store(at + 11, (x11 + k7).to(tl.int32, bitcast=True), mask=is_real)
    tl.store(at + 12, (x12 + counter).to(tl.int32, bitcast=True), mask=is_real)
    tl.store(at + 13, (x13 + number).to(tl.int32, bitcast=True), mask=is_real)
    tl.store(at + 14, x14.to(tl.int32, bitcast=True), mask=is_real)
    tl.store(at + 15, x15.to(tl.int32, bitcast=True), mask=is_real)


_BLOCKS: Any = triton.jit(_blocks)


def fill(start: Tensor, out: Tensor) -> None:
    """Overwrite `out` (blocks x 16) with consecutive blocks.

    `start` is ten words on the same device: the key, the first block's number, and the first word of the nonce, whose
    others are 0. All words are int32.
    """
    count = out.shape[0]
    _BLOCKS[(triton.cdiv(count, _TOGETHER),)](start, out, count, _TOGETHER)
