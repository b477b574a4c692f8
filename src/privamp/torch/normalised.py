"""Per-record gradients of layer normalisations on a GPU: by one kernel, where Triton is there and agrees with torch.

They are written out, so whatever rounds them, the norm is that of what is added up.
"""

import contextlib
from functools import cache
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from ..extras import is_installed

Tensor = Any
_WIDEST = 4096
_AGREES = 1e-4  # of the largest number


def by_one_kernel(layer: Any, x: Tensor, back: Tensor) -> tuple[Tensor, Tensor] | None:
    """Gradients of weight and bias, (records, width) each, or None where torch should compute them."""
    if x.device.type != "cuda" or type(layer) is not nn.LayerNorm or len(layer.normalized_shape) != 1:
        return None
    if x.shape != back.shape or not 0 < x.shape[-1] <= _WIDEST or not x.numel() or not has_kernel(x.device):
        return None
    if {x.dtype, back.dtype} - {torch.float32, torch.bfloat16}:
        return None
    return made(x, back, layer.eps)


def made(x: Tensor, back: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """What the kernel gives."""
    from . import norm_kernels

    x, back = (t.reshape(t.shape[0], -1, t.shape[-1]).contiguous() for t in (x, back))
    found = torch.empty(2, x.shape[0], x.shape[2], device=x.device)
    with torch.cuda.device(x.device) if x.device.type == "cuda" else contextlib.nullcontext():
        norm_kernels.fill(x, back, found, eps)
    return found[0], found[1]


@cache
def has_kernel(device: Any) -> bool:
    """Whether the kernel runs on this device and gives what torch gives."""
    if not is_installed("triton"):
        return False
    try:
        return agrees(device)
    except Exception:  # Triton's own errors are many: an old driver, no compiler, an unknown chip
        return False


def agrees(device: Any) -> bool:
    """Compare both on made-up numbers."""
    x, back = torch.arange(2 * 3 * 11 * 40, dtype=torch.float64).sin().float().to(device).reshape(2, 3, 11, 40)
    found = made(x, back, 1e-5)
    wanted = (functional.layer_norm(x, (40,), None, None, 1e-5) * back).sum(dim=1), back.sum(dim=1)
    return all(bool((a - b).abs().amax() <= _AGREES * b.abs().amax()) for a, b in zip(found, wanted, strict=True))
