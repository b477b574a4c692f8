"""Made-up records: with the shape and type of real ones, which are public, but unrelated values.

Whatever must be tried out on records before or beside training (does the model keep records apart? is it the values
that make a loss fail, or the shapes?) is tried on these, because a result about real records would be a release.
"""

from typing import Any

import torch

Tensor = Any
_SEED = 20_111  # any: what is made up need not be secret


def like(batch: Any, count: int) -> Any:
    """`count` records of the shapes in `batch` (tensors with one row per record, nested in lists and dicts).

    Real numbers lie between 0 and 1; whole numbers are 0 or 1, which are labels and ids of nearly every model.
    """
    return _like(batch, count, torch.Generator().manual_seed(_SEED))


def _like(batch: Any, count: int, generator: Any) -> Any:
    if isinstance(batch, torch.Tensor):
        shape = (count, *batch.shape[1:])
        if batch.is_floating_point() or batch.is_complex():
            return torch.rand(shape, generator=generator, dtype=torch.float64).to(batch.device, batch.dtype)
        return torch.randint(0, 2, shape, generator=generator).to(batch.device, batch.dtype)
    if isinstance(batch, (list, tuple)):
        return [_like(part, count, generator) for part in batch]
    if isinstance(batch, dict):
        return {name: _like(part, count, generator) for name, part in batch.items()}
    return batch


def rows(batch: Any, at: Any) -> Any:
    """Some records of a batch: a slice, or whole numbers in a tensor."""
    if isinstance(batch, torch.Tensor):
        return batch[at.to(batch.device) if isinstance(at, torch.Tensor) else at] if batch.dim() else batch
    if isinstance(batch, (list, tuple)):
        return [rows(part, at) for part in batch]
    if isinstance(batch, dict):
        return {name: rows(part, at) for name, part in batch.items()}
    return batch


def length(batch: Any) -> int:
    """How many records a batch has."""
    if isinstance(batch, torch.Tensor):
        return int(batch.shape[0]) if batch.dim() else 0
    parts = batch.values() if isinstance(batch, dict) else batch if isinstance(batch, (list, tuple)) else ()
    return next((found for part in parts if (found := length(part))), 0)


def only_tensors(batch: Any) -> bool:
    """Whether everything in a batch is a tensor, so that it can be made up."""
    if isinstance(batch, (list, tuple)):
        return all(map(only_tensors, batch))
    return all(map(only_tensors, batch.values())) if isinstance(batch, dict) else isinstance(batch, torch.Tensor)


def is_one_row(batch: Any) -> bool:
    """Whether every tensor in a batch has exactly one row."""
    if isinstance(batch, torch.Tensor):
        return bool(batch.shape[:1] == (1,))
    parts = batch.values() if isinstance(batch, dict) else batch
    return isinstance(batch, (dict, list, tuple)) and all(map(is_one_row, parts))


def shapes(batch: Any) -> Any:
    """Shapes and types of the tensors of one record, for comparing."""
    if isinstance(batch, torch.Tensor):
        return (*batch.shape[1:], str(batch.dtype))
    if isinstance(batch, (list, tuple)):
        return tuple(found for part in batch if (found := shapes(part)) is not None)
    if not isinstance(batch, dict):
        return None
    return tuple((name, shapes(batch[name])) for name in sorted(batch, key=str))


def joined(batches: list[Any]) -> Any:
    """Batches of equal shapes, one after the other."""
    first = batches[0]
    if isinstance(first, torch.Tensor):
        return torch.cat(batches)
    if isinstance(first, (list, tuple)):
        return [joined([batch[at] for batch in batches]) for at in range(len(first))]
    if isinstance(first, dict):
        return {name: joined([batch[name] for batch in batches]) for name in first}
    return first
