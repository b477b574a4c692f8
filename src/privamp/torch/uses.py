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
    ghost         norm^2 = sum_st (l_is . l_it)(r_is . r_it), gradient never formed (`ghost_norms.py`)

A norm that is too small would let a gradient exceed the clipping bound. The ghost norm subtracts large numbers when
positions cancel, and so does a gradient that is rounded otherwise than in the weighted sum. So the error bounds of
both are added: they err upward. The weighted sum needs no second backward pass (Bu et al. 2022). Uses of different
kinds can be converted: an embedding is an Outer with one-hot rows (tied word vectors), and every use can be written
out.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.nn import functional

from .ghost_norms import same_rows_squares, squares_of
from .half_products import multiplied, scaled, summing_error
from .patches import Patches, joined
from .precision import norms_of, sum_dtype, written_norms

Tensor = Any
_FEW = 4  # times what a layer holds anyway: how large a gradient may be that is written out because it is faster


@dataclass(frozen=True, slots=True)
class Measured:
    """Squared norms of the gradients, (records,) doubles, and their weighted sums."""

    squares: Tensor
    held: tuple[Tensor, ...]  # what the sum needs, with a row per record
    sum: Callable[..., Tensor] = field(repr=False)  # (weights, *held)
    is_written: bool = False  # the gradients are written out

    def summed(self, weights: Tensor) -> Tensor:
        """The sum over records of weight times gradient."""
        return self.sum(weights, *self.held)

    @property
    def rows(self) -> Tensor | None:
        """The gradients, where they are written out."""
        return self.held[0] if self.is_written else None

    def only(self, usable: Tensor) -> "Measured":
        """The same with the other records left out of the sum: 0 times nan would be nan."""
        return replace(self, held=tuple(_only(values, usable) for values in self.held))


@dataclass(frozen=True, slots=True)
class Outer:
    """left (records, positions, rows), right (records, positions, columns)."""

    left: Tensor
    right: Tensor

    def written(self, shape: Any) -> Tensor:
        """(records, *shape)."""
        return multiplied(self.left.transpose(1, 2), self.right).reshape(-1, *shape)


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
    return sum_dtype(held.dtype)


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
    return Measured(written_norms(flat).square(), (flat,), lambda w, flat: (w @ flat).reshape(shape), True)


def _is_small(gradient: int, held: int) -> bool:
    """Whether a record's gradient is smaller than what is stored for it anyway."""
    return gradient <= held


def _is_kept_written(gradient: int, held: int, kind: str) -> bool:
    """On a CPU new memory takes longer than a product, so a gradient is kept only where it is much smaller."""
    return 4 * gradient <= (held if kind == "cpu" else 5 * held)


def _outer(b: Tensor, a: Tensor, shape: Any) -> Measured:
    places, d, p = a.shape[1], a.shape[2], b.shape[2]

    def summed(weights: Tensor, b: Tensor, a: Tensor) -> Tensor:
        b, a = (scaled(b, weights), a) if p <= d else (b, scaled(a, weights))
        return multiplied(b.reshape(-1, p).T, a.reshape(-1, d)).reshape(shape)

    if places == 1:
        norms = norms_of(a) * norms_of(b) * (1.0 + summing_error(a, 1))
        return Measured(norms.square(), (b, a), summed)
    if _is_kept_written(d * p, places * (d + p), a.device.type):
        return _written_out(multiplied(b.transpose(1, 2), a), shape)
    return Measured(squares_of(a, b), (b, a), summed)


def _rows(ids: Tensor, b: Tensor, shape: Any) -> Measured:
    def summed(weights: Tensor, b: Tensor) -> Tensor:
        rows = scaled(b, weights).reshape(-1, b.shape[2])
        return rows.new_zeros(shape).index_add_(0, ids.reshape(-1), rows)

    return Measured(same_rows_squares(ids, b), (b,), summed)


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
    bare = use.of(*(t.new_empty(0, *t.shape[1:]) for t in (*use.inputs, *use.backs)))  # to order, without memory
    if is_written and use.has_strips:
        parts = use.strips(product)
        squares = torch.stack([written_norms(part).square() for part in parts]).sum(dim=0)
        return Measured(squares, tuple(parts), lambda w, *parts: bare.from_strips([w @ part for part in parts], shape))
    a, b = use.unfolded()
    if is_written:
        flat = product(0, b, a).reshape(n, -1)
        return Measured(written_norms(flat).square(), (flat,), lambda w, flat: bare.ordered(w @ flat, shape))
    squares = squares_of(a, b.transpose(1, 2)).reshape(n, groups).sum(dim=1)
    return Measured(squares, (*use.inputs, *use.backs), lambda w, *held: bare.of(*held).summed(w, shape))


def _only(values: Tensor, usable: Tensor) -> Tensor:
    shape = (-1, *[1] * (values.dim() - 1))
    return torch.where(usable.reshape(shape), values, torch.zeros((), dtype=values.dtype, device=values.device))
