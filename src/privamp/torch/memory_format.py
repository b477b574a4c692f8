"""Convolutions with channels last in memory, which torch computes and pools several times as fast on a CPU.

Numbers and shapes stay as they are. A model whose code needs channels first (`view` of what a convolution gave) fails
on made-up records, or gives other losses there, and is computed as it was written (`measuring.py`).
"""

from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as trees

Tensor = Any


def gains(module: Any, layers: Any) -> bool:
    """Whether these layers of a module compute faster with channels last."""
    has_any = any(isinstance(layer, nn.Conv2d) for layer in layers)
    is_float = all(p.dtype == torch.float32 and p.device.type == "cpu" for p in module.parameters())
    return has_any and is_float


def channels_last(x: Tensor) -> Tensor:
    """The same pictures (records, channels, height, width), channels last in memory."""
    if x.dim() != 4 or x.dtype != torch.float32:
        return x
    if x.shape[1] > 1 or x.requires_grad:
        return x.contiguous(memory_format=torch.channels_last)
    _, _, height, width = x.shape
    return x.contiguous().as_strided(x.shape, (height * width, 1, width, 1))  # says so where there is one channel


def channels_first(output: Any) -> Any:
    """What a model gives, as code after it expects."""
    return trees.tree_map(lambda t: t.contiguous() if isinstance(t, torch.Tensor) and t.dim() == 4 else t, output)
