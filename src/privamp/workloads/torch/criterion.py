"""A loss with one value per record, and the object on which `backward()` is called."""

import copy
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from ...errors import InvalidInput

if TYPE_CHECKING:
    from .run import Run

Tensor = Any
_CLASSES = (nn.CrossEntropyLoss, nn.NLLLoss)


class PrivateCriterion:
    """Calls the criterion record by record while a step is being made, and as it is everywhere else."""

    def __init__(self, criterion: Any, run: "Run") -> None:
        self._criterion, self._run = criterion, run
        self._single = copy.copy(criterion)
        if hasattr(criterion, "reduction"):
            self._single.reduction = "none"

    def __call__(self, output: Tensor, *targets: Any) -> Any:
        """The losses of a batch that was drawn, else the criterion's own value."""
        if not (self._run.is_waiting and torch.is_grad_enabled()):
            return self._criterion(output, *targets)
        return PrivateLoss(self.losses(output, *targets), self._run)

    def losses(self, output: Tensor, *targets: Any) -> Tensor:
        """One loss per record."""
        if isinstance(self._criterion, _CLASSES):
            _check_labels(output, targets[0], self._criterion.ignore_index)
        losses = self._single(output, *targets)
        records = output.shape[0]
        if not isinstance(losses, torch.Tensor) or losses.shape[:1] != (records,):
            raise InvalidInput(
                "the criterion must give one loss per record; use a torch loss, or a function that returns a vector as "
                "long as the batch"
            )
        if losses.dim() == 1:
            return losses
        rest = losses.reshape(records, -1)
        return rest.sum(dim=1) if getattr(self._criterion, "reduction", "mean") == "sum" else rest.mean(dim=1)


class PrivateLoss:
    """The losses of a drawn batch: secret. `backward` measures, weighs and adds up the gradients."""

    __slots__ = ("_losses", "_run")

    def __init__(self, losses: Tensor, run: "Run") -> None:
        self._losses, self._run = losses, run

    def backward(self) -> None:
        """Once per batch."""
        self._run.backward(self._losses)

    def detach(self) -> Tensor:
        """The mean loss of the batch: secret, it carries no noise."""
        return self._losses.detach().mean() if self._losses.numel() else self._losses.new_zeros(())

    def item(self) -> float:
        """The mean loss of the batch: secret, it carries no noise."""
        return float(self.detach())

    def __float__(self) -> float:
        return self.item()

    def __repr__(self) -> str:
        return "PrivateLoss(secret)"


def _check_labels(output: Tensor, labels: Any, ignored: int) -> None:
    """Class labels must be columns of the output; torch would stop with the label in its message."""
    if not isinstance(labels, torch.Tensor) or labels.is_floating_point() or labels.numel() == 0:
        return
    classes = output.shape[1] if output.dim() > 1 else 0
    wrong = (labels != ignored) & ((labels < 0) | (labels >= classes))
    if bool(wrong.any()):
        raise InvalidInput(
            f"labels must be whole numbers from 0 to {classes - 1} for a model with {classes} outputs, but some are "
            "not; recode them or widen the last layer"
        )
