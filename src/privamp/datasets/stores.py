"""Budget stores for examples: a current one, and one in version 1 of the format."""

import json
import sqlite3
from pathlib import Path

_SCHEMA = """
PRAGMA application_id = 1886809456;
PRAGMA user_version = 1;
CREATE TABLE budgets (
    id INTEGER PRIMARY KEY, population TEXT NOT NULL UNIQUE, rule TEXT NOT NULL, facts TEXT NOT NULL,
    neighbors TEXT NOT NULL, records INTEGER NOT NULL, created TEXT NOT NULL, main_limit INTEGER NOT NULL,
    delta_limit INTEGER NOT NULL, main_spent INTEGER NOT NULL DEFAULT 0, delta_spent INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE entries (
    id INTEGER PRIMARY KEY, budget INTEGER NOT NULL REFERENCES budgets (id), time TEXT NOT NULL, note TEXT NOT NULL,
    main INTEGER NOT NULL, delta INTEGER NOT NULL, state TEXT NOT NULL, draw BLOB
) STRICT;
"""
STATES = ("answered", "reserved", "failed", "cancelled")


def study(path: Path) -> None:
    """Patients with epsilon 3: two answers paid for, and a reservation whose answer never came."""
    from ..accounting.budget import Budget
    from ..mechanisms.gaussian import Gaussian

    budget = Budget.create(path, population="patients", epsilon=3.0, delta=1e-6)
    for sigma, note in ((20.0, "mean age"), (10.0, "mean cost")):
        with budget.reserve(Gaussian(sigma), note=note):
            pass
    budget.reserve(Gaussian(5.0), note="interrupted")


def version_1(path: Path, *, spent: int | None = None) -> None:
    """Limits of 3 and 1; entries of .1 in every state; `spent` states another total."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(_SCHEMA)
    for number, (label, limit) in enumerate((("patients", 3), ("nurses", 1)), 1):
        facts = json.dumps({"epsilon": float(limit)})
        row = (number, label, "pure", facts, "add-remove", 1, "2026-01-01", limit * 10**15)
        connection.execute("INSERT INTO budgets VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0)", row)
    for state in STATES:
        draw = b"d" * 16 if state == "answered" else None
        entry = ("2026-01-02", f"was {state}", 10**14, state, draw)
        connection.execute(
            "INSERT INTO entries (budget, time, note, main, delta, state, draw) VALUES (1, ?, ?, ?, 0, ?, ?)", entry
        )
    connection.execute("UPDATE budgets SET main_spent = ? WHERE id = 1", (3 * 10**14 if spent is None else spent,))
    connection.close()
