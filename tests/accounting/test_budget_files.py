"""What can happen to the file of a budget: moved, replaced, copied, rolled back, shared, damaged by a bit."""

import contextlib
import os
import pathlib
import random
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile

import pytest

from privamp import Budget, InvalidInput, PrivampError, PureDP
from privamp.accounting import budget_store

PIECE = PureDP(0.001)
posix = pytest.mark.skipif(os.name != "posix", reason="rights and inodes as POSIX has them")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.db"


@pytest.fixture
def budget(path):
    return Budget.create(path, population="patients", epsilon=1.0)


def spent(budget):
    return budget.status().spent["epsilon"]


# -- the same file ----------------------------------------------------------------------------------------------


@posix
@pytest.mark.parametrize("change", ["moved", "deleted", "replaced by another", "replaced by a copy"])
def test_another_file_under_the_name_is_noticed(budget, path, change):
    budget.spend(PIECE)
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    if change == "moved":
        path.rename(path.with_name("moved.db"))
    elif change == "deleted":
        path.unlink()
    elif change == "replaced by another":
        Budget.create(path.with_name("other.db"), population="patients", epsilon=100.0)
        path.with_name("other.db").rename(path)
    else:
        copy.rename(path)
    for use in (lambda: budget.spend(PIECE), lambda: budget.reserve(PIECE), budget.status, budget.log):
        with pytest.raises(PrivampError, match="moved, deleted or replaced"):
            use()


@posix
def test_a_file_replaced_inside_the_transaction_is_noticed(budget, path, monkeypatch):
    """The other file comes after the first look and before the entry is acknowledged."""
    from privamp.accounting import budget_rows

    other = path.with_name("other.db")
    budget.spend(PIECE)
    shutil.copy(path, other)
    told = budget_rows.origin

    def late():
        other.replace(path)
        return told()

    monkeypatch.setattr(budget_rows, "origin", late)
    with pytest.raises(PrivampError, match="moved, deleted or replaced"):
        budget.spend(PIECE)


@posix
def test_an_older_copy_written_over_the_file_is_noticed(budget, path):
    budget.spend(PIECE)
    old = path.read_bytes()
    budget.spend(PIECE)
    with path.open("r+b") as file:  # the same inode
        file.write(old)
        file.truncate(len(old))
    for use in (lambda: budget.spend(PIECE), budget.status, lambda: Budget.open(path)):
        with pytest.raises(PrivampError, match="lost entries"):
            use()


@posix
def test_a_second_name_is_refused_and_a_leftover_draft_removed(budget, path):
    os.link(path, path.with_name("second.db"))
    with pytest.raises(InvalidInput, match="second name"):
        budget.spend(PIECE)
    path.with_name("second.db").unlink()
    draft = path.with_name(".privamp.0123abcd.draft")  # what a kill leaves behind while a store is made
    os.link(path, draft)
    budget.spend(PIECE)
    assert not draft.exists()


# -- copies -----------------------------------------------------------------------------------------------------


def test_a_plain_copy_of_the_main_file_holds_every_acknowledged_spend(budget, path):
    """After each acknowledgement, with the store still open: no side file is needed."""
    copy = path.with_name("copy.db")
    for n in range(1, 6):
        budget.spend(PIECE)
        held = budget.reserve(PIECE)
        shutil.copy(path, copy)
        assert Budget.open(copy, read_only=True).verify().totals["patients"].main_spent == 2 * n * 10**12
        held.commit()
        assert [file.name for file in path.parent.iterdir() if file.name.startswith("study")] == ["study.db"]
        copy.unlink()


def test_a_write_ahead_log_would_not_be_in_such_a_copy(tmp_path):
    """Negative control: what the test above would say about a store with a write-ahead log."""
    connection = sqlite3.connect(tmp_path / "wal.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE total AS SELECT 0 AS spent")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.execute("UPDATE total SET spent = 1")
    shutil.copy(tmp_path / "wal.db", tmp_path / "copy.db")
    connection.close()
    copy = sqlite3.connect(tmp_path / "copy.db")
    assert copy.execute("SELECT spent FROM total").fetchone() == (0,)
    copy.close()


def test_a_backup_is_whole_private_and_never_over_a_file(budget, path):
    budget.spend(PIECE)
    target = path.with_name("backup.db")
    checked = budget.backup(target)
    assert checked.head == budget.head()
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    with pytest.raises(InvalidInput, match="not overwritten"):
        budget.backup(target)
    with pytest.raises(InvalidInput, match="no folder"):
        budget.backup(path.parent / "nowhere" / "backup.db")
    assert len(Budget.open(target).log()) == 1
    assert sorted(file.name for file in path.parent.iterdir()) == ["backup.db", "study.db"]


# -- rights -----------------------------------------------------------------------------------------------------


@posix
def test_a_store_is_its_owners_alone_unless_it_is_shared_with_a_group(path, tmp_path):
    old = os.umask(0)
    try:
        budget = Budget.create(path, population="a", epsilon=1.0)
        shared = Budget.create(tmp_path / "shared.db", population="a", epsilon=1.0, shared=True)
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(shared.path.stat().st_mode) == 0o660
    shared.spend(PIECE)
    for store, wrong in ((budget, 0o640), (budget, 0o602), (shared, 0o664)):
        right = stat.S_IMODE(store.path.stat().st_mode)
        store.path.chmod(wrong)
        with pytest.raises(InvalidInput, match="open to other users"):
            Budget.open(store.path)
        with pytest.raises(InvalidInput, match="open to other users"):
            store.spend(PIECE)
        assert Budget.open(store.path, read_only=True).status()
        store.path.chmod(right)
    with pytest.raises(InvalidInput, match="readable only by its owner"):
        Budget.create(path, population="b", epsilon=1.0, shared=True)


@posix
def test_an_auditor_reads_where_nothing_can_be_written(budget, path, tmp_path):
    """A folder and a file without the right to write, read by another user where this one is root."""
    budget.spend(PIECE, note="seen")
    folder = tmp_path / "mounted"
    folder.mkdir()
    shutil.copy(path, folder / "study.db")
    (folder / "study.db").chmod(0o444)
    folder.chmod(0o555)
    code = (
        "import os\n"
        "from privamp import Budget\n"
        "Budget.open('study.db', read_only=True).log()  # whatever is imported late\n"
        "if os.getuid() == 0: os.setgroups([]), os.setgid(65534), os.setuid(65534)\n"
        "assert not os.access('study.db', os.W_OK)\n"
        "budget = Budget.open('study.db', read_only=True)\n"
        "print(budget.status().spent, budget.log()[0].note, budget.verify().head.number)\n"
    )
    for parent in (folder, *folder.parents):
        if parent.stat().st_uid == os.getuid() and not parent.stat().st_mode & stat.S_IXOTH:
            parent.chmod(parent.stat().st_mode | stat.S_IXOTH | stat.S_IROTH)
    try:
        run = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=60)
    finally:
        folder.chmod(0o755)
    assert run.stdout == "{'epsilon': 0.001} seen 3\n", run.stderr


# -- disks and clocks -------------------------------------------------------------------------------------------


@posix
def test_a_process_at_its_quota_is_refused_with_a_sentence_and_loses_nothing(budget, path):
    code = (
        "import os, resource, signal, sys\n"
        "from privamp import Budget, PrivampError, PureDP\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "size = os.path.getsize(sys.argv[1]) + 12_000\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))\n"
        "budget, made = Budget.open(sys.argv[1]), 0\n"
        "try:\n"
        "    while True:\n"
        "        budget.spend(PureDP(0.001), note='x' * 900)\n"
        "        made += 1\n"
        "except PrivampError as error:\n"
        "    print(made, error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, timeout=120)
    made, _, sentence = run.stdout.partition(" ")
    assert "nothing was spent" in sentence, run.stderr
    assert len(budget.log()) == int(made) > 0
    budget.spend(PIECE)
    assert budget.verify().totals["patients"].main_spent == (int(made) + 1) * 10**12


def test_a_clock_that_goes_back_changes_no_order(budget, monkeypatch):
    from privamp.accounting import budget_rows

    for hour in ("12", "11", "13", "09"):
        monkeypatch.setattr(budget_rows, "now", lambda hour=hour: f"2020-01-01T{hour}:00:00.000+00:00")
        budget.spend(PIECE, note=hour)
    assert [entry.note for entry in budget.log()] == ["12", "11", "13", "09"]
    assert budget.verify().clock_went_back == 3  # before the store was made, and twice after


# -- bits -------------------------------------------------------------------------------------------------------


def furnished(path):
    """A store with two populations and every kind of entry."""
    first = Budget.create(path, population="patients", epsilon=1.0)
    second = Budget.create(path, population="nurses", epsilon=3.0, delta=1e-6, rule="basic")
    for n in range(12):
        first.spend(PIECE, note=f"release {n}")
        first.reserve(PIECE, draw=n.to_bytes(16, "little"), certificate={"epsilon": 0.001}).commit()
        if n % 4 == 0:
            first.reserve(PIECE, note="given back").cancel("no reason")
            second.reserve(PIECE, note="crashed", columns=["age", "size"])
    return first


def told(path):
    """All that can be learned: where each budget stands, and every entry."""
    answer = {}
    for label in ("patients", "nurses"):
        budget = Budget.open(path, label, read_only=True)
        answer[label] = (budget.status(), budget.limit, budget.log())
    return answer


def stands(path):
    """What is shown without going through everything."""
    return {label: Budget.open(path, label, read_only=True).status() for label in ("patients", "nurses")}


@pytest.fixture
def quick_folder(tmp_path):
    """In memory where the system has such a folder: a flip does not wait for the disk."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        yield pathlib.Path(name)


@pytest.mark.parametrize("flips", [100, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_flipped_bit_is_refused_with_a_sentence_or_changes_nothing(quick_folder, flips):
    path, bad = quick_folder / "study.db", quick_folder / "bad.db"
    furnished(path)
    truth, short, whole = told(path), stands(path), path.read_bytes()
    chance, refused, harmless = random.Random(11), 0, 0
    after = {"epsilon": short["patients"].spent["epsilon"] + 0.001}
    for _ in range(flips):
        where = chance.randrange(len(whole) * 8)
        content = bytearray(whole)
        content[where // 8] ^= 1 << where % 8
        bad.write_bytes(content)
        bad.chmod(0o600)
        budget_store._KNOWN.clear()  # as a new process
        for look, right in ((stands, short), (told, truth)):
            with contextlib.suppress(PrivampError):  # a sentence; anything else fails the test
                assert look(bad) == right, where
        try:
            budget = Budget.open(bad, "patients")
            budget.spend(PIECE)
            assert budget.status().spent == pytest.approx(after), where
            assert len(budget.log()) == len(truth["patients"][2]) + 1, where
            budget.verify()
            harmless += 1
        except PrivampError:
            refused += 1
    assert refused > flips / 10
    assert harmless > 0  # bits that nobody uses


def test_a_check_that_sees_no_hashes_would_miss_flips(path):
    """Negative control: SQLite alone takes a changed cost for a good one."""
    furnished(path)
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TRIGGER nothing_is_changed")
        connection.execute("UPDATE events SET main = main + 1 WHERE kind = 'answered'")
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.execute(
            "CREATE TRIGGER nothing_is_changed BEFORE UPDATE ON events\n"
            "    BEGIN SELECT RAISE(ABORT, 'entries of a budget are not changed'); END"
        )
    connection.close()
    with pytest.raises(InvalidInput, match="damaged"):
        told(path)
    with pytest.raises(InvalidInput, match="damaged"):
        Budget.open(path, "patients").spend(PIECE)
