"""What the training loop iterates over: batches that the run draws, an epoch at a time."""

import contextlib
from collections.abc import Iterator
from typing import Any

from ..errors import BudgetExceeded, InvalidInput
from .run import Run


class BatchSource:
    """Each item is a batch (inputs..., target) on the model's device.

    If no one was drawn, the batch is one made-up record of weight 0: the step is only noise.

    One pass makes `steps_per_epoch` steps; a pass that begins when all certified steps are taken raises BudgetExceeded.
    With a `max_physical_batch_size` a step may take several items, and the optimiser moves at the last; how many there
    are is secret, so let nothing that is published depend on it.
    """

    def __init__(self, run: Run, steps_per_epoch: int) -> None:
        self._run, self.steps_per_epoch = run, steps_per_epoch

    def __iter__(self) -> Iterator[Any]:
        run = self._run
        for taken in range(self.steps_per_epoch):
            if run.is_finished and taken:
                return
            try:
                parts = run.parts()
                first = next(parts)
            except BudgetExceeded:
                if taken:
                    return  # the filter closed within this pass
                raise
            yield run.read(first)
            for part in parts:
                yield run.read(part)

    @contextlib.contextmanager
    def in_parts_of(self, size: int) -> Iterator[None]:
        """Steps in parts of at most so many records, until the block ends."""
        if getattr(self._run.plan, "sums", "") == "exact, one by one":
            raise InvalidInput("this run computes records one by one, as its guarantee says; omit BatchMemoryManager")
        before, self._run.most = self._run.most, size
        try:
            yield
        finally:
            self._run.most = before

    def __len__(self) -> int:
        """Steps in a full pass."""
        return self.steps_per_epoch

    def __repr__(self) -> str:
        return f"BatchSource(sampler={self._run.plan.sampler!s}, steps_per_epoch={self.steps_per_epoch})"
