"""Many processes on one store, and processes that are killed: the limit holds and no spend is lost."""

import os
import random
import signal
import struct
import time
import warnings

import pytest

from privamp import Budget, BudgetExceeded, PureDP

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
PIECE = PureDP(0.001)
NUMBER = struct.Struct("<q")


def start(work):
    """Fork; work(tell) runs in the child, where tell(n) sends a number. Returns (process id, end of the pipe)."""
    ours, theirs = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12: fork with threads, meant here
        child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(ours)
            work(lambda n: os.write(theirs, NUMBER.pack(n)))
            code = 0
        finally:
            os._exit(code)
    os.close(theirs)
    return child, ours


def finish(child, ours):
    """(exit code or minus the signal, the numbers it sent)."""
    with os.fdopen(ours, "rb") as pipe:
        data = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code, [n for (n,) in NUMBER.iter_unpack(data[: len(data) // 8 * 8])]


def counted(path):
    """(pieces spent by the total, pieces in the log, pieces of the limit)."""
    budget = Budget.open(path)
    status = budget.status()
    entries = [entry for entry in budget.log() if entry.state != "cancelled"]
    return round(status.spent["epsilon"] * 1000), len(entries), round(status.limit["epsilon"] * 1000)


@pytest.mark.parametrize("spends", [20, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("share", [1.0, 0.75], ids=["enough for all", "not enough"])
def test_eight_processes_never_pass_the_limit_and_never_lose_a_spend(tmp_path, spends, share):
    path, workers = tmp_path / "study.db", 8
    allowed = int(workers * spends * share)
    budget = Budget.create(path, population="people", epsilon=allowed / 1000)
    budget.spend(PureDP(0.0))  # the parent has a connection open, as a careless program would

    def work(tell):
        for n in range(spends):
            try:
                if n % 2:
                    budget.spend(PIECE)  # through the inherited object
                else:
                    with budget.reserve(PIECE):
                        pass
                tell(1)
            except BudgetExceeded:
                tell(0)

    ends = [finish(*worker) for worker in [start(work) for _ in range(workers)]]
    assert [code for code, _ in ends] == [0] * workers
    assert all(len(said) == spends for _, said in ends)
    granted = sum(sum(said) for _, said in ends)
    assert granted == allowed
    assert counted(path) == (allowed, allowed + 1, allowed)


def release_until_killed(path, tell):
    """A program that reserves, draws noise, gives the answer out, commits, and now and then cancels."""
    budget = Budget.open(path)
    while True:
        try:
            held = budget.reserve(PIECE)
        except BudgetExceeded:
            return
        if random.random() < 0.1:
            held.cancel()
            continue
        held.spend()
        tell(1)  # the answer is out
        held.commit()


def answer_first(path, tell):
    """The broken twin: it gives the answer out and counts it afterwards."""
    budget = Budget.open(path)
    while True:
        tell(1)
        budget.spend(PIECE)


def test_a_program_that_answers_before_it_reserves_is_caught(tmp_path):
    path, answers, chance = tmp_path / "study.db", 0, random.Random(5)
    Budget.create(path, population="people", epsilon=1000.0)
    for _ in range(300):
        worker = start(lambda tell: answer_first(path, tell))
        time.sleep(chance.uniform(0.01, 0.04 if answers else 0.4))  # a busy machine starts slowly
        os.kill(worker[0], signal.SIGKILL)
        answers += len(finish(*worker)[1])
        if answers > counted(path)[0]:
            return
    raise AssertionError("no kill fell between an answer and its reservation")


@pytest.mark.parametrize("kills", [30, pytest.param(400, marks=pytest.mark.slow)])
def test_killed_at_random_points_it_counts_every_answer_that_was_given(tmp_path, kills):
    chance, killed, given, spent, limit = random.Random(7), 0, 0, 0, 0
    while killed < kills:
        if spent == limit:  # on a fast machine the workers come to the end of a budget
            path, answers = tmp_path / f"study-{given}.db", 0
            Budget.create(path, population="people", epsilon=kills * 0.01)
        workers = [start(lambda tell, path=path: release_until_killed(path, tell)) for _ in range(2)]
        time.sleep(chance.uniform(0.0, 0.04 if given else 0.4))  # a busy machine starts slowly
        for child, _ in workers:
            os.kill(child, signal.SIGKILL)
        for code, said in [finish(*worker) for worker in workers]:
            killed += code == -signal.SIGKILL
            answers += len(said)
            given += len(said)
        spent, logged, limit = counted(path)  # it opens, and its checks pass
        assert answers <= spent <= limit
        assert spent == logged
    assert given > 0
    rest = Budget.open(path)
    while True:  # and the store still works, up to the last piece
        try:
            rest.spend(PIECE)
        except BudgetExceeded:
            break
    spent, logged, limit = counted(path)
    assert spent == logged == limit


@pytest.mark.parametrize("kills", [10, pytest.param(200, marks=pytest.mark.slow)])
def test_killed_while_it_is_made_a_store_is_whole_or_not_there(tmp_path, kills):
    chance, begun = random.Random(3), time.monotonic()
    Budget.create(tmp_path / "first.db", population="people", epsilon=1.0)
    takes = time.monotonic() - begun
    for n in range(kills):
        path = tmp_path / f"{n}.db"
        child, ours = start(lambda tell, p=path: (tell(0), Budget.create(p, population="people", epsilon=1.0), tell(1)))
        os.read(ours, 8)  # it has begun
        time.sleep(chance.uniform(0.0, 1.5 * takes))
        os.kill(child, signal.SIGKILL)
        _, said = finish(child, ours)
        if not path.exists():
            assert said == []  # it was never acknowledged
            Budget.create(path, population="people", epsilon=1.0)
        assert Budget.open(path).status().left == {"epsilon": 1.0}


def test_readers_do_not_keep_a_writer_out(tmp_path):
    """Eight programs that only look, again and again, so that one of them always has the file open."""
    path = tmp_path / "study.db"
    budget = Budget.create(path, population="people", epsilon=1.0)

    def look(tell):
        reader = Budget.open(path, read_only=True)
        tell(0)
        while True:
            reader.log()

    readers = [start(look) for _ in range(8)]
    try:
        for _, ours in readers:
            os.read(ours, 8)
        for _ in range(10):
            budget.spend(PIECE)
    finally:
        for child, _ in readers:
            os.kill(child, signal.SIGKILL)
        for reader in readers:
            finish(*reader)
    assert counted(path)[0] == 10
