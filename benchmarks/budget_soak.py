"""Try to make a budget lose a spend, count one twice or pass its limit.

    python benchmarks/budget_soak.py [kills] [processes]

Workers reserve, spend, answer, commit, cancel and fork children that spend too; each answer is told through a pipe
after it was acknowledged. They are killed (SIGKILL) at random points, while their clocks jump back and forth. Other
rounds fill the disk, end a quota (RLIMIT_FSIZE, and a full tmpfs), and remount the file system read-only; mounting
needs root, and is left out without it. After each round the whole chain is verified, every answer that was told must
be among the entries, once and not cancelled, and the total must be at most the limit.
"""

import contextlib
import os
import random
import resource
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

from privamp import Budget, BudgetExceeded, PrivampError, PureDP
from privamp.accounting import budget_rows, budget_store

PIECE = PureDP(0.001)
PIECES = 200  # of a limit: small, so that many stores come to their end
NUMBER = struct.Struct("<q")
ROUND = 200  # kills before the whole chain is looked at


def forked(work):
    """A child that runs work() and nothing else."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BudgetExceeded:
            code = 0
        except PrivampError as error:
            print(f"  a worker stopped: {error}", file=sys.stderr)
        finally:
            os._exit(code)
    return child


def one_answer(budget, pipe, chance):
    """Reserve, spend, answer, commit; now and then cancel instead."""
    held = budget.reserve(PIECE, note="soak")
    if chance.random() < 0.1:
        held.cancel("not needed")
        return
    held.spend()
    os.write(pipe, NUMBER.pack(held.number))  # the answer is out
    if chance.random() < 0.8:
        held.commit()


def work_until_killed(path, pipe, seed):
    """A program with a clock of its own that forks now and then; its children outlive it."""
    chance = random.Random(seed)
    budget_rows.now = lambda: (datetime.now(UTC) + timedelta(hours=chance.uniform(-30, 30))).isoformat()
    budget = Budget.open(path)
    while True:
        one_answer(budget, pipe, chance)
        if chance.random() < 0.15:
            forked(lambda: [one_answer(budget, pipe, random.Random(os.getpid())) for _ in range(2)])
            with contextlib.suppress(ChildProcessError):
                os.waitpid(-1, os.WNOHANG)


class Study:
    """A store and the answers that were told from it."""

    def __init__(self, path, copies=None):
        self.path, self.copies = path, copies or path.parent
        Budget.create(path, population="people", epsilon=PIECES / 1000)
        self.ours, self.theirs = os.pipe()
        os.set_blocking(self.ours, False)
        self.told = []

    def listen(self):
        while select.select([self.ours], [], [], 0)[0]:
            data = os.read(self.ours, 1 << 16)  # each number was written at once, so none is cut
            self.told += [n for (n,) in NUMBER.iter_unpack(data)]

    def check(self):
        """The invariants; returns how much of the limit is left, in pieces."""
        self.listen()
        budget_store._KNOWN.clear()
        copy = self.copies / f"{self.path.name}.copy"
        Budget.open(self.path, read_only=True).backup(copy)  # one moment, while workers go on
        budget = Budget.open(copy, read_only=True)
        checked, log = budget.verify(), budget.log()
        copy.unlink()
        counted = {entry.number for entry in log if entry.state != "cancelled"}
        twice = [number for number, times in Counter(self.told).items() if times > 1]
        lost = set(self.told) - counted
        spent = round(checked.totals["people"].main_spent / 10**12)
        assert not twice, f"answered twice: {twice}"
        assert not lost, f"lost: {sorted(lost)}"
        assert spent == len(counted) <= PIECES, (spent, len(counted))
        return PIECES - spent, checked.clock_went_back

    def close(self):
        os.close(self.ours)
        os.close(self.theirs)


def killing(folder, kills, processes):
    """SIGKILL at random points."""
    chance, killed, answers, stores, clock = random.Random(1), 0, 0, 1, 0
    study, workers, seed = Study(folder / "1.db"), [], 0
    begun = time.monotonic()
    while killed < kills:
        goal = min(kills, killed + ROUND)
        while killed < goal:
            while len(workers) < processes:
                seed += 1
                workers.append(forked(lambda: work_until_killed(study.path, study.theirs, seed)))  # noqa: B023
            time.sleep(chance.uniform(0.0, 0.02))
            victim = workers.pop(chance.randrange(len(workers)))
            os.kill(victim, signal.SIGKILL)
            killed += os.WIFSIGNALED(os.waitpid(victim, 0)[1])
            study.listen()
        left, clock_here = study.check()
        if left == 0:
            for worker in workers:
                os.kill(worker, signal.SIGKILL)
                os.waitpid(worker, 0)
            workers, answers, clock = [], answers + len(study.told), clock + clock_here
            study.close()
            stores += 1
            study = Study(folder / f"{stores}.db")
        if killed % 1000 == 0:
            print(
                f"  {killed} killed, {answers + len(study.told)} answers, {time.monotonic() - begun:.0f} s", flush=True
            )
    for worker in workers:
        os.kill(worker, signal.SIGKILL)
        os.waitpid(worker, 0)
    time.sleep(0.5)  # children that outlive their parents
    clock += study.check()[1]
    print(f"{killed} kills, {processes} processes, {answers + len(study.told)} answers, {stores} stores,", end=" ")
    print(f"the clock went back {clock} times: nothing lost, nothing twice, no limit passed")
    study.close()


def spend_until_refused(study, most=PIECES):
    """(answers, the sentence that ended it)."""
    budget = Budget.open(study.path)
    for n in range(most):
        try:
            held = budget.reserve(PIECE, note="x" * 500)
            held.spend()
        except PrivampError as error:
            return n, str(error)
        os.write(study.theirs, NUMBER.pack(held.number))
    return most, "nothing"


def full_disk(folder):
    """A file system without a free block: refused with a sentence, whole, and usable once there is room."""
    study, ballast = Study(folder / "full.db", folder.parent), folder / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    answers, sentence = spend_until_refused(study)
    study.check()
    ballast.unlink()
    more, _ = spend_until_refused(study, 20)
    study.check()
    assert more == 20, more
    assert "nothing was spent" in sentence, sentence
    print(f"full disk: {answers} answers, then refused ({sentence}); 20 more with room again")
    study.close()


def quota(folder):
    """A process that may not write longer files."""
    study = Study(folder / "quota.db")

    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        size = study.path.stat().st_size + 20_000
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        _, sentence = spend_until_refused(study)
        assert "nothing was spent" in sentence, sentence

    child = forked(limited)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    study.check()
    answers = len(study.told)
    more, _ = spend_until_refused(study, 20)
    study.check()
    assert more == 20, more
    print(f"quota: {answers} answers, then refused; 20 more by a process without one")
    study.close()


def read_only(folder):
    """Remounted read-only under a running program: refused, readable, and usable afterwards."""
    study = Study(folder / "remount.db", folder.parent)
    spend_until_refused(study, 20)
    subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
    answers, sentence = spend_until_refused(study, 5)
    study.check()
    subprocess.run(["mount", "-o", "remount,rw", folder], check=True)
    more, _ = spend_until_refused(study, 5)
    study.check()
    assert (answers, more) == (0, 5), (answers, more)
    print(f"read-only remount: refused ({sentence}); read by an auditor; 5 more afterwards")
    study.close()


@contextlib.contextmanager
def small_disk(folder):
    """A file system of a megabyte of its own, or None."""
    point = folder / "disk"
    point.mkdir()
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", point]).returncode:
        yield None
        return
    try:
        yield point
    finally:
        subprocess.run(["umount", point], check=True)


def main():
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    processes = int(sys.argv[2]) if len(sys.argv) > 2 else 16
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # a kill leaves the page cache as it is
    with tempfile.TemporaryDirectory(dir=memory) as name:
        killing(Path(name), kills, processes)
    with tempfile.TemporaryDirectory() as name:
        quota(Path(name))
        with small_disk(Path(name)) as disk:
            if disk is None:
                print("full disk and read-only remount: left out, mounting needs root")
            else:
                full_disk(disk)
                read_only(disk)


if __name__ == "__main__":
    main()
