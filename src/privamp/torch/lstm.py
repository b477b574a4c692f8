"""An LSTM made of linear layers, so that its gradients can be measured record by record."""

from typing import Any

import torch
from torch import nn


class LSTM(nn.Module):
    """One layer, batch first: (records, places, width) to (records, places, hidden), both ways when `bidirectional`."""

    def __init__(self, input_size: int, hidden_size: int, *, bidirectional: bool = False) -> None:
        super().__init__()
        ways = 2 if bidirectional else 1
        self.hidden_size = hidden_size
        self.inward = nn.ModuleList(nn.Linear(input_size, 4 * hidden_size) for _ in range(ways))
        self.around = nn.ModuleList(nn.Linear(hidden_size, 4 * hidden_size, bias=False) for _ in range(ways))
        bound = hidden_size**-0.5
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def forward(self, x: Any) -> Any:
        """The hidden states at every place."""
        ways = [self._one_way(x, way) for way in range(len(self.inward))]
        return torch.cat(ways, dim=2)

    def _one_way(self, x: Any, way: int) -> Any:
        around = self.around[way]
        gates_in = self.inward[way](x if way == 0 else x.flip(1))
        hidden = x.new_zeros(x.shape[0], self.hidden_size)
        cell, states = hidden, []
        for place in range(x.shape[1]):
            entry, forget, new, out = (gates_in[:, place] + around(hidden)).chunk(4, dim=1)
            cell = torch.sigmoid(forget) * cell + torch.sigmoid(entry) * torch.tanh(new)
            hidden = torch.sigmoid(out) * torch.tanh(cell)
            states.append(hidden)
        stacked = torch.stack(states, dim=1)
        return stacked if way == 0 else stacked.flip(1)
