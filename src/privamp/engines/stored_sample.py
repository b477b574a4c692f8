"""A sample whose rows stay where they are, in a file or on a cluster, with the ledger of any other sample.

Sums are added up batch by batch as whole numbers on the mechanism's grid, so the answer before noise is the same in any
order and any partition of the rows.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..core.design import Design
from ..core.guarantee import Guarantee
from ..core.mechanism import Mechanism
from ..core.neighbors import Neighbors
from ..core.sample import Drawn, Ledger, Limit, Purse, Sample
from ..errors import InvalidInput
from ..mechanisms.fixed_point import ExactGaussian, ExactLaplace
from .columns import array_of
from .kernel import COUNT, WEIGHT, Kernel

Batches = Callable[[], Iterable[pa.RecordBatch]]
ExactNoise = ExactLaplace | ExactGaussian


class StoredSample:
    """Kept rows that can be read batch by batch, as often as needed. What they are is secret."""

    __slots__ = ("_batches", "_kernel", "_sample", "ledger_id")

    def __init__(self, kernel: Kernel, batches: Batches) -> None:
        self.ledger_id = kernel.ledger_id
        nobody = np.empty(0, dtype=np.int64)
        self._sample = Sample(kernel.design, nobody, Drawn(nobody, nobody, np.empty(0)), kernel.subkey)
        self._batches, self._kernel = batches, kernel

    @property
    def design(self) -> Design:
        """How it was drawn."""
        return self._sample.design

    @property
    def ledger(self) -> Ledger:
        """What was asked of this sample so far in this process."""
        return self._sample.ledger

    def declare(self, mechanisms: Iterable[Mechanism]) -> "StoredSample":
        """Declare every mechanism that will be run on this sample; returns the sample."""
        self._sample.declare(mechanisms)
        return self

    def limit(self, filter: Limit) -> "StoredSample":
        """Set how far releases chosen one after the other may go; returns the sample."""
        self._sample.limit(filter)
        return self

    def charge(self, budget: Purse, *, note: str = "", delta: float | None = None) -> "StoredSample":
        """Charge a `Budget`, which remembers the draw over all processes; returns the sample."""
        self._sample.charge(budget, note=note, delta=delta)
        return self

    def guarantee(self, neighbors: Neighbors | None = None) -> Guarantee:
        """Everything asked of this sample, composed inside it, then amplified once."""
        return self._sample.guarantee(neighbors)

    def release(self, mechanism: Mechanism, statistic: Callable[[Iterable[pa.RecordBatch]], Any]) -> Any:
        """Register the mechanism, compute `statistic(batches)`, add noise. The function is trusted code.

        A batch has the columns of the data, and privamp_weight and privamp_count.
        """
        return self._sample.release(mechanism, lambda _: statistic(self._batches()))

    def release_sum(self, mechanism: ExactNoise, columns: str | Sequence[str]) -> Any:
        """The weighted sum of one column, or of several as one vector, clipped and rounded per record, with noise."""
        _check_exact(mechanism)
        names = (columns,) if isinstance(columns, str) else tuple(columns)
        self._kernel.check_sum(names, mechanism.sensitivity, mechanism.p)
        shape: tuple[int, ...] = () if isinstance(columns, str) else (len(names),)

        def total(batches: Iterable[pa.RecordBatch]) -> NDArray[np.int64]:
            sums = np.zeros(shape, dtype=np.int64)
            for batch in batches:
                sums += whole_total(batch, mechanism, columns)
            return sums

        return self.release(mechanism, total)

    def reveal_secret(self) -> Iterable[pa.RecordBatch]:
        """The kept rows themselves, for code that does its own accounting."""
        self._sample.reveal_secret()  # says so in the log
        return self._batches()

    def __repr__(self) -> str:
        return f"StoredSample(design={self.design}, releases={len(self.ledger.entries)}, contents=secret)"

    def __reduce__(self) -> Any:
        raise InvalidInput("a StoredSample is secret and cannot be pickled; keep the key and draw it again")


def whole_total(batch: pa.RecordBatch, mechanism: ExactNoise, columns: str | Sequence[str]) -> NDArray[np.int64]:
    """What one batch of kept rows adds to a sum, in units of the mechanism's grid: add them up in any order."""
    _check_exact(mechanism)
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    missing = [name for name in names if name not in batch.schema.names]
    if missing:
        raise InvalidInput(f"the sample has no column {missing[0]!r}")
    rows = array_of(batch, names, "the sum")
    if not isinstance(columns, str) and rows.ndim == 1:
        rows = rows[:, None]
    return np.asarray(mechanism.total(rows, drawn_of(batch)), dtype=np.int64)


def drawn_of(batch: pa.RecordBatch) -> Drawn:
    """The places, counts and weights of a batch of kept rows."""
    counts, weights = (batch.column(name).to_numpy(zero_copy_only=False) for name in (COUNT, WEIGHT))
    return Drawn(np.arange(batch.num_rows, dtype=np.int64), counts, weights)


def _check_exact(mechanism: Any) -> None:
    if not isinstance(mechanism, (ExactLaplace, ExactGaussian)):
        raise InvalidInput(
            f"a sum over stored rows takes ExactLaplace or ExactGaussian noise, got {type(mechanism).__name__} "
            "instead; for others use release(mechanism, statistic)"
        )
