"""Pilots: standard deviations of strata, released so that a sample can be divided by them.

A record is (value, stratum). Replaced within its stratum it may move that stratum's variance alone.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ...core.design import Design
from ...core.mechanism import Mechanism
from ...core.population import Population
from ...designs.simple_random import WithoutReplacement
from ...designs.stratified import WITHIN, Stratified
from ...mechanisms.laplace import Laplace
from ...mechanisms.per_stratum import PerStratum
from ...numerics.log_domain import FloatArray
from ...survey import Stratum, allocate, estimate, pilot
from ...testing import seeded_key
from ...verify.hard_pairs import ODD, REPLACE, HardRecord, hard_numbers, pairs_of
from ...verify.one_record import Pair, declared
from .audit import RecordAudit

Row = tuple[Any, str]
SIZES = {"a": 8, "b": 6, "c": 3}
DESIGN = Stratified([("a", WithoutReplacement(7, 8)), ("b", WithoutReplacement(3, 6)), ("c", WithoutReplacement(1, 3))])
GAUSSIAN: dict[str, Any] = {"delta": 1e-6, "noise": "gaussian"}
BOUNDS: dict[str, Any] = {"a": (0.0, 1.0), "b": (-2.0, 3.0), "c": (-2.0, 3.0)}
ASKED: dict[str, dict[str, Any]] = {
    "Laplace": {"bounds": (-2.0, 3.0)},
    "Gaussian": {"bounds": (-2.0, 3.0)} | GAUSSIAN,
    "bounds by stratum": {"bounds": BOUNDS},
}


def _sample(design: Design, rows: list[Row]) -> Any:
    return design.draw(Population(len(rows), stratum=np.array([row[1] for row in rows])), seeded_key(14))


def _piloted(options: dict[str, Any], rows: list[Row]) -> Any:
    found = pilot(_sample(DESIGN, rows), [row[0] for row in rows], epsilon=1.0, **options)
    return found.sd, found.release.noise_error.tolist(), found.allocate(9, 1.0).sizes, found.guarantee


def _most(mechanism: Mechanism, pair: Pair, number: int) -> float:
    """What a record of the changed stratum may move."""
    whole = declared(mechanism, pair)
    if not isinstance(mechanism, PerStratum):
        return whole
    sizes = dict(mechanism.sensitivities)
    at = next(at for at, (one, other) in enumerate(zip(pair.one, pair.other, strict=True)) if one is not other)
    return whole * sizes[pair.one[at][1]] / max(sizes.values())


def _pairs(random: np.random.Generator) -> Iterator[Pair]:
    labels = [name for name, size in SIZES.items() for _ in range(size)]
    for wide in (3.0, 0.01):  # strata of some spread, and of next to none
        rows: list[Row] = [(wide * x, name) for x, name in zip(random.standard_normal(17), labels, strict=True)]
        for at, name in enumerate(labels):
            hard = [HardRecord(what, (value, name)) for what, value in (*hard_numbers(3.0), *ODD)]
            yield from (replace(pair, neighbors=WITHIN) for pair in pairs_of(rows, hard, changes=REPLACE, places=[at]))


def _audit(name: str, what: str, run: Any) -> RecordAudit:
    return RecordAudit(f"pilot, {name}", what, run, _pairs, most=_most, quick=12 if "Gaussian" in name else 40)


def _job(name: str) -> RecordAudit:
    return _audit(name, "survey.pilot with one record replaced within its stratum", partial(_piloted, ASKED[name]))


JOBS = tuple(partial(_job, name) for name in ASKED)


def _finite(rows: list[Row]) -> FloatArray:
    return np.asarray(np.clip(np.nan_to_num([x if isinstance(x, float) else 0.0 for x, _ in rows]), -2.0, 3.0))


def _by_exact_spread(rows: list[Row]) -> Any:
    """Sizes by the standard deviations of the records themselves, then an honest estimate."""
    values, labels = _finite(rows), np.array([name for _, name in rows])
    strata = [Stratum(name, n, 5.0, float(values[labels == name].std(ddof=1))) for name, n in SIZES.items()]
    design = allocate(strata, 9, 5.0).design()
    found = estimate(_sample(design, rows), values, bounds=(-2.0, 3.0), epsilon=5.0)
    return found.value, found.guarantee


def exact_spread() -> RecordAudit:
    """A sample that is divided by secret standard deviations."""
    return _audit("sizes by exact spread", "an allocation by the records' own spread", _by_exact_spread)


def _for_means(rows: list[Row]) -> Any:
    """Variances with the noise that means need: R/n in the place of R^2/n."""
    sample, values = _sample(DESIGN, rows), _finite(rows)
    first = np.array([name == "a" for _, name in rows])
    return sample.release(
        Laplace(1.0, sensitivity=5.0 / 7.0, neighbors=WITHIN),
        lambda drawn: float(np.var(values[drawn.positions][first[drawn.positions]], ddof=1)),
    )


def noise_for_means() -> RecordAudit:
    """A variance that is hidden as if it were a mean."""
    return _audit("noise for means", "a variance with the noise of a mean", _for_means)


PLANTED = (exact_spread, noise_for_means)
