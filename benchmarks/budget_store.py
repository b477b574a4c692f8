"""How many durable spends a second a budget store takes, next to what the disk itself can do.

    python benchmarks/budget_store.py

Every spend is on disk before it is acknowledged, so the yardstick is the same run's rate of small appends each
followed by fdatasync; the store's figure is a ratio to it. With several processes one store is shared by all.
"""

import multiprocessing
import os
import sys
import tempfile
import time
from pathlib import Path

from privamp import Budget, PureDP

SPENDS = 1_000
PIECE = PureDP(0.001)
WANTED = 500  # a second


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


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        Budget.create(folder / "study.db", population="people", epsilon=1000.0)
        path = folder / "study.db"
        plain = disk(folder)
        rows = [
            ("spend", rate(lambda: spend(path, SPENDS), SPENDS)),
            ("reserve, then commit", rate(lambda: reserve(path, SPENDS), SPENDS)),
            ("spend, 2 processes", rate(lambda: shared(path, 2), SPENDS)),
            ("spend, 8 processes", rate(lambda: shared(path, 8), SPENDS)),
        ]
        print(f"{'appends forced to the disk':28} {plain:8.0f} a second   baseline")
        for what, found in rows:
            print(f"{what:28} {found:8.0f} a second   {found / plain:5.2f} x baseline")
        counted = round(Budget.open(path).status().spent["epsilon"] / 0.001)
        spent = 3 * len(rows) * SPENDS
        print(f"{'spends counted':28} {counted:8d} of {spent}")
        enough = counted == spent and rows[0][1] >= WANTED
        print(f"{WANTED} durable spends a second: {'reached' if enough else 'NOT reached'}")
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main())
