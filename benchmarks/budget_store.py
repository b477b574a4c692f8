"""How many durable spends a second a budget store takes, and how long a store of a million entries takes to open.

    python benchmarks/budget_store.py [entries]

Every spend is on disk before it is acknowledged, so the yardstick is the same run's rate of small appends each
followed by fdatasync; the store's figure is a ratio to it. With several processes one store is shared by all. A large
store is opened by new processes, for reading (wanted: 0.2 s at most) and for its first spend, which goes through the
whole chain; the yardstick is the time that SHA-256 takes for as many bytes.

A spend is one transaction of SQLite with a rollback journal, which forces five writes (journal twice, its folder, the
store, the folder again); so the same transaction without privamp is shown beside it. Releases from a sample with a
limit are timed after 1,500 others, against those of a fresh sample.
"""

import hashlib
import multiprocessing
import os
import sqlite3
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np

from privamp import Budget, Key, Laplace, Poisson, Population, PureDP, PureFilter
from privamp.accounting.budget_chain import ANSWERED, COLUMNS, Event, link

SPENDS = 400
PIECE = PureDP(0.001)
WANTED = 500  # a second
WANTED_OPEN = 0.2  # seconds


def rate(work, n):
    """Times a second; the best of three runs."""
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return n / best


def disk(folder):
    """Appends of 4 kB, each forced to the disk."""
    page = bytes(4096)

    def work():
        handle = os.open(folder / "appends", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        for _ in range(SPENDS):
            os.write(handle, page)
            os.fdatasync(handle)
        os.close(handle)

    return rate(work, SPENDS)


def bare(folder):
    """Transactions as a spend makes them, with nothing of privamp around them."""
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    connection.execute("CREATE TABLE events (number INTEGER PRIMARY KEY, facts TEXT)")
    connection.execute("CREATE TABLE head (one INTEGER PRIMARY KEY, number INTEGER)")
    connection.execute("INSERT INTO head VALUES (1, 0)")
    connection.close()

    def work():
        for _ in range(SPENDS):
            connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("INSERT INTO events (facts) VALUES (?)", ("x" * 300,))
            connection.execute("UPDATE head SET number = number + 1")
            connection.execute("COMMIT")
            connection.close()

    return rate(work, SPENDS)


def late_releases(folder, before=1500, times=60):
    """The time of a release after many, over that of one of the first, from samples with a limit in one store."""
    budget = Budget.create(folder / "samples.db", population="people", epsilon=1000.0)

    def made():
        sample = Poisson(0.5).draw(Population(50, "people"), Key.generate())
        return sample.limit(PureFilter(5.0)).charge(budget)

    def one(sample):
        start = time.perf_counter()
        sample.release(Laplace(1e4), np.zeros(50))
        return time.perf_counter() - start

    old, new = made(), made()
    for _ in range(before):
        one(old)
    pairs = [(one(new), one(old)) for _ in range(times)]
    return median(late for _, late in pairs) / median(early for early, _ in pairs)


def spend(path, n):
    """One program's spends."""
    budget = Budget.open(path)
    for _ in range(n):
        budget.spend(PIECE)


def reserve(path, n):
    """Reserve, draw, commit."""
    budget = Budget.open(path)
    for _ in range(n):
        with budget.reserve(PIECE):
            pass


def shared(path, processes):
    """All of them together."""
    workers = [multiprocessing.Process(target=spend, args=(path, SPENDS // processes)) for _ in range(processes)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def grow(path, entries):
    """Append entries as spend() does, but in one transaction."""
    connection = sqlite3.connect(path, isolation_level=None)
    (last, previous), (budget,) = (
        connection.execute(f"SELECT {what}").fetchone() for what in ("number, hash FROM head", "id FROM budgets")
    )
    facts = Budget.open(path)._store.events().__next__().facts

    def events():
        nonlocal last, previous
        for n in range(1, entries + 1):
            last += 1
            spent = n * 10**9
            event = Event(
                last,
                ANSWERED,
                budget,
                None,
                "2026-01-01T00:00:00.000+00:00",
                10**9,
                0,
                spent,
                0,
                0,
                0,
                None,
                facts,
                b"",
            )
            previous = link(previous, event)
            yield event._replace(hash=previous)

    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("BEGIN")
    connection.executemany(f"INSERT INTO events ({COLUMNS}) VALUES ({', '.join('?' * len(Event._fields))})", events())
    connection.execute("UPDATE head SET number = ?, hash = ?", (last, previous))
    connection.execute("UPDATE budgets SET number = ?, hash = ?", (last, previous))
    connection.execute("COMMIT")
    connection.close()


def in_new_process(work, path):
    """Seconds that work(path) takes in a process that knows nothing of the store."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, (path,))


def seconds_to_read(path):
    begun = time.perf_counter()
    Budget.open(path, read_only=True).status()
    return time.perf_counter() - begun


def seconds_to_spend(path):
    budget = Budget.open(path)
    begun = time.perf_counter()
    budget.spend(PIECE)
    return time.perf_counter() - begun


def seconds_to_hash(path):
    content = path.read_bytes()
    begun = time.perf_counter()
    hashlib.sha256(content).digest()
    return time.perf_counter() - begun


def large(folder, entries):
    """Open a store of many entries; True when reading is quick enough."""
    path = folder / "large.db"
    Budget.create(path, population="people", epsilon=1000.0)
    grow(path, entries)
    size = path.stat().st_size / 2**20
    hashing = seconds_to_hash(path)
    reading, spending = (in_new_process(work, path) for work in (seconds_to_read, seconds_to_spend))
    print(f"{entries} entries, {size:.0f} MiB: SHA-256 of the file takes {hashing:.2f} s   baseline")
    print(f"{'open and read':28} {reading * 1000:8.1f} ms         {reading / hashing:5.3f} x baseline")
    print(f"{'verify all, first spend':28} {spending:8.2f} s          {spending / hashing:5.1f} x baseline")
    print(f"open {entries} entries for reading in {WANTED_OPEN} s: {'yes' if reading <= WANTED_OPEN else 'NO'}")
    return reading <= WANTED_OPEN


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        Budget.create(folder / "study.db", population="people", epsilon=1000.0)
        path = folder / "study.db"
        plain = disk(folder)
        rows = [
            ("a bare transaction", bare(folder)),
            ("spend", rate(lambda: spend(path, SPENDS), SPENDS)),
            ("reserve, then commit", rate(lambda: reserve(path, SPENDS), SPENDS)),
            ("spend, 2 processes", rate(lambda: shared(path, 2), SPENDS)),
            ("spend, 8 processes", rate(lambda: shared(path, 8), SPENDS)),
        ]
        print(f"{'appends forced to the disk':28} {plain:8.0f} a second   baseline")
        for what, found in rows:
            print(f"{what:28} {found:8.0f} a second   {found / plain:5.2f} x baseline")
        counted = round(Budget.open(path).status().spent["epsilon"] / 0.001)
        spent = 3 * (len(rows) - 1) * SPENDS
        print(f"{'spends counted':28} {counted:8d} of {spent}")
        enough = counted == spent and rows[1][1] >= WANTED
        print(f"{WANTED} durable spends a second: {'reached' if enough else 'NOT reached'}")
        print(f"{'release 1,500 of a sample':28} {late_releases(folder):8.2f} x one of the first")
        quick = large(folder, int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
    return 0 if enough and quick else 1


if __name__ == "__main__":
    sys.exit(main())
