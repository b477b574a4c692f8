"""Per-record gradients of one parameter as sums over its uses: their norms and weighted sums.

A parameter may be used several times (a layer called at every position, an embedding tied to the output layer). A
record's gradient is the sum over all uses, and its norm is that of the sum, never of the parts. Kinds of uses:

    Outer     sum_t left_t right_t^T: a linear map, at positions t (words, pixels, calls)
    Rows      row id_t gets b_t: an embedding
    Patches   a convolution: linear in patches, t is a position of the output
    Written   the gradient itself, for small parameters and where there is no rule

Three ways to compute the norm of a linear map's gradient, chosen by shapes alone:

    written out   the gradient itself, cheap for small layers; the weighted sum is then one more product
    in pieces     the same for some records at a time, not kept: for larger layers on a CPU
    ghost         norm^2 = sum_st (l_is . l_it)(r_is . r_it), gradient never formed (Goodfellow 2015; Li et al. 2022)

A norm that is too small would let a gradient exceed the clipping bound. The ghost norm subtracts large numbers when
positions cancel, and so does a gradient that is rounded otherwise than in the weighted sum. So the error bounds of
both are added: they err upward. Squares are computed in double precision, where those
of float32 numbers never underflow. The weighted sum needs no second backward pass (Bu et al. 2022). Uses of different
kinds can be converted: an embedding is an Outer with one-hot rows (tied word vectors), and every use can be written
out.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.nn import functional

from .patches import Patches, joined
from .precision import norms_of, scaled_rows

Tensor = Any
_UNIT = 2.0**-53  # rounding of double precision
_PIECE = 2**18  # numbers of gradients that are written out for their norms alone
_FEW = 4  # times what a layer holds anyway: how large a gradient may be that is written out because it is faster


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

    def as_outer(self, rows: int) -> Outer:
        """The same with one-hot rows, as large as the logits of the whole vocabulary."""
        return Outer(functional.one_hot(self.ids, rows).to(self.values.dtype), self.values)


@dataclass(frozen=True, slots=True)
class Written:
    """Gradients as they are, (records, shape of the parameter)."""

    values: Tensor

    def written(self, shape: Any) -> Tensor:
        """(records, *shape)."""
        return self.values.reshape(-1, *shape)


Use = Outer | Rows | Patches | Written


Product = Callable[[int, Tensor, Tensor], Tensor]
"""(number of the part, a, b) -> torch.bmm(a, b) as (batch, rows x columns)."""


def _product(part: int, a: Tensor, b: Tensor) -> Tensor:
    return torch.bmm(a, b).flatten(1)


def precision_of(use: Use) -> Any:
    """The dtype in which a use is summed."""
    held = use.left if isinstance(use, Outer) else use.backs[0] if isinstance(use, Patches) else use.values
    return held.dtype


def measured(uses: list[Use], shape: Any, *, product: Product = _product, written: bool = False) -> Measured:
    """Norms and weighted sums of the gradient formed by these uses of one parameter (or of some of its rows).

    With `written` the gradients are written out, whatever that costs. `product` multiplies batches of matrices.
    """
    kinds = {type(use) for use in uses}
    if written:
        return _all_written(uses, shape)
    if kinds == {Outer, Rows}:
        uses, kinds = [use.as_outer(shape[0]) if isinstance(use, Rows) else use for use in uses], {Outer}
    if kinds == {Outer}:
        maps = [use for use in uses if isinstance(use, Outer)]
        return _outer(joined([u.left for u in maps], 1), joined([u.right for u in maps], 1), shape)
    if kinds == {Rows}:
        tables = [use for use in uses if isinstance(use, Rows)]
        return _rows(joined([u.ids for u in tables], 1), joined([u.values for u in tables], 1), shape)
    moved = [use for use in uses if isinstance(use, Patches)]
    if kinds == {Patches} and len({use.geometry for use in moved}) == 1:
        inputs, backs = (tuple(t for use in moved for t in getattr(use, name)) for name in ("inputs", "backs"))
        return _convolved(replace(moved[0], inputs=inputs, backs=backs), shape, product)
    return _all_written(uses, shape)


def _all_written(uses: list[Use], shape: Any) -> Measured:
    total = uses[0].written(shape)
    for use in uses[1:]:
        total = total + use.written(shape)
    return _written_out(total, shape)


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
    return Measured(_squares(a, b), summed)


def _squares(a: Tensor, b: Tensor) -> Tensor:
    """Norms^2 of sum_t b_t a_t^T where gradients are not kept: the way that is faster for these shapes.

    A ghost norm takes places^2 (d + p) products of doubles, the gradient places d p of the model's numbers.
    """
    places, d, p = a.shape[1], a.shape[2], b.shape[2]
    faster = 2 if a.device.type == "cpu" else 1
    return _squares_in_pieces(a, b) if d * p <= faster * places * (d + p) else _ghost_squares(a, b)


def _squares_in_pieces(a: Tensor, b: Tensor) -> Tensor:
    """The same written out for some records at a time, with the largest error of the products added to the norm."""
    (n, places, d), p = a.shape, b.shape[2]
    some = max(1, _PIECE // (d * p)) if a.device.type == "cpu" else max(n, 1)
    made, found = a.new_empty(min(some, n), p, d), norms_of(a) * norms_of(b) * (places * torch.finfo(a.dtype).eps)
    for start in range(0, n, some):
        here = slice(start, min(start + some, n))
        found[here] += norms_of(torch.bmm(b[here].transpose(1, 2), a[here], out=made[: here.stop - start]))
    return found.square()


def _ghost_squares(a: Tensor, b: Tensor) -> Tensor:
    """Norms^2 of sum_t b_t a_t^T from products of positions, in double precision, with the rounding errors added."""
    unit = a.shape[1] * torch.finfo(a.dtype).eps  # of the weighted sum, which has the model's precision
    (a, up), (b, further) = scaled_rows(a), scaled_rows(b)
    one, two = torch.bmm(a, a.transpose(1, 2)), torch.bmm(b, b.transpose(1, 2))
    sizes = (one.diagonal(dim1=1, dim2=2) * two.diagonal(dim1=1, dim2=2)).sqrt()  # |a_t||b_t|
    squares = (one * two).sum(dim=(1, 2)).clamp(min=0.0) + _error(sizes, a.shape[2] + b.shape[2])
    return torch.ldexp(squares.sqrt() + unit * sizes.sum(dim=1), up + further).square()


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
    summing = torch.finfo(b.dtype).eps * (same.sum(dim=2) * sizes).sum(dim=1)  # each row adds up its own positions

    def summed(weights: Tensor) -> Tensor:
        rows = (b * weights[:, None, None]).reshape(-1, b.shape[2])
        return rows.new_zeros(shape).index_add_(0, ids.reshape(-1), rows)

    return Measured(torch.ldexp(squares.sqrt() + summing, up).square(), summed)


def _convolved(use: Patches, shape: Any, product: Product) -> Measured:
    """Split by group: each group has its own gradient."""
    groups, n = use.geometry.groups, use.inputs[0].shape[0]
    out, channels, *size = shape
    d, p = channels * torch.Size(size).numel(), out // groups
    places = sum(back.shape[2:].numel() for back in use.backs)
    held = use.inputs[0][0].numel() + use.backs[0][0].numel()
    # a ghost norm takes places^2 (d + p) products of doubles, the gradient places d p of the model's numbers
    is_cheap = d * p <= 2 * places * (d + p) and d * p * groups <= _FEW * held
    is_written = is_cheap or _is_small(d * p * groups, held)
    if is_written and use.has_strips:
        parts = use.strips(product)
        squares = torch.stack([norms_of(part).square() for part in parts]).sum(dim=0)
        return Measured(squares, lambda weights: use.from_strips([weights @ part for part in parts], shape))
    a, b = use.unfolded()
    if is_written:
        flat = product(0, b, a).reshape(n, -1)
        return Measured(norms_of(flat).square(), lambda weights: use.ordered(weights @ flat, shape))
    squares = _squares(a, b.transpose(1, 2))
    return Measured(squares.reshape(n, groups).sum(dim=1), lambda weights: use.summed(weights, shape))


def only(use: Use, usable: Tensor) -> Use:
    """The same use with the other records set to zero."""
    if isinstance(use, Outer):
        return Outer(_only(use.left, usable), _only(use.right, usable))
    if isinstance(use, Patches):
        return use.changed(lambda values: _only(values, usable))
    return replace(use, values=_only(use.values, usable))


def _only(values: Tensor, usable: Tensor) -> Tensor:
    shape = (-1, *[1] * (values.dim() - 1))
    return torch.where(usable.reshape(shape), values, torch.zeros((), dtype=values.dtype, device=values.device))
