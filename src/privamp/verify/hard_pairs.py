"""Adversarial records and the pairs of data sets they make; every job is checked with these.

A record that stops a job, causes a warning, switches a formula for all others or escapes its clipping is usually one of
these: all zeros, the smallest and the largest numbers, not a number, exactly at the radius and one unit in the last
place beside it.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..core.neighbors import Neighbors
from .one_record import Pair

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
Changes = Sequence[str]
ADD_REMOVE, REPLACE = ("added", "removed"), ("replaced",)


class HardRecord(NamedTuple):
    """A phrase and a record."""

    what: str
    row: Any


def hard_numbers(radius: float = 1.0, dtype: DTypeLike = np.float64) -> list[HardRecord]:
    """Adversarial numbers of this type, around a clipping radius."""
    kind: Any = np.dtype(dtype)
    if kind.kind == "b":
        return [HardRecord("false", kind.type(0)), HardRecord("true", kind.type(1))]
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        named = {"zero": 0, "one": 1, "largest": limits.max, "smallest": limits.min}
        return [HardRecord(what, kind.type(value)) for what, value in named.items()]
    facts: Any = np.finfo(kind)
    r = kind.type(radius)
    named = {
        "zero": kind.type(0.0),
        "negative zero": kind.type(-0.0),
        "denormal": facts.smallest_subnormal,
        "smallest normal": facts.tiny,
        "largest": facts.max,
        "smallest": -facts.max,
        "nan": kind.type(np.nan),
        "infinity": kind.type(np.inf),
        "negative infinity": kind.type(-np.inf),
        "the radius": r,
        "above the radius": np.nextafter(r, kind.type(np.inf)),
        "below the radius": np.nextafter(r, kind.type(0.0)),
        "minus the radius": -r,
        "a hundred radii": kind.type(min(100.0 * radius, float(facts.max))),
    }
    return [HardRecord(what, value) for what, value in named.items()]


def hard_rows(columns: int, radius: float = 1.0, dtype: DTypeLike = np.float64) -> list[HardRecord]:
    """Rows of this type: each hard number in the first column, and in all of them."""
    rows = []
    for what, value in hard_numbers(radius, dtype):
        first = np.zeros(columns, dtype)
        first[0] = value
        rows += [HardRecord(f"{what} first", first), HardRecord(f"{what} everywhere", np.full(columns, value, dtype))]
    if np.dtype(dtype).kind == "f":
        spread = np.full(columns, radius / np.sqrt(columns), dtype)
        beyond = np.nextafter(spread, spread.dtype.type(np.inf))
        rows += [HardRecord("spread over the radius", spread), HardRecord("one ulp beyond", beyond)]
    return rows


ODD = (
    HardRecord("an integer of thirty digits", 10**30),
    HardRecord("a text", "secret text"),
    HardRecord("nothing", None),
    HardRecord("a truth", True),
    HardRecord("a complex number", 1j),
    HardRecord("a list", [1.0, 2.0]),
)


def odd_rows(columns: int) -> list[HardRecord]:
    """Rows whose first entry is a Python object that is not a number."""
    return [HardRecord(what, [value] + [0.5] * (columns - 1)) for what, value in ODD]


def pairs_of(
    rows: NDArray[Any] | list[Any],
    hard: Iterable[HardRecord],
    *,
    changes: Changes = (*ADD_REMOVE, *REPLACE),
    places: Sequence[int] | None = None,
) -> Iterator[Pair]:
    """Every hard record added to, removed from, or put in place of a record of `rows`, at each place.

    If records get their identity by position, add and remove only at the end: `places=[len(rows)]`.
    """
    every = places if places is not None else sorted({0, len(rows) // 2, len(rows)})
    for what, row in hard:
        for place in every:
            with_it = _inserted(rows, place, row)
            if "added" in changes:
                yield Pair(f"{what} added at {place} of {len(rows)}", rows, with_it, AR, what)
            if "removed" in changes:
                yield Pair(f"{what} removed at {place} of {len(rows)}", with_it, rows, AR, what)
            if "replaced" in changes and len(rows):
                at = min(place, len(rows) - 1)
                yield Pair(f"{what} replaces record {at} of {len(rows)}", rows, _replaced(rows, at, row), RO, what)


def _inserted(rows: Any, place: int, row: Any) -> Any:
    if isinstance(rows, list):
        return [*rows[:place], row, *rows[place:]]
    return np.concatenate([rows[:place], np.asarray([row], dtype=rows.dtype), rows[place:]])


def _replaced(rows: Any, place: int, row: Any) -> Any:
    changed = list(rows) if isinstance(rows, list) else rows.copy()
    changed[place] = row
    return changed
