"""Per-record gradients of one parameter as sums over its uses: their norms and weighted sums.

A parameter may be used several times (a layer called at every position, an embedding tied to the output layer). A
record's gradient is the sum over all uses, and its norm is that of the sum, never of the parts. Kinds of uses:

    Outer     sum_t left_t right_t^T: a linear map, at positions t (words, pixels, calls)
    Rows      row id_t gets b_t: an embedding
    Patches   a convolution: linear in patches, t is a position of the output
    Written   the gradient itself, for small parameters and where there is no rule

Two ways to compute the norm of a linear map's gradient:

    written out   the gradient itself, cheap for small layers; the weighted sum is then one more product
    ghost         norm^2 = sum_st (l_is . l_it)(r_is . r_it), gradient never formed (Goodfellow 2015; Li et al. 2022)

The ghost norm subtracts large numbers when positions cancel, and a norm that is too small would let a gradient exceed
the clipping bound. So its error bound is added: it errs upward. Squares are computed in double precision, where those
of float32 numbers never underflow. The weighted sum needs no second backward pass (Bu et al. 2022). Uses of different
kinds can be converted: an embedding is an Outer with one-hot rows (tied word vectors), and every use can be written
out.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.nn import functional

from .precision import norms_of, scaled_rows

Tensor = Any
_UNIT = 2.0**-53  # rounding of double precision
_FEW = 4  # times what a layer holds anyway: how large a gradient may be that is written out because it is faster
_WEIGHT_SUMS = {1: torch.nn.grad.conv1d_weight, 2: torch.nn.grad.conv2d_weight, 3: torch.nn.grad.conv3d_weight}


@dataclass(frozen=True, slots=True)
class Measured:
    """Squared norms of the gradients, (records,) doubles, and their weighted sums."""

    squares: Tensor
    summed: Callable[[Tensor], Tensor]
    rows: Tensor | None = None  # the gradients, where they are written out


@dataclass(frozen=True, slots=True)
class Outer:
    """left (records, positions, rows), right (records, positions, columns)."""

    left: Tensor
    right: Tensor

    def written(self, shape: Any) -> Tensor:
        """(records, *shape)."""
        return torch.bmm(self.left.transpose(1, 2), self.right).reshape(-1, *shape)

    def only(self, usable: Tensor) -> "Outer":
        """The same use with the other records set to zero."""
        return Outer(_only(self.left, usable), _only(self.right, usable))


@dataclass(frozen=True, slots=True)
class Rows:
    """Row ids (records, positions), and the values (records, positions, columns) added to them."""

    ids: Tensor
    values: Tensor

    def written(self, shape: Any) -> Tensor:
        """(records, *shape)."""
        records, places, width = self.values.shape
        found = self.values.new_zeros(records, *shape)
        return found.scatter_add_(1, self.ids.unsqueeze(2).expand(records, places, width), self.values)

    def only(self, usable: Tensor) -> "Rows":
        """The same use with the other records set to zero."""
        return Rows(self.ids, _only(self.values, usable))

    def as_outer(self, rows: int) -> Outer:
        """The same with one-hot rows, as large as the logits of the whole vocabulary."""
        return Outer(functional.one_hot(self.ids, rows).to(self.values.dtype), self.values)


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

    def unfolded(self) -> tuple[Tensor, Tensor]:
        """(records x groups, width of a patch, positions) and (records x groups, channels out, positions)."""
        groups, n = self.geometry.groups, self.inputs[0].shape[0]
        pairs = zip(self.inputs, self.backs, strict=True)
        a = _joined([_patches(x, self.geometry, g.shape[2:]) for x, g in pairs], 2)
        b = _joined([g.flatten(2) for g in self.backs], 2)
        return a.reshape(n * groups, -1, a.shape[2]), b.reshape(n * groups, -1, b.shape[2])

    def written(self, shape: Any) -> Tensor:
        """(records, *shape)."""
        a, b = self.unfolded()
        return torch.bmm(b, a.transpose(1, 2)).reshape(-1, *shape)

    def summed(self, weights: Tensor, shape: Any) -> Tensor:
        """The weighted sum of the gradients."""
        g = self.geometry
        total = 0.0
        for x, back in zip(self.inputs, self.backs, strict=True):
            scaled = back * weights.reshape(-1, *[1] * (back.dim() - 1))
            total = total + _WEIGHT_SUMS[len(g.size)](x, shape, scaled, g.stride, g.padding, g.dilation, g.groups)
        return total

    def only(self, usable: Tensor) -> "Patches":
        """The same use with the other records set to zero."""
        inputs, backs = (tuple(_only(t, usable) for t in given) for given in (self.inputs, self.backs))
        return replace(self, inputs=inputs, backs=backs)


@dataclass(frozen=True, slots=True)
class Written:
    """Gradients as they are, (records, shape of the parameter)."""

    values: Tensor

    def written(self, shape: Any) -> Tensor:
        """(records, *shape)."""
        return self.values.reshape(-1, *shape)

    def only(self, usable: Tensor) -> "Written":
        """The same use with the other records set to zero."""
        return Written(_only(self.values, usable))


Use = Outer | Rows | Patches | Written


def precision_of(use: Use) -> Any:
    """The dtype in which a use is summed."""
    held = use.left if isinstance(use, Outer) else use.backs[0] if isinstance(use, Patches) else use.values
    return held.dtype


def measured(uses: list[Use], shape: Any, *, written: bool = False) -> Measured:
    """Norms and weighted sums of the gradient formed by these uses of one parameter (or of some of its rows).

    With `written` the gradients are written out, whatever that costs.
    """
    kinds = {type(use) for use in uses}
    if written:
        return _all_written(uses, shape)
    if kinds == {Outer, Rows}:
        uses, kinds = [use.as_outer(shape[0]) if isinstance(use, Rows) else use for use in uses], {Outer}
    if kinds == {Outer}:
        maps = [use for use in uses if isinstance(use, Outer)]
        return _outer(_joined([u.left for u in maps], 1), _joined([u.right for u in maps], 1), shape)
    if kinds == {Rows}:
        tables = [use for use in uses if isinstance(use, Rows)]
        return _rows(_joined([u.ids for u in tables], 1), _joined([u.values for u in tables], 1), shape)
    moved = [use for use in uses if isinstance(use, Patches)]
    if kinds == {Patches} and len({use.geometry for use in moved}) == 1:
        inputs, backs = (tuple(t for use in moved for t in getattr(use, name)) for name in ("inputs", "backs"))
        return _convolved(replace(moved[0], inputs=inputs, backs=backs), shape)
    return _all_written(uses, shape)


def _all_written(uses: list[Use], shape: Any) -> Measured:
    total = uses[0].written(shape)
    for use in uses[1:]:
        total = total + use.written(shape)
    return _written_out(total, shape)


def _joined(tensors: list[Tensor], dim: int) -> Tensor:
    return tensors[0] if len(tensors) == 1 else torch.cat(tensors, dim=dim)


def _written_out(gradients: Tensor, shape: Any) -> Measured:
    flat = gradients.reshape(gradients.shape[0], -1)
    return Measured(norms_of(flat).square(), lambda weights: (weights @ flat).reshape(shape), flat)


def _is_small(gradient: int, held: int) -> bool:
    """Whether a record's gradient is smaller than what is stored for it anyway."""
    return gradient <= held


def _outer(b: Tensor, a: Tensor, shape: Any) -> Measured:
    places, d, p = a.shape[1], a.shape[2], b.shape[2]

    def summed(weights: Tensor) -> Tensor:
        return ((b * weights[:, None, None]).reshape(-1, p).T @ a.reshape(-1, d)).reshape(shape)

    if places == 1:
        return Measured((norms_of(a) * norms_of(b)).square(), summed)
    if _is_small(d * p, places * (d + p)):
        return _written_out(torch.bmm(b.transpose(1, 2), a), shape)
    return Measured(_ghost_squares(a, b), summed)


def _ghost_squares(a: Tensor, b: Tensor) -> Tensor:
    """Norms^2 of sum_t b_t a_t^T from products of positions, in double precision, with the rounding error added."""
    (a, up), (b, further) = scaled_rows(a), scaled_rows(b)
    one, two = torch.bmm(a, a.transpose(1, 2)), torch.bmm(b, b.transpose(1, 2))
    sizes = (one.diagonal(dim1=1, dim2=2) * two.diagonal(dim1=1, dim2=2)).sqrt()  # |a_t||b_t|
    squares = (one * two).sum(dim=(1, 2)).clamp(min=0.0) + _error(sizes, a.shape[2] + b.shape[2])
    return torch.ldexp(squares.sqrt(), up + further).square()


def _error(sizes: Tensor, terms: int) -> Tensor:
    """The largest error of a squared norm when positions of these sizes cancel: sums of terms, then of all pairs."""
    places = sizes.shape[1]
    return (terms + places * places + 16) * _UNIT * sizes.sum(dim=1).square()


def _rows(ids: Tensor, b: Tensor, shape: Any) -> Measured:
    same = ids.unsqueeze(1) == ids.unsqueeze(2)
    scaled, up = scaled_rows(b)
    products = torch.bmm(scaled, scaled.transpose(1, 2))
    sizes = products.diagonal(dim1=1, dim2=2).sqrt()
    squares = (products * same).sum(dim=(1, 2)).clamp(min=0.0) + _error(sizes, b.shape[2])

    def summed(weights: Tensor) -> Tensor:
        rows = (b * weights[:, None, None]).reshape(-1, b.shape[2])
        return rows.new_zeros(shape).index_add_(0, ids.reshape(-1), rows)

    return Measured(torch.ldexp(squares.sqrt(), up).square(), summed)


def _convolved(use: Patches, shape: Any) -> Measured:
    """Split by group: each group has its own gradient."""
    groups, n = use.geometry.groups, use.inputs[0].shape[0]
    a, b = use.unfolded()
    d, p, places = a.shape[1], b.shape[1], a.shape[2]
    held = use.inputs[0][0].numel() + use.backs[0][0].numel()
    # a ghost norm takes places^2 (d + p) products of doubles, the gradient places d p of the model's numbers
    is_cheap = d * p <= 2 * places * (d + p) and d * p * groups <= _FEW * held
    if is_cheap or _is_small(d * p * groups, held):
        return _written_out(torch.bmm(b, a.transpose(1, 2)).reshape(n, -1), shape)
    if places * places * (d + p) < places * d * p:
        squares = _ghost_squares(a.transpose(1, 2), b.transpose(1, 2))
    else:
        squares = norms_of(torch.bmm(b, a.transpose(1, 2))).square()
    return Measured(squares.reshape(n, groups).sum(dim=1), lambda weights: use.summed(weights, shape))


def _patches(x: Tensor, geometry: Geometry, out: Any) -> Tensor:
    """Patches of the inputs, (records, width of a patch, positions).

    By strides: one copy for the whole batch, where torch would unfold record by record. On a CPU patch by patch, which
    is faster to copy and to multiply with.
    """
    if any(geometry.padding):
        x = functional.pad(x, [side for p in reversed(geometry.padding) for side in (p, p)])
    x = x.contiguous()
    first, channel, *inner = x.stride()
    inside = [s * d for s, d in zip(inner, geometry.dilation, strict=True)]
    moves = [s * k for s, k in zip(inner, geometry.stride, strict=True)]
    n, c = x.shape[:2]
    width, places = c * torch.Size(geometry.size).numel(), torch.Size(out).numel()
    if x.device.type == "cpu":
        found = x.as_strided((n, *out, c, *geometry.size), (first, *moves, channel, *inside))
        return found.reshape(n, places, width).transpose(1, 2)
    found = x.as_strided((n, c, *geometry.size, *out), (first, channel, *inside, *moves))
    return found.reshape(n, width, places)


def _only(values: Tensor, usable: Tensor) -> Tensor:
    shape = (-1, *[1] * (values.dim() - 1))
    return torch.where(usable.reshape(shape), values, torch.zeros((), dtype=values.dtype, device=values.device))
