"""Steps split into parts that fit into memory, like Opacus' class of the same name."""

import contextlib
from collections.abc import Iterator
from typing import Any

from ..validation import whole
from .loader import BatchSource


@contextlib.contextmanager
def BatchMemoryManager(  # noqa: N802 (the name that Opacus gives it)
    *, data_loader: BatchSource, max_physical_batch_size: int, optimizer: Any = None
) -> Iterator[BatchSource]:
    """The same batches in parts of at most this many records; the optimiser steps at the last part of each.

        with BatchMemoryManager(data_loader=loader, max_physical_batch_size=64, optimizer=optimizer) as parts:
            for x, y in parts: ...

    Guarantee: that of the run; parts of a step are added up before noise is added, once. `optimizer` is not needed.
    """
    whole(1, max_physical_batch_size=max_physical_batch_size)
    with data_loader.in_parts_of(max_physical_batch_size):
        yield data_loader
