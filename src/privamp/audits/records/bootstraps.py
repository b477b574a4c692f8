"""Bootstraps: every statistic and procedure, one record replaced by what hurts."""

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ...bootstrap import run
from ...core.mechanism import Mechanism
from ...core.neighbors import Neighbors
from ...mechanisms.gaussian import Gaussian
from ...testing import seeded_key, seeded_stream
from ...verify.hard_pairs import ODD, REPLACE, hard_numbers, pairs_of
from ...verify.one_record import Pair, declared
from .audit import RecordAudit

SIZE, BOUNDS = 30, (-1.0, 3.0)
SMALL: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "resamples": 3, "jobs": 1}
STATISTICS: dict[str, Any] = {
    "mean": "mean",
    "variance": "variance",
    "quantile": "quantile:0.3",
    "regression": "regression",
    "a function that warns": lambda x: np.log(x).sum() / np.float64(0.0),
}


def _most(mechanism: Mechanism, pair: Pair) -> float:
    """A record may be drawn as often as a resample has entries: the multiplicity is certified, not the sensitivity."""
    return float(_ENTRIES)


_ENTRIES = 6


def _run(name: str, method: str, data: list[Any]) -> Any:
    values = ([[x, 1.0] for x in data], data) if name == "regression" else data
    bounds: Any = [BOUNDS] * 3 if name == "regression" else BOUNDS
    size = (12, _ENTRIES) if method in ("double", "little") else _ENTRIES
    found = run(values, STATISTICS[name], bounds=bounds, method=method, size=size, key=seeded_key(14), **SMALL)
    return found.to_json()


def _pairs(random: np.random.Generator) -> Iterator[Pair]:
    rows = random.uniform(-2.0, 4.0, SIZE).tolist()
    yield from pairs_of(rows, [*hard_numbers(3.0), *ODD], changes=REPLACE, places=range(SIZE))


def _audit(name: str, method: str) -> RecordAudit:
    most, quick = (declared, 60) if method == "subsampling" else (_most, 20)
    what = f"a bootstrap of a {name}" if " " not in name else f"a bootstrap of {name}"
    return RecordAudit(
        f"bootstrap, {method}, {name}", what, partial(_run, name, method), _pairs, most=most, quick=quick
    )


JOBS = (
    *(partial(_audit, name, "subsampling") for name in STATISTICS),
    *(partial(_audit, "mean", method) for method in ("m-out-of-n", "little")),
)


def _warning(data: list[Any]) -> Any:
    """The user's statistic warns where its records are odd."""
    values = np.array([x if isinstance(x, float) else 0.0 for x in data])
    if not np.all(np.abs(values) < 100.0):
        warnings.warn("a value is far away", stacklevel=1)
    return _run("mean", "subsampling", data)


def _beyond(data: list[Any]) -> Any:
    """A mean of values that are not cut to their bounds."""
    values = np.nan_to_num([x if isinstance(x, float) else 0.0 for x in data])
    noise = Gaussian(2.0, 4.0 / SIZE, Neighbors.REPLACE_ONE)
    return noise.release(float(np.sum(values / SIZE)), seeded_stream(1))


def warning() -> RecordAudit:
    """A warning that tells of one record."""
    return RecordAudit(
        "bootstrap, warnings shown", "a statistic that warns about a record", _warning, _pairs, most=_most
    )


def beyond_bounds() -> RecordAudit:
    """Values that are not cut to the bounds."""
    return RecordAudit("bootstrap, values beyond the bounds", "a mean of values that are not cut", _beyond, _pairs)


def _dropping(data: list[Any]) -> Any:
    """Missing values are dropped, and the exact number of the others becomes public."""
    return _run("mean", "subsampling", [x for x in data if isinstance(x, float) and np.isfinite(x)])


def dropping() -> RecordAudit:
    """A number of records that depends on one of them."""
    return RecordAudit(
        "bootstrap, missing values dropped", "a bootstrap of the values that are there", _dropping, _pairs
    )


PLANTED = (warning, beyond_bounds, dropping)
