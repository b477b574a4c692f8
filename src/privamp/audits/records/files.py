"""Sums of files and frames: Parquet in row groups, CSV, Feather, data frames, weighted samples, threads.

Rows are (id, u, v). Files are read in batches of four rows and pieces of a few row groups, so that every record of
these small files stands beside some border. Ids decide who is drawn, so records come and go anywhere.
"""

import atexit
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from pyarrow import csv, feather, parquet

from ...chance.keyed import keyed_numbers
from ...core.design import Design
from ...core.mechanism import Mechanism
from ...core.neighbors import Neighbors
from ...core.sample import Bounded
from ...designs.importance import ImportanceSampling
from ...designs.poisson import Poisson
from ...designs.simple_random import WithoutReplacement
from ...engines import local
from ...engines.kernel import Kernel
from ...errors import InvalidInput
from ...mechanisms.fixed_point import ExactGaussian, ExactLaplace
from ...mechanisms.geometric import GeometricCount
from ...numerics.row_norms import clipped, finite, norms
from ...numerics.whole_sums import toward_zero
from ...rules.privacy_constrained import privacy_constrained
from ...rules.profiles import LinearProfile
from ...rules.uniform import uniform
from ...testing import seeded_key
from ...verify.hard_pairs import ADD_REMOVE, REPLACE, HardRecord, hard_numbers, pairs_of
from ...verify.one_record import Pair
from .audit import RecordAudit

SIZE = 23  # records of the larger data sets
POISSON = Poisson(0.9)
LAPLACE, GAUSSIAN = ExactLaplace(20.0, 4.0), ExactGaussian(20.0, 4.0)
Row = tuple[int, Any, Any]  # id, u, v


@cache
def _folder() -> Path:
    """One folder for all runs, so that a path in a message is the same in both."""
    folder = tempfile.mkdtemp(prefix="privamp-records-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _table(rows: list[Row]) -> pa.Table:
    columns = {name: [row[k] for row in rows] for k, name in ((1, "u"), (2, "v"))}
    ids = pa.array([row[0] for row in rows], pa.int64())
    return pa.table({"id": ids, **{name: pa.array(values, pa.float64()) for name, values in columns.items()}})


def _parquet(table: pa.Table) -> Any:
    path = _folder() / "rows.parquet"
    parquet.write_table(table, path, row_group_size=5)
    return path


def _csv(table: pa.Table) -> Any:
    path = _folder() / "rows.csv"
    csv.write_csv(table, path)
    return path


def _feather(table: pa.Table) -> Any:
    path = _folder() / "rows.feather"
    feather.write_feather(table, path, chunksize=5, compression="uncompressed")
    return path


def _several(table: pa.Table) -> Any:
    """Two files, the second from the seventh row on."""
    paths = [_folder() / f"part-{k}.parquet" for k in (0, 1)]
    for path, part in zip(paths, (table.slice(0, 7), table.slice(7)), strict=True):
        parquet.write_table(part, path, row_group_size=3)
    return paths


def _pandas(table: pa.Table) -> Any:
    return table.to_pandas()


def _polars(table: pa.Table) -> Any:
    import polars

    return polars.from_arrow(table)


def _duckdb(table: pa.Table) -> Any:
    import duckdb

    return duckdb.from_arrow(table)


def _arrow(table: pa.Table) -> Any:
    return table


@dataclass(frozen=True)
class Setting:
    """Where the rows lie, how they are drawn, what is summed."""

    name: str
    stored: Callable[[pa.Table], Any] = _parquet
    design: Design = POISSON
    noise: ExactLaplace | ExactGaussian = LAPLACE
    columns: str | tuple[str, ...] = ("u", "v")
    threads: int = 1
    is_written: bool = False
    needs: tuple[str, ...] = ()

    @property
    def reads(self) -> dict[str, Any] | None:
        """The columns of an importance rule."""
        return {"x": ["u", "v"]} if self.design.weighing_rule is not None else None


def _small_pieces() -> ExitStack:
    """Batches of four rows, pieces of at most seven unless a row group has more, norms three at a time."""
    stack = ExitStack()
    stack.enter_context(patch.multiple("privamp.tables.pieces", BATCH=4, _PIECE=7))
    stack.enter_context(patch.multiple("privamp.engines.reading", BATCH=4, _ROWS=4))
    stack.enter_context(patch("privamp.engines.kernel._ENTRIES", 6))
    return stack


def _released(setting: Setting, rows: list[Row]) -> Any:
    with _small_pieces():
        given: dict[str, Any] = {"key": seeded_key(14), "id": "id", "reads": setting.reads, "threads": setting.threads}
        source = setting.stored(_table(rows))
        if setting.is_written:
            sample = local.write(source, setting.design, _folder() / "out.parquet", overwrite=True, **given)
        else:
            sample = local.draw(source, setting.design, **given)
        columns = setting.columns if isinstance(setting.columns, str) else list(setting.columns)
        found = sample.release_sum(setting.noise, columns)
        if setting.is_written:
            again = local.open_sample(_folder() / "out.parquet", setting.design, key=seeded_key(14))
            found = found, again.release_sum(setting.noise, columns)
    return found, sample.guarantee(), repr(sample)


def _changed(pair: Pair) -> list[Row]:
    """The rows by which the two data sets differ: one, or the old and the new one."""
    one, other = ({repr(row): row for row in rows} for rows in (pair.one, pair.other))
    return [one.get(text) or other[text] for text in one.keys() ^ other.keys()]


def _most(setting: Setting, mechanism: Mechanism, pair: Pair, number: int) -> float:
    """The weights of the changed records times their clipped norms, over the declared sensitivity."""
    noise, rule = setting.noise, setting.design.weighing_rule
    x = np.array([[np.nan if value is None else value for value in row[1:]] for row in _changed(pair)])
    seen = x if len(setting.columns) > 1 else x[:, 1:]
    lengths = np.minimum(norms(finite(seen), noise.p), noise.sensitivity)
    weights = np.ones(len(x)) if rule is None else rule.weights_of_norms(rule.norms(x))
    return float(np.sum(weights * lengths)) / noise.sensitivity


@cache
def _drawn_ids(design: Design) -> list[int]:
    """Ids that are drawn even where the chance is small."""
    ids = np.arange(2**16, 2**17, dtype=np.uint64)
    coins = keyed_numbers(Kernel.of(design, seeded_key(14)).subkey, ids)
    return [int(id) for id in ids[np.argsort(coins)[:64]]]


def _hard(design: Design, random: np.random.Generator) -> list[HardRecord]:
    """Rows with ids of their own."""
    ids = random.choice(_drawn_ids(design), 64, replace=False).tolist()
    numbers = [*hard_numbers(4.0), HardRecord("missing", None), HardRecord("small", 1e-3)]
    rows = [(f"{what} in u", value, 0.25) for what, value in numbers]
    rows += [(f"{what} in both", value, value) for what, value in numbers]
    return [HardRecord(what, (id, u, v)) for id, (what, u, v) in zip(ids, rows, strict=False)]


def _rows(size: int, random: np.random.Generator) -> list[Row]:
    return [(at, *(3 * random.standard_normal(2)).tolist()) for at in range(size)]


def _loose(design: Design, random: np.random.Generator) -> Iterator[Pair]:
    for size in (0, 1, 2, SIZE):
        rows = _rows(size, random)
        places = sorted({0, min(4, size), min(7, size), size})
        yield from pairs_of(rows, _hard(design, random), changes=ADD_REMOVE, places=places)
        yield from pairs_of(rows, _hard(design, random), changes=REPLACE, places=[0, size // 2, max(size - 1, 0)])


def _kept_ids(random: np.random.Generator) -> Iterator[Pair]:
    """Records of a fixed-size sample are replaced under their id."""
    rows = _rows(SIZE, random)
    for what, (_, u, v) in _hard(POISSON, random):
        for at in (0, 4, 5, 22):
            other = [*rows[:at], (at, u, v), *rows[at + 1 :]]
            yield Pair(f"{what} replaces record {at}", rows, other, Neighbors.REPLACE_ONE, what)


_PURE = LinearProfile.of(LAPLACE)
_RULES = {
    "importance": ImportanceSampling(privacy_constrained(_PURE, epsilon=0.25, radius=4.0)),
    "uniform weights": ImportanceSampling(uniform(_PURE, rate=0.6, radius=4.0)),
}
_SETTINGS = (
    Setting("Parquet"),
    Setting("Parquet, threads", threads=3),
    Setting("Parquet, one column, Gaussian", noise=GAUSSIAN, columns="v"),
    Setting("several Parquet files", stored=_several, threads=2),
    Setting("CSV", stored=_csv),
    Setting("Feather", stored=_feather, noise=GAUSSIAN),
    Setting("written and opened", is_written=True),
    Setting("Arrow", stored=_arrow),
    Setting("pandas", stored=_pandas, needs=("pandas",)),
    Setting("polars", stored=_polars, needs=("polars",)),
    Setting("DuckDB", stored=_duckdb, needs=("duckdb",)),
    *(Setting(f"Parquet, {name}", design=design) for name, design in _RULES.items()),
    Setting("CSV, importance, threads", stored=_csv, design=_RULES["importance"], threads=3),
    Setting("Parquet, importance, one column", design=_RULES["importance"], columns="v"),
)
FIXED = Setting("Parquet, without replacement", design=WithoutReplacement(9, SIZE), threads=2)


def _audit(setting: Setting, pairs: Any = None) -> RecordAudit:
    return RecordAudit(
        f"file sum, {setting.name}", f"release_sum of a sample of {setting.name}", partial(_released, setting),
        pairs or partial(_loose, setting.design), most=partial(_most, setting), needs=setting.needs, quick=34,
    )  # fmt: skip


def _counted(rows: list[Row]) -> Any:
    with _small_pieces():
        sample = local.draw(_parquet(_table(rows)), Poisson(0.9), key=seeded_key(14), id="id")
        return sample.release(GeometricCount(1.0), Bounded(lambda found: sum(batch.num_rows for batch in found)))


def count() -> RecordAudit:
    """How many rows were drawn, with geometric noise."""
    what = "a count of the rows drawn from a file"
    return RecordAudit("file count, GeometricCount", what, _counted, partial(_loose, POISSON), quick=34)


@cache
def _long() -> Any:
    return np.random.default_rng(14).standard_normal(_ENTRIES + 1)


_ENTRIES = 2**21
Long = tuple[int, int, float]  # how many numbers, which one is changed, to what


def _long_sum(data: Long) -> Any:
    """The sum of a long column of a file in row groups of 2^18 and a bit, read as it is in production."""
    size, place, value = data
    column = _long()[:size].copy()
    column[place] = value
    path = _folder() / "long.parquet"
    parquet.write_table(pa.table({"u": column}), path, row_group_size=2**18 + 1, compression="none")
    sample = local.draw(path, Poisson(0.9), key=seeded_key(14), threads=2)
    return sample.release_sum(LAPLACE, "u"), sample.guarantee()


def _long_pairs(random: np.random.Generator) -> Iterator[Pair]:
    for what, value in hard_numbers(4.0):
        some: Long = (_ENTRIES, 0, float(random.standard_normal()))
        first: Long = (_ENTRIES, 0, float(value))
        yield Pair(f"{what} replaces the first entry", some, first, Neighbors.REPLACE_ONE, what)
        last: Long = (_ENTRIES + 1, _ENTRIES, float(value))
        without: Long = (_ENTRIES, 0, float(_long()[0]))
        yield Pair(f"{what} is the entry after 2^21", without, last, Neighbors.ADD_REMOVE, what)


def long_file() -> RecordAudit:
    """The first entry, and the one after 2^21."""
    return RecordAudit("file sum, 2^21 entries", "release_sum of a long column", _long_sum, _long_pairs, quick=2)


JOBS = (*(partial(_audit, setting) for setting in _SETTINGS), partial(_audit, FIXED, _kept_ids), count, long_file)


def _stopping() -> AbstractContextManager[Any]:
    """A missing or infinite value among the drawn rows stops the sum."""

    def numbers(batch: pa.RecordBatch, places: Any) -> Any:
        columns = [np.asarray(batch.column(name).to_numpy(zero_copy_only=False)) for name in places]
        rows = np.column_stack(columns)
        if not np.all(np.isfinite(rows)):
            raise InvalidInput(f"{np.count_nonzero(~np.isfinite(rows))} values are missing or not finite")
        return rows

    return patch("privamp.engines.stored_sample.numbers_of", numbers)


def _batch_formula() -> AbstractContextManager[Any]:
    """A row that is zero or extreme sends its batch through a formula that rounds otherwise."""

    def lengths(x: Any, radius: Any, p: float = 2.0) -> Any:
        sizes = np.abs(x)
        if np.all((sizes > 1e-100) & (sizes < 1e100)):
            return clipped(x, radius, p) * (1.0 - 2.0**-20)
        return clipped(x, radius, p)

    return _clipping_by(lengths)


def _clipping_by(clip: Callable[..., Any]) -> AbstractContextManager[Any]:
    """Sums of rows that this function clips."""

    def total(x: Any, radius: Any, p: float, grid: float, weights: Any, counts: Any) -> Any:
        units = toward_zero(clip(x, radius, p), grid, weights)
        return np.tensordot(counts, units, axes=1)

    return patch("privamp.mechanisms.fixed_point.clipped_total", total)


def _another_column() -> AbstractContextManager[Any]:
    """The rule looks at the second column only, and its weights are used for the sum of both."""
    stack = ExitStack()
    stack.enter_context(patch("privamp.engines.kernel.Kernel.check_sum", lambda *_: None))
    stack.enter_context(patch.object(Setting, "reads", {"x": ["v"]}))
    return stack


def _unweighted_clip() -> AbstractContextManager[Any]:
    """Rows longer than the rule's radius are not shortened."""
    return _clipping_by(lambda x, radius, p: finite(x))


_MISTAKES: dict[str, tuple[Any, Setting]] = {
    "a missing value stops it": (_stopping, Setting("")),
    "one odd row changes the formula": (_batch_formula, Setting("", noise=GAUSSIAN)),
    "weights of another column": (_another_column, Setting("", design=_RULES["importance"])),
    "rows beyond the radius": (_unweighted_clip, Setting("", design=_RULES["importance"])),
}


def _planted(name: str) -> RecordAudit:
    mistake, setting = _MISTAKES[name]

    def run(rows: list[Row]) -> Any:
        with mistake():
            return _released(setting, rows)

    pairs, most = partial(_loose, setting.design), partial(_most, setting)
    return RecordAudit(f"file sum, {name}", f"a sum of a file in which {name}", run, pairs, most=most)


PLANTED = tuple(partial(_planted, name) for name in _MISTAKES)
