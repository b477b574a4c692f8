"""The file behind a budget: SQLite, so that many processes share it and a kill at any point loses nothing.

A reservation is one transaction that holds the write lock from reading the total to writing it (BEGIN IMMEDIATE),
and it is on disk before it is acknowledged (write-ahead log, synchronous=FULL). Marks made later (answered,
cancelled, failed) may be lost with the power: the cost then still counts. Amounts are whole numbers (amounts.py).
"""

import contextlib
import json
import os
import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

from ..core.neighbors import Neighbors
from ..errors import InvalidInput, PrivampError
from .amounts import Amounts, limit_amounts, number_of
from .filters import Filter, added, stored_filter

RESERVED, ANSWERED, FAILED, CANCELLED = "reserved", "answered", "failed", "cancelled"

_APPLICATION = 0x70766D70  # "pvmp", in the file's header
_VERSION = 1
_PATIENCE = 60.0  # seconds to wait for other processes
_DAMAGED = "{name} is not a privamp budget store, or it is damaged; name another file, or restore a copy"
_SCHEMA = f"""
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {_VERSION};
CREATE TABLE budgets (
    id INTEGER PRIMARY KEY,
    population TEXT NOT NULL UNIQUE,
    rule TEXT NOT NULL,
    facts TEXT NOT NULL,
    neighbors TEXT NOT NULL,
    records INTEGER NOT NULL,
    created TEXT NOT NULL,
    main_limit INTEGER NOT NULL,
    delta_limit INTEGER NOT NULL,
    main_spent INTEGER NOT NULL DEFAULT 0 CHECK (main_spent BETWEEN 0 AND main_limit),
    delta_spent INTEGER NOT NULL DEFAULT 0 CHECK (delta_spent BETWEEN 0 AND delta_limit)
) STRICT;
CREATE TABLE entries (
    id INTEGER PRIMARY KEY,
    budget INTEGER NOT NULL REFERENCES budgets (id),
    time TEXT NOT NULL,
    note TEXT NOT NULL,
    main INTEGER NOT NULL CHECK (main >= 0),
    delta INTEGER NOT NULL CHECK (delta >= 0),
    state TEXT NOT NULL CHECK (state IN ('reserved', 'answered', 'failed', 'cancelled')),
    draw BLOB
) STRICT;
CREATE UNIQUE INDEX one_charge_per_draw ON entries (budget, draw) WHERE draw IS NOT NULL;
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the log."""

    number: int
    time: str
    note: str
    cost: dict[str, float]
    state: str


class Store:
    """One file. Every thread of every process has its own connection, also after a fork."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(os.path.abspath(path))
        self._own = threading.local()
        if not self.path.is_file():
            raise InvalidInput(f"there is no budget store at {self.path.name}; create one first")
        with self._speaking():
            self._check(self._connection())

    @classmethod
    def make(cls, path: str | os.PathLike[str], population: str, limit: Filter) -> "Store":
        """A new store with one budget; complete or not there at all, and never over another file."""
        final = Path(path)
        if not final.parent.is_dir():
            raise InvalidInput(f"there is no folder for {final.name}; make the folder first")
        draft = final.with_name(f".{final.name}.{os.getpid()}.{os.urandom(4).hex()}")
        try:
            with _explained(final):
                connection = sqlite3.connect(draft, isolation_level=None)
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
                connection.executescript(f"BEGIN; {_SCHEMA} COMMIT;")
                _insert(connection, population, limit)
                connection.close()
                os.link(draft, final)
                _sync_folder(final.parent)
        except FileExistsError:
            raise InvalidInput(f"{final.name} exists already and is not overwritten; take another name") from None
        except OSError as error:
            raise InvalidInput(
                f"{final.name} cannot be written there ({error.strerror}); take another folder"
            ) from None
        finally:
            for leftover in (draft, Path(f"{draft}-wal"), Path(f"{draft}-shm")):
                leftover.unlink(missing_ok=True)
        return cls(final)

    # -- budgets ------------------------------------------------------------------------------------------------

    def populations(self) -> list[str]:
        """The labels of the budgets in this file."""
        with self._speaking():
            return [row[0] for row in self._connection().execute("SELECT population FROM budgets ORDER BY id")]

    def add_budget(self, population: str, limit: Filter) -> None:
        """One more population, with its own limit."""
        with self._writing() as connection:
            if connection.execute("SELECT 1 FROM budgets WHERE population = ?", (population,)).fetchone():
                raise InvalidInput(
                    f"the store has a budget for population {population!r} already and it is not overwritten; "
                    "take another label"
                )
            _insert(connection, population, limit)

    def budget(self, population: str) -> tuple[int, Filter]:
        """The number and the limit of a population's budget."""
        with self._speaking():
            row = (
                self._connection()
                .execute("SELECT id, rule, facts, neighbors, records FROM budgets WHERE population = ?", (population,))
                .fetchone()
            )
        if row is None:
            known = ", ".join(map(repr, self.populations())) or "none"
            raise InvalidInput(f"the store has no budget for population {population!r}; it has {known}")
        relation = Neighbors.parse(row[3]).for_person(row[4])
        return row[0], stored_filter(row[1], json.loads(row[2]), relation)

    # -- spending -----------------------------------------------------------------------------------------------

    def reserve(self, budget: int, limit: Filter, cost: Amounts, note: str, draw: bytes | None, state: str) -> int:
        """Add a cost to the total, on disk, or raise BudgetExceeded; returns the entry's number."""
        names = tuple(limit.limits)
        with self._writing() as connection:
            if (
                draw is not None
                and connection.execute("SELECT 1 FROM entries WHERE budget = ? AND draw = ?", (budget, draw)).fetchone()
            ):
                raise InvalidInput(
                    "this very sample was charged before, here or in another run, and what is asked of one draw "
                    "does not simply add up; draw with a fresh key or a fresh round"
                )
            spent = dict(zip(names, self._totals(connection, budget), strict=False))
            limit.check(spent, cost, "wait for a new budget, or add more noise")
            main, delta = _pair(added(spent, cost))
            connection.execute("UPDATE budgets SET main_spent = ?, delta_spent = ? WHERE id = ?", (main, delta, budget))
            cursor = connection.execute(
                "INSERT INTO entries (budget, time, note, main, delta, state, draw) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (budget, _now(), note, *_pair(cost), state, draw),
            )
        return int(cursor.lastrowid or 0)

    def settle(self, budget: int, entry: int, state: str) -> None:
        """Say how a reservation ended. Only `cancelled` gives its cost back."""
        with self._writing(durable=False) as connection:
            row = connection.execute(
                "SELECT main, delta FROM entries WHERE id = ? AND state = ?", (entry, RESERVED)
            ).fetchone()
            if row is None:
                return
            connection.execute("UPDATE entries SET state = ? WHERE id = ?", (state, entry))
            if state == CANCELLED:
                connection.execute("UPDATE entries SET draw = NULL WHERE id = ?", (entry,))
                connection.execute(
                    "UPDATE budgets SET main_spent = main_spent - ?, delta_spent = delta_spent - ? WHERE id = ?",
                    (*row, budget),
                )

    def totals(self, budget: int, names: tuple[str, ...]) -> tuple[Amounts, Amounts]:
        """What was spent, and how much of it is reserved without an answer yet."""
        with self._speaking():
            connection = self._connection()
            connection.execute("BEGIN")  # both numbers from one moment
            try:
                spent = self._totals(connection, budget)
                unanswered = connection.execute(
                    "SELECT coalesce(sum(main), 0), coalesce(sum(delta), 0) FROM entries "
                    "WHERE budget = ? AND state = ?",
                    (budget, RESERVED),
                ).fetchone()
            finally:
                connection.execute("COMMIT")
        return dict(zip(names, spent, strict=False)), dict(zip(names, unanswered, strict=False))

    def entries(self, budget: int, names: tuple[str, ...], last: int | None = None) -> list[Entry]:
        """The log, oldest first; `last` keeps the newest few."""
        with self._speaking():
            rows = self._connection().execute(
                "SELECT id, time, note, main, delta, state FROM entries WHERE budget = ? ORDER BY id DESC LIMIT ?",
                (budget, -1 if last is None else last),
            )
            found = [
                Entry(number, time, note, _numbers(names, (main, delta)), state)
                for number, time, note, main, delta, state in rows
            ]
        return found[::-1]

    @staticmethod
    def _totals(connection: sqlite3.Connection, budget: int) -> tuple[int, int]:
        row: tuple[int, int] = connection.execute(
            "SELECT main_spent, delta_spent FROM budgets WHERE id = ?", (budget,)
        ).fetchone()
        return row

    # -- connections --------------------------------------------------------------------------------------------

    def _connection(self) -> sqlite3.Connection:
        held: _Held | None = getattr(self._own, "held", None)
        if held is None or held.process != os.getpid():
            held = self._own.held = _Held(self.path)
        return held.connection

    def _check(self, connection: sqlite3.Connection) -> None:
        """Our own file, undamaged, with totals that are the sums of their entries."""
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if application != _APPLICATION:
            raise InvalidInput(f"{self.path.name} is not a privamp budget store; name another file, or create one")
        if version != _VERSION:
            raise InvalidInput(
                f"{self.path.name} has version {version} of the budget store and this privamp reads {_VERSION}; "
                "use the privamp that wrote it"
            )
        whole = connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok"
        wrong = connection.execute(
            "SELECT 1 FROM budgets b WHERE (main_spent, delta_spent) IS NOT (SELECT coalesce(sum(main), 0), "
            "coalesce(sum(delta), 0) FROM entries e WHERE e.budget = b.id AND e.state <> 'cancelled') LIMIT 1"
        ).fetchone()
        if not whole or wrong:
            raise InvalidInput(f"{self.path.name} is damaged and is not used; restore the newest copy of it")

    @contextlib.contextmanager
    def _speaking(self) -> Iterator[None]:
        with _explained(self.path):
            yield

    @contextlib.contextmanager
    def _writing(self, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """A transaction that holds the write lock from its start; undone as a whole when anything fails."""
        with self._speaking():
            connection = self._connection()
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise


class _Held:
    """The connection of one thread in one process; closed with it."""

    _inherited: ClassVar[list[sqlite3.Connection]] = []  # SQLite forbids touching, even closing, one across a fork
    _process_now = staticmethod(os.getpid)  # at hand also while the interpreter goes down

    def __init__(self, path: Path) -> None:
        self.process = os.getpid()
        self.connection = sqlite3.connect(
            f"file:{quote(str(path))}?mode=rw",
            uri=True,
            timeout=_PATIENCE,
            isolation_level=None,
            check_same_thread=False,  # a thread's connection may be closed after the thread is gone
        )
        self.connection.execute("PRAGMA foreign_keys = ON")
        self.connection.execute("PRAGMA fullfsync = ON")  # macOS: past the drive's cache; elsewhere nothing

    def __del__(self) -> None:
        connection = getattr(self, "connection", None)
        if connection is None:
            return
        if self.process == self._process_now():
            connection.close()
        else:
            self._inherited.append(connection)


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """SQLite's errors as one sentence."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if "locked" in str(error) or "busy" in str(error):
            raise PrivampError(
                f"{path.name} was busy for {_PATIENCE:.0f} seconds, so nothing was spent; try again"
            ) from None
        if "format" in str(error):
            raise InvalidInput(_DAMAGED.format(name=path.name)) from None
        raise PrivampError(
            f"{path.name} could not be read or written ({error}), so nothing was spent; check the disk and the rights"
        ) from None
    except (sqlite3.DatabaseError, UnicodeDecodeError):  # a broken schema may name what is no text
        raise InvalidInput(_DAMAGED.format(name=path.name)) from None


def _insert(connection: sqlite3.Connection, population: str, limit: Filter) -> None:
    """The row of a new budget."""
    relation, limits = limit.neighbors, _pair(limit_amounts(limit.limits))
    connection.execute(
        "INSERT INTO budgets (population, rule, facts, neighbors, records, created, main_limit, delta_limit) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (population, limit.rule, json.dumps(limit.facts()), relation.kind, relation.records, _now(), *limits),
    )


def _pair(amounts: Amounts) -> tuple[int, int]:
    """(the first amount, delta or 0): every rule adds up one number, and basic a delta beside it."""
    main, *rest = amounts.values()
    return main, rest[0] if rest else 0


def _numbers(names: tuple[str, ...], units: tuple[int, int]) -> dict[str, float]:
    return {name: number_of(name, n) for name, n in zip(names, units, strict=False)}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _sync_folder(folder: Path) -> None:
    """Make the new name itself durable, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
