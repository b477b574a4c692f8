"""Clusters and classes: one record more or less in none of the design's, which must not move anything.

A record is (value, label).
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ...core.design import Design
from ...core.mechanism import Mechanism
from ...core.population import Population
from ...designs.class_rates import ClassRates
from ...designs.cluster import ClusterSampling
from ...designs.cluster_pps import ClusterPPS
from ...designs.poisson import Poisson
from ...designs.systematic_pps import SystematicPPS
from ...errors import InvalidInput
from ...mechanisms.laplace import Laplace
from ...survey import estimate
from ...testing import seeded_key
from ...verify.hard_pairs import ADD_REMOVE, HardRecord, pairs_of
from ...verify.one_record import Pair
from .audit import RecordAudit

Row = tuple[Any, Any]  # value, label
SIZE = 12
NUMBERED: dict[str, Design] = {
    "clusters": ClusterSampling(2, 4, 3),
    "clusters, coins inside": ClusterSampling(2, 4, 3, Poisson(0.5)),
    "one cluster": ClusterPPS((0.2, 0.3, 0.4, 0.1), 3),
    "systematic by public size": SystematicPPS((3, 2, 4, 3), 2, 3),
}
NAMED: dict[str, Design] = {
    "named clusters": ClusterSampling(2, 4, 3, labels=("a", "b", "c", "d")),
    "classes": ClassRates({"a": 0.9, "b": 0.5, "c": 0.2, "d": 1.0}),
}
DESIGNS = NUMBERED | NAMED
ESTIMATED = ("clusters", "named clusters", "classes")
STRANGERS = ("z", "", "aa", None, 7, -1, 2.5, float("nan"), b"a", ("a",), 10**30, -(10**30), "a" * 9)


def _sample(design: Design, labels: list[Any]) -> Any:
    (column,) = design.reads
    known: dict[str, Any] = {column: labels}
    return design.draw(Population(len(labels), **known), seeded_key(14))


def _summed(design: Design, rows: list[Row]) -> Any:
    sample = _sample(design, [label for _, label in rows])
    return sample.release(Laplace(2.0), np.array([value for value, _ in rows])), sample.guarantee()


def _estimated(design: Design, rows: list[Row]) -> Any:
    sample = _sample(design, [label for _, label in rows])
    found = estimate(sample, [value for value, _ in rows], "total", bounds=(-2.0, 3.0), epsilon=1.0)
    return found.value, found.sampling_error, found.noise_error, found.guarantee


def _strangers(names: Any, random: np.random.Generator) -> Iterator[Pair]:
    every = [(float(x), names[at % 4]) for at, x in enumerate(random.standard_normal(SIZE))]
    for rows in ([], every):
        hard = [HardRecord(f"in {label!r}", (2.5, label)) for label in STRANGERS]
        yield from pairs_of(rows, hard, changes=ADD_REMOVE, places=[len(rows)])


def _unmoved(mechanism: Mechanism, pair: Pair, number: int) -> float:
    return 0.0


def _audit(name: str, what: str, run: Any, names: Any) -> RecordAudit:
    return RecordAudit(f"clusters, {name}", what, run, partial(_strangers, names), most=_unmoved, quick=40)


def _names(name: str) -> Any:
    return "abcd" if name in NAMED else range(4)


def _sum(name: str) -> RecordAudit:
    what = "Sample.release, a record in no cluster or class of the design"
    return _audit(f"{name}, Laplace sum", what, partial(_summed, DESIGNS[name]), _names(name))


def _total(name: str) -> RecordAudit:
    what = "survey.estimate, a record in no cluster or class of the design"
    return _audit(f"{name}, total", what, partial(_estimated, DESIGNS[name]), _names(name))


JOBS = (*(partial(_sum, name) for name in DESIGNS), *(partial(_total, name) for name in ESTIMATED))


def _refused(rows: list[Row]) -> Any:
    if any(label not in tuple("abcd") for _, label in rows):
        raise InvalidInput("column 'cluster' must be one of the declared labels for every record, which is not so")
    return _summed(DESIGNS["named clusters"], rows)


def strangers_refused() -> RecordAudit:
    """An error that one record in another cluster makes."""
    return _audit("a strange one is refused", "a sum that refuses a cluster it does not know", _refused, "abcd")


def _numbered(rows: list[Row]) -> Any:
    names = [str(label) for _, label in rows]
    numbers = np.unique(names, return_inverse=True)[1].tolist() if names else []
    return _summed(DESIGNS["clusters"], [(value, at) for (value, _), at in zip(rows, numbers, strict=True)])


def numbered() -> RecordAudit:
    """A new name that moves the records of all others to another cluster."""
    return _audit("numbered as they occur", "a sum whose clusters are numbered by their names", _numbered, "abcd")


PLANTED = (strangers_refused, numbered)
