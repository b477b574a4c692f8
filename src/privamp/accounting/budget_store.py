"""What is in a budget store: events that form a chain (budget_chain.py), and two small tables that point into it.

Events are only ever added. `head` names the newest one and `budgets` the newest one of each budget, with their hashes,
so that a reader of a large store looks at few rows and still notices a flipped bit in any of them. Before its first
entry a process goes through the whole chain once; after that, through what others added. A process also remembers the
newest event it saw: a store that has forgotten it is an older copy, and is refused.
"""

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InvalidInput, PrivampError
from .amounts import Amounts
from .budget_chain import (
    ANSWERED,
    BEGINNING,
    BUDGET,
    CANCELLED,
    COLUMNS,
    FAILED,
    NEXT,
    RELEASED,
    RESERVED,
    SPENT,
    STORE,
    Broken,
    Event,
    Replay,
    Totals,
    after,
    check_links,
    read_event,
)
from .budget_file import StoreFile
from .budget_gate import GATE
from .budget_rows import (
    APPLICATION,
    VERSION,
    append,
    charged,
    entry_state,
    event_at,
    expected_structure,
    fill_new,
    found,
    founding,
    hash_before,
    last_release,
    limit_of,
    newest,
    pair,
    releases_of,
    structure,
    write_new,
)
from .filters import Filter

_BATCH = 10_000
_NO_WAY = {
    SPENT: "entry {entry} is already {state}, so it pays for nothing more; reserve again",
    ANSWERED: "entry {entry} is already {state} and cannot be answered; reserve again",
    FAILED: "entry {entry} is already {state} and cannot fail; reserve again",
    CANCELLED: "entry {entry} is {state}: only a reservation whose noise was not drawn can be cancelled",
}


@dataclass(frozen=True, slots=True)
class Head:
    """The newest event of a store: its number, and the hash that covers all events up to it."""

    store: str
    number: int
    hash: str


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of checking a whole chain."""

    head: Head
    totals: dict[str, Totals]  # by population
    clock_went_back: int
    seconds: float


@dataclass(slots=True)
class _Known:
    """What this process knows of a store: the newest event it saw, and which process went through all of them.

    Number and hash are one value: a thread that has spent remembers them while the next one reads them.
    """

    newest: tuple[int, bytes] = (0, BEGINNING)
    verified_by: int = 0


_KNOWN: dict[tuple[str, int, int], _Known] = {}


class Store:
    """One file. With `read_only` it needs no right to write."""

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        self.read_only = read_only
        self._file = StoreFile(path)
        with self._file.reading() as connection:
            self._check_kind(connection)
            beginning = event_at(connection, 1)
            if beginning.kind != STORE or "store" not in beginning.told:
                raise Broken("entry 1 is not the beginning of a store")
            self.id = str(beginning.told["store"])
            self.shared = beginning.told.get("shared") == "group"
            self._catch_up(connection)
        if not read_only:
            self._file.check_rights(shared=self.shared)

    @classmethod
    def make(cls, path: str | os.PathLike[str], population: str, limit: Filter, *, shared: bool = False) -> "Store":
        """A new store with one budget; written atomically, and never over another file."""

        def fill(connection: sqlite3.Connection) -> None:
            fill_new(connection, shared=shared)
            found(connection, population, limit)
            connection.execute("COMMIT")

        with GATE.passed():
            write_new(Path(path), fill, mode=0o660 if shared else 0o600)
        return cls(path)

    @property
    def path(self) -> Path:
        """The store's file."""
        return self._file.path

    # -- budgets ------------------------------------------------------------------------------------------------

    def populations(self) -> list[str]:
        """The labels of the budgets in this file."""
        with self._file.reading() as connection:
            self._catch_up(connection)
            rows = connection.execute("SELECT id FROM budgets ORDER BY id").fetchall()
            return [founding(connection, number).told["population"] for (number,) in rows]

    def add_budget(self, population: str, limit: Filter) -> None:
        """One more population, with its own limit."""
        self._ready_to_write()
        with self._file.writing() as connection:
            self._catch_up(connection)
            if connection.execute("SELECT 1 FROM budgets WHERE population = ?", (population,)).fetchone():
                raise InvalidInput(
                    f"the store already has a budget for population {population!r}, which is not overwritten; choose "
                    "another label"
                )
            event = found(connection, population, limit)
        self._remember(event)

    def budget(self, population: str) -> tuple[int, Filter]:
        """The number and the limit of a population's budget."""
        with self._file.reading() as connection:
            self._catch_up(connection)
            row = connection.execute("SELECT id FROM budgets WHERE population = ?", (population,)).fetchone()
            event = None if row is None else founding(connection, row[0])
            if event is not None and event.told["population"] == population:
                return event.number, limit_of(event)
        known = ", ".join(map(repr, self.populations())) or "none"
        raise InvalidInput(f"the store has no budget for population {population!r}; it has {known}")

    # -- spending -----------------------------------------------------------------------------------------------

    def reserve(
        self, budget: int, limit: Filter, cost: Amounts, facts: dict[str, Any], draw: bytes | None, state: str
    ) -> int:
        """Add a cost to the total, on disk, or raise BudgetExceeded; returns the entry's number."""
        self._ready_to_write()
        with self._file.writing() as connection:
            self._catch_up(connection)
            if draw is not None and charged(connection, budget, draw) is not None:
                raise InvalidInput(
                    "this sample was already charged, here or in another run, and releases from one draw do not "
                    "simply add up; draw with a fresh key or a fresh round"
                )
            before = newest(connection, budget).totals
            limit.check(dict(zip(cost, before[:2], strict=False)), cost, "wait for a new budget, or add more noise")
            totals = after(before, state, None, *pair(cost))
            event = append(connection, state, budget, facts, cost=pair(cost), totals=totals, draw=draw)
        self._remember(event)
        return event.number

    def change(self, budget: int, entry: int, state: str, facts: dict[str, Any]) -> None:
        """Change the state of an entry. Only `cancelled` returns its cost, and only before noise is drawn."""
        self._ready_to_write()
        with self._file.writing() as connection:
            self._catch_up(connection)
            opened, before = entry_state(connection, budget, entry)
            if state not in NEXT.get(before, ()):
                raise InvalidInput(_NO_WAY[state].format(entry=entry, state=before))
            cost = (opened.main, opened.delta)
            totals = after(newest(connection, budget).totals, state, before, *cost)
            event = append(connection, state, budget, facts, entry=entry, cost=cost, totals=totals)
        self._remember(event)

    # -- samples ------------------------------------------------------------------------------------------------

    def sample(self, budget: int, draw: bytes) -> tuple[Event, list[Event]] | None:
        """The entry that pays for a sample, and what was released from it; None when it was not charged yet."""
        with self._file.reading() as connection:
            self._catch_up(connection)
            paid = charged(connection, budget, draw)
            return None if paid is None else (paid, releases_of(connection, paid.number))

    def release(self, budget: int, entry: int, facts: Callable[[int, Amounts], dict[str, Any]]) -> None:
        """Record another release from a sample; `facts` is called with how many there were and what they used, and may
        refuse."""
        self._ready_to_write()
        with self._file.writing() as connection:
            self._catch_up(connection)
            opened, state = entry_state(connection, budget, entry)
            if state == CANCELLED:
                raise InvalidInput(
                    "the charge of this sample was cancelled, so it pays for nothing; draw a fresh sample"
                )
            before = last_release(connection, entry)
            told = facts(*((0, {}) if before is None else (before.told["release"], before.told["used"])))
            totals = newest(connection, budget).totals
            if state == RESERVED:
                cost = (opened.main, opened.delta)
                totals = after(totals, SPENT, RESERVED, *cost)
                append(connection, SPENT, budget, {}, entry=entry, cost=cost, totals=totals)
            event = append(connection, RELEASED, budget, told, entry=entry, totals=totals)
        self._remember(event)

    def answered(self, budget: int, entry: int) -> None:
        """Record the first answer from a sample; later ones change nothing."""
        with self._file.reading() as connection:
            self._catch_up(connection)
            state = entry_state(connection, budget, entry)[1]
        if state == SPENT:
            with contextlib.suppress(InvalidInput):  # another program was first
                self.change(budget, entry, ANSWERED, {})

    # -- looking ------------------------------------------------------------------------------------------------

    def totals(self, budget: int) -> Totals:
        """What was spent, and how much of it is without an answer yet."""
        with self._file.reading() as connection:
            self._catch_up(connection)
            return newest(connection, budget).totals

    def events(self, first: int = 1) -> Iterator[Event]:
        """Every event from a number on, oldest first, each bound to the next up to the head."""
        with self._file.reading() as connection:
            end, head = self._catch_up(connection)
            number, previous = first - 1, hash_before(connection, first)
        while number < end:
            with self._file.reading() as connection:  # not one long transaction: writers wait for readers
                rows = connection.execute(
                    f"SELECT {COLUMNS} FROM events WHERE number > ? AND number <= ? ORDER BY number LIMIT {_BATCH}",
                    (number, end),
                ).fetchall()
                batch = [read_event(row) for row in rows]
                number, previous = check_links(previous, batch, number)
                if not batch or (number == end and previous != head):
                    raise Broken(f"entry {number + 1} is missing")
            yield from batch

    def first_of_last(self, budget: int, count: int) -> int:
        """The number of the event that opened the oldest of a budget's newest `count` entries."""
        with self._file.reading() as connection:
            end, _ = self._catch_up(connection)
            rows = connection.execute(
                "SELECT number FROM events WHERE budget = ? AND entry IS NULL AND kind <> ? "
                "ORDER BY number DESC LIMIT ?",
                (budget, BUDGET, count),
            ).fetchall()
        return int(rows[-1][0]) if rows else end

    def head(self) -> Head:
        """The newest event, with which every later one is linked."""
        with self._file.reading() as connection:
            number, hash_ = self._catch_up(connection)
        return Head(self.id, number, hash_.hex())

    def has(self, head: Head) -> bool:
        """Whether this store, at some time, had this head."""
        with self._file.reading() as connection:
            self._catch_up(connection)
            row = connection.execute("SELECT hash FROM events WHERE number = ?", (head.number,)).fetchone()
        return head.store == self.id and row is not None and row[0].hex() == head.hash

    def verify(self) -> Checked:
        """Check everything: SQLite's pages and indexes, every hash, every total, every state."""
        begun, replay = time.perf_counter(), Replay()
        with self._file.reading() as connection:
            self._check_kind(connection)
            if connection.execute("PRAGMA integrity_check(1)").fetchall() != [("ok",)]:
                raise Broken("its pages are inconsistent")
        while not self._replayed(replay):
            pass
        self._known().verified_by = os.getpid()
        totals = {label: replay.totals[budget] for budget, label in replay.labels.items()}
        seconds = time.perf_counter() - begun
        return Checked(Head(self.id, replay.number, replay.hash.hex()), totals, replay.clock_went_back, seconds)

    def _replayed(self, replay: Replay) -> bool:
        """Replay some events more, in a transaction of its own so that writers need not wait; True at the head."""
        with self._file.reading() as connection:
            number, hash_ = self._catch_up(connection)
            rows = connection.execute(
                f"SELECT {COLUMNS} FROM events WHERE number > ? ORDER BY number LIMIT {_BATCH}", (replay.number,)
            ).fetchall()
            for row in rows:
                replay.feed(read_event(row))
            if rows and replay.number < number:
                return False
            if (replay.number, replay.hash, replay.store) != (number, hash_, self.id):
                raise Broken("its head is not its last entry")
            pointers = connection.execute("SELECT id, population, number, hash FROM budgets ORDER BY id").fetchall()
            if pointers != [(id_, label, *replay.last[id_]) for id_, label in sorted(replay.labels.items())]:
                raise Broken("its list of budgets is not that of its entries")
        return True

    def backup(self, target: str | os.PathLike[str]) -> Checked:
        """A copy of this moment under a new name, gone through as a whole."""
        with self._file.reading() as connection:
            self._catch_up(connection)
            write_new(Path(target), connection.backup, mode=0o660 if self.shared else 0o600)
        return Store(target, read_only=True).verify()

    # -- checks -------------------------------------------------------------------------------------------------

    def _ready_to_write(self) -> None:
        if self.read_only:
            raise InvalidInput("this budget was opened read-only, so it pays for nothing; open it for writing")
        self._file.check_rights(shared=self.shared)
        if self._known().verified_by != os.getpid():
            self.verify()

    def _check_kind(self, connection: sqlite3.Connection) -> None:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        name = self._file.name
        if application != APPLICATION:
            raise InvalidInput(f"{name} is not a privamp budget store; give another file, or create one")
        if version != VERSION:
            raise InvalidInput(
                f"{name} has version {version} of the budget store and this privamp reads {VERSION}; "
                + ("copy it with 'privamp budget migrate'" if version == 1 else "use the privamp that wrote it")
            )
        if connection.execute("PRAGMA journal_mode").fetchone()[0] != "delete":
            raise Broken("its journal is of the wrong kind")
        pages, size = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
        if pages * size != os.stat(self.path).st_size:
            raise Broken("its length has changed")
        if structure(connection) != expected_structure():
            raise Broken("its tables are not those of a store")

    def _known(self) -> _Known:
        device, inode = self._file.identity or (0, 0)
        return _KNOWN.setdefault((self.id, device, inode), _Known())

    def _catch_up(self, connection: sqlite3.Connection) -> tuple[int, bytes]:
        """The head, once it is known to follow from what this process saw last."""
        rows = connection.execute("SELECT number, hash FROM head").fetchall()
        if len(rows) != 1 or not isinstance(rows[0][0], int):
            raise Broken("it has no head")
        number, hash_ = rows[0]
        last = connection.execute("SELECT max(number) FROM events").fetchone()[0]
        if last != number or event_at(connection, number).hash != hash_:
            raise Broken("its head is not its last entry")
        known = self._known()
        seen, seen_hash = known.newest
        if seen and (seen > number or event_at(connection, seen).hash != seen_hash):
            raise PrivampError(
                f"{self._file.name} has lost entries that it had before: it was replaced by an older copy, and "
                "nothing was spent; restore the newest one"
            )
        if known.verified_by:
            added = connection.execute(f"SELECT {COLUMNS} FROM events WHERE number > ? ORDER BY number", (seen,))
            check_links(seen_hash, map(read_event, added), seen)
        known.newest = number, hash_
        return number, hash_

    def _remember(self, event: Event) -> None:
        known = self._known()
        if event.number > known.newest[0]:  # another thread may have been here in between
            known.newest = event.number, event.hash


__all__ = ["ANSWERED", "CANCELLED", "FAILED", "RESERVED", "SPENT", "Checked", "Head", "Store"]
