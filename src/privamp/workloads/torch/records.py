"""The data set behind a loader, read by position; the loader's own order of records is not used."""

from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, Sampler, SequentialSampler, Subset, TensorDataset

from ...errors import InvalidInput, NoTheorem
from .batches import Ints

_NO_THEOREM = {
    "RandomSampler": "shuffled batches use every record once per pass, so batches depend on one another and nothing is "
    "proved that would amplify",
    "WeightedRandomSampler": "its weights are a function of all records, so one record changes everybody's chance",
}


def refuse_sampler(sampler: Any) -> None:
    """A torch sampler or loader in place of a design: say why not."""
    if isinstance(sampler, DataLoader):
        sampler = sampler.sampler
    if isinstance(sampler, Sampler):
        name = type(sampler).__name__
        why = _NO_THEOREM.get(name, "no theorem says what its batches give away")
        raise NoTheorem(
            f"{name} is not certified: {why}; use sampler='uniform' or 'importance', or a design such as "
            "WithoutReplacement(size, population)"
        )


class Records:
    """Records by position, in batches of tensors on one device."""

    def __init__(self, source: Any, device: Any) -> None:
        self._device = device
        self.dataset, self._collate = _opened(source)
        self.size = _length(self.dataset)
        self._tensors, self._index = _in_memory(self.dataset)

    def take(self, positions: Ints) -> Any:
        """One batch; with no positions a batch of length 0."""
        if self._tensors is not None:
            rows = positions if self._index is None else self._index[positions]
            at = torch.from_numpy(np.ascontiguousarray(rows))
            return [t[at.to(t.device)].to(self._device, non_blocking=True) for t in self._tensors]
        if positions.size == 0:
            return _moved(self._read(np.zeros(1, np.int64)), self._device, empty=True)
        return _moved(self._read(positions), self._device)

    def _read(self, positions: Ints) -> Any:
        several = getattr(self.dataset, "__getitems__", None)
        wanted = positions.tolist()
        return self._collate(several(wanted) if several else [self.dataset[i] for i in wanted])


def _opened(source: Any) -> tuple[Any, Any]:
    if isinstance(source, DataLoader):
        if not isinstance(source.sampler, SequentialSampler):
            refuse_loader(source)
        return source.dataset, source.collate_fn
    if isinstance(source, Dataset) or hasattr(source, "__getitem__"):
        return source, torch.utils.data.default_collate
    raise InvalidInput(f"data_loader must be a DataLoader or a Dataset, got {type(source).__name__} instead")


def refuse_loader(loader: Any) -> None:
    """Batches are drawn anew, so an order given by the loader would be ignored: better to say so."""
    if isinstance(loader.dataset, IterableDataset):
        return
    refuse_sampler(loader.sampler)
    raise NoTheorem(
        f"the data loader has a sampler of its own ({type(loader.sampler).__name__}) for which no theorem is known; "
        "leave it out, the engine draws the batches"
    )


def _length(dataset: Any) -> int:
    try:
        if isinstance(dataset, IterableDataset):
            raise TypeError
        return len(dataset)
    except TypeError:
        raise InvalidInput(
            "the data set has no length, so records cannot be drawn by position; use a map-style Dataset"
        ) from None


def _in_memory(dataset: Any) -> tuple[Any, Any]:
    """The tensors of a TensorDataset, also behind a Subset: rows are then taken at once."""
    index = None
    while isinstance(dataset, Subset):
        rows = np.asarray(dataset.indices, dtype=np.int64)
        index = rows if index is None else rows[index]
        dataset = dataset.dataset
    return (dataset.tensors, index) if isinstance(dataset, TensorDataset) else (None, None)


def _moved(batch: Any, device: Any, *, empty: bool = False) -> Any:
    if isinstance(batch, torch.Tensor):
        return (batch[:0] if empty else batch).to(device, non_blocking=True)
    if isinstance(batch, (list, tuple)):
        return [_moved(part, device, empty=empty) for part in batch]
    if isinstance(batch, dict):
        return {name: _moved(part, device, empty=empty) for name, part in batch.items()}
    return batch
