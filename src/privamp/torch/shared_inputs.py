"""Inputs of the model that belong to no single record: they must be the same in every batch.

A number that follows the batch (its size, its number of words) changes what every record adds when one record joins.
Trainers of other libraries pass such numbers by themselves. Those computed inside the model are found on made-up
records (`records_apart.py`), but those of a training loop are seen only here.
"""

from typing import Any

import torch
from torch.utils import _pytree as trees

from ..errors import InvalidInput

Tensor = Any
_COUNT = "num_items_in_batch"  # by which models of Hugging Face divide the sum of their losses
_NUMBERS = (bool, int, float)


def without_count(kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments without the number of words in the batch; the model then takes the mean over those of a record."""
    return {name: value for name, value in kwargs.items() if name != _COUNT}


class SharedInputs:
    """What the first batch gave to the model besides rows of records."""

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}
        self._calls = 0

    def forget(self) -> None:
        """A new batch."""
        self._calls = 0

    def require_same(self, args: Any, kwargs: dict[str, Any], records: int) -> None:
        """Raise unless this call of the model has the numbers and shared tensors of that call in the first batch."""
        for at, value in enumerate(trees.tree_leaves([list(args), kwargs])):
            if _is_shared(value, records):
                known = self._known.setdefault((self._calls, at), _kept(value))
                if not _is_same(known, value):
                    raise _follows_the_batch(value)
        self._calls += 1


def _is_shared(value: Any, records: int) -> bool:
    if isinstance(value, torch.Tensor):
        return bool(value.shape[:1] != (records,))
    return isinstance(value, _NUMBERS)


def _kept(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def _is_same(known: Any, value: Any) -> bool:
    if not isinstance(known, torch.Tensor) or not isinstance(value, torch.Tensor):
        return bool(type(known) is type(value) and (known == value or known != known))
    return known.shape == value.shape and known.dtype == value.dtype and bool(torch.equal(known, value.detach()))


def _follows_the_batch(value: Any) -> InvalidInput:
    kind = f"a tensor of shape {tuple(value.shape)}" if isinstance(value, torch.Tensor) else f"a {type(value).__name__}"
    return InvalidInput(
        f"an input of the model that belongs to no single record ({kind}) differs between batches: one that follows "
        "the batch, such as its size, lets a record change what others add, and then steps taken so have no "
        "guarantee; leave it out, or set what follows the step alone as an attribute of the module"
    )
