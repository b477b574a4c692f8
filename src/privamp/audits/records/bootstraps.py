"""Bootstraps: every statistic and procedure, one record replaced by an adversarial one."""

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from ...bootstrap import direct, plan, run
from ...bootstrap.drawing import first_stage, people_of, resamples_of
from ...bootstrap.moments import Mean
from ...core.mechanism import Mechanism
from ...core.neighbors import Neighbors
from ...mechanisms.gaussian import Gaussian
from ...testing import seeded_key, seeded_stream
from ...verify.hard_pairs import ODD, REPLACE, hard_numbers, pairs_of
from ...verify.one_record import Pair
from .audit import RecordAudit

SIZE, BOUNDS = 30, (-1.0, 3.0)
SEED = 15
SMALL: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "jobs": 1}
STATISTICS: dict[str, Any] = {
    "mean": "mean",
    "variance": "variance",
    "quantile": "quantile:0.3",
    "regression": "regression",
    "a function that warns": lambda x: np.log(x).sum() / np.float64(0.0),
}


SIZES: dict[str, Any] = {"subsampling": 6, "m-out-of-n": 12, "double": (12, 6), "little": (12, 6), "direct": None}
MANY = {"subsampling": 3, "direct": None}


@dataclass(frozen=True)
class Setting:
    """A statistic and a procedure."""

    statistic: str = "mean"
    procedure: str = "subsampling"

    @property
    def name(self) -> str:
        """What the list of audits prints."""
        return f"bootstrap, {self.procedure}, {self.statistic}"

    @property
    def options(self) -> dict[str, Any]:
        """What `run` is called with, besides the records."""
        many = MANY.get(self.procedure, 8)  # enough for records to repeat in some of them
        return {"method": self.procedure, "size": SIZES[self.procedure], "resamples": many}

    def run(self, data: list[Any]) -> Any:
        """The whole bootstrap."""
        is_table = self.statistic == "regression"
        values = ([[x, 1.0] for x in data], data) if is_table else data
        bounds: Any = [BOUNDS] * 3 if is_table else BOUNDS
        found = run(values, STATISTICS[self.statistic], bounds=bounds, key=seeded_key(SEED), **SMALL, **self.options)
        return found.to_json()

    def most(self, mechanism: Mechanism, pair: Pair, number: int) -> float:
        """How often the changed record was drawn into the resamples of this group."""
        place = next(at for at, (a, b) in enumerate(zip(pair.one, pair.other, strict=True)) if a is not b)
        return math.hypot(*_multiplicities(self, number - 1)[:, place])


@cache
def _multiplicities(setting: Setting, group: int) -> NDArray[np.int64]:
    """How often each record is in each resample of a group, shape (resamples, records)."""
    procedure = plan(SIZE, epsilon=1.0, **setting.options).procedure
    key = seeded_key(SEED)
    first = first_stage(procedure, people_of(procedure), key, group).reveal_secret()
    drawn = resamples_of(procedure, first, key, group, procedure.noise(1.0, 1.0))
    found = np.zeros((len(drawn), SIZE), dtype=np.int64)
    for row, one in zip(found, drawn, strict=True):
        np.add.at(row, one.positions, one.counts)
    return found


def _pairs(random: np.random.Generator) -> Iterator[Pair]:
    rows = random.uniform(-2.0, 4.0, SIZE).tolist()
    yield from pairs_of(rows, [*hard_numbers(3.0), *ODD], changes=REPLACE, places=range(SIZE))


def _audit(setting: Setting) -> RecordAudit:
    article = "" if " " in setting.statistic else "a "
    quick = 60 if setting.procedure == "subsampling" else 20
    what = f"a bootstrap of {article}{setting.statistic}"
    return RecordAudit(setting.name, what, setting.run, _pairs, most=setting.most, quick=quick)


JOBS = (
    *(partial(_audit, Setting(name)) for name in STATISTICS),
    *(partial(_audit, Setting(procedure=name)) for name in ("m-out-of-n", "double", "little", "direct")),
    *(partial(_audit, Setting(name, "m-out-of-n")) for name in ("variance", "quantile")),
    *(partial(_audit, Setting(name, "double")) for name in ("quantile", "regression")),
)


def _warning(data: list[Any]) -> Any:
    """The user's statistic warns where its records are odd."""
    values = np.array([x if isinstance(x, float) else 0.0 for x in data])
    if not np.all(np.abs(values) < 100.0):
        warnings.warn("a value is far away", stacklevel=1)
    return Setting().run(data)


def _beyond(data: list[Any]) -> Any:
    """A mean of values that are not cut to their bounds."""
    values = np.nan_to_num([x if isinstance(x, float) else 0.0 for x in data])
    noise = Gaussian(2.0, 4.0 / SIZE, Neighbors.REPLACE_ONE)
    return noise.release(float(np.sum(values / SIZE)), seeded_stream(1))


def warning() -> RecordAudit:
    """A warning that reveals one record."""
    return RecordAudit("bootstrap, warnings shown", "a statistic that warns about a record", _warning, _pairs)


def beyond_bounds() -> RecordAudit:
    """Values that are not cut to the bounds."""
    return RecordAudit("bootstrap, values beyond the bounds", "a mean of values that are not cut", _beyond, _pairs)


def _dropping(data: list[Any]) -> Any:
    """Missing values are dropped, and the exact number of the others becomes public."""
    return Setting().run([x for x in data if isinstance(x, float) and np.isfinite(x)])


def dropping() -> RecordAudit:
    """A number of records that depends on one of them."""
    return RecordAudit(
        "bootstrap, missing values dropped", "a bootstrap of the values that are there", _dropping, _pairs
    )


def _counting_too_much(setting: Setting, data: list[Any]) -> Any:
    """An entry that is drawn twice counts four times."""
    compute = Mean.compute

    def wrong(self: Mean, rows: Any, counts: Any) -> Any:
        return compute(self, rows, counts**2) * np.sum(counts**2) / np.sum(counts)

    with patch.object(Mean, "compute", wrong):
        return setting.run(data)


def counting_too_much(procedure: str) -> RecordAudit:
    """A record that moves a resample by more than the number of its entries there."""
    setting = Setting(procedure=procedure)
    run = partial(_counting_too_much, setting)
    name = f"bootstrap, {procedure}, repeats count too much"
    return RecordAudit(name, "a mean in which repeated entries count too much", run, _pairs, most=setting.most)


def _heavy_squares(data: list[Any]) -> Any:
    """The squares beside a direct mean weigh more than is free."""
    with patch.object(direct, "WEIGHT", 3.0):
        return Setting(procedure="direct").run(data)


def heavy_squares() -> RecordAudit:
    """Squares that move farther than the mean's sensitivity covers."""
    what = "a direct mean whose squares weigh too much"
    return RecordAudit("bootstrap, direct, heavy squares", what, _heavy_squares, _pairs)


REPEATING = ("m-out-of-n", "double", "little")
PLANTED = (warning, beyond_bounds, dropping, heavy_squares, *(partial(counting_too_much, name) for name in REPEATING))
