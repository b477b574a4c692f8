"""Several processes that train one model together (`DistributedDataParallel`).

All of them draw the same batch, with the key of the first process, and each works on its share. The sums of the shares
are added, the first process adds the noise once, and all processes get the same noisy sum, bit for bit. So a step and
its guarantee are those of one process. Norms are shared, because all processes must store the same ones. Checkpoint,
journal and budget are the first process's: the others wait until a step is recorded there, and stop where it stops.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from ..chance.keys import Key, build
from ..errors import InvalidInput, PrivampError
from ..numerics.log_domain import FloatArray
from .adding import Sums
from .batches import Batch, joined

Tensor = Any


class Team:
    """The processes of a run; with a single one, nothing changes."""

    def __init__(self, module: Any) -> None:
        refuse_shards(module)
        self.size, self.rank = 1, 0
        self._is_apart = False  # the first process works alone, and the others wait
        if isinstance(module, DistributedDataParallel):
            self.size, self.rank = distributed.get_world_size(), distributed.get_rank()
            module.require_backward_grad_sync = False  # gradients are summed here, after clipping
            module.require_forward_param_sync = False

    @property
    def is_first(self) -> bool:
        """Whether this process keeps the files and pays."""
        return self.rank == 0

    def check(self, records: int, options: dict[str, Any]) -> None:
        """Reject processes that do not train the same run on the same data."""
        if self.size == 1:
            return
        found: list[Any] = [None] * self.size
        distributed.all_gather_object(found, (records, {name: str(value) for name, value in options.items()}))
        if len({number for number, _ in found}) > 1:
            raise InvalidInput("every process must have the whole data set, but their numbers of records differ")
        for name in options:
            if len({given[name] for _, given in found}) > 1:
                raise InvalidInput(f"every process must be given the same {name}; call make_private alike in all")

    def on_first(self, work: Callable[[], Any]) -> Any:
        """What the first process gets from this; the others wait for it, and raise where it does."""
        if self.size == 1:
            return work()
        done: tuple[Any, PrivampError | None] = (None, None)
        if self.is_first:
            try:
                with self.apart():
                    done = work(), None
            except PrivampError as error:
                done = None, error
        heard = self._from_first(done)
        failed = done[1] or heard[1]
        if failed is not None:
            raise failed
        return heard[0]

    @contextlib.contextmanager
    def apart(self) -> Iterator[None]:
        """This process asks no other one in this block."""
        self._is_apart = True
        try:
            yield
        finally:
            self._is_apart = False

    def same_key(self, key: Key) -> Key:
        """The key of the first process."""
        if self.size == 1:
            return key
        secret, is_test = self._from_first((key.secret_bytes(), key.is_test))
        return key if self.rank == 0 else build(secret, is_test=is_test, is_kept=key.is_kept)

    def same_bytes(self, given: bytes) -> bytes:
        """The value of the first process."""
        return given if self.size == 1 or self._is_apart else bytes(self._from_first(given))

    def _from_first(self, value: Any) -> Any:
        box = [value if self.rank == 0 else None]
        distributed.broadcast_object_list(box, src=0)
        return box[0]

    def share(self, batch: Batch) -> Batch:
        """The records of the batch that this process works on."""
        here = slice(self.rank, None, self.size)
        return Batch(batch.step, batch.positions[here], batch.counts[here], batch.bounds[here])

    def added_up(self, parameters: list[Any], sums: Sums) -> dict[int, Tensor]:
        """The sums of all processes."""
        if self.size == 1:
            return sums.held
        total = {}
        for p in parameters:
            mine = sums.held.get(id(p))
            held = sums.none(p) if mine is None else mine.contiguous()
            distributed.all_reduce(held)
            total[id(p)] = held
        return total

    def from_first(self, parameters: list[Any], make: Any) -> list[Tensor]:
        """The tensors that the first process computes, one per parameter."""
        if self.size == 1:
            return list(make())
        made = make() if self.rank == 0 else [torch.empty_like(p) for p in parameters]
        found = [tensor.contiguous() for tensor in made]  # numbers travel in the order they have in memory
        for tensor in found:
            distributed.broadcast(tensor, src=0)
        return list(found)

    def all_norms(self, done: list[tuple[Batch, FloatArray]]) -> tuple[Batch, FloatArray]:
        """The records of the step and their norms, from every process."""
        batch, norms = joined(done)
        if self.size == 1:
            return batch, norms
        every: list[Any] = [None] * self.size
        distributed.all_gather_object(every, (batch.positions, batch.counts, batch.bounds, norms))
        positions, counts, bounds, found = (np.concatenate(parts) for parts in zip(*every, strict=True))
        return Batch(batch.step, positions, counts, bounds), found


def unwrapped(module: Any) -> Any:
    """The module that several processes share."""
    return module.module if isinstance(module, DistributedDataParallel) else module


def refuse_shards(module: Any) -> None:
    """Reject sharded parameters: no single process has a record's whole gradient."""
    names = {type(part).__name__ for part in module.modules()}
    is_cut = any(type(p).__name__ == "DTensor" for p in module.parameters())
    if is_cut or any("FullyShardedDataParallel" in name or name.startswith("FSDP") for name in names):
        raise InvalidInput(
            "FSDP splits parameters into shards, so no process has a record's whole gradient, whose norm is clipped; "
            "use DistributedDataParallel, with adapters (LoRA) or a max_physical_batch_size if memory is short"
        )
