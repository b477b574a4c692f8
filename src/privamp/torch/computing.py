"""Compute one loss per record of a batch; if the model fails, for the records on which it does not fail."""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..errors import InvalidInput
from . import made_up
from .batches import Ints
from .learner import PrivateLoss

if TYPE_CHECKING:
    from .run import Run

Tensor = Any


def computed(run: "Run", batch: Any) -> Tensor:
    """One loss per record, the model's own if there is no criterion."""
    found = run.compute(run.module, None if run.has_own_loss else run.criterion.losses, batch)
    return found.losses if isinstance(found, PrivateLoss) else found


def tolerant(run: "Run", batch: Any, count: int) -> tuple[Tensor | None, Ints | None]:
    """Losses, and their records if some failed: an error would leak information about a record."""
    try:
        return computed(run, batch), None
    except InvalidInput:
        raise
    except torch.OutOfMemoryError:
        raise InvalidInput("the batch does not fit into memory; give a max_physical_batch_size") from None
    except Exception:
        with run.recorder.channels_first():
            return _of_those_that_work(run, batch, count)


def _of_those_that_work(run: "Run", batch: Any, count: int) -> tuple[Tensor | None, Ints]:
    some = [r for r in range(count) if _works(run, made_up.rows(batch, slice(r, r + 1)))]
    if not some:
        return None, np.empty(0, np.int64)
    run.recorder.listen(len(some))
    return computed(run, made_up.rows(batch, torch.tensor(some))), np.array(some, dtype=np.int64)


def _works(run: "Run", batch: Any) -> bool:
    run.recorder.listen(1)
    try:
        with torch.no_grad():
            computed(run, batch)
    except Exception:
        return False
    return True
