"""Questions about a table: every kind, alone and together, by groups, from all records and from a sample.

Rows are (id, x, text, group); the column k is the id as a whole number below 8. Ids decide who is drawn, so records
come and go anywhere. Quantiles without intervals are chosen by the exponential mechanism, others by a tree.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from ...core.design import Design
from ...designs.poisson import Poisson
from ...designs.simple_random import WithoutReplacement
from ...queries import Table, open_table
from ...testing import seeded_key
from ...verify.hard_pairs import ADD_REMOVE, REPLACE, HardRecord, hard_numbers, pairs_of
from ...verify.one_record import Pair
from .audit import RecordAudit

SIZE, BOUNDS = 14, (-2.0, 3.0)
GROUPS: list[Any] = ["a", "b", None]
TEXTS = ("yes", "No", "1e3", "-7", "", "nan", "1e999", "none", None, "\x00", "9" * 400)
Row = tuple[int, float | None, str | None, str | None]
Questions = Callable[[Table], list[Any]]

EVERYTHING: dict[str, Questions] = {
    "count": lambda t: [t.count()],
    "counts by group": lambda t: [t.count().by("g", GROUPS)],
    "sum": lambda t: [t.sum("x", BOUNDS)],
    "sum, missing as a number": lambda t: [t.sum("x", BOUNDS, missing=1.0)],
    "mean": lambda t: [t.mean("x", BOUNDS)],
    "means by group": lambda t: [t.mean("x", BOUNDS).by("g", GROUPS)],
    "variances by group": lambda t: [t.variance("x", BOUNDS).by("g", GROUPS)],
    "mean of text": lambda t: [t.mean("text", (0.0, 10.0))],
    "proportion": lambda t: [t.proportion("text"), t.proportion("g", ["a", None])],
    "histogram": lambda t: [t.histogram("x", [-2.0, 0.0, 0.5, 3.0], missing=True).by("g", GROUPS)],
    "quantiles": lambda t: [t.quantile("x", [0.05, 0.5], BOUNDS)],
    "chosen quantiles": lambda t: [t.quantile("x", [0.75, 0.25, 0.5], BOUNDS, missing=0.0, interval=False)],
    "chosen medians by group": lambda t: [t.median("k", (0, 7), interval=False).by("g", GROUPS)],
    "several": lambda t: [t.count(), t.mean("x", BOUNDS).weighing(3.0), t.histogram("x", 4, BOUNDS)],
}


def _table(rows: list[Row]) -> pa.Table:
    kinds = {"id": pa.int64(), "x": pa.float64(), "text": pa.string(), "g": pa.string()}
    made = {name: pa.array([row[k] for row in rows], kind) for k, (name, kind) in enumerate(kinds.items())}
    return pa.table({**made, "k": pa.array([row[0] % 8 for row in rows], pa.int64())})


def _opened(design: Design, rows: list[Row]) -> Table:
    return open_table(_table(rows), id="id", key=seeded_key(15), population="audit").sample(design)


def _answers(table: Table, asked: Questions, delta: float) -> Any:
    found = table.plan(asked(table)).run(epsilon=1.0, delta=delta)
    return [(r.value, r.noise_error, r.sampling_error, r.interval(), r.names, r.guarantee) for r in found]


def _run(design: Design, asked: Questions, delta: float, rows: list[Row]) -> Any:
    return _answers(_opened(design, rows), asked, delta)


def _rows(random: np.random.Generator, size: int) -> list[Row]:
    values, groups = 2.0 * random.standard_normal(size), random.integers(0, 3, size)
    return [(k, float(values[k]), TEXTS[k % 4], GROUPS[groups[k]]) for k in range(size)]


def _pairs(changes: tuple[str, ...], random: np.random.Generator) -> Iterator[Pair]:
    hard = [HardRecord(what, (1000, float(x), "yes", "a")) for what, x in hard_numbers(3.0)]
    hard += [
        HardRecord("no number", (1000, None, None, "b")),
        HardRecord("an unknown group", (1000, 1.0, "no", "elsewhere")),
    ]
    hard += [HardRecord("no group", (1000, 1.0, "no", None)), HardRecord("an edge", (1000, 0.5, "y", "b"))]
    hard += [HardRecord(f"text {k}", (1000, 0.0, text, "a")) for k, text in enumerate(TEXTS)]
    for size in (0, 1, SIZE) if changes == ADD_REMOVE else (SIZE,):
        yield from pairs_of(_rows(random, size), hard, changes=changes, places=range(max(size, 1)))


_add_remove = partial(_pairs, ADD_REMOVE)


def _audit(name: str, design: Design, delta: float = 0.0, changes: tuple[str, ...] = ADD_REMOVE) -> RecordAudit:
    how = f"{name}, {design}{', Gaussian' if delta else ''}"
    run = partial(_run, design, EVERYTHING[name], delta)
    return RecordAudit(f"query, {how}", "a question to a table", run, partial(_pairs, changes), quick=12)


JOBS = [
    *(partial(_audit, name, Poisson(1.0)) for name in EVERYTHING),
    *(partial(_audit, name, Poisson(0.5)) for name in ("counts by group", "sum", "variances by group", "several")),
    *(partial(_audit, name, Poisson(0.5), 1e-6) for name in ("quantiles", "several", "chosen quantiles")),
    partial(_audit, "chosen medians by group", Poisson(0.5)),
    *(
        partial(_audit, name, WithoutReplacement(7, SIZE), 0.0, REPLACE)
        for name in ("counts by group", "mean", "sum, missing as a number", "quantiles", "chosen quantiles")
    ),
]


def _groups_as_they_occur(rows: list[Row]) -> Any:
    table = _opened(Poisson(1.0), rows)
    seen = sorted({row[3] for row in rows if row[3] is not None}) or ["a"]
    return _answers(table, lambda t: [t.count().by("g", seen)], 0.0)


def _bounds_of_the_data(rows: list[Row]) -> Any:
    table = _opened(Poisson(1.0), rows)
    known = [abs(row[1]) for row in rows if row[1] is not None and np.isfinite(row[1])]
    return _answers(table, lambda t: [t.sum("x", (-1.0, 1.0 + max(known, default=0.0)))], 0.0)


def _median_between_the_extremes(rows: list[Row]) -> Any:
    known = [row[1] for row in rows if row[1] is not None and np.isfinite(row[1])]
    bounds = max(min(known, default=0.0), -1e99), min(max(known, default=0.0) + 1.0, 1e99)
    return _answers(_opened(Poisson(1.0), rows), lambda t: [t.median("x", bounds, interval=False)], 0.0)


def _missing_dropped(rows: list[Row]) -> Any:
    if any(row[1] is None for row in rows):
        raise ValueError("the column has missing values")
    return _run(Poisson(1.0), EVERYTHING["sum"], 0.0, rows)


MOST = 2  # records of a person that are kept
Person = tuple[int, list[Row]]  # a name, and all their records


def _persons_table(persons: list[Person], rate: float, column: str = "person") -> Table:
    """Interleaved records of persons: the first of each person, then the second, and so on."""
    turns = [(k, name, row) for name, rows in persons for k, row in enumerate(rows)]
    mixed = [(name, row) for _, name, row in sorted(turns, key=lambda turn: (turn[0], turn[1]))]
    data = _table([row for _, row in mixed])
    data = data.append_column("person", pa.array([name for name, _ in mixed], pa.int64()))
    data = data.append_column("unique", pa.array([row[0] for _, row in mixed], pa.int64()))
    opened = open_table(data, id="id", key=seeded_key(17), population="audit", person=column, records=MOST)
    return opened.sample(Poisson(rate))


def _bounds(rows: list[Row]) -> Any:
    table = _opened(Poisson(0.5), rows)
    found = table.find_bounds("x", epsilon=1.0)
    return found.value, found.names, found.guarantee, found.details


def _of_persons(asked: Questions, rate: float, persons: list[Person]) -> Any:
    return _answers(_persons_table(persons, rate), asked, 0.0)


def _persons(random: np.random.Generator) -> Iterator[Pair]:
    """One person with all their records comes or goes."""
    some = [(p, [(10 * p + k, *row[1:]) for k, row in enumerate(_rows(random, 1 + 2 * (p % 4)))]) for p in range(5)]
    for size in (0, 1, 2, 3, 9):
        row = (0.0, "yes", "a")
        new = (99, [(1000 + k, *row) for k in range(size)])
        hard = [HardRecord(f"a person with {size} records", new)]
        yield from pairs_of(some, hard, changes=ADD_REMOVE, places=range(len(some)))


def _persons_audit(name: str, rate: float) -> RecordAudit:
    return RecordAudit(
        f"query by persons, {name}, Poisson({rate:g})", "a question about persons with several records",
        partial(_of_persons, EVERYTHING[name], rate), _persons, most=lambda *_: float(MOST), quick=12,
    )  # fmt: skip


JOBS += [
    partial(RecordAudit, "query, bounds that are found", "bounds of a column", _bounds, _add_remove, quick=12),
    partial(_persons_audit, "several", 1.0),
    partial(_persons_audit, "chosen medians by group", 0.5),
    partial(_persons_audit, "means by group", 0.5),
]


def _every_record_is_a_person(persons: list[Person]) -> Any:
    return _answers(_persons_table(persons, 1.0, "unique"), EVERYTHING["counts by group"], 0.0)


PLANTED = [
    lambda: RecordAudit(
        "query by persons, every record is one",
        "a person counts as often as there are records",
        _every_record_is_a_person,
        _persons,
        most=lambda *_: float(MOST),
    ),
    lambda: RecordAudit("query, groups as they occur", "group keys from the data", _groups_as_they_occur, _add_remove),
    lambda: RecordAudit("query, bounds of the data", "bounds from the data", _bounds_of_the_data, _add_remove),
    lambda: RecordAudit(
        "query, median between the extremes", "positions from the data", _median_between_the_extremes, _add_remove
    ),
    lambda: RecordAudit("query, a missing value stops it", "refuses a table by a cell", _missing_dropped, _add_remove),
]
