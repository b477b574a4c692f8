"""Losses that a model computes itself: one per record where torch would take the mean of the batch.

While gradients are recorded, torch's loss functions inside the model return a vector with one loss per record.
Positions of a record (words) are averaged, without those labelled `ignore_index`. A label that is not a class makes the
record's loss 0: an error would leak information about it. That the rows of a flattened batch are grouped by record is
checked with everything else, on made-up records.
"""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from ..errors import InvalidInput

Tensor = Any
_BY_CLASS = (functional.cross_entropy, functional.nll_loss)
_LOSSES = (
    *_BY_CLASS, functional.mse_loss, functional.l1_loss, functional.smooth_l1_loss, functional.huber_loss,
    functional.binary_cross_entropy, functional.binary_cross_entropy_with_logits,
)  # fmt: skip
_SIGNATURES = {function: inspect.signature(function) for function in _LOSSES}


class OtherRows(InvalidInput):
    """A loss over a number of rows that follows the values of records: no row is known to belong to any of them."""


class OwnLosses(TorchFunctionMode):
    """Within this mode, torch's losses are one per record, for this number of records.

    `known(i, rows)` gives the rows per record of the i-th loss in the first pass.
    """

    def __init__(self, records: int, known: Callable[[int, int], int]) -> None:
        super().__init__()
        self._records, self._known, self._calls = records, known, 0

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the function, or return one loss per record."""
        kwargs = kwargs or {}
        signature = _SIGNATURES.get(function)
        if signature is None:
            return function(*args, **kwargs)
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        if given.arguments["reduction"] == "none":
            return function(*args, **kwargs)
        self._calls += 1
        return _by_record(function, dict(given.arguments), self._records, lambda n: self._known(self._calls, n) == n)


def _by_record(function: Any, options: dict[str, Any], records: int, is_known: Callable[[int], bool]) -> Tensor:
    how, options["reduction"] = options["reduction"], "none"
    if not options["input"].dim():  # one record, squeezed
        options |= {name: options[name].reshape(1) for name in ("input", "target")}
    rows = options["input"].shape[0]
    if rows % max(records, 1) or not is_known(rows // max(records, 1)):
        raise OtherRows(
            f"the model computes its own loss over {rows} rows, not the same number for each record; let it "
            "return one loss per record, leave out labels by ignore_index, or compute the loss with a criterion"
        )
    is_sane, weights = None, None
    if function in _BY_CLASS and not options["target"].is_floating_point():
        labels, ignored = options["target"], options["ignore_index"]
        is_kept = labels != ignored
        is_class = ((labels >= 0) & (labels < options["input"].shape[1])) | ~is_kept
        is_sane = is_class.reshape(records, -1).all(dim=1)
        options["target"] = labels = labels.where(is_class, torch.zeros_like(labels))
        weights = is_kept.to(options["input"].dtype)
        if options["weight"] is not None:
            weights = weights * options["weight"][labels.where(is_kept, torch.zeros_like(labels))]
    losses = function(**options).reshape(records, -1)
    total = losses.sum(dim=1)
    if how != "sum":
        share = losses.shape[1] if weights is None else weights.reshape(records, -1).sum(dim=1).clamp(min=1e-30)
        total = total / share
    return total if is_sane is None else total.masked_fill(~is_sane, 0.0)


def found_in(output: Any) -> Tensor | None:
    """The loss that a model returned with its output, or None."""
    if isinstance(output, dict) or hasattr(output, "loss"):
        return output.get("loss") if isinstance(output, dict) else output.loss
    first = output[0] if isinstance(output, (list, tuple)) and output else output
    return first if isinstance(first, torch.Tensor) and first.dim() <= 1 else None


def put_into(output: Any, loss: Any) -> Any:
    """The output with its loss replaced."""
    if isinstance(output, dict):
        output["loss"] = loss
        return output
    if hasattr(output, "loss"):
        output.loss = loss
        return output
    return (loss, *output[1:]) if isinstance(output, (list, tuple)) else loss


def require_one_each(loss: Any, records: int) -> None:
    """Check that the model's own loss is one per record."""
    if not isinstance(loss, torch.Tensor) or loss.shape != (records,):
        raise InvalidInput(
            "criterion=None means that the model returns its own loss, but it returns no loss per record; let "
            "it use torch's losses (cross_entropy, mse_loss, ...) with its labels, or give a criterion"
        )
