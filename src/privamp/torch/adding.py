"""The sum of a step: in floating point, or exact.

Exact sums: the clipped gradient of every record is rounded by itself to whole units of the grid (`grid.py`), and whole
numbers are added, modulo 2^64. So adding a record adds its own rounded gradient and changes nothing else, in whatever
order and parts records are added up. A rounded gradient is at most C + 0.52 g sqrt(d) long (half a unit by rounding, a
64th by the products in doubles before it, as C is at most 2^45 units), less than what the grid's noise pays for. Noise
is added modulo 2^64 too, which is a function of the sum plus noise, so no bound on the number of records is needed.
"""

from abc import ABC, abstractmethod
from typing import Any

import torch

from .batches import Batches
from .grid import Grid
from .precision import sum_dtype
from .recorded import Recorded

Tensor = Any
_CACHED = 2**18  # doubles
_LESS = 1.0 - 2.0**-24  # of a weight: norms of up to 2^29 numbers err by less in double precision


class Sums(ABC):
    """The sums of the step in progress, by parameter: secret."""

    is_exact = False

    def __init__(self) -> None:
        self.held: dict[int, Tensor] = {}

    def forget(self) -> None:
        """A new step begins."""
        self.held = {}

    @abstractmethod
    def add(self, recorded: Recorded, weights: Tensor) -> None:
        """Add weight times gradient for every record; the weights are doubles on the processor."""

    @abstractmethod
    def none(self, parameter: Any) -> Tensor:
        """The sum over nobody."""


class FloatSums(Sums):
    """Matrix products in the precision of the model, at least float32."""

    def add(self, recorded: Recorded, weights: Tensor) -> None:
        """Add the weighted sum of a part."""
        for parameter, gradient in recorded.weighted(weights):
            held = self.held.get(id(parameter))
            self.held[id(parameter)] = gradient if held is None else held.add_(gradient)

    def none(self, parameter: Any) -> Tensor:
        """Zeros in the precision of sums."""
        return torch.zeros_like(parameter, dtype=sum_dtype(parameter.dtype))


class ExactSums(Sums):
    """Whole units of the grid, as 64-bit integers."""

    is_exact = True

    def __init__(self, batches: Batches, size: int) -> None:
        super().__init__()
        self._batches, self._size = batches, size

    def add(self, recorded: Recorded, weights: Tensor) -> None:
        """Round the gradient of every record, and add the whole numbers."""
        unit = Grid(self._batches.mechanism, self._size, self._batches.normaliser).unit
        scaled = (weights.double() * (_LESS / unit)).to(recorded.norms.device)
        for parameter, where, rows in recorded.written():
            if id(parameter) not in self.held:
                self.held[id(parameter)] = self.none(parameter)
            held = self.held[id(parameter)]
            here = held if where is None else held[slice(*where)]
            here += added_up(rows, scaled).view_as(here)

    def none(self, parameter: Any) -> Tensor:
        """Zero units."""
        return torch.zeros_like(parameter, dtype=torch.int64)


def added_up(rows: Tensor, scaled: Tensor) -> Tensor:
    """The sum of round(scale times row), exact: every row is rounded by itself."""
    total = torch.zeros(rows.shape[1], dtype=torch.int64, device=rows.device)
    size = max(1, _CACHED // max(rows.shape[1], 1))
    for start in range(0, rows.shape[0], size):
        some = rows[start : start + size].double().mul_(scaled[start : start + size, None]).round_()
        total += some.long().sum(dim=0)
    return total
