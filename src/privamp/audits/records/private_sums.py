"""`PrivateSum` and `PrivateMean` in memory, and sums of frames and stored samples."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from ...designs.poisson import Poisson
from ...designs.simple_random import WithoutReplacement
from ...engines import local
from ...mechanisms.fixed_point import ExactGaussian, ExactLaplace
from ...sums.private_mean import PrivateMean
from ...sums.private_sum import PrivateSum
from ...testing import seeded_key
from ...verify.hard_pairs import ADD_REMOVE, ODD, REPLACE, hard_numbers, hard_rows, odd_rows, pairs_of
from ...verify.one_record import Pair
from .audit import RecordAudit

_OPTIONS: dict[str, dict[str, Any]] = {
    "laplace": {},
    "gaussian": {"noise": "gaussian", "delta": 1e-6},
    "norm": {"noise": "norm"},
    "idealised": {"arithmetic": "idealised"},
    "sampled": {"sampler": Poisson(0.8), "error_share": 0.2},
    "box": {"bounds": [(-1.0, 1.0), (0.5, 2.0), (-3.0, 0.0)]},
}


def _job(asked: PrivateSum | PrivateMean, rows: Any) -> Any:
    found = asked.release(rows, key=seeded_key(15))
    return found.value, found.noise_error, found.sampling_error, found.guarantee


def _pairs(random: np.random.Generator) -> Iterator[Pair]:
    for dtype in (np.float64, np.float32, np.float16):
        for size in (0, 1, 2, 30):
            rows = random.standard_normal((size, 3)).astype(dtype)
            yield from pairs_of(rows, hard_rows(3, 1.0, dtype), changes=ADD_REMOVE, places=[size])
    plain = random.standard_normal((5, 3)).tolist()
    yield from pairs_of(plain, odd_rows(3), changes=ADD_REMOVE, places=[5])  # lists, of any type


def _audit(kind: type[PrivateSum] | type[PrivateMean], name: str) -> RecordAudit:
    asked = kind(**{"bounds": 1.0, "epsilon": 1.0, **_OPTIONS[name]})
    what = f"{kind.__name__}, {name}: rows of every type, and lists of anything"
    quick = 40 if name == "gaussian" else 60  # drawing its noise takes long
    return RecordAudit(f"{kind.__name__}, {name}", what, partial(_job, asked), _pairs, quick=quick)


def _replaced(random: np.random.Generator) -> Iterator[Pair]:
    for dtype in (np.float64, np.float32):
        rows = (51.0 + random.standard_normal((30, 1))).astype(dtype)
        yield from pairs_of(rows, hard_rows(1, 60.0, dtype), changes=REPLACE, places=[0, 15])


def _known_number(kind: type[PrivateSum] | type[PrivateMean]) -> RecordAudit:
    """Records measured from the middle of their bounds, whose number is public."""
    asked = kind(bounds=(50.0, 60.0), epsilon=1.0, sampler=WithoutReplacement(20, 30))
    what = f"{kind.__name__} of a public number of records, of which one is replaced"
    return RecordAudit(f"{kind.__name__}, public number", what, partial(_job, asked), _replaced)


def _stored(noise: ExactLaplace | ExactGaussian, column: Any) -> Any:
    table = pa.table({"u": pa.array(column, from_pandas=False)})
    sample = local.draw(table, Poisson(0.9), key=seeded_key(16))
    return sample.release_sum(noise, "u"), sample.guarantee()


def _columns(random: np.random.Generator) -> Iterator[Pair]:
    for dtype in (np.float64, np.float32, np.int64, np.int8):
        for size in (1, 2, 40):
            column = (3 * random.standard_normal(size)).astype(dtype)
            yield from pairs_of(column, hard_numbers(1.0, dtype), changes=ADD_REMOVE, places=[size])


def _file_audit(noise: ExactLaplace | ExactGaussian) -> RecordAudit:
    name = type(noise).__name__
    return RecordAudit(f"stored sum, {name}", "release_sum of a drawn frame", partial(_stored, noise), _columns)


JOBS = (
    *(partial(_audit, kind, name) for kind in (PrivateSum, PrivateMean) for name in _OPTIONS),
    *(partial(_known_number, kind) for kind in (PrivateSum, PrivateMean)),
    *(partial(_file_audit, noise) for noise in (ExactLaplace(2.0), ExactGaussian(2.0))),
)


def _refusing(rows: Any) -> Any:
    """An earlier version: a record that is not finite stops the job."""
    if not np.all(np.isfinite(np.asarray(rows, dtype=np.float64))):
        raise ValueError("X must be finite, but it contains nan or infinity")
    return _job(PrivateSum(bounds=1.0, epsilon=1.0), rows)


def refuses_values() -> RecordAudit:
    """An error that depends on one record."""

    def pairs(random: np.random.Generator) -> Iterator[Pair]:
        yield from pairs_of(random.standard_normal((4, 3)), hard_rows(3), changes=ADD_REMOVE, places=[4])

    return RecordAudit("PrivateSum, refuses values", "a sum that refuses NaN and infinity", _refusing, pairs)


def _read_by_numpy(rows: Any) -> Any:
    """NumPy reads the table: it quotes text, and stops at whole numbers beyond the doubles."""
    return _job(PrivateSum(bounds=1.0, epsilon=1.0), np.array(rows, dtype=np.float64))


def quotes_cells() -> RecordAudit:
    """The text of a cell in an error."""

    def pairs(random: np.random.Generator) -> Iterator[Pair]:
        yield from pairs_of(random.standard_normal((4, 3)).tolist(), odd_rows(3), changes=ADD_REMOVE, places=[4])

    return RecordAudit("PrivateSum, quotes a cell", "a sum of a table that NumPy converts", _read_by_numpy, pairs)


def _rows_lost(rows: Any) -> Any:
    """An earlier version: one entry among the rows of a list makes it a column, in which a row is not a number."""
    entries = np.array(rows, dtype=object)
    return _job(PrivateSum(bounds=1.0, epsilon=1.0), np.zeros(len(rows)) if entries.ndim == 1 else rows)


def rows_lost() -> RecordAudit:
    """A record that takes all others out of the sum."""

    def pairs(random: np.random.Generator) -> Iterator[Pair]:
        yield from pairs_of(random.standard_normal((5, 3)).tolist(), ODD[1:4], changes=ADD_REMOVE, places=[0, 5])

    return RecordAudit("PrivateSum, rows lost", "a list of rows that one entry turns into a column", _rows_lost, pairs)


def _stopping(rows: Any) -> Any:
    """An error that is the same for all inputs, and hides that nothing was released."""
    if len(rows) > 20:
        raise ValueError("not today")
    return _job(PrivateSum(bounds=1.0, epsilon=1.0), rows)


def stops_early() -> RecordAudit:
    """Nearly all runs stop alike before they release anything, so there is nothing to compare."""

    def pairs(random: np.random.Generator) -> Iterator[Pair]:
        for size in (5, 30, 30, 30, 30):
            yield from pairs_of(random.standard_normal((size, 3)), hard_rows(3), changes=ADD_REMOVE, places=[size])

    return RecordAudit("PrivateSum, stops early", "a job that rarely reaches its release", _stopping, pairs)


def _from_their_mean(rows: Any) -> Any:
    """The centre is read off the records instead of the bounds."""
    middle = float(np.mean(np.clip(rows, 50.0, 60.0)))
    found = _job(PrivateMean(bounds=5.0, epsilon=1.0), np.clip(rows, 50.0, 60.0) - middle)
    return middle + found[0], *found[1:]


def centred_by_records() -> RecordAudit:
    """A mean measured from the records' own mean, which every record moves."""

    def pairs(random: np.random.Generator) -> Iterator[Pair]:
        yield from pairs_of(51.0 + random.standard_normal((30, 1)), hard_rows(1, 60.0), changes=ADD_REMOVE, places=[30])

    return RecordAudit("PrivateMean, centred by records", "a mean from the records' own", _from_their_mean, pairs)


PLANTED = (centred_by_records, refuses_values, quotes_cells, rows_lost, stops_early)
