"""Layers whose forward pass is replaced while gradients are recorded, so that each use of a parameter is seen.

Fused kernels (attention, LSTM) hide their intermediate results. A replaced layer computes the same result in steps and
reports every linear map to the recorder. Outside training steps the layer's own forward pass runs.
"""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from .layers import linear_parts
from .precision import as_cast

if TYPE_CHECKING:
    from .ghost import GradientRecorder

Tensor = Any


class Replaced(ABC):
    """Replaces the forward pass of one module until `restore`."""

    def __init__(self, recorder: "GradientRecorder", name: str, module: Any) -> None:
        self._recorder, self._name, self._module = recorder, name, module
        self._before = vars(module).get("forward")
        self._plain = module.forward
        module.forward = recorder.eager(self.forward)

    def restore(self) -> None:
        """Restore the module's own forward pass."""
        if self._before is None:
            del self._module.forward
        else:
            self._module.forward = self._before

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run in steps while gradients are recorded, otherwise as usual."""
        if not (self._recorder.is_tapping and torch.is_grad_enabled()):
            return self._plain(*args, **kwargs)
        return self.by_steps(*args, **kwargs)

    @abstractmethod
    def by_steps(self, *args: Any, **kwargs: Any) -> Any:
        """The same result, with every use of a parameter reported."""

    def linear(self, x: Tensor, weight: Any, bias: Any, rows: tuple[int, int] | None = None) -> Tensor:
        """x times the weight (or these rows of it) plus the bias, reported to the recorder."""
        x = as_cast(self._recorder.for_each(self._name, x))
        own = (weight, bias) if rows is None else (t if t is None else t[slice(*rows)] for t in (weight, bias))
        result = functional.linear(x, *own)
        inputs = x.detach()
        self._recorder.hear(
            self._name, (weight, bias), inputs, result,
            lambda a, back: linear_parts(weight, bias, a, back, rows=rows), is_linear=True,
        )  # fmt: skip
        return result


def is_replaced(module: Any) -> bool:
    """Whether the forward pass of this module is already replaced by an engine that is still attached."""
    forward = vars(module).get("forward")
    return isinstance(getattr(getattr(forward, "__wrapped__", forward), "__self__", None), Replaced)
