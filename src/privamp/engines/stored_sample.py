"""A sample whose rows stay where they are, in a file or on a cluster, with the ledger of any other sample.

Sums are added up batch by batch as whole numbers on the mechanism's grid, so the answer before noise is the same in any
order and any partition of the rows.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..chance.stream import Stream
from ..core.guarantee import Guarantee
from ..core.ledger import BudgetLike
from ..core.mechanism import Mechanism
from ..core.neighbors import Neighbors
from ..core.sample import Bounded, Drawn, Sample
from ..errors import InvalidInput
from ..mechanisms.fixed_point import ExactGaussian, ExactLaplace, GridUnits, in_grid_units
from ..tables.columns import numbers_of
from ..validation import whole
from .kernel import COUNT, WEIGHT, Kernel
from .row_numbers import is_list, is_number, numbers

ExactNoise = ExactLaplace | ExactGaussian


class StoredSample(Sample):
    """Kept rows that can be read as often as needed. `declare`, `limit`, `charge` and `guarantee` are as for every
    sample."""

    __slots__ = ("_assumes", "_kernel", "_rows", "_schema")

    def __init__(
        self, kernel: Kernel, rows: Callable[..., Any], schema: pa.Schema | None = None, assumes: Sequence[str] = ()
    ) -> None:
        nobody = np.empty(0, dtype=np.int64)
        super().__init__(kernel.design, nobody, Drawn(nobody, nobody, np.empty(0)), kernel.subkey, kernel.key_id)
        self._kernel, self._rows, self._schema, self._assumes = kernel, rows, schema, tuple(assumes)

    @property
    def ledger_id(self) -> str:
        """Identifies the draw without revealing it; public."""
        return self._kernel.ledger_id

    def guarantee(self, neighbors: Neighbors | None = None) -> Guarantee:
        """The guarantee of all releases from this sample: composed inside it, then amplified once."""
        found = super().guarantee(neighbors)
        return replace(found, assumes=tuple(dict.fromkeys((*found.assumes, *self._assumes))))

    def release(self, mechanism: Mechanism, statistic: Callable[[Any], Any]) -> Any:  # type: ignore[override]
        """Register the mechanism, compute `statistic` of the secret rows, add noise. The function is trusted code.

        The rows (record batches of a file, a DataFrame on a cluster) have the columns of the data, and privamp_weight
        and privamp_count.
        """
        trusted = not isinstance(statistic, Bounded)
        return self._registered(
            mechanism, lambda stream: mechanism.release(statistic(self._rows()), stream), trusted=trusted
        )

    def _release_of(self, mechanism: Mechanism, columns: Sequence[str], total: Callable[[Any], Any]) -> Any:
        """The same for a clipped total of a few columns: the others are not read."""
        return self._registered(mechanism, lambda stream: mechanism.release(total(self._rows(columns)), stream))

    def run(self, mechanism: Mechanism, procedure: Callable[[Any, Stream], Any]) -> Any:
        """Register `mechanism`, then run your own procedure on the rows, which must be as private as the mechanism
        says."""
        return self._registered(mechanism, lambda stream: procedure(self._rows(), stream), claimed=True)

    def release_sum(
        self,
        mechanism: ExactNoise,
        columns: str | Sequence[str],
        *,
        dimension: int | None = None,
        budget: BudgetLike | None = None,
    ) -> Any:
        """The weighted sum of one column, or of several as one vector, clipped and rounded per record, with noise.

        A column of lists is one vector; `dimension` is their length, if their type does not give it. Missing entries
        count as 0, and a list of another length as zeros. Types are checked before the release is registered. With a
        `budget` this sum is the sample's only release, and it is charged before it is made.
        """
        _check_exact(mechanism)
        names = (columns,) if isinstance(columns, str) else tuple(columns)
        self._kernel.check_sum(names, mechanism.sensitivity, mechanism.p)
        if not names:
            raise InvalidInput("a sum needs at least one column, got none instead; give its name")
        width = None if self._schema is None else list_width(self._schema, names, dimension)
        shape: tuple[int, ...] = () if isinstance(columns, str) else (len(names),)
        if width is not None:
            shape = (width,)

        def total(batches: Iterable[pa.RecordBatch]) -> GridUnits:
            sums = np.zeros(shape, dtype=np.int64)
            for batch in batches:
                sums += whole_total(batch, mechanism, columns, width)
            return in_grid_units(sums)

        if budget is not None:
            self._planned([mechanism], budget, f"sum of {', '.join(names)}")
        return self._release_of(mechanism, names, total)

    def reveal_secret(self) -> Any:
        """The kept rows themselves, for code that does its own accounting."""
        super().reveal_secret()  # writes it to the log
        return self._rows()


def list_width(schema: pa.Schema, names: Sequence[str], dimension: int | None = None) -> int | None:
    """The length of the lists of a single column, None for numbers; raises for all other types."""
    for name in names:
        if name not in schema.names:
            raise InvalidInput(f"the sample has no column {name!r}")
    kinds = [schema.field(name).type for name in names]
    if len(names) == 1 and is_list(kinds[0]) and is_number(kinds[0].value_type):
        width = kinds[0].list_size if pa.types.is_fixed_size_list(kinds[0]) else dimension
        if width is None or (dimension is not None and dimension != width):
            raise InvalidInput(f"the column {names[0]!r} holds lists; give their length with dimension=")
        whole(1, dimension=width)
        return int(width)
    for name, kind in zip(names, kinds, strict=True):
        if not (is_number(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind)):
            raise InvalidInput(f"the column {name!r} must hold numbers to be summed, got {kind} instead; cast it first")
    if dimension is not None:
        raise InvalidInput("dimension= is only for one column of lists; omit it here")
    return None


def whole_total(
    batch: pa.RecordBatch, mechanism: ExactNoise, columns: str | Sequence[str], width: int | None = None
) -> NDArray[np.int64]:
    """What one batch of kept rows adds to a sum, in units of the mechanism's grid: add them up in any order.

    `width` is the length of the lists of a column of lists.
    """
    _check_exact(mechanism)
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    missing = [name for name in names if name not in batch.schema.names]
    if missing:
        raise InvalidInput(f"the sample has no column {missing[0]!r}")
    rows = numbers_of(batch, names) if width is None else numbers(batch, names, width)
    if not isinstance(columns, str) and rows.ndim == 1:
        rows = rows[:, None]
    return np.asarray(mechanism.total(rows, drawn_of(batch)), dtype=np.int64)


def drawn_of(batch: pa.RecordBatch) -> Drawn:
    """The positions, counts and weights of a batch of kept rows."""
    counts, weights = (batch.column(name).to_numpy(zero_copy_only=False) for name in (COUNT, WEIGHT))
    return Drawn(np.arange(batch.num_rows, dtype=np.int64), counts, weights)


def _check_exact(mechanism: Any) -> None:
    if not isinstance(mechanism, (ExactLaplace, ExactGaussian)):
        raise InvalidInput(
            f"a sum over stored rows needs ExactLaplace or ExactGaussian noise, got {type(mechanism).__name__} "
            "instead; for others use release(mechanism, statistic)"
        )
