"""Gradients of convolutions, record by record: patches of the inputs times derivatives of the outputs.

On a CPU the copy of the patches takes as long as the product, so what lies together in memory is copied together:
channels last where there are several. Where rows of patches overlap, they are not copied for every row of the kernel:
a strip holds patches along all dimensions but the first, and row j of the kernel sees it from row j on,

    gradient[:, j] = sum_r back[r] strip[r + j]^T        (with stride s: s rows of the kernel at a time)
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.nn import functional

Tensor = Any
_NARROW = 16  # columns: products with fewer are slower than the copy that they save
_WEIGHT_SUMS = {1: torch.nn.grad.conv1d_weight, 2: torch.nn.grad.conv2d_weight, 3: torch.nn.grad.conv3d_weight}


@dataclass(frozen=True, slots=True)
class Geometry:
    """How a convolution moves over its input."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[int, ...]
    groups: int


@dataclass(frozen=True, slots=True)
class Patches:
    """Inputs of a convolution and the derivatives with respect to its outputs, for every call."""

    inputs: tuple[Tensor, ...]
    backs: tuple[Tensor, ...]
    geometry: Geometry

    @property
    def is_channels_last(self) -> bool:
        """Whether the columns of a patch are (kernel, channels), and not (channels, kernel)."""
        x = self.inputs[0]
        return bool(x.device.type == "cpu" and x.shape[1] > self.geometry.groups)

    @property
    def has_strips(self) -> bool:
        """Whether rows of patches overlap and strips can be used: decided by shapes alone."""
        g, x = self.geometry, self.inputs[0]
        rows, step, columns = g.size[0], g.stride[0], torch.Size(g.size[1:]).numel() * x.shape[1]
        is_simple = len(self.inputs) == 1 and g.groups == 1 and g.dilation[0] == 1
        return x.device.type == "cpu" and is_simple and rows > step and not rows % step and step * columns >= _NARROW

    def unfolded(self) -> tuple[Tensor, Tensor]:
        """(records x groups, positions, width of a patch) and (records x groups, channels out, positions)."""
        groups, n = self.geometry.groups, self.inputs[0].shape[0]
        pairs = zip(self.inputs, self.backs, strict=True)
        a = joined([patches(x, self.geometry, g.shape[2:], last=self.is_channels_last) for x, g in pairs], 1)
        b = joined([g.flatten(2) for g in self.backs], 2)
        return a, b.reshape(n * groups, -1, b.shape[2])

    def strips(self, product: Callable[[int, Tensor, Tensor], Tensor]) -> list[Tensor]:
        """The gradients in parts, (records, channels out x columns) for each step of the kernel's rows."""
        g, back = self.geometry, self.backs[0].flatten(2)
        strip, places = _strip(self.inputs[0], g, self.backs[0].shape[2:]), back.shape[2]
        moves = range(0, strip.shape[1] - places + 1, places // self.backs[0].shape[2])
        return [product(step, back, strip[:, at : at + places]) for step, at in enumerate(moves)]

    def ordered(self, gradient: Tensor, shape: Any) -> Tensor:
        """A gradient (..., channels out x width) of `unfolded` in the order of the parameter."""
        out, channels, *size = shape
        if not self.is_channels_last:
            return gradient.reshape(*gradient.shape[:-1], *shape)
        return gradient.reshape(*gradient.shape[:-1], out, *size, channels).movedim(-1, -1 - len(size))

    def from_strips(self, parts: list[Tensor], shape: Any) -> Tensor:
        """Parts (channels out x columns) of a gradient in the order of the parameter."""
        out, channels, rows, *size = shape
        steps = [part.reshape(out, rows // len(parts), *size, channels) for part in parts]
        return torch.cat(steps, dim=1).movedim(-1, 1)

    def written(self, shape: Any) -> Tensor:
        """(records, *shape)."""
        a, b = self.unfolded()
        return self.ordered(torch.bmm(b, a).reshape(self.inputs[0].shape[0], -1), shape)

    def summed(self, weights: Tensor, shape: Any) -> Tensor:
        """The weighted sum of the gradients."""
        g = self.geometry
        total = 0.0
        for x, back in zip(self.inputs, self.backs, strict=True):
            scaled = back * weights.reshape(-1, *[1] * (back.dim() - 1))
            total = total + _WEIGHT_SUMS[len(g.size)](x, shape, scaled, g.stride, g.padding, g.dilation, g.groups)
        return total

    def of(self, *held: Tensor) -> "Patches":
        """The same use of other inputs, and after them derivatives."""
        return replace(self, inputs=held[: len(self.inputs)], backs=held[len(self.inputs) :])


def joined(tensors: list[Tensor], dim: int) -> Tensor:
    """One after the other along a dimension."""
    return tensors[0] if len(tensors) == 1 else torch.cat(tensors, dim=dim)


def patches(x: Tensor, geometry: Geometry, out: Any, *, last: bool) -> Tensor:
    """Patches of the inputs, (records x groups, positions, width of a patch); `last`: (kernel, channels) in a patch.

    By strides: one copy for the whole batch, where torch would unfold record by record.
    """
    g = geometry
    x = _padded(x, g, last=last)
    first, channel, *inner = x.stride()
    inside, moves = _strides(inner, g)
    n, groups = x.shape[0], g.groups
    c = x.shape[1] // groups
    width, places = c * torch.Size(g.size).numel(), torch.Size(out).numel()
    if x.device.type != "cpu":
        found = x.as_strided((n, groups, c, *g.size, *out), (first, c * channel, channel, *inside, *moves))
        return found.reshape(n * groups, width, places).transpose(1, 2)
    patch = ((*g.size, c), (*inside, channel)) if last else ((c, *g.size), (channel, *inside))
    found = x.as_strided((n, groups, *out, *patch[0]), (first, c * channel, *moves, *patch[1]))
    return found.reshape(n * groups, places, width)


def _strip(x: Tensor, g: Geometry, out: Any) -> Tensor:
    """(records, rows x positions in a row, columns): all that the rows of patches see, each once."""
    x = _padded(x, g, last=True)
    first, channel, *inner = x.stride()
    inside, moves = _strides(inner, g)
    (n, c), step = x.shape[:2], g.stride[0]
    rows = out[0] + g.size[0] // step - 1
    found = x.new_empty(n, rows, *out[1:], step, *g.size[1:], c)
    for row in range(step):  # one copy each, which is faster than one for all
        begin = x.storage_offset() + row * inner[0]
        here = x.as_strided((n, rows, *out[1:], *g.size[1:], c), (first, *moves, *inside[1:], channel), begin)
        found.select(1 + len(out), row).copy_(here)
    return found.reshape(n, rows * torch.Size(out[1:]).numel(), -1)


def _strides(inner: list[int], g: Geometry) -> tuple[list[int], list[int]]:
    """From a number of a patch to the next, and from a patch to the next."""
    inside = [s * d for s, d in zip(inner, g.dilation, strict=True)]
    return inside, [s * k for s, k in zip(inner, g.stride, strict=True)]


def _padded(x: Tensor, g: Geometry, *, last: bool) -> Tensor:
    """With zeros around it; channels last in memory, or first."""
    if any(g.padding):
        x = functional.pad(x, [side for p in reversed(g.padding) for side in (p, p)])
    return x.movedim(1, -1).contiguous().movedim(-1, 1) if last else x.contiguous()
