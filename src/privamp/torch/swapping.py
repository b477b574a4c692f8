"""Other tensors in the place of a module's parameters, for the time of a forward pass."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Tensor = Any


@dataclass(frozen=True)
class Slots:
    """Trainable parameters, each once, and where they are held: a tied one in several places."""

    parameters: list[Any]
    places: list[tuple[Any, str, int]]  # module, attribute, which parameter


def slots_of(module: Any, only: list[Any] | None = None) -> Slots:
    """Where the trainable parameters (or only these) are held in a module and below it."""
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
    """Put tensors where the parameters are."""
    for owner, name, number in slots.places:
        owner._parameters[name] = tensors[number]


@contextlib.contextmanager
def swapped(slots: Slots, tensors: list[Tensor]) -> Iterator[None]:
    """Tensors where the parameters are, until the block ends."""
    try:
        swap(slots, tensors)
        yield
    finally:
        swap(slots, slots.parameters)


def row_each(parameter: Any, shape: Any) -> Tensor:
    """The parameter once more for every record, which takes no memory; autograd still knows where it comes from."""
    return parameter.expand(shape)
