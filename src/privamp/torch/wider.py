"""Made-up records again, more of them and with other values: does a record's loss change with the others then?

Some models mix records only above a number of them or beyond some value, some losses only where labels are to be
ignored or of a class that 0 and 1 do not reach. Not every model takes such values: a try that fails says nothing.
"""

from typing import TYPE_CHECKING, Any

import torch

from ..errors import InvalidInput
from . import made_up, own_losses, records_apart

if TYPE_CHECKING:
    from .run import Run

Tensor = Any
_MOST = 17  # records
_CLASSES = (10, 5, 3)  # the most that works
_IGNORED = -100  # what torch and Hugging Face leave out


def check(run: "Run", batch: Any) -> None:
    """Raise if the loss of the first of some records changes with the others."""
    held = made_up.length(batch)
    count = max(held, _MOST if run.most is None else min(run.most, _MOST))  # within the promised memory
    rows = made_up.rows(batch, torch.arange(count) % held)
    _compare(run, rows, rows)
    if _has(rows, torch.is_floating_point):
        spread = _changed(rows, _spread)
        _compare(run, spread, spread)
    if run.device.type != "cpu" or not _has(rows, _is_whole):
        return  # elsewhere a label that is no class ends the process
    for classes in _CLASSES:
        several = _changed(rows, lambda t, n=classes: _whole(t, n))
        if _compare(run, several, several):
            break
    ignored = _with_ignored(run, rows)
    if ignored is not None:
        _compare(run, rows, ignored)


def _compare(run: "Run", one: Any, other: Any) -> bool:
    """Whether the losses can be computed; raises if that of record 0 changes when others are those of `other`."""
    count = made_up.length(one)
    at = torch.tensor([0] + [1] * (count - 1)) if one is other else torch.arange(count)
    try:
        with torch.no_grad():
            first = records_apart.losses_of(run, one, count)
            second = records_apart.losses_of(run, made_up.rows(other, at), count)
    except own_losses.OtherRows:
        raise
    except InvalidInput:
        return False
    if not bool(torch.isfinite(first).all() and torch.isfinite(second).all()):
        return False
    records_apart.require_same(run, first[0], second[0], "changes with the other records")
    return True


def _changed(batch: Any, change: Any) -> Any:
    if isinstance(batch, torch.Tensor):
        return change(batch)
    if isinstance(batch, (list, tuple)):
        return [_changed(part, change) for part in batch]
    return {name: _changed(part, change) for name, part in batch.items()} if isinstance(batch, dict) else batch


def _has(batch: Any, kind: Any) -> bool:
    found: list[bool] = []
    _changed(batch, lambda t: found.append(bool(kind(t))))
    return any(found)


def _is_whole(values: Tensor) -> bool:
    return not (values.is_floating_point() or values.is_complex() or values.dtype == torch.bool)


def _spread(values: Tensor) -> Tensor:
    """Real numbers on both sides of 0, up to some tens."""
    if not values.is_floating_point():
        return values
    numbers = torch.randn(values.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return (10.0 * numbers).to(values.device, values.dtype)


def _whole(values: Tensor, classes: int) -> Tensor:
    """Whole numbers below this one."""
    if not _is_whole(values):
        return values
    generator = torch.Generator().manual_seed(classes)
    return torch.randint(0, classes, values.shape, generator=generator).to(values.device, values.dtype)


def _with_ignored(run: "Run", batch: Any) -> Any:
    """The same first two records; labels of the others are to be ignored. None where there are no labels."""
    found: Any = dict(batch) if isinstance(batch, dict) else batch
    name: Any = "labels" if isinstance(batch, dict) else -1
    is_there = name in found if isinstance(found, dict) else isinstance(found, (list, tuple))
    labels = found[name] if is_there else None
    if not isinstance(labels, torch.Tensor) or labels.dtype not in (torch.int64, torch.int32):
        return None
    changed = labels.clone()
    changed[2:] = run.criterion.ignored(_IGNORED)
    found = found if isinstance(found, dict) else list(found)
    found[name] = changed
    return found
