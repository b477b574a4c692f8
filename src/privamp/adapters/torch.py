"""Samplers of `torch.utils.data` by key: `KeyedBatchSampler`, and `keyed_loader`, which handles empty batches.

Formal guarantee: `sampler.guarantee()`, that of `amplify(mechanism, plan)` for every round of the plan, if what is done
with a batch is one release by `mechanism` (privamp/adapters/batches.py). Iterating over a loader again continues with
the next rounds.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ..chance.keys import Key
from ..core.guarantee import Guarantee
from ..core.ledger import BudgetLike
from ..core.mechanism import Mechanism
from ..core.neighbors import Neighbors
from ..core.population import Population
from ..core.schedule import Schedule
from ..errors import InvalidInput
from ..validation import whole
from .batches import KeyedBatches
from .peers import answered, imported

with imported("torch", "privamp.adapters.torch"):
    from torch.utils.data import DataLoader, Dataset, Sampler, default_collate


class KeyedBatchSampler(Sampler[list[int]]):
    """Batches of positions for a `DataLoader(batch_sampler=…)`: the rounds of `plan`, drawn by `key`.

    `plan` is a schedule (`Rounds(design, steps)`, `BallsInBins`, `CyclicPoisson`), `mechanism` what will be released
    from each batch, such as `Gaussian(noise_multiplier * clip, sensitivity=clip)`. One pass of the loader takes
    `steps_per_epoch` rounds (all of them by default).
    """

    def __init__(
        self,
        plan: Schedule,
        population: Population | int,
        mechanism: Mechanism,
        *,
        steps_per_epoch: int | None = None,
        key: Key | None = None,
        budget: BudgetLike | None = None,
        delta: float | None = None,
    ) -> None:
        if steps_per_epoch is not None:
            whole(1, steps_per_epoch=steps_per_epoch)
        self.batches = KeyedBatches(plan, population, mechanism, key=key, budget=budget, delta=delta)
        self._steps = plan.steps if steps_per_epoch is None else steps_per_epoch

    def __iter__(self) -> Iterator[list[int]]:
        for positions in self.batches.take(self._steps):
            yield positions.tolist()

    def __len__(self) -> int:
        return self._steps

    def guarantee(self, neighbors: Neighbors | None = None) -> Guarantee:
        """That of the whole plan."""
        return self.batches.guarantee(neighbors)


def keyed_loader(dataset: Dataset[Any], sampler: KeyedBatchSampler, **options: Any) -> DataLoader[Any]:
    """A DataLoader over the sampler's batches; an empty one has tensors of length 0, of the shapes of record 0."""
    if not isinstance(sampler, KeyedBatchSampler):
        raise InvalidInput(f"keyed_loader takes a KeyedBatchSampler, got {type(sampler).__name__} instead")
    for name in {"batch_sampler", "sampler", "batch_size", "shuffle", "drop_last"} & options.keys():
        raise InvalidInput(f"the sampler already defines the batches; omit {name}")
    with answered("torch", "making a loader"):
        if len(dataset) != sampler.batches.size:
            raise InvalidInput("the data set and the population of the sampler must have the same size; check them")
        collate = WithEmpty(dataset, options.pop("collate_fn", None) or default_collate)
        return DataLoader(dataset, batch_sampler=sampler, collate_fn=collate, **options)


class WithEmpty:
    """A collate function that makes an empty batch of the shapes of the first record."""

    def __init__(self, dataset: Any, collate: Any) -> None:
        self._collate = collate
        self._nobody = _cut(collate([dataset[0]])) if len(dataset) else None

    def __call__(self, records: list[Any]) -> Any:
        """One batch of the records, which may be none."""
        return self._collate(records) if records else self._nobody


def _cut(batch: Any) -> Any:
    """The batch without its records."""
    if isinstance(batch, Mapping):
        return {name: _cut(part) for name, part in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*map(_cut, batch))
    if isinstance(batch, (list, tuple)) and not isinstance(batch[0], (str, bytes)):
        return type(batch)(map(_cut, batch))
    return batch[:0]
