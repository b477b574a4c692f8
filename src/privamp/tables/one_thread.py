"""Calls that a thread of its own makes, one after another, while whoever asked for them goes on."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import Any

_WAITING = 2  # calls that are not done; what they were given is in memory


@contextmanager
def one_after_another(work: Callable[[Any], None]) -> Iterator[Callable[[Any], None]]:
    """The same function in the background: whoever calls it waits only if `_WAITING` calls are not done.

    All are done when the block ends. After an error none is made, and the error is raised by a later call or at the
    end.
    """
    pending: deque[Future[None]] = deque()
    failed = Event()

    def unless_failed(given: Any) -> None:
        if not failed.is_set():
            try:
                work(given)
            except BaseException:
                failed.set()
                raise

    def later(given: Any) -> None:
        while len(pending) >= _WAITING:
            pending.popleft().result()
        pending.append(pool.submit(unless_failed, given))

    with ThreadPoolExecutor(1, thread_name_prefix="privamp-writer") as pool:
        try:
            yield later
            while pending:
                pending.popleft().result()
        finally:
            failed.set()
            pool.shutdown(wait=True, cancel_futures=True)
