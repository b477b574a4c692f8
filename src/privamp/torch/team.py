"""Several processes that train one model together (`DistributedDataParallel`).

All of them draw the same batch, with the key of the first process, and each works on its share. The sums of the shares
are added, the first process adds the noise once, and all processes get the same noisy sum, bit for bit. So a step and
its guarantee are those of one process. Norms are shared, because all processes must store the same ones.
"""

from typing import Any

import numpy as np
import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from ..chance.keys import Key, build
from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray
from .batches import Batch, joined
from .precision import sum_dtype

Tensor = Any


class Team:
    """The processes of a run; with a single one, nothing changes."""

    def __init__(self, module: Any) -> None:
        refuse_shards(module)
        self.size, self.rank = 1, 0
        if isinstance(module, DistributedDataParallel):
            self.size, self.rank = distributed.get_world_size(), distributed.get_rank()
            module.require_backward_grad_sync = False  # gradients are summed here, after clipping
            module.require_forward_param_sync = False

    def check(self, records: int, keeps: bool) -> None:
        """Reject what several processes cannot do together."""
        if self.size == 1:
            return
        if keeps:
            raise InvalidInput(
                "checkpoint= and budget= are for runs in one process, and this model is trained by "
                f"{self.size}; omit them, and charge the guarantee where the processes are started"
            )
        found: list[Any] = [None] * self.size
        distributed.all_gather_object(found, records)
        if len(set(found)) > 1:
            raise InvalidInput("every process must have the whole data set, but their numbers of records differ")

    def same_key(self, key: Key) -> Key:
        """The key of the first process."""
        if self.size == 1:
            return key
        secret, is_test = self._from_first((key.secret_bytes(), key.is_test))
        return key if self.rank == 0 else build(secret, is_test=is_test, is_kept=key.is_kept)

    def same_bytes(self, given: bytes) -> bytes:
        """The value of the first process."""
        return given if self.size == 1 else bytes(self._from_first(given))

    def _from_first(self, value: Any) -> Any:
        box = [value if self.rank == 0 else None]
        distributed.broadcast_object_list(box, src=0)
        return box[0]

    def share(self, batch: Batch) -> Batch:
        """The records of the batch that this process works on."""
        here = slice(self.rank, None, self.size)
        return Batch(batch.step, batch.positions[here], batch.counts[here], batch.bounds[here])

    def added_up(self, parameters: list[Any], sums: dict[int, Tensor]) -> dict[int, Tensor]:
        """The sums of all processes."""
        if self.size == 1:
            return sums
        total = {}
        for p in parameters:
            mine = sums.get(id(p))
            held = torch.zeros_like(p, dtype=sum_dtype(p.dtype)) if mine is None else mine.contiguous()
            distributed.all_reduce(held)
            total[id(p)] = held
        return total

    def from_first(self, parameters: list[Any], make: Any) -> list[Tensor]:
        """The tensors that the first process computes, one per parameter."""
        if self.size == 1:
            return list(make())
        found = make() if self.rank == 0 else [torch.empty_like(p) for p in parameters]
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


def refuse_shards(module: Any) -> None:
    """Reject sharded parameters: no single process has a record's whole gradient."""
    names = {type(part).__name__ for part in module.modules()}
    is_cut = any(type(p).__name__ == "DTensor" for p in module.parameters())
    if is_cut or any("FullyShardedDataParallel" in name or name.startswith("FSDP") for name in names):
        raise InvalidInput(
            "FSDP splits parameters into shards, so no process has a record's whole gradient, whose norm is clipped; "
            "use DistributedDataParallel, with adapters (LoRA) or a max_physical_batch_size if memory is short"
        )
