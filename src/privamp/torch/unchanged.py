"""What a forward pass must leave as it is: buffers and parameters, which would publish statistics without noise.

Buffers are compared by their contents, since code that writes through `.data` moves no version. Parameters may be too
large to copy, so at every pass their place and version are compared, and sums over their contents where made-up records
are tried.
"""

from typing import Any

import torch

from ..errors import InvalidInput

Tensor = Any


class Unchanged:
    """The state of a module between its forward passes."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._parameters = list(module.parameters())
        self._before: list[tuple[int, int]] = []
        self._is_changed = False  # a parameter was, in a forward pass
        self.restart()

    def restart(self) -> None:
        """Buffers are as they should be now."""
        self._buffers = {name: (*_place(b), b.detach().clone()) for name, b in self._module.named_buffers()}
        self._is_changed = False

    def begin(self) -> None:
        """A forward pass begins."""
        self._before = [_place(p) for p in self._parameters]

    def end(self) -> None:
        """The forward pass that began last is over."""
        self._is_changed |= self._before != [_place(p) for p in self._parameters]

    def totals(self) -> list[Tensor]:
        """Sums over every parameter, to be compared."""
        return [_totals(p.detach()) for p in self._parameters]

    def require_same(self, totals: list[Tensor] | None = None) -> None:
        """Raise if something changed, a parameter since the last call or since these totals."""
        now = dict(self._module.named_buffers())
        is_same = now.keys() == self._buffers.keys() and all(
            _place(now[name]) == (place, version) and _equal(now[name], content)
            for name, (place, version, content) in self._buffers.items()
        )
        if not is_same:
            raise InvalidInput(
                "a buffer of the module changed in the forward pass, which would publish statistics of the records "
                "without noise; use layers that keep no running statistics"
            )
        pairs = zip(totals or [], self.totals() if totals else [], strict=True)
        if self._is_changed or not all(_equal(a, b) for a, b in pairs):
            self._is_changed = False
            raise InvalidInput(
                "a parameter of the module changed in the forward pass, which would publish what it took from the "
                "records without noise; leave out what writes into parameters there (max_norm of an embedding, "
                "moving averages, a start from the first batch)"
            )


def _place(tensor: Tensor) -> tuple[int, int]:
    return tensor.data_ptr(), tensor._version


def _totals(values: Tensor) -> Tensor:
    total = values.sum(dtype=torch.float64)
    if not values.is_floating_point():
        return total.reshape(1)
    return torch.stack([total, torch.linalg.vector_norm(values, dtype=torch.float64)])


def _equal(one: Tensor, other: Tensor) -> bool:
    """Bit for bit, where what is no number equals itself."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return bool(torch.equal(one, other)) or bool(((one == other) | ((one != one) & (other != other))).all())
