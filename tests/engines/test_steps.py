"""Jobs in steps: the same results alone and shared by threads, whatever fails, and on a pool of one thread."""

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from privamp.engines.steps import alone, shared


def job(n, log=None):
    """The sum of the squares of 0, ..., n - 1, in three steps of which one has nothing to do."""
    squares = yield [partial(pow, k, 2) for k in range(n)]
    nothing = yield []
    assert nothing == []
    if log is not None:
        log.append(n)
    (total,) = yield [partial(sum, squares)]
    return total, squares


@pytest.mark.parametrize("n", [0, 1, 7])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_shared_job_gives_what_one_thread_gives(n, threads):
    expected = alone(job(n))
    assert expected == (sum(k * k for k in range(n)), [k * k for k in range(n)])
    with ThreadPoolExecutor(threads) as pool:
        assert shared(pool, job(n)).result(timeout=10) == expected


def test_many_jobs_share_one_thread_because_none_waits():
    with ThreadPoolExecutor(1) as pool:
        found = [shared(pool, job(n)) for n in range(40)]
        assert [each.result(timeout=10)[0] for each in found] == [sum(k * k for k in range(n)) for n in range(40)]


def test_tasks_of_a_step_run_side_by_side():
    together = threading.Barrier(3)

    def steps():
        return (yield [partial(together.wait, 10)] * 3)

    with ThreadPoolExecutor(3) as pool:
        assert sorted(shared(pool, steps()).result(timeout=10)) == [0, 1, 2]


@pytest.mark.parametrize("failing", [[0], [2], [0, 1, 2]], ids=str)
def test_the_first_error_ends_a_job_and_no_step_follows(failing):
    went_on = []

    def steps():
        yield [partial(divmod, 1, 0 if k in failing else 1) for k in range(3)]
        went_on.append(True)

    with ThreadPoolExecutor(2) as pool, pytest.raises(ZeroDivisionError):
        shared(pool, steps()).result(timeout=10)
    with pytest.raises(ZeroDivisionError):
        alone(steps())
    assert not went_on


def test_an_error_between_steps_ends_a_job():
    def steps():
        yield [int]
        raise ValueError("between")

    with ThreadPoolExecutor(2) as pool, pytest.raises(ValueError, match="between"):
        shared(pool, steps()).result(timeout=10)


def test_a_job_that_begins_with_its_result_has_one():
    def steps():
        if threads > 9:
            yield []
        return threads

    threads = 2
    with ThreadPoolExecutor(threads) as pool:
        assert shared(pool, steps()).result(timeout=10) == alone(steps()) == 2
