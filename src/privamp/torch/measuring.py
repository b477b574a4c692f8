"""Find out on made-up records, before the first step, which inputs belong to records and how own parameters are used.

    inputs          of layers and modules: those whose first dimension follows the size of the batch belong to records;
                    others (position ids of shape (1, T) or (T,), masks) belong to all
    own parameters  get a row per record if broadcasting allows it and gradients stay those of autograd; otherwise the
                    module that uses them is computed record by record
    memory          pictures are put with channels last if the model gives the same losses then (`memory_format.py`)

The result is only a proposal: `records_apart.check` compares it with autograd and rejects what differs.
"""

from typing import TYPE_CHECKING, Any

import torch

from ..errors import InvalidInput
from . import made_up, records_apart
from .layout import holder_of
from .memory_format import gains

if TYPE_CHECKING:
    from .run import Run

Tensor = Any
_BETWEEN = (-1, 0, 1, 2, 3)  # -1: the parameter's own first dimension, of length 1


def settle(run: "Run", batch: Any) -> None:
    """Find out how per-record gradients of a run's module are computed."""
    run.recorder.is_channels_last = False
    _learn(run, batch)
    _order_memory(run, batch, made_up.length(batch))
    shapes = {name: _shape(run, batch, name) for name in run.recorder.layout.own}
    unknown = frozenset(holder_of(run.module, name) for name, shape in shapes.items() if shape is None)
    if unknown:
        run.measure_apart(unknown | run.recorder.apart)
        settle(run, batch)
        return
    run.recorder.give_rows({name: shape for name, shape in shapes.items() if shape is not None})


def _order_memory(run: "Run", batch: Any, count: int) -> None:
    """Put channels last if the model has convolutions that gain from it, and made-up records have the same losses."""
    recorder = run.recorder
    if not (recorder.may_be_channels_last and gains(run.module, recorder.layout.heard.values())):
        return
    try:
        recorder.is_channels_last = True
        records_apart.losses_of(run, batch, count)
        with records_apart.steady(run, batch, count) as is_steady:
            last = records_apart.losses_of(run, batch, count)
            recorder.is_channels_last = False
            first = records_apart.losses_of(run, batch, count)
        for one, other in zip(first, last, strict=True):
            records_apart.require_same(run, one, other, "depends on the order of memory")
        recorder.is_channels_last = is_steady
    except InvalidInput:
        recorder.is_channels_last = recorder.may_be_channels_last = False


def _learn(run: "Run", batch: Any) -> None:
    with run.recorder.learning():
        for size, records in _two_sizes(batch):
            records_apart.losses_of(run, records, size)


def _two_sizes(batch: Any) -> list[tuple[int, Any]]:
    count = made_up.length(batch)
    more = made_up.rows(batch, torch.tensor([*range(count), 0, 1]))
    return [(count, batch), (count + 2, more)]


def _shape(run: "Run", batch: Any, name: str) -> int | None:
    """Dimensions between the records and this parameter where it is used, or None if they vary."""
    parameter = run.recorder.layout.own[name]
    for between in _BETWEEN:
        if between < 0 and parameter.shape[:1] != (1,):
            continue
        if all(_fits(run, records, size, name, between) for size, records in _two_sizes(batch)):
            return between
    return None


def _fits(run: "Run", batch: Any, size: int, name: str, between: int) -> bool:
    recorder = run.recorder
    parameter = recorder.layout.own[name]
    try:
        plain = records_apart.losses_of(run, batch, size, keep=True)
        truth = [torch.autograd.grad(loss, parameter, retain_graph=True, allow_unused=True)[0] for loss in plain]
        recorder.give_rows({name: between})
        losses = records_apart.losses_of(run, batch, size, keep=True)
        names, edges = recorder.edges()
        found = torch.autograd.grad(losses.sum(), edges[names.index(name)], allow_unused=True)[0]
    except (InvalidInput, RuntimeError, ValueError):
        return False
    finally:
        recorder.give_rows({})
        recorder.forget()
    if found is None or any(t is None for t in truth) or not bool(torch.isfinite(losses).all()):
        return False
    wanted = torch.stack([t.double() for t in truth])
    far = (found.double().reshape(wanted.shape) - wanted).norm()
    return bool(far <= records_apart.tolerance_of(run, losses) * wanted.norm() + 1e-30)
