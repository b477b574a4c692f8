"""What a run trains: a module with its optimiser and criterion, and how a batch becomes losses."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Compute = Callable[[Any, Any, Any], Any]
"""(module, criterion, batch) -> what the criterion gave, as in a training loop."""


def usual(module: Any, criterion: Any, batch: Any) -> Any:
    """What the criterion gives for inputs and a target that stands last."""
    *inputs, target = batch
    return criterion(module(*inputs), target)


@dataclass(frozen=True, slots=True)
class Learner:
    """What is trained. Nothing here is secret but what the module has learned so far."""

    module: Any
    optimizer: Any
    criterion: Any
    scheduler: Any = None
    compute: Compute = usual
    example: Any = None  # made-up records to try it on; of the data's own shape by default
