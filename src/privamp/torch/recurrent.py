"""`nn.LSTM`, `nn.GRU` and `nn.RNN` in steps: the linear maps of inputs and states are recorded at every position."""

from typing import Any

import torch
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from ..errors import InvalidInput
from .replaced import Replaced

Tensor = Any


class Recurrent(Replaced):
    """Batch first; several layers, both directions, dropout between layers and projections as in torch."""

    def by_steps(self, x: Tensor, hx: Any = None) -> tuple[Tensor, Any]:
        """The output of the layer for (records, positions, width)."""
        layer, kind = self._module, type(self._module).__name__
        if isinstance(x, PackedSequence) or x.dim() != 3 or not layer.batch_first:
            raise InvalidInput(
                f"layer {self._name!r} ({kind}) must have batch_first=True and batches of sequences of one length, not "
                "packed ones, because the first dimension must be that of the records; pad them to a public length"
            )
        ways = 2 if layer.bidirectional else 1
        given = self._states(hx, x, layer.num_layers * ways)
        last = []
        for level in range(layer.num_layers):
            found = []
            for way in range(ways):
                states, end = self._one_way(x if way == 0 else x.flip(1), level, way, given[level * ways + way])
                found.append(states if way == 0 else states.flip(1))
                last.append(end)
            x = torch.cat(found, dim=2)
            if layer.dropout and level + 1 < layer.num_layers:
                x = functional.dropout(x, layer.dropout, layer.training)
        ends = tuple(torch.stack(parts) for parts in zip(*last, strict=True))
        return x, ends if layer.mode == "LSTM" else ends[0]

    def _states(self, hx: Any, x: Tensor, count: int) -> list[tuple[Tensor, ...]]:
        layer = self._module
        if hx is not None:
            every = hx if isinstance(hx, tuple) else (hx,)
            return [tuple(part[i] for part in every) for i in range(count)]
        none = x.new_zeros(x.shape[0], layer.proj_size or layer.hidden_size)
        return [(none, x.new_zeros(x.shape[0], layer.hidden_size))[: 1 + (layer.mode == "LSTM")]] * count

    def _one_way(self, x: Tensor, level: int, way: int, state: tuple[Tensor, ...]) -> tuple[Tensor, Any]:
        layer = self._module
        at = f"l{level}" + "_reverse" * way
        weight_in, weight, bias_in, bias, projection = (
            getattr(layer, f"{name}_{at}", None)
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
        )
        inward = self.linear(x, weight_in, bias_in)
        states = []
        for place in range(x.shape[1]):
            state = _moved(layer.mode, inward[:, place], self.linear(state[0], weight, bias), state)
            if projection is not None:
                state = (self.linear(state[0], projection, None), *state[1:])
            states.append(state[0])
        return torch.stack(states, dim=1), state


class Cell(Replaced):
    """`nn.LSTMCell`, `nn.GRUCell` and `nn.RNNCell`: one position."""

    def by_steps(self, x: Tensor, hx: Any = None) -> Any:
        """The state after (records, width)."""
        layer, kind = self._module, type(self._module).__name__
        if x.dim() != 2:
            raise InvalidInput(
                f"layer {self._name!r} ({kind}) must be given (records, width), got {x.dim()} dimensions instead; keep "
                "the dimension of records"
            )
        mode = f"RNN_{layer.nonlinearity.upper()}" if kind == "RNNCell" else kind.removesuffix("Cell")
        none = x.new_zeros(x.shape[0], layer.hidden_size)
        given = (none, none) if hx is None else hx if isinstance(hx, (tuple, list)) else (hx,)
        state = tuple(self._recorder.for_each(self._name, part) for part in given)
        inward = self.linear(x, layer.weight_ih, layer.bias_ih)
        moved = _moved(mode, inward, self.linear(state[0], layer.weight_hh, layer.bias_hh), state)
        return moved if mode == "LSTM" else moved[0]


def _moved(mode: str, inward: Tensor, around: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The state after one position."""
    if mode == "LSTM":
        entry, forget, new, out = (inward + around).chunk(4, dim=1)
        cell = torch.sigmoid(forget) * state[1] + torch.sigmoid(entry) * torch.tanh(new)
        return torch.sigmoid(out) * torch.tanh(cell), cell
    if mode == "GRU":
        (reset, keep, new), (r, z, n) = inward.chunk(3, dim=1), around.chunk(3, dim=1)
        kept = torch.sigmoid(keep + z)
        fresh = torch.tanh(new + torch.sigmoid(reset + r) * n)
        return ((1 - kept) * fresh + kept * state[0],)
    total = inward + around
    return (torch.tanh(total) if mode == "RNN_TANH" else torch.relu(total),)
