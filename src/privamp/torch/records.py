"""The data set behind a loader, read by position; the loader's own order of records is not used."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import DataLoader, Dataset, IterableDataset, Sampler, SequentialSampler, Subset, TensorDataset

from ..errors import InvalidInput, NoTheorem
from . import made_up
from .batches import Ints
from .seeding import reading

Bools = NDArray[np.bool_]

_LOOKED_AT = 8  # records
_NO_THEOREM = {
    "RandomSampler": "shuffled batches use every record once per pass, so batches depend on one another and nothing is "
    "proved that would amplify (BallsInBins(rounds, epochs) takes every record once an epoch, too)",
    "WeightedRandomSampler": "its weights are a function of all records, so one record changes everybody's chance",
}


def refuse_sampler(sampler: Any) -> None:
    """Raise for a torch sampler or loader in place of a design, with the reason."""
    if isinstance(sampler, DataLoader):
        sampler = sampler.sampler
    if isinstance(sampler, Sampler):
        name = type(sampler).__name__
        why = _NO_THEOREM.get(name, "no theorem covers its batches")
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
        self._is_apart = self._collate is torch.utils.data.default_collate
        found: tuple[Any, Any] = _in_memory(self.dataset) if self._is_apart else (None, None)
        self._tensors, self._index = found
        if not self._is_apart:
            self._check_collate()

    def _check_collate(self) -> None:
        """A collate_fn of one's own is called on each record alone: refuse what is no tensor or has no row of a record
        alone, and records whose shapes, which are public, already differ among the first.
        """
        with reading():
            found = [one for i in range(min(self.size, _LOOKED_AT)) if (one := self._one(i)) is not None]
        if not all(map(made_up.only_tensors, found)):
            raise InvalidInput(
                "the collate_fn must give tensors, or tuples, lists and dicts of them, because it is called on each "
                "record alone and its rows are joined; leave out what is no tensor"
            )
        if not all(made_up.is_one_row(one) for one in found):
            raise InvalidInput("the collate_fn must give a row per record in every tensor; leave out what has none")
        if len({made_up.shapes(one) for one in found}) > 1:
            raise InvalidInput(
                "the collate_fn is called on each record alone, so that no record changes another, and their shapes "
                "differ; let it pad to a public length (padding='max_length'), not to the longest of a batch"
            )

    def made_up(self, count: int) -> Any:
        """Records of the shapes and types of this data set, which are public, with made-up values."""
        if self._tensors is not None:
            return made_up.like([t[:0].to(self._device) for t in self._tensors], count)
        for position in range(self.size):
            one = self._one(position)
            if one is not None:
                if not made_up.only_tensors(one):
                    break
                return made_up.like(_moved(one, self._device), count)
        raise InvalidInput(
            "no record of the data set can be read as tensors, so their shapes are not known; give a batch of made-up "
            "records as example="
        )

    def require_like(self, example: Any) -> None:
        """Raise if records, whose shapes are public, have other shapes or types than the made-up ones given for them:
        they would all count as nothing."""
        if self._tensors is not None:
            return
        found = next((one for position in range(self.size) if (one := self._one(position)) is not None), None)
        if found is not None and made_up.shapes(found) != made_up.shapes(example):
            raise InvalidInput("the records of example must have the shapes and types of those of the data set")

    def take(self, positions: Ints, seeds: Ints, blank: Any) -> tuple[Any, Bools | None]:
        """One batch, read with a seed for every record, and which of them cannot be read: `blank` replaces those."""
        if self._tensors is not None:
            rows = positions if self._index is None else self._index[positions]
            here = torch.from_numpy(np.ascontiguousarray(rows))
            at = {device: here.to(device) for device in {t.device for t in self._tensors}}
            return [t[at[t.device]].to(self._device, non_blocking=True) for t in self._tensors], None
        with reading() as seed:
            several = getattr(self.dataset, "__getitems__", None)
            try:
                if several:
                    seed(int(seeds[0]))
                    items = several(positions.tolist())
                else:
                    items = [self._item(i, s, seed) for i, s in zip(positions.tolist(), seeds.tolist(), strict=True)]
                batch = _moved(self._joined(items, seeds, seed), self._device)
                if len(items) == positions.size and made_up.shapes(batch) == made_up.shapes(blank):
                    return batch, None
                raise ValueError  # alone, too, a record of another shape counts as nothing
            except Exception:
                return self._one_by_one(positions, seeds, blank, seed)

    def _joined(self, items: list[Any], seeds: Ints, seed: Any) -> Any:
        """One batch of items; a collate_fn of one's own sees one at a time, and so cannot mix them."""
        if self._is_apart:
            if len({_kind(item) for item in items}) > 1:
                raise ValueError  # one record would change the type of all
            return _plain(self._collate(items))
        alone = []
        for item, number in zip(items, seeds.tolist(), strict=True):
            seed(number + 1)
            alone.append(_plain(self._collate([item])))
        if len({made_up.shapes(one) for one in alone}) > 1 or not all(map(made_up.is_one_row, alone)):
            raise ValueError
        return made_up.joined(alone)

    def _item(self, position: int, number: int, seed: Any) -> Any:
        seed(number)
        return self.dataset[position]

    def _one_by_one(self, positions: Ints, seeds: Ints, blank: Any, seed: Any) -> tuple[Any, Bools]:
        """A record that cannot be read, has another shape than the others or not exactly one row counts as nothing: an
        error would leak information."""
        found, is_lost = [], np.zeros(positions.size, bool)
        for at, (position, number) in enumerate(zip(positions.tolist(), seeds.tolist(), strict=True)):
            seed(number)
            one = self._one(position)
            one = None if one is None else _moved(one, self._device)
            is_row = one is not None and (self._is_apart or made_up.is_one_row(one))
            is_lost[at] = not is_row or made_up.shapes(one) != made_up.shapes(blank)
            found.append(blank if is_lost[at] else one)
        return made_up.joined(found), is_lost

    def _one(self, position: int) -> Any:
        try:
            return _plain(self._collate([self.dataset[position]]))
        except Exception:
            return None


def _opened(source: Any) -> tuple[Any, Any]:
    if isinstance(source, DataLoader):
        if not isinstance(source.sampler, SequentialSampler):
            refuse_loader(source, source.sampler)
        elif _length(source.dataset) != len(source.sampler):
            raise InvalidInput(
                "the data loader takes only some of the records, but batches are drawn from its whole data set; give a "
                "Subset of it as data set"
            )
        is_usual = source.collate_fn is torch.utils.data.default_convert  # of a loader without batches
        return source.dataset, torch.utils.data.default_collate if is_usual else source.collate_fn
    if isinstance(source, tuple) and all(hasattr(part, "shape") for part in source):
        raise InvalidInput(
            f"data_loader must be a DataLoader or a Dataset, got a tuple of {len(source)} arrays instead; use "
            "TensorDataset(x, y)"
        )
    if isinstance(source, Dataset) or hasattr(source, "__getitem__"):
        return source, torch.utils.data.default_collate
    raise InvalidInput(f"data_loader must be a DataLoader or a Dataset, got {type(source).__name__} instead")


def refuse_loader(loader: Any, sampler: Any) -> None:
    """Raise for a loader with its own sampler, which would be ignored."""
    if isinstance(loader.dataset, IterableDataset):
        return
    refuse_sampler(sampler)
    raise NoTheorem(
        f"the data loader has its own sampler ({type(sampler).__name__}), for which no theorem is known; omit "
        "it, because the engine draws the batches"
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
    """The tensors of a TensorDataset, also behind a Subset: rows are then taken at once. Not of classes made from
    them, which may read records in their own way."""
    index = None
    while type(dataset) is Subset:
        rows = np.asarray(dataset.indices, dtype=np.int64)
        index = rows if index is None else rows[index]
        dataset = dataset.dataset
    return (dataset.tensors, index) if type(dataset) is TensorDataset else (None, None)


def _kind(item: Any) -> Any:
    """Types and shapes of what a record holds."""
    if isinstance(item, Mapping):
        return tuple((name, _kind(part)) for name, part in sorted(item.items(), key=lambda pair: str(pair[0])))
    if isinstance(item, (list, tuple)):
        return tuple(map(_kind, item))
    return type(item), tuple(getattr(item, "shape", ())), str(getattr(item, "dtype", ""))


def _plain(batch: Any) -> Any:
    """Dicts of other libraries, such as those of tokenizers, as dicts."""
    return dict(batch) if isinstance(batch, Mapping) else batch


def _moved(batch: Any, device: Any) -> Any:
    if isinstance(batch, torch.Tensor):
        return batch.to(device, non_blocking=True)
    if isinstance(batch, (list, tuple)):
        return [_moved(part, device) for part in batch]
    if isinstance(batch, dict):
        return {name: _moved(part, device) for name, part in batch.items()}
    return batch
