"""Calls in the background: in order, one at a time, few waiting, and no error is lost."""

import threading
import time

import pytest

from privamp.tables.one_thread import one_after_another


def asked(work, calls):
    with one_after_another(work) as later:
        for k in range(calls):
            later(k)


def test_calls_keep_their_order_and_are_done_at_the_end():
    found, threads = [], set()

    def work(k):
        found.append(k)
        threads.add(threading.get_ident())

    with one_after_another(work) as later:
        for k in range(100):
            later(k)
    assert found == list(range(100))
    assert len(threads) == 1
    assert threading.get_ident() not in threads


def test_whoever_calls_goes_on_but_not_far_ahead():
    go, given = threading.Event(), []

    def more(later):
        for k in range(10):
            later(k)
            given.append(k)

    with one_after_another(lambda k: go.wait(10)) as later:
        asking = threading.Thread(target=more, args=(later,))
        asking.start()
        asking.join(0.2)
        assert given == [0, 1]  # the first is under way, the second waits
        go.set()
        asking.join(10)
    assert given == list(range(10))


@pytest.mark.parametrize("calls", [1, 2, 5])
def test_an_error_is_raised_at_the_latest_when_the_block_ends(calls):
    done = []

    def work(k):
        done.append(k)
        raise OSError(28, "no space")

    with pytest.raises(OSError, match="no space"):
        asked(work, calls)
    assert done[0] == 0


def test_nothing_is_done_after_an_error():
    done, asked_twice = [], threading.Event()

    def work(k):
        done.append(k)
        asked_twice.wait(10)
        raise ValueError(k)

    def two_calls():
        with one_after_another(work) as later:
            later(0)
            later(1)
            asked_twice.set()
            time.sleep(0.2)  # the second would be made now

    with pytest.raises(ValueError, match="0"):
        two_calls()
    assert done == [0]


def test_an_error_of_the_caller_ends_the_work():
    done, began, go = [], threading.Event(), threading.Event()

    def work(k):
        began.set()
        go.wait(10)
        done.append(k)

    with pytest.raises(KeyError), one_after_another(work) as later:  # noqa: PT012
        later(0)
        later(1)
        began.wait(10)
        go.set()
        raise KeyError
    assert done in ([0], [0, 1])
