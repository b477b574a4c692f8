"""No number of an existing guarantee changes silently: every row of saved.csv is recomputed.

Processors and versions of NumPy and SciPy differ in last digits, which root finding may enlarge: rows agree to nine
digits (composed ones to eight: the tilts of their curves are found by a search), and to the last one with
PRIVAMP_EXACT=1, on the machine that wrote them. Before NumPy 2 they agree to six:
its exp and log round by other vector instructions, and a composed curve is made of differences between points that
are 1e-5 apart, each rounded outward. Both numbers are upper bounds.

The quick test compares all columns of every row that a theorem of its own makes, and the columns without a root of
those that repeat replace-one because no theorem is about their scope; the slow one compares every number. A saved root
is confirmed quickly: delta is above 1e-6 just before it and no more just after it, as far away as numbers may differ.
Only where it is not is the root sought, and both numbers are told.
"""

import csv
import math
import os

import guarantee_cases as cases
import numpy as np
import pytest

SLOW = ("wr 100 of 1000", "wr 3 of 4", "wor then wr", "wr then wr")  # many copies of a record take minutes
QUICK = tuple(name for name in cases.DESIGNS if name not in SLOW)
DIGITS = 1e-9 if int(np.__version__.partition(".")[0]) >= 2 else 1e-6
COMPOSED = 1e-8
SEARCHED = 0.05  # a plan that a solver finds is another one in another version; the number is a bound for each
HOW = "list an intended change under 'Guarantees changed' and run python tests/guarantees/guarantee_cases.py"


def saved() -> dict[str, list[str]]:
    with cases.SAVED.open(encoding="utf-8") as file:
        return {line[0]: line for line in list(csv.reader(file))[1:]}


def is_same(old: str, new: str, digits: float = DIGITS) -> bool:
    if old == new or os.environ.get("PRIVAMP_EXACT"):
        return old == new
    try:
        return math.isclose(float(old), float(new), rel_tol=digits)
    except ValueError:  # the names of theorems
        return False


def digits_of(case: str, because: str) -> float:
    return SEARCHED if "transport" in because else max(DIGITS, COMPOSED if "steps" in case else 0)


def confirmed(before: dict[str, list[str]]) -> cases.Near:
    """Whether a saved root is one, by the curve on both sides of it; None: it is not, or it may not differ at all.

    The roots of a design's first row are sought all the same, as users do.
    """
    sought = next(iter(before), None)

    def near(case: str, column: str, log_delta) -> str | None:
        line = before.get(case)
        text = line[cases.COLUMNS.index(column)] if line else ""
        if case == sought or os.environ.get("PRIVAMP_EXACT") or not text or not 0.0 < float(text) < math.inf:
            return None
        around = float(text) * (1.0 + digits_of(case, line[-1]) * np.array([-1.0, 1.0]))
        above, below = log_delta(around)
        return text if above > math.log(cases.DELTA) >= below else None

    return near


def differences(name: str, *, quick: bool = False) -> list[str]:
    """One sentence per row that is not as it was, with both numbers."""
    before = {case: line for case, line in saved().items() if case.split(" | ")[0] == name}
    now = {line[0]: line for line in cases.table((name,), near=confirmed(before) if quick else None)}
    found = [f"{case} is gone" for case in before.keys() - now.keys() if not (quick and case.endswith("100 steps"))]
    found += [f"{case} is new" for case in now.keys() - before.keys()]
    for case in before.keys() & now.keys():
        changed = zip(cases.COLUMNS, before[case], now[case], strict=True)
        found += [
            f"{case}: {what} was {old}, is {new}"
            for what, old, new in changed
            if new is not None and not is_same(old, new, digits_of(case, before[case][-1]))
        ]
    return sorted(found)


@pytest.mark.parametrize("name", QUICK)
def test_saved_guarantees_are_unchanged(name: str) -> None:
    assert not differences(name, quick=True), HOW


@pytest.mark.slow
@pytest.mark.parametrize("name", cases.DESIGNS)
def test_every_saved_number_is_unchanged(name: str) -> None:
    assert not differences(name), HOW


def test_the_table_is_large_and_covers_every_design() -> None:
    rows = saved()
    assert len(rows) >= 500
    assert {case.split(" | ")[0] for case in rows} == set(cases.DESIGNS)


def test_rows_without_a_theorem_of_their_scope_repeat_replace_one() -> None:
    rows, repeated = saved(), 0
    for case, line in rows.items():
        design, mechanism, relation, *rounds = case.split(" | ")
        if cases.is_of_a_wider_scope(design, relation):
            repeated += 1
            assert line[1:] == rows[" | ".join([design, mechanism, "replace-one", *rounds])][1:]
    assert repeated > 300


@pytest.mark.parametrize("quick", [False, True])
def test_a_changed_digit_is_noticed(monkeypatch: pytest.MonkeyPatch, quick: bool) -> None:
    case = "poisson .5 | pure .5 | add-remove"
    line = saved()[case]
    monkeypatch.setattr(cases, "_combinations", lambda names: [("poisson .5", "add-remove", "pure .5")])
    worse = [line[0], *(repr(float(x) * (1 + 1e-8)) if x else x for x in line[1:-1]), line[-1]]
    monkeypatch.setitem(differences.__globals__, "saved", lambda: {case: worse})
    told = differences(case.split(" | ")[0], quick=quick)
    columns = [name for name, x in zip(cases.COLUMNS[1:-1], line[1:-1], strict=True) if x and float(x)]
    assert {sentence.removeprefix(f"{case}: ").split(" was ")[0] for sentence in told} == set(columns)
