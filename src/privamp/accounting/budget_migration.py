"""From a budget store of version 1 to one of version 2, in a new file: everything spent stays spent.

Version 1 had totals and entries but no chain, and no state between reserved and answered: a reservation whose end was
not written may have drawn noise, so it is spent here and can no longer be cancelled. Limits, costs, totals and draws
must come out as they were, or nothing is written. The old file is only read.
"""

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..core.neighbors import Neighbors
from ..errors import InvalidInput
from .amounts import limit_amounts
from .budget_chain import ANSWERED, CANCELLED, FAILED, RESERVED, SPENT, Totals, after
from .budget_file import exists
from .budget_gate import GATE
from .budget_rows import APPLICATION, append, fill_new, found, pair, write_new
from .budget_store import Checked, Store
from .filters import Filter, stored_filter

_OPENED = {RESERVED: (SPENT,), ANSWERED: (ANSWERED,), FAILED: (SPENT, FAILED), CANCELLED: (RESERVED, CANCELLED)}
_NOT_SO = "{name} is damaged, or not a budget store of version 1 ({why}); restore a copy of it"


def migrate(old: str | os.PathLike[str], new: str | os.PathLike[str]) -> Checked:
    """Write the store `old` as a store of the current version under the name `new`, and check it."""
    if not exists(old) or not Path(old).is_file():
        raise InvalidInput(f"there is no budget store at {os.path.basename(os.fspath(old))!r}; give one of version 1")

    def fill(connection: sqlite3.Connection) -> None:
        with _reading(Path(old)) as source:
            fill_new(connection, shared=False)
            for row in source.execute(
                "SELECT id, population, rule, facts, neighbors, records, main_limit, delta_limit, main_spent, "
                "delta_spent FROM budgets ORDER BY id"
            ).fetchall():
                _copy_budget(connection, source, row, Path(old).name)
            connection.execute("COMMIT")

    with GATE.passed():
        write_new(Path(new), fill, mode=0o600)
    return Store(new, read_only=True).verify()


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    """The old store, kept from other programs meanwhile."""
    with contextlib.closing(
        sqlite3.connect(f"file:{quote(os.fsencode(path))}?mode=rw", uri=True, timeout=10.0, isolation_level=None)
    ) as source:
        try:
            application, version = (
                source.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
            )
            if (application, version) != (APPLICATION, 1):
                raise InvalidInput(f"{path.name} is not a budget store of version 1, and only those can be migrated")
            source.execute("BEGIN EXCLUSIVE")
            if source.execute("PRAGMA integrity_check(1)").fetchall() != [("ok",)]:
                raise InvalidInput(_NOT_SO.format(name=path.name, why="its pages are inconsistent"))
            yield source
        except (sqlite3.DatabaseError, KeyError, TypeError, ValueError, UnicodeDecodeError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput(_NOT_SO.format(name=path.name, why="it cannot be read")) from None


def _copy_budget(connection: sqlite3.Connection, source: sqlite3.Connection, row: tuple[Any, ...], name: str) -> None:
    old, population, rule, facts, neighbors, records, main_limit, delta_limit, *spent = row
    limit: Filter = stored_filter(rule, json.loads(facts), Neighbors.parse(neighbors).for_person(records))
    if pair(limit_amounts(limit.limits)) != (main_limit, delta_limit):
        raise InvalidInput(_NOT_SO.format(name=name, why="a limit is not that of its rule"))
    budget, totals = found(connection, population, limit).number, Totals()
    for entry in source.execute(
        "SELECT id, time, note, main, delta, state, draw FROM entries WHERE budget = ? ORDER BY id", (old,)
    ).fetchall():
        totals = _copy_entry(connection, budget, totals, entry)
    if [totals.main_spent, totals.delta_spent] != spent or (totals[0] > main_limit or totals[1] > delta_limit):
        raise InvalidInput(_NOT_SO.format(name=name, why="a total is not the sum of its entries"))


def _copy_entry(connection: sqlite3.Connection, budget: int, totals: Totals, entry: tuple[Any, ...]) -> Totals:
    number, time, note, main, delta, state, draw = entry
    told = {"note": note, "migrated": {"entry": number, "time": time, "state": state}}
    first, before = 0, None
    for kind in _OPENED[state]:
        totals = after(totals, kind, before, main, delta)
        facts = told if before is None else {"reason": "migrated"} if kind == CANCELLED else {}
        names = {"entry": first} if before is not None else {"draw": draw}
        event = append(connection, kind, budget, facts, cost=(main, delta), totals=totals, **names)
        first, before = first or event.number, kind
    return totals
