"""Private k-means and the norm histogram, with one record more or less.

Records get their coins by place, so they come and go at the end only; they are replaced anywhere, at the ends of blocks
too. What a record may move a step by is its weight times its influence, by the rule that the first look chose.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

from ...core.mechanism import Mechanism
from ...kmeans import ball, compiled, first_look, lloyd, steps
from ...kmeans.ball import measured
from ...kmeans.estimator import PrivateKMeans
from ...kmeans.merging import merged
from ...kmeans.nearest import nearest
from ...kmeans.norm_histogram import private_norm_histogram
from ...kmeans.starts import start
from ...kmeans.tables import table_of
from ...kmeans.threads import ThreadPool
from ...mechanisms.sum_and_count import SumAndCount
from ...testing import seeded_key, seeds_allowed
from ...verify.hard_pairs import ADD_REMOVE, REPLACE, HardRecord, hard_numbers, hard_rows, odd_rows, pairs_of
from ...verify.one_record import Pair, declared
from .audit import RecordAudit

COLUMNS, RADIUS = 3, 2.0
_EPSILON = 4.0


@dataclass(slots=True)
class Fit:
    """A seeded fit, and the rule by which it drew last."""

    options: dict[str, Any]
    is_compiled: bool = False
    planted: Any = None  # a function that returns a context in which a mistake is back
    rule: Any = field(default=None, repr=False)
    ball: Any = field(default=None, repr=False)

    def run(self, table: Any) -> Any:
        """Everything a user holds after a fit."""
        size = 0 if self.is_compiled else np.inf
        mistake: AbstractContextManager[Any] = self.planted() if self.planted else nullcontext()
        with seeds_allowed(), patch.object(compiled, "_WORTH_IT", size), mistake:
            given = {
                "epsilon": _EPSILON,
                "radius": RADIUS,
                "n_iter": 3,
                "random_state": 14,
                "n_jobs": 1,
                **self.options,
            }
            model = PrivateKMeans(4, **given).fit(table)
        self.rule, self.ball = model._fitted.rule, model._fitted.ball
        return model

    def most(self, mechanism: Mechanism, pair: Pair, number: int) -> float:
        """The weights of the records that changed, times their influence over that of the longest record."""
        if not isinstance(mechanism, SumAndCount) or self.rule is None:
            return declared(mechanism, pair)
        influence = mechanism.influence
        with ThreadPool(1) as pool:
            norms = np.minimum(measured(self.ball, _changed(pair), pool), 1.0)
        shares = influence.at(norms) / float(influence.at(1.0)) * self.rule.weights_of_norms(norms)
        return float(np.sum(shares))


def _changed(pair: Pair) -> Any:
    """The rows by which the two tables of a pair differ."""
    one, other = table_of(pair.one), table_of(pair.other)
    if len(one) != len(other):
        return max(one, other, key=len)[-1:]
    places = np.flatnonzero(np.any((one != other) & ~((one != one) & (other != other)), axis=1))
    return np.concatenate([one[places], other[places]])


def _near_edges(dtype: Any) -> list[HardRecord]:
    """Rows on and beside an edge of the bins of norms."""
    rows = []
    for edge in (RADIUS / 2, RADIUS * 2**-0.5, RADIUS * 2.0**-6):
        spread = np.full(COLUMNS, edge / np.sqrt(COLUMNS)).astype(dtype)
        rows += [HardRecord(f"norm {edge:.3g}", spread)]
        rows += [HardRecord(f"norm {edge:.3g} and one ulp", np.nextafter(spread, np.array(9.0, dtype)))]
    return rows


def _tables(types: tuple[Any, ...], sizes: tuple[int, ...], random: np.random.Generator) -> Iterator[Pair]:
    for dtype in types:
        is_float = np.dtype(dtype).kind == "f"
        hard = hard_rows(COLUMNS, RADIUS, dtype) + (_near_edges(dtype) if is_float else [])
        for size in sizes:
            X = random.standard_normal((size, COLUMNS))
            X[::2] *= (RADIUS / 2) / np.linalg.norm(X[::2], axis=1, keepdims=True)  # at the edge of a bin
            X = X.astype(dtype)
            yield from pairs_of(X, hard, changes=ADD_REMOVE, places=[size])
            yield from pairs_of(X, hard, changes=REPLACE, places=[0, size // 2, size])


def _objects(random: np.random.Generator) -> Iterator[Pair]:
    rows = random.standard_normal((200, COLUMNS)).tolist()
    yield from pairs_of(rows, odd_rows(COLUMNS), changes=ADD_REMOVE, places=[200])
    yield from pairs_of(rows, odd_rows(COLUMNS), changes=REPLACE, places=[0, 199])


FLOATS = (np.float64, np.float32, np.float16)
WHOLE = (np.int64, np.int8, np.uint64, np.bool_)
SMALL = (0, 1, 2, 400)  # the last is enough for Lloyd steps
METHODS: dict[str, dict[str, Any]] = {
    "all records, pure": {"sampler": None},
    "all records, Gaussian": {"sampler": None, "noise": "gaussian", "delta": 1e-6},
    "privacy-constrained, pure": {"sample_size": 200},
    "privacy-constrained, Gaussian": {"sample_size": 200, "noise": "gaussian", "delta": 1e-6},
    "uniform, pure": {"sampler": "uniform", "sample_size": 200},
    "coreset, pure": {"sampler": "coreset", "sample_size": 200},
    "private ball": {"sampler": None, "center": "private", "radius": "private"},
    "off the origin": {"sampler": None, "center": [0.3, -0.1, 0.2], "init": "ball"},
}


def _fit(name: str, what: str, pairs: Any, fit: Fit) -> RecordAudit:
    needs = ("numba",) if fit.is_compiled else ()
    quick = 40 if fit.options.get("noise") == "gaussian" or fit.options.get("sampler") == "coreset" else 60
    return RecordAudit(f"k-means, {name}", what, fit.run, pairs, most=fit.most, needs=needs, quick=quick)


def _method(name: str) -> RecordAudit:
    pairs = partial(_tables, FLOATS, SMALL)
    return _fit(name, f"PrivateKMeans.fit, {name}", pairs, Fit(METHODS[name]))


def whole_numbers() -> RecordAudit:
    """Integers of all sizes."""
    what = "PrivateKMeans.fit of tables of whole numbers"
    return _fit("whole numbers", what, partial(_tables, WHOLE, (0, 1, 400)), Fit({"sampler": None}))


def objects() -> RecordAudit:
    """Lists with cells that are no numbers."""
    return _fit("lists of anything", "PrivateKMeans.fit of lists with text and None", _objects, Fit({"sampler": None}))


def compiled_passes() -> RecordAudit:
    """The kernels of large tables."""
    what = "PrivateKMeans.fit with compiled passes"
    return _fit("compiled", what, partial(_tables, FLOATS[:2], SMALL), Fit({"sample_size": 200}, is_compiled=True))


def threads() -> RecordAudit:
    """Several chunks and threads."""
    what = "PrivateKMeans.fit with three threads, several blocks of records"
    return _fit("threads", what, partial(_tables, (np.float32,), (5000,)), Fit({"sampler": None, "n_jobs": 3}))


def _histogram(norms: Any) -> Any:
    return private_norm_histogram(norms, radius=1.0, epsilon=1.0, key=seeded_key(14))


def _norms(random: np.random.Generator) -> Iterator[Pair]:
    for dtype in FLOATS:
        edges = [HardRecord(f"edge {at}", np.array(2.0 ** (-at / 8)).astype(dtype)) for at in range(0, 24, 5)]
        beside = [HardRecord(f"{what} and one ulp", np.nextafter(x, np.array(9.0, dtype))) for what, x in edges]
        for size in (0, 1, 50):
            norms = np.abs(random.standard_normal(size)).astype(dtype)
            yield from pairs_of(norms, [*hard_numbers(1.0, dtype), *edges, *beside])
    rows = odd_rows(1)
    yield from pairs_of([0.5, 0.25], [HardRecord(what, row[0]) for what, row in rows])


def norm_histogram() -> RecordAudit:
    """The histogram of norms that calibrates rules."""
    return RecordAudit("norm histogram", "private_norm_histogram of a column of norms", _histogram, _norms)


JOBS = (
    *(partial(_method, name) for name in METHODS),
    whole_numbers,
    objects,
    compiled_passes,
    threads,
    norm_histogram,
)


def _with_lengths(lengths: Any) -> AbstractContextManager[Any]:
    """Lengths by another function wherever a fit takes them."""

    def looked_at(here: Any, X: Any, work: Any) -> Any:
        found = lengths(here, X)
        return found, ball.squares(here, X, found)

    return patch.multiple(ball, lengths=lengths, _looked_at=looked_at)


def _chunk_formula() -> AbstractContextManager[Any]:
    """One row that is zero, huge or no number sends its chunk through another formula."""

    def lengths(here: Any, X: Any) -> Any:
        with np.errstate(all="ignore"):
            z = np.subtract(X, here.center, dtype=np.float32)
            quick = np.einsum("ij,ij->i", z, z).astype(np.float64) / here.radius**2
        if np.all((quick > 1e-30) & (quick < 1e30)):
            return np.sqrt(quick * (1.0 + 22.0 * 2.0**-22))
        return ball._defined(here, X)

    return _with_lengths(lengths)


def _single_sums() -> AbstractContextManager[Any]:
    """Sums over records in single precision."""

    class Single(lloyd._Plain):
        def __call__(self, rows: Any, weights: Any, whole: Any) -> Any:
            chosen = nearest(rows, self.points)
            units = (
                np.concatenate([rows, np.ones((len(rows), 1), np.float32)], axis=1)
                * weights.astype(np.float32)[:, None]
            )
            for at in range(len(self.points)):
                if np.any(chosen == at):
                    whole[at] += np.cumsum(units[chosen == at], axis=0, dtype=np.float32)[-1]
            return np.empty(0, dtype=np.intp)

    return patch.object(lloyd, "_Plain", Single)


def _place_decides() -> AbstractContextManager[Any]:
    """Rows that a product leaves open go to a centre by their place among such rows."""

    def by_place(rows: Any, points: Any, reach: Any = 1.0, half: Any = None) -> Any:
        return np.arange(len(rows)) % len(points)

    return patch.multiple(lloyd, nearest=by_place, room=lambda *_: 0.02)


def _size_formula() -> AbstractContextManager[Any]:
    """From so many entries on, all records go through another formula."""

    def lengths(here: Any, X: Any) -> Any:
        exact = ball._defined(here, X)
        return exact * (1.0 + 2.0**-22) if np.size(X) > 400 * COLUMNS else exact

    return _with_lengths(lengths)


def _refused_rows() -> AbstractContextManager[Any]:
    """Records that are not finite stop the fit."""
    unit = ball.Ball.unit

    def checked(here: Any, X: Any, columns: Any = slice(None)) -> Any:
        if not np.all(np.isfinite(np.asarray(X, dtype=np.float64))):
            raise ValueError("X contains NaN or infinity in some rows")
        return unit(here, X, columns)

    return patch.object(ball.Ball, "unit", checked)


def _refused_large() -> AbstractContextManager[Any]:
    """Finite records that overflow when they are divided by the radius stop the fit."""
    unit = ball.Ball.unit

    def checked(here: Any, X: Any, columns: Any = slice(None)) -> Any:
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.asarray(X) / np.asarray(here.radius / 4.0, dtype=np.asarray(X).dtype)
        if np.any(np.isinf(scaled) & np.isfinite(np.asarray(X))):
            raise ValueError("X contains NaN or infinity in some rows")
        return unit(here, X, columns)

    return patch.object(ball.Ball, "unit", checked)


def _start_at_mean() -> AbstractContextManager[Any]:
    """The first cells are spread about the exact mean of the records."""
    seen: list[Any] = []
    total = steps.Rows.total

    def noted(rows: Any, drawn: Any) -> Any:
        seen[:] = [total(rows, drawn)]
        return seen[0]

    def read(kind: str, cells: int, mean: Any, variances: Any, seed: int) -> Any:
        sums, counts = seen[0]
        return start(kind, cells, sums[0][: mean.size] / max(counts[0], 1.0), variances, seed)

    return _both(patch.object(steps.Rows, "total", noted), patch.object(steps, "start", read))


def _exact_counts_merge() -> AbstractContextManager[Any]:
    """Cells are merged by their exact counts."""
    seen: list[Any] = []
    around = steps.Rows.around

    def noted(rows: Any, centres: Any, drawn: Any) -> Any:
        seen[:] = [around(rows, centres, drawn)]
        return seen[0]

    def read(cells: Any, clusters: int, stream: Any) -> Any:
        return merged(replace(cells, counts=seen[0][1]), clusters, stream)

    return _both(patch.object(steps.Rows, "around", noted), patch.object(steps, "merged", read))


def _plan_by_exact_look() -> AbstractContextManager[Any]:
    """Noise is added to the first look, and the plan made from the answers without it."""
    priced = first_look.priced

    def read(bill: Any, counts: Any, squares: Any, epsilon: float) -> Any:
        priced(bill, counts, squares, epsilon)
        return first_look._answers(counts, squares, 2.0 / epsilon)

    return patch.object(first_look, "priced", read)


@contextmanager
def _both(one: AbstractContextManager[Any], other: AbstractContextManager[Any]) -> Iterator[None]:
    with one, other:
        yield


_MISTAKES = {
    "starts read the records": (_start_at_mean, {"sampler": None}, (400,)),
    "cells are merged by exact counts": (_exact_counts_merge, {"sampler": None}, (600,)),
    "the plan reads the records": (_plan_by_exact_look, {"sampler": None}, (60,)),
    "one more record changes the formula": (_size_formula, {"sampler": None}, (400,)),
    "large records are refused": (_refused_large, {"sampler": None}, (60,)),
    "one odd row changes the formula": (_chunk_formula, {"sampler": None}, (2000,)),
    "sums in single precision": (_single_sums, {"sampler": None}, (3000,)),
    "nearest centre by place": (_place_decides, {"sampler": None}, (600,)),
    "rows that are not finite are refused": (_refused_rows, {"sampler": None}, (60,)),
}


def _planted(name: str) -> RecordAudit:
    mistake, options, sizes = _MISTAKES[name]
    pairs = partial(_tables, (np.float32,), sizes)
    return _fit(name, f"k-means in which {name}", pairs, Fit(options, planted=mistake))


def _refused_norms(norms: Any) -> Any:
    if not np.all(np.asarray(norms, dtype=np.float64) >= 0):
        raise ValueError("norms must be at least 0")
    return _histogram(norms)


def refused_norms() -> RecordAudit:
    """A histogram that refuses a negative norm."""
    what = "a norm histogram that refuses some norms"
    return RecordAudit("norm histogram, refused", what, _refused_norms, _norms)


def _read_by_numpy(rows: Any) -> Any:
    """NumPy reads the table, and quotes the cell that it cannot read."""
    return Fit({"sampler": None}).run(np.array(rows, dtype=np.float64))


def quoted_cell() -> RecordAudit:
    """The text of a cell in an error."""
    what = "k-means on a table that NumPy converts"
    return RecordAudit("k-means, a cell is quoted", what, _read_by_numpy, _objects)


def _refused_empty(table: Any) -> Any:
    if len(table) == 0:
        raise ValueError("Found array with 0 sample(s)")
    return Fit({"sampler": None}).run(table)


def refused_empty() -> RecordAudit:
    """A fit that needs one record."""
    what = "k-means that refuses a table without rows"
    pairs = partial(_tables, FLOATS[:1], (0, 1))
    return RecordAudit("k-means, an empty table is refused", what, _refused_empty, pairs)


PLANTED = (*(partial(_planted, name) for name in _MISTAKES), refused_norms, quoted_cell, refused_empty)
