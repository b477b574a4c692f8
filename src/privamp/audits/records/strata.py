"""Strata: sums and survey estimates whose records are drawn, weighted and hidden stratum by stratum; groups with them.

A record is (value, stratum, group). Where noise has one sensitivity per stratum, a record may move a release by that of
its own stratum only.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

from ...core.design import Design
from ...core.mechanism import Mechanism
from ...core.population import Population
from ...core.sample import Sample
from ...designs.poisson import Poisson
from ...designs.simple_random import WithoutReplacement
from ...designs.stratified import WITHIN, Stratified
from ...errors import InvalidInput
from ...mechanisms.fixed_point import ExactGaussian
from ...mechanisms.laplace import Laplace
from ...mechanisms.per_stratum import PerStratum
from ...survey import estimate, frame
from ...testing import seeded_key
from ...verify.hard_pairs import ADD_REMOVE, ODD, REPLACE, HardRecord, hard_numbers, pairs_of
from ...verify.one_record import Pair, declared
from .audit import RecordAudit

Row = tuple[Any, Any, Any]  # value, stratum, group
BOUNDS = (-2.0, 3.0)
SIZES = {"a": 8, "b": 6}
COINS = Stratified([("a", Poisson(0.9)), ("b", Poisson(0.5))])
STRANGERS = ("z", "", "aa", None, 7, 2.5, float("nan"), True, b"a", ("a",), 10**30, "a" * 9)
SHARES = Stratified([("a", WithoutReplacement(7, 8)), ("b", WithoutReplacement(2, 6))])
ALONE = WithoutReplacement(9, 14)
LAPLACE_2 = Laplace(2.0, sensitivity=2.0, neighbors=WITHIN)
COIN_SUMS: dict[str, Mechanism] = {"Laplace": Laplace(2.0), "exact Gaussian": ExactGaussian(2.0)}
COIN_ESTIMATES: dict[str, dict[str, Any]] = {
    "total": {"statistic": "total"},
    "total, Gaussian": {"statistic": "total", "delta": 1e-6, "noise": "gaussian"},
    "mean": {"population": SIZES},
    "mean, bounds by stratum": {"population": SIZES, "sd": "range", "bounds": {"a": (0.0, 1.0), "b": (-2.0, 3.0)}},
}
SHARE_ESTIMATES: dict[str, dict[str, Any]] = {
    "mean": {},
    "mean, Gaussian": {"delta": 1e-6, "noise": "gaussian"},
    "mean, design effect": {"design_effect": True, "bounds": {"a": (0.0, 1.0), "b": (-2.0, 3.0)}},
    "total, public sd": {"statistic": "total", "sd": {"a": 1.0, "b": 2.0}},
    "mean, bounds by stratum": {"sd": "range", "bounds": {"a": (0.0, 1.0), "b": (-2.0, 3.0)}},
}


def _sample(design: Design, rows: list[Row]) -> Sample:
    """From a list of labels where some are no text, from an array where all are."""
    labels: Any = [row[1] for row in rows]
    if all(isinstance(label, str) for label in labels):
        labels = np.array(labels, dtype="U8")
    return design.draw(Population(len(rows), stratum=labels), seeded_key(14))


def _column(rows: list[Row]) -> Any:
    """One column, whatever its entries are."""
    column = np.empty(len(rows), dtype=object)
    column[:] = [row[0] for row in rows]
    return column


def _summed(design: Design, mechanism: Mechanism, rows: list[Row]) -> Any:
    sample = _sample(design, rows)
    center = 0.0 if mechanism.neighbors.kind == "replace-one" else None
    return sample.release(mechanism, _column(rows), center=center), sample.guarantee()


def _estimated(design: Design, options: dict[str, Any], by: bool, rows: list[Row]) -> Any:
    extra = {"by": [row[2] for row in rows]} if by else {}
    sample = _sample(design, rows)
    found = estimate(sample, [row[0] for row in rows], epsilon=1.0, **{"bounds": BOUNDS} | options | extra)
    each = found if by else {"everybody": found}
    effects = [one.details.get("design_effect") for one in each.values()]
    return [(name, one.value, one.standard_error, one.guarantee) for name, one in each.items()], effects


def _most(mechanism: Mechanism, pair: Pair, number: int) -> float:
    """The sensitivity of the changed record's own stratum over the largest one."""
    whole = declared(mechanism, pair)
    if not isinstance(mechanism, PerStratum):
        return whole
    sizes = dict(mechanism.sensitivities)
    longer, shorter = sorted((pair.one, pair.other), key=len, reverse=True)
    at = next((at for at, (a, b) in enumerate(zip(longer, shorter, strict=False)) if a is not b), len(shorter))
    return whole * sizes.get(longer[at][1], 0.0) / max(sizes.values())


def _rows(random: np.random.Generator) -> list[Row]:
    strata = random.permutation(list("a" * SIZES["a"] + "b" * SIZES["b"])).tolist()
    values = (3 * random.standard_normal(len(strata))).tolist()
    return [(value, stratum, "xy"[at % 2]) for at, (value, stratum) in enumerate(zip(values, strata, strict=True))]


def _loose(random: np.random.Generator) -> Iterator[Pair]:
    """One record more or less, in either stratum; in an empty one, too."""
    every = _rows(random)
    for rows in ([], [row for row in every if row[1] == "a"], every):
        for what, value in (*hard_numbers(3.0), *ODD):
            hard = [HardRecord(f"{what} in {stratum}", (value, stratum, "x")) for stratum in "ab"]
            yield from pairs_of(rows, hard, changes=ADD_REMOVE, places=[len(rows)])


def _strangers(random: np.random.Generator) -> Iterator[Pair]:
    """One record more or less in no stratum that the design names: it may move nothing."""
    every = _rows(random)
    for rows in ([], every):
        hard = [HardRecord(f"in stratum {label!r}", (2.5, label, "x")) for label in STRANGERS]
        yield from pairs_of(rows, hard, changes=ADD_REMOVE, places=[len(rows)])


def _unmoved(mechanism: Mechanism, pair: Pair, number: int) -> float:
    return 0.0


def _within(random: np.random.Generator) -> Iterator[Pair]:
    """One record in place of another one of its stratum and group."""
    return _replaced(_rows(random))


def _replaced(rows: list[Row]) -> Iterator[Pair]:
    for at, (_, stratum, group) in enumerate(rows):
        hard = [HardRecord(what, (value, stratum, group)) for what, value in (*hard_numbers(3.0), *ODD)]
        yield from (replace(pair, neighbors=WITHIN) for pair in pairs_of(rows, hard, changes=REPLACE, places=[at]))


def _audit(name: str, what: str, run: Any, pairs: Any) -> RecordAudit:
    return RecordAudit(f"strata, {name}", what, run, pairs, most=_most, quick=40)


def _coin_sum(name: str) -> RecordAudit:
    run = partial(_summed, COINS, COIN_SUMS[name])
    return _audit(f"Poisson, {name} sum", "Sample.release from strata drawn by coins", run, _loose)


def _stranger_sum() -> RecordAudit:
    run, what = partial(_summed, COINS, Laplace(2.0)), "Sample.release, a record in no stratum of the design"
    return RecordAudit("strata, strangers, Laplace sum", what, run, _strangers, most=_unmoved, quick=40)


def _stranger_estimate(name: str) -> RecordAudit:
    run = partial(_estimated, COINS, COIN_ESTIMATES[name], False)
    what = "survey.estimate, a record in no stratum of the design"
    return RecordAudit(f"strata, strangers, {name}", what, run, _strangers, most=_unmoved, quick=40)


def _share_sum() -> RecordAudit:
    run = partial(_summed, SHARES, LAPLACE_2)
    return _audit("fixed sizes, Laplace sum", "Sample.release from strata of fixed size", run, _within)


def _coin_estimate(name: str) -> RecordAudit:
    run = partial(_estimated, COINS, COIN_ESTIMATES[name], False)
    return _audit(f"Poisson, {name}", "survey.estimate from strata drawn by coins", run, _loose)


def _share_estimate(name: str) -> RecordAudit:
    run = partial(_estimated, SHARES, SHARE_ESTIMATES[name], False)
    return _audit(f"fixed sizes, {name}", "survey.estimate from strata of fixed size", run, _within)


def _by_coins(options: dict[str, Any]) -> RecordAudit:
    run = partial(_estimated, COINS, {"statistic": "total", **options}, True)
    return _audit("Poisson, total by groups", "survey.estimate(by=...) from strata drawn by coins", run, _loose)


def _by_shares(design: Design, name: str, options: dict[str, Any]) -> RecordAudit:
    run = partial(_estimated, design, options, True)
    return _audit(f"{name} by groups", "survey.estimate(by=...) from samples of fixed size", run, _within)


JOBS = (
    *(partial(_coin_sum, name) for name in COIN_SUMS),
    _share_sum,
    _stranger_sum,
    *(partial(_stranger_estimate, name) for name in ("total", "mean")),
    *(partial(_coin_estimate, name) for name in COIN_ESTIMATES),
    *(partial(_share_estimate, name) for name in SHARE_ESTIMATES),
    partial(_by_coins, {"groups": ["x", "y"]}),
    partial(_by_shares, SHARES, "fixed sizes, mean", {}),
    partial(_by_shares, ALONE, "one stratum, mean", {}),
    partial(_by_shares, ALONE, "one stratum, total of a group", {"statistic": "total", "groups": ["y"]}),
)


def _of_another_column(rows: list[Row]) -> Any:
    """Weights and noise of the other stratum: who is in which is not what the sample was drawn with."""
    truth = frame._membership
    with patch.object(frame, "_membership", lambda *given: 1 - truth(*given)):
        sizes = Stratified([("a", WithoutReplacement(5, 7)), ("b", WithoutReplacement(1, 7))])
        return _estimated(sizes, {"sd": "range"}, False, rows)


def _sevens(random: np.random.Generator) -> Iterator[Pair]:
    """Two strata of one size, so that nothing but the noise shows which is which."""
    rows: list[Row] = [(float(x), "ab"[at % 2], "x") for at, x in enumerate(random.standard_normal(14))]
    return _replaced(rows)


def another_column() -> RecordAudit:
    """Records that are hidden by the noise of a stratum they are not in."""
    what = "an estimate with strata of another column than the draw's"
    return _audit("of another column", what, _of_another_column, _sevens)


def _empty_refused(rows: list[Row]) -> Any:
    if {row[1] for row in rows} != {"a", "b"}:
        raise InvalidInput("the population has no record in a stratum which the design names")
    return _summed(COINS, Laplace(2.0), rows)


def empty_refused() -> RecordAudit:
    """An error that the first record of a stratum removes."""
    return _audit("an empty one is refused", "a sum that refuses a stratum without records", _empty_refused, _loose)


def _strangers_refused(rows: list[Row]) -> Any:
    if {row[1] for row in rows} - {"a", "b"}:
        raise InvalidInput("a record of the population is in a stratum that the design does not name")
    return _summed(COINS, Laplace(2.0), rows)


def strangers_refused() -> RecordAudit:
    """An error that one record in another stratum makes."""
    what = "a sum that refuses a stratum which the design does not name"
    return _audit("a strange one is refused", what, _strangers_refused, _strangers)


def _labels_together(rows: list[Row]) -> Any:
    sample = COINS.draw(Population(len(rows), stratum=np.array([str(r[1])[:1] for r in rows])), seeded_key(14))
    return sample.release(Laplace(2.0), _column(rows)), sample.guarantee()


def labels_together() -> RecordAudit:
    """Labels that are read as one array of text: whoever is in another stratum falls into one of the design's."""
    what = "a sum whose labels are cut to one letter"
    return RecordAudit("strata, labels are cut", what, _labels_together, _strangers, most=_unmoved, quick=40)


def _bounds_of_groups(rows: list[Row]) -> Any:
    values = [row[0] for row in rows if isinstance(row[0], float) and np.isfinite(row[0])]
    return _estimated(ALONE, {"bounds": (min(values) - 1.0, max(values) + 1.0)}, True, rows)


def bounds_of_groups() -> RecordAudit:
    """Noise whose scale tells the largest value."""
    what = "an estimate by groups whose bounds are read off the data"
    return _audit("bounds read off the data, by groups", what, _bounds_of_groups, _within)


PLANTED = (another_column, empty_refused, strangers_refused, labels_together, bounds_of_groups)
