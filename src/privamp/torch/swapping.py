"""Replace a module's parameters by other tensors during a forward pass."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Tensor = Any


@dataclass(frozen=True)
class Slots:
    """Trainable parameters, each once, and the attributes that hold them: several for a tied one."""

    parameters: list[Any]
    places: list[tuple[Any, str, int]]  # module, attribute, index of the parameter


def slots_of(module: Any, only: list[Any] | None = None) -> Slots:
    """The attributes of a module and its submodules that hold the trainable parameters (or only these)."""
    wanted = [p for p in module.parameters() if p.requires_grad] if only is None else only
    at = {id(p): number for number, p in enumerate(wanted)}
    places = [
        (owner, name, at[id(p)])
        for owner in module.modules()
        for name, p in owner._parameters.items()
        if p is not None and id(p) in at
    ]
    return Slots(wanted, places)


def swap(slots: Slots, tensors: list[Tensor]) -> None:
    """Replace the parameters by tensors."""
    for owner, name, number in slots.places:
        owner._parameters[name] = tensors[number]


@contextlib.contextmanager
def swapped(slots: Slots, tensors: list[Tensor]) -> Iterator[None]:
    """Replace the parameters by tensors until the block ends."""
    try:
        swap(slots, tensors)
        yield
    finally:
        swap(slots, slots.parameters)


def row_each(parameter: Any, shape: Any) -> Tensor:
    """The parameter repeated for every record, without extra memory; autograd still tracks its origin."""
    return parameter.expand(shape)
