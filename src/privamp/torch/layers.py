"""How each kind of layer uses its parameters: from its input and the derivative of its output to uses (`uses.py`).

A layer that is linear in its parameters has, for record i, the gradient sum_t b_it a_it^T, where a_it is its input
and b_it the derivative of the loss with respect to its output at position t.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from .normalised import by_one_kernel
from .patches import Geometry, Patches
from .precision import sum_dtype
from .uses import Outer, Rows, Use, Written

Tensor = Any


@dataclass(frozen=True, slots=True)
class Part:
    """A use of a parameter, or of its rows from `start` to `stop` where several maps are packed into one."""

    parameter: Any
    use: Use
    rows: tuple[int, int] | None = None


Rule = Callable[[Any, Tensor, Tensor], list[Part]]
"""(layer, input, derivative with respect to the output) -> uses of its parameters."""


def rule_of(layer: Any) -> Rule | None:
    """How this kind of layer uses its parameters, or None. A layer with its own forward is another kind."""
    if "forward" in vars(layer) or "parametrizations" in layer._modules:
        return None
    for kind, (rule, names) in _RULES.items():
        if isinstance(layer, kind) and type(layer).forward is kind.forward:
            return rule if set(layer._parameters) <= names else None
    if type(layer).__name__ == "Conv1D" and type(layer).__module__ == "transformers.pytorch_utils":
        return _transposed_linear
    return None


def linear_parts(weight: Any, bias: Any, a: Tensor, b: Tensor, rows: tuple[int, int] | None = None) -> list[Part]:
    """Uses of a map that was applied to a (records, ..., columns), with derivatives b (records, ..., rows)."""
    b, a = (t.reshape(t.shape[0], -1, t.shape[-1]) for t in (b, a))
    found = []
    if weight.requires_grad:
        found.append(Part(weight, Outer(b, a), rows))
    if bias is not None and bias.requires_grad:
        found.append(Part(bias, Written(_over_places(b)), rows))
    return found


def _over_places(b: Tensor) -> Tensor:
    dtype = sum_dtype(b.dtype)
    return b[:, 0].to(dtype) if b.shape[1] == 1 else b.sum(dim=1, dtype=dtype)


def _linear(layer: Any, x: Tensor, back: Tensor) -> list[Part]:
    return linear_parts(layer.weight, layer.bias, x, back)


def _transposed_linear(layer: Any, x: Tensor, back: Tensor) -> list[Part]:
    """The linear layer of GPT-2, whose weight is (in, out)."""
    found = linear_parts(layer.weight, layer.bias, x, back)
    turn = [Part(p.parameter, Outer(p.use.right, p.use.left)) for p in found if isinstance(p.use, Outer)]
    return turn + [p for p in found if not isinstance(p.use, Outer)]


def _conv(layer: Any, x: Tensor, back: Tensor) -> list[Part]:
    x, padding = _padded(layer, x)
    geometry = Geometry(layer.kernel_size, layer.stride, layer.dilation, padding, layer.groups)
    return _with_bias(layer, Patches((x,), (back,), geometry), back)


def _conv_transposed(layer: Any, x: Tensor, back: Tensor) -> list[Part]:
    """A transposed convolution: the roles of input and output derivative are exchanged."""
    none = (0,) * len(layer.kernel_size)
    geometry = Geometry(layer.kernel_size, layer.stride, layer.dilation, none, layer.groups)
    sides: list[int] = []
    for dim in reversed(range(len(none))):
        reach = (x.shape[2 + dim] - 1) * layer.stride[dim] + layer.dilation[dim] * (layer.kernel_size[dim] - 1) + 1
        before = layer.padding[dim]
        sides += [before, reach - before - back.shape[2 + dim]]  # below 0: what output_padding adds is removed
    return _with_bias(layer, Patches((functional.pad(back, sides),), (x,), geometry), back)


def _with_bias(layer: Any, use: Use, back: Tensor) -> list[Part]:
    found = [Part(layer.weight, use)] if layer.weight.requires_grad else []
    if layer.bias is not None and layer.bias.requires_grad:
        found.append(Part(layer.bias, Written(back.flatten(2).sum(dim=2))))
    return found


def _padded(layer: Any, x: Tensor) -> tuple[Tensor, tuple[int, ...]]:
    """The padding as numbers; if it is not zeros, or not the same on both sides, it is added to the input."""
    none = (0,) * len(layer.kernel_size)
    if layer.padding_mode != "zeros":
        return functional.pad(x, layer._reversed_padding_repeated_twice, mode=layer.padding_mode), none
    if not isinstance(layer.padding, str):
        return x, layer.padding
    if layer.padding == "same":
        return functional.pad(x, layer._reversed_padding_repeated_twice), none
    return x, none


def _embedding(layer: Any, ids: Tensor, back: Tensor) -> list[Part]:
    ids = ids.reshape(ids.shape[0], -1)
    b = back.reshape(ids.shape[0], ids.shape[1], back.shape[-1])
    if layer.padding_idx is not None:
        b = b * (ids != layer.padding_idx).unsqueeze(2)
    return [Part(layer.weight, Rows(ids, b))]


def _normalised(layer: Any, x: Tensor, back: Tensor) -> list[Part]:
    """Affine normalisation layers: small vectors, written out."""
    found = []
    is_whole = all(p is not None and p.requires_grad for p in (layer.weight, getattr(layer, "bias", None)))
    both = by_one_kernel(layer, x, back) if is_whole else None
    if both is not None:
        return [Part(p, Written(rows)) for p, rows in zip((layer.weight, layer.bias), both, strict=True)]
    if layer.weight is not None and layer.weight.requires_grad:
        found.append(Part(layer.weight, Written(_rest_summed(layer, _unit(layer, x).mul_(back)))))
    bias = getattr(layer, "bias", None)
    if bias is not None and bias.requires_grad:
        found.append(Part(bias, Written(_rest_summed(layer, back))))
    return found


_LAST = (nn.LayerNorm, nn.RMSNorm) if hasattr(nn, "RMSNorm") else (nn.LayerNorm,)  # over the last dimensions
_BATCH = nn.modules.batchnorm._BatchNorm
_INSTANCE = nn.modules.instancenorm._InstanceNorm


def _unit(layer: Any, x: Tensor) -> Tensor:
    if isinstance(layer, nn.LayerNorm):
        return functional.layer_norm(x, layer.normalized_shape, None, None, layer.eps)
    if isinstance(layer, _LAST):
        return functional.rms_norm(x, layer.normalized_shape, None, layer.eps)
    if isinstance(layer, _BATCH) or layer_keeps_statistics(layer):
        shape = (1, -1, *[1] * (x.dim() - 2))
        mean, variance = (v.to(x.dtype).reshape(shape) for v in (layer.running_mean, layer.running_var))
        return (x - mean) * torch.rsqrt(variance + layer.eps)
    groups = layer.num_groups if isinstance(layer, nn.GroupNorm) else layer.num_features
    return functional.group_norm(x, groups, None, None, layer.eps)


def layer_keeps_statistics(layer: Any) -> bool:
    """Whether a normalisation layer uses statistics of earlier batches (in evaluation mode)."""
    return isinstance(layer, (_BATCH, _INSTANCE)) and bool(layer.track_running_stats)


def _rest_summed(layer: Any, values: Tensor) -> Tensor:
    """Sums over positions: (records, shape of the parameter)."""
    if isinstance(layer, _LAST):
        return values.reshape(values.shape[0], -1, *layer.normalized_shape).sum(dim=1)
    return values.flatten(2).sum(dim=2) if values.dim() > 2 else values


def _prelu(layer: Any, x: Tensor, back: Tensor) -> list[Part]:
    below = back * x.clamp(max=0.0)
    if layer.num_parameters == 1:
        return [Part(layer.weight, Written(below.flatten(1).sum(dim=1, keepdim=True)))]
    return [Part(layer.weight, Written(below.flatten(2).sum(dim=2) if below.dim() > 2 else below))]


_BOTH = {"weight", "bias"}
_RULES: dict[Any, tuple[Rule, set[str]]] = {
    nn.Linear: (_linear, _BOTH),
    nn.Conv2d: (_conv, _BOTH),
    nn.Conv1d: (_conv, _BOTH),
    nn.Conv3d: (_conv, _BOTH),
    nn.ConvTranspose1d: (_conv_transposed, _BOTH),
    nn.ConvTranspose2d: (_conv_transposed, _BOTH),
    nn.ConvTranspose3d: (_conv_transposed, _BOTH),
    nn.Embedding: (_embedding, {"weight"}),
    nn.GroupNorm: (_normalised, _BOTH),
    **dict.fromkeys((*_LAST, _BATCH, _INSTANCE), (_normalised, _BOTH)),
    nn.PReLU: (_prelu, {"weight"}),
}
