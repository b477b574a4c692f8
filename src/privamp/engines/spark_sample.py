"""A sample on a Spark cluster with its ledger: what was drawn stays there, sums come back with noise."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..chance.keys import Key
from ..chance.stream import Stream
from ..core.design import Design
from ..core.log import logger
from ..core.mechanism import Mechanism
from ..core.sample import Drawn, Sample
from ..errors import InvalidInput
from ..mechanisms.fixed_point import ExactGaussian, ExactLaplace
from .kernel import COUNT, WEIGHT, Kernel, Reads
from .spark import DRIVER_RECORDS, drawn_rows, kernel_for
from .spark_totals import Exact, by_group, dimension_of, units_of, whole_totals

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SparkSample(Sample):
    """Rows drawn on a cluster. `declare`, `limit`, `charge`, `ledger` and `guarantee` are those of every sample."""

    __slots__ = ("_kernel", "_rows")

    def __init__(self, kernel: Kernel, rows: "DataFrame") -> None:
        nothing = np.empty(0, dtype=np.int64)
        super().__init__(kernel.design, nothing, Drawn(nothing, nothing, np.empty(0)), kernel.subkey)
        self._rows, self._kernel = rows, kernel

    @property
    def ledger_id(self) -> str:
        """Names the draw without giving it away."""
        return self._key.fingerprint.hex()

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
        width = dimension_of(self._rows, values, d)
        units, shape = units_of(noise, values), [width]
        if by is not None:
            names = _public(groups)
            dimension_of(self._rows, (by,), 1)
            units, shape = by_group(units, by, names), [len(names), width]
        elif groups is not None:
            raise InvalidInput("groups= goes with by=, the column that holds them")
        needs = tuple(dict.fromkeys((*values, *((by,) if by else ()), WEIGHT, COUNT)))
        cells = int(np.prod(shape))
        return self.release(noise, lambda rows: whole_totals(rows, needs, units, cells).reshape(shape))

    def release(self, mechanism: Mechanism, statistic: "Callable[[DataFrame], Any]") -> Any:  # type: ignore[override]
        """Register the mechanism, compute `statistic` of the secret rows, add noise. The function is trusted code."""
        return self._registered(mechanism, lambda stream: mechanism.release(statistic(self._rows), stream))

    def run(self, mechanism: Mechanism, procedure: "Callable[[DataFrame, Stream], Any]") -> Any:
        """Register `mechanism`, then run your own procedure on the rows, which must be as private as it says."""
        return self._registered(mechanism, lambda stream: procedure(self._rows, stream), claimed=True)

    def reveal_secret(self) -> "DataFrame":
        """The drawn rows, for code that does its own accounting."""
        logger.warning("a sample by %s was opened outside its ledger", self.design)
        return self._rows


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
