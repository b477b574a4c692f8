"""A budget that threads, forks, links and moved files share."""

import copy
import os
import shutil
import sys
import threading
import warnings

import pytest

from privamp import Budget, BudgetExceeded, InvalidInput, PrivampError, PureDP


def in_child(work):
    """The exit code of work() in a fork."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12: fork with threads, meant here
        child = os.fork()
    if child == 0:
        code = 1
        try:
            code = work()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def spent(budget):
    return budget.status().spent["epsilon"]


def test_threads_share_a_budget(budget):
    got, refused = [], []

    def ask():
        for _ in range(30):
            try:
                budget.spend(PureDP(0.01))
                got.append(1)
            except BudgetExceeded:
                pass
            except PrivampError as error:
                refused.append(str(error))

    threads = [threading.Thread(target=ask) for _ in range(5)]
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-7)  # threads change places wherever they can
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(usual)
    assert not refused
    assert len(got) == 100
    assert spent(budget) == 1.0


def test_a_thread_that_remembers_late_does_not_undo_what_others_know(budget):
    """Number and hash are one value, and only go forward: half of them looked like a store that forgot entries."""
    for _ in range(3):
        budget.spend(PureDP(0.01))
    store = budget._store
    first, *_, last = store.events()
    store._remember(first)
    assert store._known().newest == (last.number, last.hash)
    budget.spend(PureDP(0.01))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_fork_has_its_own_connection_and_no_reservation(budget):

    held = budget.reserve(PureDP(0.25))

    def work():
        budget.spend(PureDP(0.25))
        try:
            held.cancel()
        except InvalidInput:
            return 0
        return 1

    assert in_child(work) == 0
    held.commit()
    assert spent(budget) == 0.5
    assert spent(Budget.open(budget.path)) == 0.5


def test_a_moved_store_still_knows(budget, tmp_path):
    budget.spend(PureDP(0.5))
    path = budget.path
    del budget
    moved = tmp_path / "moved"
    moved.mkdir()
    shutil.copy(path, moved / "study.db")
    assert spent(Budget.open(moved / "study.db")) == 0.5


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda budget: budget.cancel(2**70, "why"), "entry must be"),
        (lambda budget: budget.cancel(1.5, "why"), "entry must be"),
        (lambda budget: budget.log(0), "last must be"),
        (lambda budget: budget.log(2**70), "last must be"),
        (lambda budget: budget.reserve(PureDP(0.1), draw="sample"), "identity of a sample in bytes"),
        (lambda budget: budget.reserve(PureDP(0.1), draw=b""), "identity of a sample in bytes"),
        (lambda budget: copy.copy(budget.reserve(PureDP(0.1))), "cannot be copied"),
        (lambda budget: budget.spend(PureDP(1e300)), "epsilon must be from 0"),
    ],
)
def test_odd_arguments_are_sentences_about_them_and_not_about_the_store(tmp_path, act, words):
    budget = Budget.create(tmp_path / "study.db", population="people", epsilon=1.0)
    with pytest.raises(InvalidInput, match=words):
        act(budget)
    budget.verify()


def test_a_link_to_a_store_is_the_store(tmp_path):
    budget = Budget.create(tmp_path / "study.db", population="people", epsilon=1.0)
    (tmp_path / "link.db").symlink_to("study.db")
    Budget.open(tmp_path / "link.db").spend(PureDP(0.6))
    with pytest.raises(BudgetExceeded):
        budget.spend(PureDP(0.6))
