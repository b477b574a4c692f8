"""Modules without a rule: their forward pass runs record by record, each with its own parameters (`torch.func`).

Every trainable parameter of the module gets a row per record, so the backward pass materialises the gradient of every
record: as many numbers as records times parameters. It must be known whether an input belongs to one record or to all:
an argument belongs to records if its first dimension followed the size of made-up batches.
"""

import warnings
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as trees

from ..errors import InvalidInput
from .replaced import Replaced
from .swapping import row_each, slots_of, swapped

if TYPE_CHECKING:
    from .ghost import GradientRecorder

Tensor = Any
_SIMPLE = (bool, int, float, str, type(None))


class Alone(Replaced):
    """A module whose records are computed separately by vmap."""

    def __init__(self, recorder: "GradientRecorder", name: str, module: Any) -> None:
        super().__init__(recorder, name, module)
        self._slots = slots_of(module)
        self._is_inside = False

    def by_steps(self, *args: Any, **kwargs: Any) -> Any:
        """The outputs of the module, computed record by record."""
        if self._is_inside:
            return self._plain(*args, **kwargs)
        self._is_inside = True
        try:
            return self._apart((args, kwargs))
        except (RuntimeError, ValueError, NotImplementedError) as error:
            raise InvalidInput(
                f"{self._where} has no rule for its gradients, and its records cannot be computed one by one either "
                f"({type(error).__name__}); build it from layers that have a rule, or freeze it"
            ) from error
        finally:
            self._is_inside = False

    def _apart(self, arguments: Any) -> Any:
        rows = [row_each(p, (self._recorder.expected, *p.shape)) for p in self._slots.parameters]
        for parameter, row in zip(self._slots.parameters, rows, strict=True):
            self._recorder.hear_rows(self._name, parameter, row)
        given, structure = trees.tree_flatten(arguments)
        tensors = [t for t in given if isinstance(t, torch.Tensor)]
        follows = self._recorder.following(self._name, tensors)
        outside: list[Any] = []

        def one(own: list[Tensor], here: list[Tensor]) -> list[Tensor]:
            alone = iter([t.unsqueeze(0) if f else t for t, f in zip(here, follows, strict=True)])
            inside = [next(alone) if isinstance(t, torch.Tensor) else t for t in given]
            some, named = trees.tree_unflatten(inside, structure)
            with swapped(self._slots, own):
                found, shape = trees.tree_flatten(self._plain(*some, **named))
            outside[:] = [[self._simple(value) for value in found], shape]
            return [self._row(t) for t in found if isinstance(t, torch.Tensor)]

        dims = [0 if f else None for f in follows]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "There is a performance drop", UserWarning)
            results = iter(torch.func.vmap(one, in_dims=(0, dims), randomness="different")(rows, tensors))
        found, shape = outside
        return trees.tree_unflatten([next(results) if value is torch.Tensor else value for value in found], shape)

    def _simple(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return torch.Tensor  # the kind describes the output of vmap
        if isinstance(value, _SIMPLE):
            return value
        raise InvalidInput(
            f"{self._where} returns a {type(value).__name__}, in which records cannot be separated; let it return "
            "tensors, or tuples and dicts of them"
        )

    def _row(self, value: Tensor) -> Tensor:
        if value.shape[:1] != (1,):
            raise InvalidInput(
                f"{self._where} must keep records separate in the first dimension of its outputs; let it return "
                "one row per record"
            )
        return value.squeeze(0)

    @property
    def _where(self) -> str:
        kind = type(self._module).__name__
        return f"layer {self._name!r} ({kind})" if self._name else f"the module itself ({kind})"
