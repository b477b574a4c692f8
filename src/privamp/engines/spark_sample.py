"""A sample on a Spark cluster with its ledger: what was drawn stays there, sums come back with noise."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..chance.keys import Key
from ..core.design import Design
from ..core.sample import Bounded
from ..errors import InvalidInput
from ..mechanisms.fixed_point import ExactGaussian, ExactLaplace, in_grid_units
from .kernel import COUNT, WEIGHT, Kernel, Reads
from .spark import DRIVER_RECORDS, drawn_rows, kernel_for
from .spark_totals import Exact, by_group, dimension_of, units_of, whole_totals
from .stored_sample import StoredSample

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SparkSample(StoredSample):
    """Rows drawn on a cluster: `release`, `run` and `reveal_secret` speak of a DataFrame."""

    __slots__ = ()

    def __init__(self, kernel: Kernel, rows: "DataFrame") -> None:
        super().__init__(kernel, lambda: rows)

    def release_sum(
        self,
        mechanism: Exact,
        columns: str | Sequence[str],
        *,
        by: str | None = None,
        groups: Sequence[Any] | None = None,
        dimension: int | None = None,
    ) -> Any:
        """The noisy sum of the columns over the sample, weights included, in whole numbers on the mechanism's grid.

        Rows are clipped to the mechanism's sensitivity. With `by`, one row of sums per group of the public list
        `groups`: a record is in one group, so all of them cost what one sum costs. An array column needs `dimension`.
        """
        values = (columns,) if isinstance(columns, str) else tuple(columns)
        answer = np.asarray(self._released(mechanism, values, by, groups, dimension))
        return answer[..., 0][()] if isinstance(columns, str) and dimension is None else answer

    def release_count(self, mechanism: Exact, *, by: str | None = None, groups: Sequence[Any] | None = None) -> Any:
        """The noisy number of records in the sample, weights included; with `by`, one per group."""
        return np.asarray(self._released(mechanism, (), by, groups, None))[..., 0][()]

    def _released(
        self, noise: Exact, values: tuple[str, ...], by: str | None, groups: Sequence[Any] | None, d: int | None
    ) -> Any:
        if not isinstance(noise, (ExactLaplace, ExactGaussian)):
            raise InvalidInput(
                f"a sum on a cluster takes ExactLaplace or ExactGaussian, got {type(noise).__name__} instead: floats "
                "would add up differently in every order"
            )
        self._kernel.check_sum(values, noise.sensitivity, noise.p)
        width = dimension_of(self._rows(), values, d)
        units, shape = units_of(noise, values), [width]
        if by is not None:
            names = _public(groups)
            dimension_of(self._rows(), (by,), 1)
            units, shape = by_group(units, by, names), [len(names), width]
        elif groups is not None:
            raise InvalidInput("groups= goes with by=, the column that holds them")
        needs = tuple(dict.fromkeys((*values, *((by,) if by else ()), WEIGHT, COUNT)))
        cells = int(np.prod(shape))
        return self.release(
            noise, Bounded(lambda rows: in_grid_units(whole_totals(rows, needs, units, cells).reshape(shape)))
        )


def draw(
    df: "DataFrame",
    design: Design,
    *,
    id: str,
    key: Key | None = None,
    label: str = "population",
    round: int = 0,
    reads: Reads | None = None,
    clip: bool = False,
    trust_ids: bool = False,
    driver_records: int = DRIVER_RECORDS,
) -> SparkSample:
    """The sample of `privamp.spark.sample` with its ledger: releases are noted, composed and amplified once."""
    kernel = kernel_for(df, design, id=id, key=key, label=label, round=round, reads=reads, clip=clip)
    return SparkSample(kernel, drawn_rows(df, kernel, trust_ids=trust_ids, driver_records=driver_records))


def _public(groups: Sequence[Any] | None) -> tuple[Any, ...]:
    names = tuple(groups or ())
    if not names or len(set(names)) < len(names):
        raise InvalidInput(
            "by= needs groups=, the public list of groups, each once: which groups occur is itself secret"
        )
    return names
