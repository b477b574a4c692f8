"""Work in steps: each names tasks that can run side by side, and goes on with their results.

A job is a generator that yields lists of tasks. One thread can do it alone, or a pool can share its tasks; no thread
ever waits for another, so any number of jobs can share one pool.
"""

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from threading import Lock
from typing import Any

Task = Callable[[], Any]
Steps = Generator[Sequence[Task], list[Any], Any]


def alone(steps: Steps) -> Any:
    """What the job returns; this thread does one task after the other."""
    try:
        tasks = next(steps)
        while True:
            tasks = steps.send([task() for task in tasks])
    except StopIteration as end:
        return end.value


def shared(pool: ThreadPoolExecutor, steps: Steps) -> Future[Any]:
    """The same, with each task on whichever thread of the pool is free."""
    job = _Shared(pool, steps)
    pool.submit(job.begin)
    return job.result


class _Shared:
    def __init__(self, pool: ThreadPoolExecutor, steps: Steps) -> None:
        self.result: Future[Any] = Future()
        self._pool, self._steps, self._lock = pool, steps, Lock()
        self._found: list[Any] = []
        self._left = 0

    def begin(self) -> None:
        self._guarded(lambda: self._start(next(self._steps)))

    def _start(self, tasks: Sequence[Task]) -> None:
        while not tasks:
            tasks = self._steps.send([])
        self._found, self._left = [None] * len(tasks), len(tasks)
        for k, task in enumerate(tasks):
            self._pool.submit(self._guarded, partial(self._do, k, task))

    def _do(self, k: int, task: Task) -> None:
        self._found[k] = task()
        with self._lock:
            self._left -= 1
            is_last = self._left == 0
        if is_last:
            found, self._found = self._found, []
            self._start(self._steps.send(found))

    def _guarded(self, part: Task) -> None:
        """A job ends with its first error; its other tasks may still end, but nothing goes on."""
        try:
            part()
        except StopIteration as end:
            self.result.set_result(end.value)
        except BaseException as error:
            with self._lock:
                if not self.result.done():
                    self.result.set_exception(error)
