"""Processes that fork while a budget is open: the limit holds whoever opened the store and whoever outlives whom."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings

import pytest

from privamp import Budget, BudgetExceeded, PrivampError, PureDP

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

# A worker that outlives the program which opened the store and forked it. It spends what it is told on stdin.
OPENER = """
import os, sys
store = open_store(sys.argv[1])
if os.fork():
    os._exit(0)
for line in sys.stdin:
    print("granted" if spend(store, int(line)) else "refused", flush=True)
"""

PRIVAMP = """
from privamp import Budget, BudgetExceeded, PureDP

def open_store(path):
    budget = Budget.open(path)
    budget.status()
    return budget

def spend(budget, units):
    try:
        budget.spend(PureDP(float(units)))
    except BudgetExceeded:
        return False
    return True
"""

# The broken twin: a total in a write-ahead log, with a connection that is kept open across the fork and a new one made
# in the child. The child believes that it holds the locks of its parent.
HELD_CONNECTION = """
import os, sqlite3

class Held:
    def __init__(self, path):
        self.path, self.open = path, {}

    def connection(self):
        if os.getpid() not in self.open:
            self.open[os.getpid()] = sqlite3.connect(self.path, isolation_level=None, timeout=10)
        return self.open[os.getpid()]

def open_store(path):
    store = Held(path)
    store.connection().execute("SELECT spent FROM total").fetchone()
    return store

def spend(store, units):
    connection = store.connection()
    connection.execute("BEGIN IMMEDIATE")
    spent = connection.execute("SELECT spent FROM total").fetchone()[0]
    if spent + units > 3:
        connection.execute("ROLLBACK")
        return False
    connection.execute("UPDATE total SET spent = spent + ?", (units,))
    connection.execute("COMMIT")
    return True
"""
LOOK = "import sys; store = open_store(sys.argv[1]); getattr(store, 'connection', lambda: store)()"
SPEND = "import sys; sys.exit(0 if spend(open_store(sys.argv[1]), int(sys.argv[2])) else 3)"


def acknowledged(kind, path):
    """The opener forks and exits; its worker spends 1; a program looks; the worker spends 2; a program spends 2."""

    def program(text, *more):
        return subprocess.run([sys.executable, "-c", textwrap.dedent(kind + text), path, *more], timeout=60).returncode

    opener = subprocess.Popen(
        [sys.executable, "-c", kind + OPENER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert opener.wait(60) == 0  # the worker lives on, with both pipes

    def worker(units):
        opener.stdin.write(f"{units}\n")
        opener.stdin.flush()
        return units if opener.stdout.readline() == "granted\n" else 0

    granted = worker(1)
    assert program(LOOK) == 0
    granted += worker(2)
    granted += 2 if program(SPEND, "2") == 0 else 0
    opener.stdin.close()
    opener.stdout.close()
    return granted


def test_a_worker_that_outlives_the_opener_cannot_pass_the_limit(tmp_path):
    path = tmp_path / "study.db"
    Budget.create(path, population="people", epsilon=3.0)
    assert acknowledged(PRIVAMP, str(path)) == 3
    assert Budget.open(path).status().spent == {"epsilon": 3.0}


def test_a_connection_kept_across_a_fork_is_caught(tmp_path):
    """Negative control: the same five steps on a store that holds its connection."""
    import sqlite3

    path = str(tmp_path / "twin.db")
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE total AS SELECT 0 AS spent")
    connection.close()
    assert acknowledged(HELD_CONNECTION, path) > 3


PIECE = PureDP(0.001)


def spend_some(path, times):
    """What a worker of a pool does; module level, so that spawned processes find it."""
    budget, granted = Budget.open(path), 0
    for _ in range(times):
        try:
            budget.spend(PIECE)
            granted += 1
        except BudgetExceeded:
            break
    return granted


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_pools_of_every_kind(tmp_path, method):
    path = tmp_path / "study.db"
    budget = Budget.create(path, population="people", epsilon=0.05)
    budget.spend(PIECE)  # the parent's store is in use
    code = f"""
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
sys.path.insert(0, {os.path.dirname(__file__)!r})
from test_budget_forks import spend_some
from privamp import Budget, PureDP
if __name__ == "__main__":
    Budget.open({str(path)!r}).spend(PureDP(0.001))
    with ProcessPoolExecutor(2, get_context({method!r})) as pool:
        print(sum(pool.map(spend_some, [{str(path)!r}] * 4, [20] * 4)))
"""
    script = tmp_path / "program.py"
    script.write_text(code)
    run = subprocess.run(
        [sys.executable, "-W", "ignore", script], capture_output=True, text=True, timeout=120, check=True
    )
    assert int(run.stdout) == 48
    assert budget.status().left == {"epsilon": 0.0}
    assert len(Budget.open(path).log()) == 50


def forked(work):
    """Process id of a child that exits with work()'s code."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12: fork with threads, meant here
        child = os.fork()
    if child == 0:
        code = 1
        try:
            code = work()
        finally:
            os._exit(code)
    return child


def exit_code(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_forks_while_other_threads_spend(tmp_path):
    """A fork waits until no thread is inside a transaction; children and threads share what is there."""
    path = tmp_path / "study.db"
    budget = Budget.create(path, population="people", epsilon=4_000.0)  # more than threads can spend meanwhile
    granted, stop = [0, 0], threading.Event()

    def spend(which):
        while not stop.is_set():
            budget.spend(PIECE)
            granted[which] += 1

    threads = [threading.Thread(target=spend, args=(which,)) for which in range(2)]
    for thread in threads:
        thread.start()
    children = []
    for _ in range(12):
        children.append(forked(lambda: spend_some(path, 1) + spend_through(budget) - 2))
        time.sleep(0.01)
    stop.set()
    for thread in threads:
        thread.join()
    assert [exit_code(child) for child in children] == [0] * 12
    assert sum(granted) > 0
    assert len(Budget.open(path).log()) == sum(granted) + 24
    assert Budget.open(path).verify().totals["people"].main_spent == (sum(granted) + 24) * 10**12


def spend_through(budget):
    """Through an object that was made before the fork."""
    budget.spend(PIECE)
    return 1


def test_workers_that_a_master_forks_again_and_again(tmp_path):
    """As a web server does: the master opens the store, its workers spend, die and are replaced."""
    path = tmp_path / "study.db"
    budget = Budget.create(path, population="people", epsilon=0.01)
    for _ in range(4):
        workers = [forked(lambda: spend_some(path, 2)) for _ in range(3)]
        for worker in workers:
            exit_code(worker)
        with contextlib.suppress(BudgetExceeded):
            budget.spend(PIECE)
    assert len(budget.log()) == 10
    assert budget.verify().totals["people"].main_spent == 10**13


def test_a_fork_inside_a_transaction_is_noticed(tmp_path):
    """A signal handler may fork in the middle: the child commits nothing and uses no budget, the parent goes on."""
    path = tmp_path / "study.db"
    budget = Budget.create(path, population="people", epsilon=1.0)
    children = []

    def handler(*_):
        with contextlib.suppress(PrivampError):
            budget.spend(PIECE)  # inside another spend: refused, and it does not hang
        children.append(os.fork())

    from privamp.accounting import budget_rows

    original = budget_rows.origin
    signal.signal(signal.SIGUSR1, handler)
    budget_rows.origin = lambda: (os.kill(os.getpid(), signal.SIGUSR1), original())[1] if not children else original()
    try:
        try:
            budget.spend(PIECE)
            in_parent = True
        except PrivampError:
            in_parent = False
        if children[0] == 0:  # the child comes out of spend() too
            code = 1
            with contextlib.suppress(BaseException):
                budget.spend(PIECE)
                code = 2
            os._exit(code if in_parent else 0 if code == 1 else code)
    finally:
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)
        budget_rows.origin = original
    assert in_parent
    assert exit_code(children[0]) == 0
    assert len(Budget.open(path).log()) == 1
    budget.spend(PIECE)
    assert len(Budget.open(path).log()) == 2


def test_a_child_of_a_library_that_tells_nobody(tmp_path):
    """fork(2) called from C: Python's hooks do not run. Outside a transaction the child is fine, inside it refuses."""
    import ctypes

    path = tmp_path / "study.db"
    budget = Budget.create(path, population="people", epsilon=1.0)
    budget.spend(PIECE)
    fork = ctypes.PyDLL(None).fork  # keeps the interpreter lock

    def child_of_c(work):
        child = fork()
        if child == 0:
            code = 1
            try:
                code = work()
            finally:
                os._exit(code)
        return exit_code(child)

    assert child_of_c(lambda: spend_through(budget) - 1) == 0

    def refused():
        try:
            budget.spend(PIECE)
        except PrivampError as error:
            return 0 if "middle of a budget transaction" in str(error) else 2
        return 3

    with budget._store._file.writing():
        assert child_of_c(refused) == 0
    assert len(budget.log()) == 2
