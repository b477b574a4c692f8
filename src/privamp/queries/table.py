"""open_table: the table of an analyst. Lazy: only names and types are read before a question is run."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ..accounting.budget import Budget
from ..chance.keys import Key, given_key
from ..core.design import Design
from ..core.ledger import BudgetLike, check_budget
from ..core.neighbors import Neighbors
from ..core.weighting import Coins
from ..designs.poisson import Poisson
from ..engines import local
from ..engines.stored_sample import StoredSample
from ..errors import InvalidInput
from ..validation import in_range, whole
from . import on_spark, opened
from .groups import Groups
from .persons import capped, check_person
from .plan import Plan
from .quantiles import Quantiles, checked_probabilities
from .questions import (
    Count,
    Histogram,
    Mean,
    Proportion,
    Question,
    Sum,
    checked_bounds,
    checked_edges,
)
from .ranges import edges_of, released
from .values import check_numbers
from .variances import Variance

if TYPE_CHECKING:
    from ..core.release import Release

_ALL = Poisson(1.0)
REPLACE_ONE = Neighbors.REPLACE_ONE


@dataclass(frozen=True, slots=True)
class Table:
    """A table that answers questions under a guarantee. `open_table` makes one.

    `count`, `sum`, `mean`, `variance`, `proportion`, `histogram`, `quantile` and `median` make questions; `.by(column,
    values)` splits one by public groups, `.run(epsilon=…)` answers it. Every run draws a new sample by `design` and is
    charged to `budget`; `plan` answers several questions from one sample. Answers are about the whole table.

    `source`, of the columns in `schema`, `population`, `id`, `key`, `person`, `records` and `rows` are as `open_table`
    takes them.
    """

    source: Any = field(repr=False)
    schema: pa.Schema = field(repr=False)
    design: Design = _ALL
    budget: BudgetLike | None = field(default=None, repr=False)
    population: str | None = None
    id: str | None = None
    key: Key | None = field(default=None, repr=False)
    person: str | None = None
    records: int = 1
    rows: int | None = None

    def sample(self, design: Design) -> "Table":
        """The same table, whose questions are answered from a sample by this design.

        A design that declares the number of records (`WithoutReplacement(100, 5000)`) needs a table of that size: any
        other is rejected when a question is run, before anything is charged.
        """
        if not isinstance(design, Design):
            raise InvalidInput(f"a table must be sampled by a design such as Poisson(0.05), got {design!r} instead")
        if design.weight is None or design.spread is None or design.reads:
            raise InvalidInput(
                "a table must be sampled by a design that treats all records alike, such as Poisson or "
                f"WithoutReplacement, got {design} instead; use privamp.survey for other designs"
            )
        if self.person is not None and not isinstance(design.equal_chances, Coins):
            raise InvalidInput(
                "a table with person= must be sampled by Poisson(rate), because the number of kept records is "
                f"secret, got {design} instead"
            )
        return replace(self, design=design)

    @property
    def relation(self) -> Neighbors | None:
        """The relation of the guarantee, if it is about a person with all their records."""
        return None if self.person is None else Neighbors.ADD_REMOVE.for_person(self.records)

    def count(self) -> Count:
        """How many records there are."""
        return Count(table=self)

    def sum(self, column: str, bounds: Any, *, missing: float | None = None) -> Sum:
        """The sum of a column; values are clipped to the public bounds, and a missing one counts as `missing`, or not
        at all."""
        return Sum(**self._about(column, bounds, missing))

    def mean(self, column: str, bounds: Any, *, missing: float | None = None) -> Mean:
        """The mean of a column over the records that have a number, or over all with `missing`."""
        return Mean(**self._about(column, bounds, missing))

    def variance(self, column: str, bounds: Any, *, missing: float | None = None) -> Variance:
        """The mean squared distance from the mean of a column, over the records that have a number, or over all."""
        return Variance(**self._about(column, bounds, missing))

    def proportion(self, column: str, value: Any = None, *, missing: bool | None = None) -> Proportion:
        """The share of records that have this value (or one of a list) in the column; without one, of those that are
        true.

        Records without a value are left out, or count as `missing`.
        """
        if missing not in (None, True, False):
            raise InvalidInput(f"missing must be True, False or None in a proportion, got {missing!r} instead")
        known = None if missing is None else float(missing)
        if value is None:
            return Proportion(**self._about(column, (0.0, 1.0), known))
        is_list = isinstance(value, (list, tuple, set, frozenset, np.ndarray))
        of = Groups.of(column, value if is_list else [value], self.kind_of(column))
        return Proportion(table=self, column=column, bounds=(0.0, 1.0), missing=known, of=of)

    def histogram(self, column: str, bins: Any, bounds: Any = None, *, missing: bool = False) -> Histogram:
        """How many records lie in each bin: `bins` equal ones between the bounds, or between given edges.

        The outer bins take what lies beyond them; with `missing` records without a number have their own bin.
        """
        check_numbers(self.kind_of(column), column)
        return Histogram(table=self, column=column, edges=checked_edges(bins, bounds), with_missing=bool(missing))

    def quantile(
        self, column: str, probabilities: Any, bounds: Any, *, missing: float | None = None, interval: bool = True
    ) -> Quantiles:
        """One or several quantiles of a column, with errors and intervals, from a tree of noisy counts.

        Without `interval`, and as the only question, they are chosen by the exponential mechanism: closer to the truth,
        whole numbers in a column of fewer than 2^20 whole numbers, but without errors or intervals.
        """
        several = checked_probabilities(probabilities)
        return Quantiles(**self._about(column, bounds, missing), probabilities=several, interval=bool(interval))

    def median(self, column: str, bounds: Any, *, missing: float | None = None, interval: bool = True) -> Quantiles:
        """The median of a column, as `quantile` gives it."""
        return self.quantile(column, 0.5, bounds, missing=missing, interval=interval)

    def find_bounds(
        self, column: str, *, epsilon: float, delta: float = 0.0, smallest: float = 1e-6, largest: float = 1e12
    ) -> "Release":
        """Bounds that hold all but a few records of a column whose range is not known: two numbers, low and high.

        They are powers of two times `smallest`, up to the first that is at least `largest`, both public. It is a
        separate release: its epsilon adds to that of the questions that use these bounds (a tenth of the total is
        enough).
        """
        edges = edges_of(smallest, largest)
        found = self.histogram(column, edges).run(epsilon=epsilon, delta=delta)
        return released(found, edges, "gaussian" if delta else "laplace")

    def plan(self, questions: Sequence[Question]) -> Plan:
        """Several questions about one sample: it is amplified once, and the noise is split by need."""
        return Plan(self, tuple(questions))

    def join(self, *_: Any, **__: Any) -> "Table":
        """Not supported: one record could appear in many rows."""
        raise InvalidInput(
            "tables cannot be joined, because one record could then appear in many rows without a known bound; join "
            "public columns first, so that every record keeps one row"
        )

    def kind_of(self, column: str) -> pa.DataType:
        """The type of a column; raises if there is no such column."""
        if self.schema.names.count(column) != 1:
            raise InvalidInput(
                f"the table has no column {column!r}, or several, or one of a type that Arrow does not support; it has "
                f"{', '.join(map(repr, self.schema.names)) or 'none'}"
            )
        return self.schema.field(column).type

    def _about(self, column: str, bounds: Any, missing: float | None) -> dict[str, Any]:
        check_numbers(self.kind_of(column), column)
        pair = checked_bounds(bounds)
        if missing is not None:
            in_range(*pair, missing=missing)
        return {"table": self, "column": column, "bounds": pair, "missing": missing}

    def _check_size(self) -> None:
        """Raise, before anything is charged, for a table of another size than the design declares.

        Answers are scaled to the declared number of records, which is public where one record replaces another: both
        neighbours have it, so the error reveals nothing. Under add/remove it is private, and a budget that hides it
        rejects designs that declare it.
        """
        declared = self.design.public_size
        if declared is None:
            return
        if self.budget is not None and self.budget.neighbors.kind != REPLACE_ONE.kind:
            raise InvalidInput(
                f"{self.design} declares the number of records, which this budget hides (its relation is "
                f"{self.budget.neighbors.kind}); sample by Poisson(rate), or use a budget under replace-one"
            )
        if self._size() != declared:
            raise InvalidInput(
                f"the design declares {declared} records, and the table has another number; declare the number of "
                "the table, or sample by Poisson(rate), which needs none"
            )

    def _size(self) -> int:
        """The number of records; secret unless the design declares it."""
        if on_spark.is_spark(self.source):
            return on_spark.size_of(self.source)
        if isinstance(self.source, pa.Table):
            return int(self.source.num_rows)
        data = opened.read(self.source, self.id)
        unknown = (piece for piece in data.pieces if piece.rows is None)
        counted = (part.rows or 0 for piece in unknown for part in piece.held(data.schema.names[:1]))
        return sum(piece.rows or 0 for piece in data.pieces) + sum(counted)

    def _drawn(self, columns: Sequence[str]) -> StoredSample:
        """A fresh sample, or that of the key, which allows one release; all checks are made here."""
        sample = self._on_spark(columns) if on_spark.is_spark(self.source) else self._read(columns)
        if sample.ledger.entries or sample.ledger.plan is not None:
            raise InvalidInput(
                "this key has already drawn this sample, and a release was made from it; use a fresh key, or none"
            )
        return sample

    def _on_spark(self, columns: Sequence[str]) -> StoredSample:
        assert self.id is not None  # open_table rejects a Spark table without one
        key = given_key(self.key)
        return on_spark.draw(self.source, self.design, columns, id=self.id, key=key, label=self.population)

    def _read(self, columns: Sequence[str]) -> StoredSample:
        source, key = opened.read(self.source, self.id), given_key(self.key)
        if source.schema != self.schema:
            raise InvalidInput(
                "the columns of the table or their types have changed since it was opened; open it again"
            )
        if self.id is not None:
            opened.check_ids(source, self.id)
        if self.person is not None:
            source = capped(source, self.person, self.records, key)
        return local.draw(
            source, self.design, key=key, id=self.id, label=self.population, columns=list(columns), trust_ids=True
        )


def open_table(
    source: Any,
    *,
    budget: Any = None,
    population: str | None = None,
    id: str | None = None,
    key: Key | None = None,
    person: str | None = None,
    records: int = 1,
    rows: int | None = None,
) -> Table:
    """Open a table for questions.

    Parameters
    ----------
    source : a CSV, Parquet or Feather file, a folder or a list of them, an Arrow, pandas, Polars or DuckDB frame, or a
        DataFrame of Spark, whose records stay on the cluster and need an `id`.
    budget : a `Budget` or the file of one, charged before every answer. population : the public label of the
    population: it selects the budget of the file and, with a key, the random numbers. id : the column of unique ids; by
    default the row number. key : draws the sample of that key, which allows one release; by default every run draws a
    fresh one. person : the column with the person of each record. The guarantee is then about a person with all
    their records,
        of which at most `records` are kept, by a keyed choice; answers are about the records that are kept. A budget
        must protect persons with as many records: its relation is `Neighbors.ADD_REMOVE.for_person(records)`.
    rows : a public bound on the number of records: sums of up to that many fit 64 bits. Rounding all of them costs
        less than a tenth of the noise for up to 2^32 records, and the intervals do not include it.

    >>> import pyarrow as pa
    >>> table = open_table(pa.table({"age": [31, 40, 58] * 400}))
    >>> found = table.mean("age", (0, 100)).run(epsilon=1.0)
    >>> low, high = found.interval(0.999)
    >>> low < 43 < high, found.guarantee.epsilon() <= 1.0
    (True, True)
    """
    given_key(key)
    if key is not None and population is None:
        raise InvalidInput("a key draws the same sample again, so the table needs a label; give population='…'")
    if rows is not None:
        whole(1, 10**15, rows=rows)
    whole(1, 512, records=records)
    if records > 1 and person is None:
        raise InvalidInput("records= limits the records per person, so it needs their column; give person='…'")
    if on_spark.is_spark(source):
        on_spark.check_table(id, person)
        schema = on_spark.schema_of(source)
    else:
        source = opened.held(source)
        schema = opened.read(source, id).schema
    if id is not None and id not in schema.names:
        raise InvalidInput(f"the table has no id column {id!r}; it has {', '.join(map(repr, schema.names))}")
    if isinstance(budget, str) or hasattr(budget, "__fspath__"):
        budget = Budget.open(budget, population)
    if budget is not None:
        check_budget(budget)
    table = Table(source, schema, _ALL, budget, population, id, key, person, records, rows)
    if person is not None:
        check_person(schema, person)
        if budget is not None and budget.neighbors != table.relation:
            raise InvalidInput(
                f"the budget protects {budget.neighbors}, and the table {table.relation}; open a budget with "
                f"neighbors=Neighbors.ADD_REMOVE.for_person({records})"
            )
    return table
