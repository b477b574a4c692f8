"""Interviews: answers matched by ids, and estimates adjusted for nonresponse.

A record is a person of the frame with the rows that came back: none, one, several that agree or differ, or something
odd; rows of strangers come with it. Who is in which class is public where records are replaced.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ...core.design import Design
from ...core.population import Population
from ...designs.cluster import ClusterSampling
from ...designs.poisson import Poisson
from ...designs.simple_random import WithoutReplacement
from ...designs.stratified import Stratified
from ...mechanisms.fixed_point import ExactLaplace
from ...survey import adjust, answers
from ...testing import seeded_key
from ...verify.hard_pairs import ADD_REMOVE, ODD, REPLACE, HardRecord, hard_numbers, pairs_of
from ...verify.one_record import Pair
from .audit import RecordAudit

SIZE, BOUNDS = 12, (-2.0, 3.0)
Person = list[Any]  # the rows that came back
CLASSES = [k % 3 for k in range(SIZE)]
GAUSSIAN: dict[str, Any] = {"delta": 1e-6, "noise": "gaussian"}
FIXED: dict[str, tuple[Design, dict[str, Any]]] = {
    "simple random, classes": (WithoutReplacement(9, SIZE), {"classes": CLASSES}),
    "simple random, Gaussian": (WithoutReplacement(9, SIZE), GAUSSIAN),
    "simple random, design effect": (WithoutReplacement(9, SIZE), {"classes": CLASSES, "design_effect": True}),
    "strata, two domains": (
        Stratified([("a", WithoutReplacement(4, 6)), ("b", WithoutReplacement(5, 6))]),
        {"stratum": np.array(list("ab") * 6), "domain": ["x", "y", "z"] * 4, "domains": ["x", "y"]},
    ),
    "strata, bounds by stratum": (
        Stratified([("a", WithoutReplacement(4, 6)), ("b", WithoutReplacement(5, 6))]),
        {"stratum": np.array(list("ab") * 6), "classes": CLASSES, "bounds": {"a": (-2.0, 3.0), "b": (0.0, 0.5)}},
    ),
    "clusters, raked": (
        ClusterSampling(3, 4, 3),
        {
            "cluster": np.arange(SIZE) % 4,
            "margins": {"c": (CLASSES, {0: 4, 1: 4, 2: 4}), "h": ([0, 1] * 6, {0: 6, 1: 6})},
        },
    ),
}  # fmt: skip
LOOSE: dict[str, dict[str, Any]] = {
    "Poisson, mean": {},
    "Poisson, total": {"statistic": "total"},
    "Poisson, total, design effect": {"statistic": "total", "design_effect": True},
    "Poisson, total, Gaussian": {"statistic": "total"} | GAUSSIAN,
}


def _values(people: list[Person]) -> Any:
    """The returned answers, with all persons' rows mixed and rows of people who were not drawn."""
    rows: list[tuple[Any, Any]] = [(k, entry) for k, person in enumerate(people) for entry in person]
    rows = [("stranger", 1.0), *rows[::-1], (10**6, 2.0)]
    return answers(list(range(len(people))), [who for who, _ in rows], [entry for _, entry in rows])


def _adjusted(design: Design, options: dict[str, Any], people: list[Person]) -> Any:
    columns = {name: options[name] for name in ("cluster", "stratum") if name in options}
    sample = design.draw(Population(len(people), **columns), seeded_key(14))
    found = adjust(sample, _values(people), epsilon=1.0, **{"bounds": BOUNDS} | options)
    each = found if isinstance(found, dict) else {"": found}
    return [
        (name, one.value, one.standard_error, one.interval(), one.details.get("design_effect"), one.guarantee)
        for name, one in each.items()
    ]


def _hard() -> list[HardRecord]:
    found = [
        HardRecord("no answer", []),
        HardRecord("the same twice", [1.0, 1.0]),
        HardRecord("two that differ", [1.0, 2.5]),
    ]
    found += [HardRecord("an answer and an empty row", [None, 2.0]), HardRecord("a number and its text", [1.0, "1"])]
    return found + [HardRecord(what, [value]) for what, value in (*hard_numbers(3.0), *ODD)]


def _pairs(places: Any, changes: tuple[str, ...], random: np.random.Generator) -> Iterator[Pair]:
    for size in (0, 1, SIZE) if changes == ADD_REMOVE else (SIZE,):
        for answered in (0.9, 0.2):  # some surveys, and some that few people answer
            people: list[Person] = [[2.5] if x < answered else [] for x in random.random(size)]
            yield from pairs_of(people, _hard(), changes=changes, places=places or [size])


def _fixed(name: str) -> RecordAudit:
    run, pairs = partial(_adjusted, *FIXED[name]), partial(_pairs, range(SIZE), REPLACE)
    quick = 6 if "Gaussian" in name else 30
    return RecordAudit(f"interviews, {name}", "survey.adjust with one person replaced", run, pairs, quick=quick)


def _loose(name: str) -> RecordAudit:
    run = partial(_adjusted, Poisson(0.9), LOOSE[name])
    what = "survey.adjust under add/remove"
    return RecordAudit(f"interviews, {name}", what, run, partial(_pairs, None, ADD_REMOVE), quick=30)


JOBS = (*(partial(_fixed, name) for name in FIXED), *(partial(_loose, name) for name in LOOSE))


def _weights_of_the_sample(people: list[Person]) -> Any:
    """Answers weighted by one over the share of drawn people who answered: a weight that other people move."""
    values = _values(people)
    sample = WithoutReplacement(9, SIZE).draw(Population(SIZE), seeded_key(14))

    def total(drawn: Any) -> float:
        kept = values[drawn.positions]
        share = np.mean(~np.isnan(kept))
        return float(np.sum(np.clip(np.nan_to_num(kept), *BOUNDS)) / max(share, 0.01))

    return sample.release(ExactLaplace(2.0, 3.0), total)


def fitted_on_the_sample() -> RecordAudit:
    """Nonresponse weights that are fitted on the sample."""
    pairs = partial(_pairs, range(SIZE), REPLACE)
    return RecordAudit(
        "interviews, weights of the sample", "nonresponse weights fitted on it", _weights_of_the_sample, pairs
    )


def _refusing(people: list[Person]) -> Any:
    """Two answers of one person stop the estimate."""
    if any(len(person) > 1 for person in people):
        raise ValueError("a person answered twice")
    return _adjusted(WithoutReplacement(9, SIZE), {}, people)


def duplicates_refused() -> RecordAudit:
    """An error that reveals that a person answered twice."""
    pairs = partial(_pairs, range(SIZE), REPLACE)
    return RecordAudit("interviews, refusing duplicates", "an estimate that refuses two answers", _refusing, pairs)


PLANTED = (fitted_on_the_sample, duplicates_refused)
