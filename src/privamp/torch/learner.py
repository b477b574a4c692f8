"""What a run trains: a module with its optimiser and a loss with one value per record, on which `backward()` is called.

Every record has a loss: one for which the criterion fails (a label out of range) gets the constant 0, and so counts as
nothing. Stopping, or naming it, would leak information about it.
"""

import copy
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from ..errors import InvalidInput
from . import made_up, own_losses

if TYPE_CHECKING:
    from .run import Run

Tensor = Any
_CLASSES = (nn.CrossEntropyLoss, nn.NLLLoss, nn.MultiMarginLoss)
_ONE_EACH = (
    "the criterion must give one loss per record; use a torch loss, or a function that returns a vector as long as the "
    "batch"
)
_ALLOWED = (
    "it may be multiplied by and added to numbers before backward(); do the rest inside the criterion, record by record"
)
_OTHERS = (
    "may hold other records; give a term of the parameters as penalty= to make_private, and a term of a record inside "
    "the criterion"
)
_SUMS = ("sum", "batchmean")  # reductions that add up what belongs to one record
Compute = Callable[[Any, Any, Any], Any]
"""(module, criterion, batch) -> what the criterion gave, as in a training loop."""


def usual(module: Any, criterion: Any, batch: Any) -> Any:
    """What the criterion gives for inputs and a target that stands last, or under "labels"; or the model's own loss."""
    if criterion is None:
        output = module(**batch) if isinstance(batch, dict) else module(*batch)
        return own_losses.found_in(output)
    if isinstance(batch, dict):
        inputs = {name: value for name, value in batch.items() if name != "labels"}
        return criterion(_scores(module(**inputs)), batch["labels"])
    *some, target = batch
    return criterion(_scores(module(*some)), target)


def _scores(output: Any) -> Any:
    """The tensor of an output that has several parts, such as those of Hugging Face."""
    return output if isinstance(output, torch.Tensor) else getattr(output, "logits", output)


def device_of(module: Any) -> Any:
    """Where the parameters of a module are."""
    if not isinstance(module, nn.Module):
        raise InvalidInput(f"module must be a torch.nn.Module, got {type(module).__name__} instead")
    first = next(module.parameters(), None)
    if first is None:
        raise InvalidInput(f"module has no parameters, so there is nothing to train, got {type(module).__name__}")
    for name, parameter in module.named_parameters():
        if is_lazy(parameter):
            raise InvalidInput(f"parameter {name!r} has no shape yet; call the module once on made-up records before")
        if parameter.requires_grad and parameter.is_complex():
            raise InvalidInput(f"parameter {name!r} is complex, which is not supported; train its two parts as reals")
    return first.device


@dataclass(frozen=True, slots=True)
class Learner:
    """What is trained. Only the module's parameters are secret."""

    module: Any
    optimizer: Any
    criterion: Any
    scheduler: Any = None
    compute: Compute = usual
    penalty: Any = None  # a term of the loss that depends on the module alone
    example: Any = None  # made-up records to try it on; of the data's own shape by default
    keeps_noise: bool = True  # noise that rounds share: kept, or made again from the key


class PrivateCriterion:
    """Calls the criterion record by record during a step, and unchanged everywhere else."""

    def __init__(self, criterion: Any, run: "Run") -> None:
        self._criterion, self._run = criterion, run
        self._single = copy.copy(criterion)
        self._is_flat = False
        if hasattr(criterion, "reduction"):
            self._single.reduction = "none"

    def __call__(self, *given: Any, **named: Any) -> Any:
        """The losses of a batch that was drawn, else the criterion's own value."""
        output, *targets = _in_order(self._criterion, given, named) if named else given
        if not (self._run.is_waiting and torch.is_grad_enabled()):
            return self._criterion(output, *targets)
        return PrivateLoss(self.losses(output, *targets), self._run)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked for by copy and pickle
            raise AttributeError(name)
        raise AttributeError(
            f"the criterion that make_private returns has no {name!r}, because it only gives private losses; change "
            "the criterion before make_private"
        )

    def losses(self, output: Tensor, *targets: Any) -> Tensor:
        """One loss per record, 0 for records that have none."""
        if not isinstance(output, torch.Tensor) or output.dim() == 0:
            raise InvalidInput("the criterion must be given the model's output as one tensor, a row per record")
        output, targets, self._is_flat = self._by_record(output, targets)
        targets, is_sane = self._within_range(output, targets)
        try:
            losses = self._of_records(output, *targets)
        except (InvalidInput, torch.OutOfMemoryError):
            raise
        except Exception:
            losses = self._of_those_that_have_one(output, targets)
        return losses if is_sane is None else torch.where(is_sane, losses, 0.0)

    def ignored(self, default: int) -> int:
        """The label that the criterion leaves out, if it says so."""
        found = getattr(self._criterion, "ignore_index", default)
        return found if isinstance(found, int) else default

    def unguarded(self, output: Tensor, *targets: Any) -> Tensor:
        """One loss per record, or whatever the criterion raises."""
        if isinstance(output, torch.Tensor) and output.dim():
            output, targets, self._is_flat = self._by_record(output, targets)
        return self._of_records(output, *targets)

    def _by_record(self, output: Tensor, targets: tuple[Any, ...]) -> tuple[Tensor, tuple[Any, ...], bool]:
        """Rows of a flattened batch, (records x places, ...), as (records, places, ...); the places count as one."""
        count, rows = self._run.recorder.expected, output.shape[0]
        labels = targets[0] if targets else None
        if not isinstance(labels, torch.Tensor) or not count:
            return output, targets, False
        if rows != count and rows % count == 0 and labels.shape[:1] == (rows,):
            targets = tuple(t.unflatten(0, (count, -1)) if isinstance(t, torch.Tensor) else t for t in targets)
            return output.unflatten(0, (count, -1)), targets, True
        if isinstance(self._criterion, _CLASSES) and output.dim() == 3 and labels.dim() == 2:
            is_last = labels.shape == output.shape[:2] and labels.shape != (rows, *output.shape[2:])
            return output, targets, is_last  # classes last, where torch would have them second
        return output, targets, False

    def _of_records(self, output: Tensor, *targets: Any) -> Tensor:
        if self._is_flat:
            return self._of_places(output, targets)
        losses = self._single(output, *targets)
        if not isinstance(losses, torch.Tensor) or losses.shape[:1] != output.shape[:1]:
            raise InvalidInput(_ONE_EACH)
        if losses.dim() == 1:
            return losses
        rest = losses.flatten(1)
        return rest.sum(dim=1) if getattr(self._criterion, "reduction", "mean") in _SUMS else rest.mean(dim=1)

    def _of_places(self, output: Tensor, targets: tuple[Any, ...]) -> Tensor:
        """The mean over a record's places, those with the label to ignore left out."""
        flat = [t.flatten(0, 1) if isinstance(t, torch.Tensor) else t for t in targets]
        losses = self._single(output.flatten(0, 1), *flat)
        if not isinstance(losses, torch.Tensor) or losses.shape[:1] != (output.shape[0] * output.shape[1],):
            raise InvalidInput(_ONE_EACH)
        losses = losses.reshape(*output.shape[:2], -1).flatten(1)
        if getattr(self._criterion, "reduction", "mean") in _SUMS:
            return losses.sum(dim=1)
        ignored = getattr(self._criterion, "ignore_index", None)
        if ignored is None or losses.shape[1] != output.shape[1]:
            return losses.mean(dim=1)
        return losses.sum(dim=1) / (targets[0] != ignored).reshape(losses.shape).sum(dim=1).clamp(min=1)

    def _within_range(self, output: Tensor, targets: tuple[Any, ...]) -> tuple[tuple[Any, ...], Tensor | None]:
        """Class labels that are not a column of the output become 0, and their records are marked."""
        labels = targets[0] if targets else None
        if not isinstance(self._criterion, _CLASSES) or not isinstance(labels, torch.Tensor):
            return targets, None
        if labels.is_floating_point() or labels.shape[:1] != output.shape[:1] or output.dim() < 2:
            return targets, None
        is_class = _is_below(labels, output.shape[2 if self._is_flat else 1])
        is_class |= labels == getattr(self._criterion, "ignore_index", 0)
        is_sane = is_class.flatten(1).all(dim=1) if labels.dim() > 1 else is_class
        return (labels.where(is_class, torch.zeros_like(labels)), *targets[1:]), is_sane

    def _of_those_that_have_one(self, output: Tensor, targets: tuple[Any, ...]) -> Tensor:
        """The criterion failed: raise if it fails on made-up values too (the shapes are wrong), else the records'
        losses are 0."""
        try:
            self._of_records(*made_up.like([output, *targets], output.shape[0]))
        except Exception as error:
            raise InvalidInput(
                f"the criterion fails on numbers of these shapes ({type(error).__name__}); check its arguments"
            ) from None
        some = [r for r in range(output.shape[0]) if self._has_one(output, targets, r)]
        at = torch.tensor(some, dtype=torch.long, device=output.device)
        nothing = output.flatten(1).sum(dim=1).masked_fill(torch.ones(len(output), device=output.device).bool(), 0.0)
        if not some:
            return nothing
        found = self._of_records(output[at], *made_up.rows(list(targets), at))
        return nothing.to(found.dtype).index_put((at,), found)

    def _has_one(self, output: Tensor, targets: tuple[Any, ...], record: int) -> bool:
        here = slice(record, record + 1)
        try:
            with torch.no_grad():
                self._of_records(output[here], *made_up.rows(list(targets), here))
        except Exception:
            return False
        return True


def _in_order(criterion: Any, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """Arguments of a criterion by their places."""
    about = inspect.signature(criterion.forward if isinstance(criterion, nn.Module) else criterion)
    try:
        return about.bind(*given, **named).args
    except TypeError as error:
        raise InvalidInput(f"the criterion does not take these arguments ({error}); check their names") from None


def _is_below(labels: Tensor, classes: int) -> Tensor:
    """Whether labels are 0 to classes - 1; in two kernels where no number can overflow."""
    if labels.dtype == torch.int64 and classes:
        return labels.clamp(0, classes - 1) == labels
    return (labels >= 0) & (labels < classes)


class PrivateLoss:
    """The losses of a drawn batch: secret. `backward` measures, weighs and adds up the gradients.

    Numbers may be added, and it may be multiplied and divided by a number, the same in every batch: each record's loss
    is, before its gradient is clipped. Losses of several criteria may be added up.
    """

    __slots__ = ("_run", "_scales", "losses")
    __array_ufunc__ = None  # arrays leave it to the operators below

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Refuse to be a tensor."""
        name = getattr(function, "__name__", "functions")
        raise InvalidInput(f"a private loss goes with numbers only, not with torch.{name}, whose tensors {_OTHERS}")

    def __init__(self, losses: Tensor, run: "Run", scales: tuple[float, ...] = (1.0,)) -> None:
        self.losses, self._run, self._scales = losses, run, scales

    def backward(self, gradient: Any = None, retain_graph: Any = None, create_graph: bool = False) -> None:
        """Once per batch, whether or not the graph is to be retained."""
        if gradient is not None or create_graph:
            raise InvalidInput(
                "backward of a private loss takes neither gradient nor create_graph, because gradients are measured "
                "record by record; multiply the loss by a number instead"
            )
        self._run.passes.require_apart(self.losses, self._scales)
        self._run.backward(self.losses)

    def mean(self) -> "PrivateLoss":
        """The loss itself: every record counts by itself, and sums are divided by a public number."""
        return self

    def detach(self) -> Tensor:
        """The mean loss of the batch: secret, it carries no noise."""
        return self.losses.detach().mean() if self.losses.numel() else self.losses.new_zeros(())

    def item(self) -> float:
        """The mean loss of the batch: secret, without noise."""
        return float(self.detach())

    def __float__(self) -> float:
        return self.item()

    def __mul__(self, factor: Any) -> "PrivateLoss":
        number = _number(factor)
        return PrivateLoss(self.losses * number, self._run, tuple(scale * number for scale in self._scales))

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> "PrivateLoss":
        number = _number(divisor)
        if number == 0.0:
            raise InvalidInput("a private loss is divided by a number other than 0, got 0 instead; change the divisor")
        return self * (1.0 / number)

    def __add__(self, term: Any) -> "PrivateLoss":
        if isinstance(term, PrivateLoss) and term._run is self._run and term.losses.shape == self.losses.shape:
            return PrivateLoss(self.losses + term.losses, self._run, (*self._scales, *term._scales))
        return PrivateLoss(self.losses + _number(term), self._run, self._scales)

    __radd__ = __add__

    def __neg__(self) -> "PrivateLoss":
        return self * -1.0

    def __sub__(self, term: Any) -> "PrivateLoss":
        return self.__add__(-term if isinstance(term, PrivateLoss) else -_number(term))

    def __rsub__(self, term: Any) -> "PrivateLoss":
        return (-self).__add__(term)

    def __iter__(self) -> Any:
        raise InvalidInput(
            "a private loss is one number per record, neither iterated nor scaled by a GradScaler; omit that, because "
            "sums of gradients are made in float32 at least"
        )

    def __pow__(self, other: Any) -> "PrivateLoss":
        raise InvalidInput(f"a private loss has no powers and divides nothing: {_ALLOWED}")

    __rpow__ = __rtruediv__ = __pow__

    def __repr__(self) -> str:
        return "PrivateLoss(secret)"

    def __format__(self, how: str) -> str:
        return format(self.item(), how) if how else repr(self)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"a private loss has no {name!r}: {_ALLOWED}")


def _number(value: Any) -> float:
    if isinstance(value, Real):
        return float(value)
    raise InvalidInput(f"a private loss goes with numbers only, got a {type(value).__name__} instead, which {_OTHERS}")
