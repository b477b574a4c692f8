"""Gradients of layer normalisations, record by record, in one pass over inputs and derivatives on a GPU.

By torch operations they take seven passes over tensors as large as the input. `normalised.py` compares the kernel with
them before it is used.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# Triton compiles the kernel from its source and knows no other annotations than its own.

from typing import Any

import triton  # type: ignore[import-not-found,import-untyped,unused-ignore]
import triton.language as tl  # type: ignore[import-not-found,import-untyped,unused-ignore]

Tensor = Any
_TOGETHER = 8  # positions


def _sums(x, back, found, places, width, eps, columns: tl.constexpr, together: tl.constexpr):
    """One record a program: sum_t u_t b_t and sum_t b_t, where u_t is x_t with mean 0 and variance 1."""
    record = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, columns)
    gain, bias = tl.zeros((columns,), tl.float32), tl.zeros((columns,), tl.float32)
    for start in range(0, places, together):
        place = start + tl.arange(0, together)
        is_real = (place < places)[:, None] & (at < width)[None, :]
        where = (record * places + place)[:, None] * width + at[None, :]
        value = tl.load(x + where, mask=is_real, other=0.0).to(tl.float32)
        b = tl.load(back + where, mask=is_real, other=0.0).to(tl.float32)
        centred = tl.where(is_real, value - (tl.sum(value, axis=1) / width)[:, None], 0.0)
        variance = tl.sum(centred * centred, axis=1) / width
        gain += tl.sum(centred * (1.0 / tl.sqrt(variance + eps))[:, None] * b, axis=0)
        bias += tl.sum(b, axis=0)
    here, apart = found + record * width + at, tl.num_programs(0).to(tl.int64) * width
    tl.store(here, gain, mask=at < width)
    tl.store(here + apart, bias, mask=at < width)


_SUMS: Any = triton.jit(_sums, do_not_specialize=["places"])


def fill(x: Tensor, back: Tensor, found: Tensor, eps: float) -> None:
    """Overwrite `found` (2, records, width) by the gradients of weight and bias, in float32.

    `x` and `back` are contiguous, (records, positions, width).
    """
    records, places, width = x.shape
    columns = triton.next_power_of_2(width)
    _SUMS[(records,)](x, back, found, places, width, eps, columns, _TOGETHER)
