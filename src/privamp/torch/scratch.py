"""Memory for gradients that are written out, used again from batch to batch.

On a CPU the pages of a large new tensor take longer to get from the system than the product that fills them. Elsewhere
torch keeps memory itself. A block belongs to one batch from `product` to `give_back`, so what a batch still needs is
never overwritten.
"""

from typing import Any

import torch

Tensor = Any
_ROOM = 8  # an eighth more, because batches differ in size


class Scratch:
    """Blocks that no batch uses now, by the place that they are for."""

    def __init__(self) -> None:
        self.free: dict[Any, Tensor] = {}


class Lease:
    """The blocks of one batch."""

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._taken: dict[Any, Tensor] = {}

    def product(self, place: Any, a: Tensor, b: Tensor) -> Tensor:
        """torch.bmm(a, b), (records, rows x columns), in the block of this place."""
        n, rows, columns = a.shape[0], a.shape[1], b.shape[2]
        if a.device.type != "cpu":
            return torch.bmm(a, b).view(n, -1)
        size = n * rows * columns
        block = self._scratch.free.pop(place, None)
        if block is None or block.numel() < size or block.dtype != a.dtype:
            block = a.new_empty(size + size // _ROOM)
        self._taken[place] = block
        return torch.bmm(a, b, out=block[:size].view(n, rows, columns)).view(n, -1)

    def give_back(self) -> None:
        """The batch needs them no more."""
        self._scratch.free |= self._taken
        self._taken = {}
