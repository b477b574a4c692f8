"""`nn.MultiheadAttention` in steps: projections whose inputs are recorded, then torch's own attention."""

import math
from typing import Any

import torch
from torch.nn import functional

from ..errors import InvalidInput
from .layers import Part
from .replaced import Replaced
from .uses import Written

Tensor = Any


def is_plain(layer: Any) -> bool:
    """Whether the layer has no key and value biases of its own (rarely used)."""
    return layer.bias_k is None and layer.bias_v is None and not layer.add_zero_attn


class Attention(Replaced):
    """Batch first; masks as in torch."""

    def by_steps(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The output of the layer for (records, positions, width)."""
        layer = self._module
        if not layer.batch_first or query.dim() != 3:
            raise InvalidInput(
                f"layer {self._name!r} (MultiheadAttention) must have batch_first=True and batches of sequences, "
                "because the first dimension must be that of the records; build it that way"
            )
        if is_causal and attn_mask is None:
            raise InvalidInput(f"layer {self._name!r} (MultiheadAttention) needs attn_mask when is_causal is set")
        q, k, v = self._projected(query, key, value)
        mask = _mask(layer, q, k, key_padding_mask, attn_mask)
        dropout = layer.dropout if layer.training else 0.0
        weights = None
        if need_weights:
            scores = (q * math.sqrt(1.0 / q.shape[-1])) @ k.transpose(2, 3)
            weights = torch.softmax(scores if mask is None else scores + mask, dim=-1)
            weights = functional.dropout(weights, dropout) if dropout else weights
            found = weights @ v
            weights = weights.mean(dim=1) if average_attn_weights else weights
        else:
            found = functional.scaled_dot_product_attention(q, k, v, mask, dropout)
        joined = found.transpose(1, 2).flatten(2)
        return self.linear(joined, layer.out_proj.weight, layer.out_proj.bias), weights

    def _projected(self, query: Tensor, key: Tensor, value: Tensor) -> list[Tensor]:
        """(records, heads, positions, width of a head) for each of the three."""
        layer, width = self._module, self._module.embed_dim
        thirds = [(i * width, (i + 1) * width) for i in range(3)]
        if layer._qkv_same_embed_dim and query is key is value:
            packed = self.linear(query, layer.in_proj_weight, layer.in_proj_bias)
            return [t.transpose(1, 2) for t in packed.unflatten(2, (3, layer.num_heads, -1)).unbind(2)]
        inputs = [self._recorder.for_each(self._name, x) for x in (query, key, value)]
        if layer._qkv_same_embed_dim:
            weight, bias = layer.in_proj_weight, layer.in_proj_bias
            return [self._split(self.linear(x, weight, bias, r)) for x, r in zip(inputs, thirds, strict=True)]
        found = []
        for x, weight, rows in zip(inputs, (layer.q_proj_weight, layer.k_proj_weight, layer.v_proj_weight), thirds,
                                   strict=True):  # fmt: skip
            found.append(self._split(self.linear(x, weight, None) + self._bias(x, rows)))
        return found

    def _bias(self, x: Tensor, rows: tuple[int, int]) -> Any:
        """A separate map, since one bias serves three weights: for a column of ones as input it is the weight."""
        bias = self._module.in_proj_bias
        if bias is None:
            return 0.0
        ones = x.new_ones(*x.shape[:-1], 1)
        result = functional.linear(ones, bias[slice(*rows), None])
        self._recorder.hear(self._name, [bias], ones, result, lambda a, back: _of_bias(bias, back, rows))
        return result

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(2, (self._module.num_heads, -1)).transpose(1, 2)


def _of_bias(bias: Any, back: Tensor, rows: tuple[int, int]) -> list[Part]:
    return [Part(bias, Written(back.flatten(1, -2).sum(dim=1)), rows)] if bias.requires_grad else []


def _mask(layer: Any, q: Tensor, k: Tensor, padding: Tensor | None, mask: Tensor | None) -> Tensor | None:
    """Both masks as numbers to add to (records, heads, positions, positions)."""
    added = None
    if mask is not None:
        mask = _number(mask, q.dtype)
        added = mask.unflatten(0, (-1, layer.num_heads)) if mask.dim() == 3 else mask
    if padding is not None:
        ahead = _number(padding, q.dtype)[:, None, None, :]
        added = ahead if added is None else added + ahead
    return added


def _number(mask: Tensor, dtype: Any) -> Tensor:
    if mask.dtype != torch.bool:
        return mask.to(dtype)
    return torch.zeros_like(mask, dtype=dtype).masked_fill_(mask, -math.inf)
