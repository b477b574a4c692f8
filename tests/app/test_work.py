"""Work: results as they come, earlier work ended, failures as one sentence."""

import threading
import time

import pytest
from jobs_to_do import answer

from privamp.app.work import Failed, Work


def all_of(work, jobs):
    found, done = {}, threading.Event()
    work.start(jobs, found.__setitem__, done.set)
    assert done.wait(30)
    return found


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch):
    monkeypatch.setattr(Work, "_memory", type(Work._memory)())


def test_results_refusals_and_failures() -> None:
    found = all_of(Work(answer), [("double", 2), ("refuse", 0), ("fail", 42), ("die", 0)])
    assert found["double", 2] == 4
    assert found["refuse", 0] == Failed("size must be at least 1, got 0 instead")
    assert found["fail", 42] == found["die", 0]
    assert "42" not in found["fail", 42].reason


def test_new_work_ends_the_old(tmp_path) -> None:
    work, late, mark = Work(answer), [], tmp_path / "mark"
    work.start([("sleep", str(mark))] * 1, lambda job, result: late.append(job))
    time.sleep(0.3)
    started = time.perf_counter()
    assert all_of(work, [("double", 5)]) == {("double", 5): 10}
    assert time.perf_counter() - started < 10
    assert not late
    assert not work._running
    assert not mark.exists()


def test_what_was_computed_is_remembered() -> None:
    work = Work(answer)
    all_of(work, [("double", 7)])
    found = {}
    work.start([("double", 7)], found.__setitem__)
    assert found == {("double", 7): 14}  # at once, in this thread


def test_a_job_that_takes_too_long_is_ended(tmp_path) -> None:
    found = all_of(Work(answer, longest=0.5), [("sleep", str(tmp_path / "mark"))])
    assert [result.reason for result in found.values()] == ["no answer within 0.5 seconds"]


def test_all_jobs_but_the_first_wait_for_the_page() -> None:
    work, found, is_loaded, done = Work(answer), {}, threading.Event(), threading.Event()
    first = threading.Event()

    def keep(job, result):
        found[job] = result
        first.set()

    work.start([("double", 1), ("double", 2), ("double", 3)], keep, done.set, is_loaded)
    assert first.wait(30)
    time.sleep(0.5)
    assert found == {("double", 1): 2}
    is_loaded.set()
    assert done.wait(30)
    assert found == {("double", 1): 2, ("double", 2): 4, ("double", 3): 6}


def test_what_waits_for_a_page_that_never_loads_ends_with_it() -> None:
    work = Work(answer)
    before = threading.active_count()
    work.start([("double", 1), ("double", 2)], lambda job, result: None, is_loaded=threading.Event())
    work.stop()
    for _ in range(100):
        if threading.active_count() <= before:
            break
        time.sleep(0.1)
    assert threading.active_count() <= before
