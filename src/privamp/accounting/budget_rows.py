"""The tables of a budget store and single steps on them: find an event, add one, make a new file."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

from ..atomic_files import sync_folder
from ..core.neighbors import Neighbors
from ..errors import InvalidInput
from .amounts import Amounts, limit_amounts
from .budget_chain import (
    BEGINNING,
    BUDGET,
    CANCELLED,
    COLUMNS,
    RELEASED,
    STORE,
    UNSETTLED,
    Broken,
    Event,
    Totals,
    canonical,
    link,
    read_event,
)
from .budget_file import exists
from .budget_origin import now, origin, plain
from .filters import Filter, stored_filter

APPLICATION = 0x70766D70  # "pvmp", in the file's header
VERSION = 2
SCHEMA = f"""
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {VERSION};
CREATE TABLE events (
    number INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    budget INTEGER NOT NULL,
    entry INTEGER,
    time TEXT NOT NULL,
    main INTEGER NOT NULL CHECK (main >= 0),
    delta INTEGER NOT NULL CHECK (delta >= 0),
    main_spent INTEGER NOT NULL CHECK (main_spent >= 0),
    delta_spent INTEGER NOT NULL CHECK (delta_spent >= 0),
    main_open INTEGER NOT NULL CHECK (main_open >= 0),
    delta_open INTEGER NOT NULL CHECK (delta_open >= 0),
    draw BLOB,
    facts TEXT NOT NULL,
    hash BLOB NOT NULL
) STRICT;
CREATE INDEX ends_of_entries ON events (entry) WHERE entry IS NOT NULL;
CREATE INDEX charged_draws ON events (draw) WHERE draw IS NOT NULL;
CREATE TRIGGER nothing_is_changed BEFORE UPDATE ON events
    BEGIN SELECT RAISE(ABORT, 'entries of a budget are not changed'); END;
CREATE TRIGGER nothing_is_deleted BEFORE DELETE ON events
    BEGIN SELECT RAISE(ABORT, 'entries of a budget are not deleted'); END;
CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER NOT NULL, hash BLOB NOT NULL) STRICT;
CREATE TABLE budgets (
    id INTEGER PRIMARY KEY,
    population TEXT NOT NULL,
    number INTEGER NOT NULL,
    hash BLOB NOT NULL
) STRICT;
"""


Structure = list[tuple[Any, ...]]


def structure(connection: sqlite3.Connection) -> Structure:
    """Every table, index and trigger, as text."""
    return connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name").fetchall()


@cache
def expected_structure() -> Structure:
    """What `structure` gives for an undamaged store."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(SCHEMA)
        return structure(connection)


# -- finding ----------------------------------------------------------------------------------------------------


def event_at(connection: sqlite3.Connection, number: int) -> Event:
    """The event with this number, if its own hash is right."""
    row = connection.execute(f"SELECT {COLUMNS} FROM events WHERE number = ?", (number,)).fetchone()
    if row is None:
        raise Broken(f"entry {number} is missing")
    event = read_event(row)
    if event.number != number or link(hash_before(connection, number), event) != event.hash:
        raise Broken(f"entry {number} does not fit the one before it")
    return event


def hash_before(connection: sqlite3.Connection, number: int) -> bytes:
    """The hash of the event before this one."""
    if number == 1:
        return BEGINNING
    row = connection.execute("SELECT hash FROM events WHERE number = ?", (number - 1,)).fetchone()
    if row is None or not isinstance(row[0], bytes):
        raise Broken(f"entry {number - 1} is missing")
    return row[0]


def founding(connection: sqlite3.Connection, budget: int) -> Event:
    """The event that made a budget."""
    event = event_at(connection, budget)
    if event.kind != BUDGET:
        raise Broken("its list of budgets is not that of its entries")
    return event


def newest(connection: sqlite3.Connection, budget: int) -> Event:
    """The newest event of a budget: it states the totals."""
    row = connection.execute("SELECT number, hash FROM budgets WHERE id = ?", (budget,)).fetchone()
    if row is None or not isinstance(row[0], int):
        raise Broken("its list of budgets is not that of its entries")
    event = event_at(connection, row[0])
    if event.hash != row[1] or event.budget != budget:
        raise Broken("its list of budgets is not that of its entries")
    return event


def charged(connection: sqlite3.Connection, budget: int, draw: bytes) -> Event | None:
    """The entry of this budget that pays for a sample and was not cancelled."""
    rows = connection.execute("SELECT number FROM events WHERE draw = ? AND budget = ?", (draw, budget)).fetchall()
    for (number,) in rows:
        opened, state = entry_state(connection, budget, number)
        if state != CANCELLED:
            return opened
    return None


def entry_state(connection: sqlite3.Connection, budget: int, entry: int) -> tuple[Event, str]:
    """The event that opened an entry, and the entry's state now."""
    row = connection.execute("SELECT kind FROM events WHERE number = ? AND budget = ?", (entry, budget)).fetchone()
    if row is None or row[0] == BUDGET:
        raise InvalidInput(f"this budget has no entry {entry}; 'privamp budget show' lists those without an answer")
    opened = event_at(connection, entry)
    if opened.entry is not None:
        raise InvalidInput(
            f"entry {entry} is not a reservation but records the outcome of entry {opened.entry}; give that one"
        )
    last = _last_change(connection, entry)
    return opened, opened.kind if last is None else event_at(connection, last).kind


def _last_change(connection: sqlite3.Connection, entry: int) -> int | None:
    """The event that gave an entry its state; a sample's first answer ends the search, however many follow."""
    last = None
    for number, kind in connection.execute("SELECT number, kind FROM events WHERE entry = ? ORDER BY number", (entry,)):
        if kind != RELEASED:
            last = int(number)
            if kind not in UNSETTLED:
                break
    return last


def releases_of(connection: sqlite3.Connection, entry: int) -> list[Event]:
    """The releases from a sample that `entry` pays for, oldest first."""
    rows = connection.execute(
        "SELECT number FROM events WHERE entry = ? AND kind = ? ORDER BY number", (entry, RELEASED)
    ).fetchall()
    return [event_at(connection, number) for (number,) in rows]


def last_release(connection: sqlite3.Connection, entry: int) -> Event | None:
    """The newest release that an entry paid for."""
    last = connection.execute(
        "SELECT number FROM events WHERE entry = ? AND kind = ? ORDER BY number DESC LIMIT 1", (entry, RELEASED)
    ).fetchone()
    return None if last is None else event_at(connection, last[0])


def limit_of(event: Event) -> Filter:
    """The limit of a budget, rebuilt; its amounts must be those that were written down."""
    try:
        facts = event.told
        relation = Neighbors.parse(facts["neighbors"]).for_person(facts["records"])
        limit = stored_filter(facts["rule"], facts["limit"], relation)
        if list(pair(limit_amounts(limit.limits))) == facts["limits"]:
            return limit
    except (KeyError, TypeError, ValueError):
        pass
    raise Broken(f"entry {event.number} states a limit that this privamp does not understand")


# -- adding -----------------------------------------------------------------------------------------------------


def append(
    connection: sqlite3.Connection,
    kind: str,
    budget: int,
    facts: dict[str, Any],
    *,
    entry: int | None = None,
    cost: tuple[int, int] = (0, 0),
    totals: Totals = Totals(),  # noqa: B008  immutable
    draw: bytes | None = None,
) -> Event:
    """One event more, with who wrote it and when, at the end of the chain."""
    last, previous = connection.execute("SELECT number, hash FROM head").fetchone()
    number, told = last + 1, canonical(plain({**facts, **origin()}))
    event = Event(number, kind, number if kind == BUDGET else budget, entry, now(), *cost, *totals, draw, told, b"")
    event = event._replace(hash=link(previous, event))
    connection.execute(f"INSERT INTO events ({COLUMNS}) VALUES ({', '.join('?' * len(event))})", event)
    connection.execute("UPDATE head SET number = ?, hash = ?", (number, event.hash))
    connection.execute("UPDATE budgets SET number = ?, hash = ? WHERE id = ?", (number, event.hash, event.budget))
    return event


def found(connection: sqlite3.Connection, population: str, limit: Filter) -> Event:
    """A new budget."""
    facts = {
        "population": population,
        "rule": limit.rule,
        "limit": limit.facts(),
        "neighbors": limit.neighbors.kind,
        "records": limit.neighbors.records,
        "limits": pair(limit_amounts(limit.limits)),
    }
    event = append(connection, BUDGET, 0, facts)
    row = (event.number, population, event.number, event.hash)
    connection.execute("INSERT INTO budgets (id, population, number, hash) VALUES (?, ?, ?, ?)", row)
    return event


def fill_new(connection: sqlite3.Connection, *, shared: bool) -> None:
    """The tables of a new store and its first event; leaves a transaction open."""
    connection.executescript(f"BEGIN; {SCHEMA} COMMIT;")
    connection.execute("BEGIN")
    connection.execute("INSERT INTO head VALUES (1, 0, ?)", (BEGINNING,))
    append(connection, STORE, 0, {"store": os.urandom(16).hex(), "shared": "group" if shared else "nobody"})


def pair(amounts: Amounts) -> tuple[int, int]:
    """(the first amount, delta or 0): every rule adds up one number, and some a delta beside it."""
    main, *rest = amounts.values()
    return main, rest[0] if rest else 0


def write_new(path: Path, fill: Callable[[sqlite3.Connection], None], *, mode: int) -> None:
    """A new file made by `fill`; written atomically, and never over another file."""
    if not path.parent.is_dir():
        raise InvalidInput(f"there is no folder for {path.name}; create it first")
    if exists(path):
        raise InvalidInput(f"{path.name} already exists and is not overwritten; choose another name")
    if os.path.lexists(f"{path}-journal"):
        raise InvalidInput(
            f"{path.name}-journal is left over from another store of that name, and would be written into a new one; "
            "restore that store, or remove the leftover"
        )
    draft = path.with_name(f".privamp.{os.urandom(8).hex()}.draft")
    try:
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode))
        os.chmod(draft, mode)
        with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous = EXTRA")
            fill(connection)
        os.link(draft, path)
        draft.unlink()
        sync_folder(path.parent)
    except FileExistsError:
        raise InvalidInput(f"{path.name} already exists and is not overwritten; choose another name") from None
    except OSError as error:
        raise InvalidInput(f"{path.name} cannot be written there ({error.strerror}); choose another folder") from None
    except sqlite3.Error as error:
        raise InvalidInput(f"{path.name} cannot be written there ({error}); choose another folder") from None
    finally:
        for leftover in (draft, Path(f"{draft}-journal")):
            leftover.unlink(missing_ok=True)
