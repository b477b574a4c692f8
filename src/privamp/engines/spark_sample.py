"""A sample on a Spark cluster with its ledger: what was drawn stays there, sums come back with noise."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from ..chance.keys import Key
from ..chance.stream import Stream
from ..core.design import Design
from ..core.guarantee import Guarantee
from ..core.ledger import BudgetLike
from ..core.mechanism import Mechanism
from ..core.neighbors import Neighbors
from ..errors import InvalidInput
from ..mechanisms.fixed_point import ExactGaussian, ExactLaplace, GridUnits, in_grid_units
from ..validation import options_of
from .options import SparkKeywords, SparkOptions
from .spark import drawn, kernel_for
from .spark_digest import CLUSTER, SAME_TABLE
from .spark_draw import Draw
from .spark_frames import plain
from .spark_totals import Ball, Exact, Units, Whole, by_group, check_groups, dimension_of, units_of, whole_totals
from .stored_sample import StoredSample

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SparkSample(StoredSample):
    """Rows drawn on a cluster: `release`, `run` and `reveal_secret` use a DataFrame.

    Sums and counts draw and add up in one job, which returns only encrypted totals. A DataFrame that you evaluate
    yourself shows how many rows it has on Spark's pages and in its event log.
    """

    __slots__ = ("_draw", "_from_table")

    def __init__(self, draw: Draw) -> None:
        super().__init__(draw.kernel, draw.rows)
        self._draw = self._from_table = draw

    @property
    def stratum_column(self) -> str:
        """The column of the table in which the design finds the stratum."""
        return dict(self._kernel.reads).get("stratum", ("stratum",))[0]

    def persist(self) -> "SparkSample":
        """Have Spark keep the drawn rows on the workers, so that later releases read these and not the table.

        They are kept until `unpersist`, in memory and, where that is short, on the workers' disks: set
        spark.io.encryption.enabled for these. Spark's pages show how much is kept, as they do for any DataFrame.
        """
        self._keep(self._draw.held())
        return self

    def unpersist(self) -> None:
        """Let Spark forget the rows of `persist`; releases draw from the table again."""
        if self._draw.is_held:
            self._draw.df.unpersist()
            self._keep(self._from_table)

    def _keep(self, draw: Draw) -> None:
        self._draw, self._rows = draw, draw.rows

    def guarantee(self, neighbors: Neighbors | None = None) -> Guarantee:
        """The guarantee of all releases from this sample: composed inside it, then amplified once."""
        found = super().guarantee(neighbors)
        return replace(found, assumes=tuple(dict.fromkeys((*found.assumes, SAME_TABLE, CLUSTER))))

    def release(self, mechanism: Mechanism, statistic: Callable[[Any], Any]) -> Any:  # type: ignore[override]
        """Register the mechanism, compute `statistic` of the secret DataFrame, add noise. The function is trusted code.

        The table is compared with that of the draw first; what your function evaluates afterwards is not.
        """
        self._draw.check_table()
        return super().release(mechanism, statistic)

    def run(self, mechanism: Mechanism, procedure: Callable[[Any, Stream], Any]) -> Any:
        """Register `mechanism`, then run your own procedure on the DataFrame, which must be as private as the mechanism
        says."""
        self._draw.check_table()
        return super().run(mechanism, procedure)

    def release_total(
        self,
        mechanism: Mechanism,
        columns: Sequence[str],
        units: Units,
        shape: Sequence[int],
        made: Callable[[Whole], GridUnits] = in_grid_units,
    ) -> Any:
        """The noisy sum of whole-number rows of the sample: `units(batch)` makes them from `columns`.

        `made` turns their sum into the value to which noise is added; by default the sum itself, in units of the grid.
        """
        total = made(self.secret_total(columns, units, shape))
        return self._registered(mechanism, lambda stream: mechanism.release(total, stream))

    def secret_total(self, columns: Sequence[str], units: Units, shape: Sequence[int]) -> Whole:
        """That sum without noise. The table was compared with that of the draw."""
        return whole_totals(self._draw, columns, units, int(np.prod(shape))).reshape(tuple(shape))

    def release_sum(
        self,
        mechanism: Exact,
        columns: str | Sequence[str],
        *,
        by: str | None = None,
        groups: Sequence[Any] | None = None,
        dimension: int | None = None,
        budget: BudgetLike | None = None,
    ) -> Any:
        """The noisy sum of the columns over the sample, weights included, in whole numbers on the mechanism's grid.

        Rows are clipped to the mechanism's sensitivity; missing entries and NaN count as 0, a list of another length
        than `dimension` as zeros. With `by`, one row of sums per group of the public list `groups`: a record is in one
        group, so all of them cost as much as one sum. An array column needs `dimension`. With a `budget` this sum is
        the sample's only release, and it is charged before it is made.
        """
        values = (columns,) if isinstance(columns, str) else tuple(columns)
        if not values:
            raise InvalidInput("a sum needs at least one column; use release_count for the number of records")
        job = self._checked(mechanism, values, by, groups, dimension)
        if budget is not None:
            self._planned([mechanism], budget, f"sum of {', '.join(values)}")
        answer = np.asarray(self.release_total(mechanism, *job))
        return answer[..., 0][()] if isinstance(columns, str) and dimension is None else answer

    def release_count(self, mechanism: Exact, *, by: str | None = None, groups: Sequence[Any] | None = None) -> Any:
        """The noisy number of records in the sample, weights included; with `by`, one per group."""
        job = self._checked(mechanism, (), by, groups, None)
        return np.asarray(self.release_total(mechanism, *job))[..., 0][()]

    def _checked(
        self, noise: Exact, values: tuple[str, ...], by: str | None, groups: Sequence[Any] | None, d: int | None
    ) -> tuple[tuple[str, ...], Units, list[int]]:
        """What `release_total` takes, after all checks of public facts."""
        if not isinstance(noise, (ExactLaplace, ExactGaussian)):
            raise InvalidInput(
                "a sum on a cluster needs ExactLaplace or ExactGaussian, because float sums depend on the order, "
                f"got {type(noise).__name__} instead"
            )
        self._kernel.check_sum(values, noise.sensitivity, noise.p)
        width = dimension_of(self._draw.df, values, d)
        units, shape = units_of(noise, values, width, self._ball), [width]
        if by is not None:
            names = _public(groups)
            check_groups(self._draw.df, by, names)
            units, shape = by_group(units, by, names), [len(names), width]
        elif groups is not None:
            raise InvalidInput("groups= needs by=, the column that holds them")
        return (*values, *((by,) if by else ())), units, shape

    @property
    def _ball(self) -> Ball | None:
        """The smallest ball of the importance rules, for which the weights were made."""
        balls = [(float(rule.radius), rule.p) for rule in self._kernel.rules if rule.radius is not None]
        return (min(r for r, _ in balls), min(p for _, p in balls)) if balls else None  # a p-norm falls as p grows


def draw(
    df: "DataFrame",
    design: Design,
    *,
    id: str,
    key: Key | None = None,
    label: str | None = None,
    round: int = 0,
    options: SparkOptions | None = None,
    **asked: Unpack[SparkKeywords],
) -> SparkSample:
    """The sample of `privamp.spark.sample` with its ledger: releases are registered, composed and amplified once.

    A keyed digest of all ids is taken here and compared at every release: a table that has changed is rejected.
    Keywords are the fields of `SparkOptions`.
    """
    read = options_of(SparkOptions, options, asked)
    df = plain(df, design, read.reads)
    kernel = kernel_for(df, design, id=id, key=key, label=label, round=round, reads=read.reads, clip=read.clip)
    return SparkSample(drawn(df, kernel, trust_ids=read.trust_ids, driver_records=read.driver_records))


def _public(groups: Sequence[Any] | None) -> tuple[Any, ...]:
    names = () if groups is None else tuple(getattr(group, "item", lambda group=group: group)() for group in groups)
    if not names or len(set(names)) < len(names):
        raise InvalidInput(
            "by= needs groups=, the public list of groups, each once: which groups occur is itself secret"
        )
    return names
