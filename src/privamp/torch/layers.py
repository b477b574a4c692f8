"""Per-record gradient norms and weighted gradient sums of single layers, from their inputs and output gradients.

A layer that is linear in its parameters has, for record i, the gradient sum_t b_it a_it^T, where a_it is its input
and b_it the loss's derivative by its output at place t (a word, a pixel, one of several calls). Two ways to its norm:

    written out   the gradient itself, small for small layers; then the weighted sum is one product more
    ghost         norm^2 = sum_st (a_is . a_it)(b_is . b_it), gradient never written (Goodfellow 2015; Li et al. 2022)

The ghost way subtracts large numbers when places cancel, and a norm that comes out too small would let a gradient pass
the clip. So its error bound is added: the result is an upper bound. Squares are taken in double precision, where those
of float32 numbers never vanish. The weighted sum needs no second backward pass (Bu et al. 2022).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from .precision import norms_of, scaled_rows

_UNIT = 2.0**-53  # rounding of double precision

Tensor = Any
Gradients = list[tuple[Any, Tensor]]


@dataclass(frozen=True, slots=True)
class Measured:
    """Squared norms of one layer's gradients, (records,) doubles, and the sums that weights turn into its gradient."""

    squares: Tensor
    weighted: Callable[[Tensor], Gradients]


Measure = Callable[[Any, list[Tensor], list[Tensor]], Measured]


def measure_of(layer: Any) -> Measure | None:
    """How this kind of layer is measured, or None. A layer with a forward of its own is another kind."""
    if "forward" in vars(layer):
        return None
    for kind, measure in _MEASURES.items():
        if isinstance(layer, kind) and type(layer).forward is kind.forward:
            return measure
    return None


def _places(tensors: list[Tensor]) -> Tensor:
    """(records, places, width) of several calls, one after the other."""
    flat = [t.reshape(t.shape[0], -1, t.shape[-1]) for t in tensors]
    return flat[0] if len(flat) == 1 else torch.cat(flat, dim=1)


def _linear(layer: Any, inputs: list[Tensor], backs: list[Tensor]) -> Measured:
    a, b = _places(inputs), _places(backs)
    squares, weight_sum = _products(a, b) if layer.weight.requires_grad else (_zeros(b), None)
    bias = b.sum(dim=1) if layer.bias is not None and layer.bias.requires_grad else None
    return _with_bias(layer, squares, weight_sum, bias)


def _with_bias(layer: Any, squares: Tensor, weight_sum: Any, bias: Tensor | None) -> Measured:
    """A layer's norms and weighted sums from those of its weight (None: it is not trained) and every record's bias."""
    if bias is not None:
        squares = squares + norms_of(bias).square()

    def weighted(weights: Tensor) -> Gradients:
        found: Gradients = [(layer.weight, weight_sum(weights))] if weight_sum is not None else []
        return found if bias is None else [*found, (layer.bias, weights @ bias)]

    return Measured(squares, weighted)


def _products(a: Tensor, b: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Squared norms of sum_t b_t a_t^T, (records, places, width) each, and its weighted sums."""
    places, d, p = a.shape[1], a.shape[2], b.shape[2]

    def summed(weights: Tensor) -> Tensor:
        return (b * weights[:, None, None]).reshape(-1, p).T @ a.reshape(-1, d)

    if places == 1:
        return (norms_of(a) * norms_of(b)).square(), summed
    if _is_small(d * p, places * (d + p)):
        return _written_out(torch.bmm(b.transpose(1, 2), a))
    return _ghost_squares(a, b), summed


def _is_small(gradient: int, held: int) -> bool:
    """Whether a record's gradient is smaller than what is held of it anyway."""
    return gradient <= held


def _written_out(gradients: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    flat = gradients.reshape(gradients.shape[0], -1)
    return norms_of(flat).square(), lambda weights: (weights @ flat).reshape(gradients.shape[1:])


def _ghost_squares(a: Tensor, b: Tensor) -> Tensor:
    """Norms^2 of sum_t b_t a_t^T from the products of places, in double precision, rounding error added."""
    (a, up), (b, further) = scaled_rows(a), scaled_rows(b)
    one, two = torch.bmm(a, a.transpose(1, 2)), torch.bmm(b, b.transpose(1, 2))
    sizes = (one.diagonal(dim1=1, dim2=2) * two.diagonal(dim1=1, dim2=2)).sqrt()  # |a_t||b_t|
    squares = (one * two).sum(dim=(1, 2)).clamp(min=0.0) + _error(sizes, a.shape[2] + b.shape[2])
    return torch.ldexp(squares.sqrt(), up + further).square()


def _error(sizes: Tensor, terms: int) -> Tensor:
    """How far a squared norm can be off when places of these sizes cancel: sums of so many terms, then of all pairs."""
    places = sizes.shape[1]
    return (terms + places * places + 16) * _UNIT * sizes.sum(dim=1).square()


def _zeros(b: Tensor) -> Tensor:
    return b.new_zeros(b.shape[0], dtype=torch.float64)


def _conv(layer: Any, inputs: list[Tensor], backs: list[Tensor]) -> Measured:
    two = layer.weight.dim() == 4  # a row is a picture of height 1
    x = [t if two else t.unsqueeze(2) for t in inputs]
    g = [t if two else t.unsqueeze(2) for t in backs]
    x, padding = _padded(layer, x)
    size, stride, dilation = (v if two else (1, *v) for v in (layer.kernel_size, layer.stride, layer.dilation))
    shape = (*layer.weight.shape[:2], *size)
    bias = sum(t.sum(dim=(2, 3)) for t in g) if layer.bias is not None and layer.bias.requires_grad else None

    def gradient(weights: Tensor) -> Tensor:
        parts = [
            torch.nn.grad.conv2d_weight(
                xi, shape, gi * weights[:, None, None, None], stride, padding, dilation, layer.groups
            )
            for xi, gi in zip(x, g, strict=True)
        ]
        return sum(parts[1:], parts[0]).reshape(layer.weight.shape)

    squares, weight_sum = _zeros(g[0]), None
    if layer.weight.requires_grad:
        squares, written = _conv_squares(layer, x, g, size, stride, dilation, padding)
        weight_sum = gradient if written is None else lambda w: written(w).reshape(layer.weight.shape)
    return _with_bias(layer, squares, weight_sum, bias)


def _conv_squares(layer: Any, x: list[Tensor], g: list[Tensor], *geometry: Any) -> tuple[Tensor, Any]:
    """A convolution is linear in patches: place t is a position of the output. Groups have gradients of their own."""
    size, stride, dilation, padding = geometry
    n, groups = x[0].shape[0], layer.groups
    patches = [_patches(xi, size, stride, dilation, padding) for xi in x]  # (records, width, places)
    a = patches[0] if len(patches) == 1 else torch.cat(patches, dim=2)
    b = g[0].flatten(2) if len(g) == 1 else torch.cat([gi.flatten(2) for gi in g], dim=2)
    a, b = a.reshape(n * groups, -1, a.shape[2]), b.reshape(n * groups, -1, b.shape[2])
    d, p, places = a.shape[1], b.shape[1], a.shape[2]
    if _is_small(d * p * groups, x[0][0].numel() + g[0][0].numel()):
        gradients = torch.bmm(b, a.transpose(1, 2)).reshape(n, groups * p, d)
        return _written_out(gradients)
    if places * places * (d + p) < places * d * p:
        squares = _ghost_squares(a.transpose(1, 2), b.transpose(1, 2))
    else:
        squares = norms_of(torch.bmm(b, a.transpose(1, 2))).square()
    return squares.reshape(n, groups).sum(dim=1), None


def _patches(x: Tensor, size: Any, stride: Any, dilation: Any, padding: Any) -> Tensor:
    """As torch's unfold, by strides: one copy for the whole batch, where a GPU would unfold record by record."""
    if any(padding):
        x = functional.pad(x, (padding[1], padding[1], padding[0], padding[0]))
    x = x.contiguous()
    n, c, *extent = x.shape
    out = [(e - d * (k - 1) - 1) // s + 1 for e, d, k, s in zip(extent, dilation, size, stride, strict=True)]
    (a, b), (u, v) = x.stride()[:2], x.stride()[2:]
    strides = (a, b, u * dilation[0], v * dilation[1], u * stride[0], v * stride[1])
    return x.as_strided((n, c, *size, *out), strides).reshape(n, c * size[0] * size[1], out[0] * out[1])


def _padded(layer: Any, x: list[Tensor]) -> tuple[list[Tensor], tuple[int, int]]:
    """The padding as two numbers; where it is not the same on both sides ("same"), it is written into the input."""
    if not isinstance(layer.padding, str):
        return x, layer.padding if len(layer.padding) == 2 else (0, *layer.padding)
    sides = [(0, 0)] * (2 - len(layer.kernel_size))
    if layer.padding == "same":
        for size, dilation in zip(layer.kernel_size, layer.dilation, strict=True):
            total = dilation * (size - 1)
            sides.append((total // 2, total - total // 2))
        return [functional.pad(t, (*sides[1], *sides[0])) for t in x], (0, 0)
    return x, (0, 0)


def _embedding(layer: Any, inputs: list[Tensor], backs: list[Tensor]) -> Measured:
    ids = torch.cat([t.reshape(t.shape[0], -1) for t in inputs], dim=1)
    b = _places(backs)
    if layer.padding_idx is not None:
        b = b * (ids != layer.padding_idx).unsqueeze(2)
    same = ids.unsqueeze(1) == ids.unsqueeze(2)
    scaled, up = scaled_rows(b)
    products = torch.bmm(scaled, scaled.transpose(1, 2))
    sizes = products.diagonal(dim1=1, dim2=2).sqrt()
    squares = (products * same).sum(dim=(1, 2)).clamp(min=0.0) + _error(sizes, b.shape[2])
    squares = torch.ldexp(squares.sqrt(), up).square()

    def weighted(weights: Tensor) -> Gradients:
        rows = (b * weights[:, None, None]).reshape(-1, b.shape[2])
        total = rows.new_zeros(layer.weight.shape).index_add_(0, ids.reshape(-1), rows)
        return [(layer.weight, total)]

    return Measured(squares, weighted)


def _normalised(layer: Any, inputs: list[Tensor], backs: list[Tensor]) -> Measured:
    """LayerNorm and GroupNorm, affine: small vectors, written out."""
    pairs = list(zip(inputs, backs, strict=True))
    scale: Tensor = sum(_rest_summed(layer, g * _unit(layer, x)) for x, g in pairs)
    shift: Tensor = sum(_rest_summed(layer, g) for _, g in pairs)
    kept = [(p, v) for p, v in ((layer.weight, scale), (layer.bias, shift)) if p is not None and p.requires_grad]
    squares: Tensor = sum(norms_of(v).square() for _, v in kept)
    return Measured(squares, lambda w: [(p, (w @ v.flatten(1)).reshape(p.shape)) for p, v in kept])


def _unit(layer: Any, x: Tensor) -> Tensor:
    if isinstance(layer, nn.LayerNorm):
        return functional.layer_norm(x, layer.normalized_shape, None, None, layer.eps)
    return functional.group_norm(x, layer.num_groups, None, None, layer.eps)


def _rest_summed(layer: Any, values: Tensor) -> Tensor:
    """Sums over places: (records, shape of the parameter)."""
    if isinstance(layer, nn.LayerNorm):
        return values.reshape(values.shape[0], -1, *layer.normalized_shape).sum(dim=1)
    return values.flatten(2).sum(dim=2) if values.dim() > 2 else values


_MEASURES: dict[Any, Measure] = {
    nn.Linear: _linear,
    nn.Conv2d: _conv,
    nn.Conv1d: _conv,
    nn.Embedding: _embedding,
    nn.LayerNorm: _normalised,
    nn.GroupNorm: _normalised,
}
