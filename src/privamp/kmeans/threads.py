"""Threads over chunks: NumPy and the compiled kernel release the GIL, BLAS is limited to one thread each."""

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, TypeVar

from ..numerics.cores import cores
from ..validation import whole

_PIECES = 8  # a thread, so that threads that finish early find more work
_LEAST = 1 << 13  # rows a piece: threads wait for the interpreter between pieces

Item = TypeVar("Item")
Result = TypeVar("Result")


def threads_of(n_jobs: int | None) -> int:
    """None and -1 mean every core this process may use, -2 all but one, and so on."""
    if n_jobs is None:
        return cores()
    if n_jobs < 0:
        return max(cores() + 1 + int(n_jobs), 1)
    whole(1, n_jobs=n_jobs)
    return int(n_jobs)


@cache
def _libraries() -> Any:
    """The BLAS libraries of this process; looking for them takes longer than a step on a sample."""
    import scipy.linalg  # noqa: F401  its own BLAS is found only once it is loaded
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped,unused-ignore]

    return ThreadpoolController()


class ThreadPool:
    """A pool for one fit; use it in a `with` block."""

    def __init__(self, n_jobs: int | None) -> None:
        self.size = threads_of(n_jobs)
        self._pool: ThreadPoolExecutor | None = None
        self._limits: AbstractContextManager[Any] = nullcontext()

    def __enter__(self) -> "ThreadPool":
        self._limits = _libraries().limit(limits=1, user_api="blas")
        self._limits.__enter__()
        self._pool = ThreadPoolExecutor(self.size - 1) if self.size > 1 else None
        return self

    def __exit__(self, *error: Any) -> None:
        if self._pool is not None:
            self._pool.shutdown()
        self._limits.__exit__(*error)

    def spans(self, rows: int, multiple: int = 1) -> list[slice]:
        """Some pieces a thread, of a multiple of so many rows (but the last); one empty piece for no rows."""
        pieces = self.size * min(max(rows // (self.size * _LEAST), 1), _PIECES)
        step = max(-(-rows // (pieces * multiple)), 1) * multiple
        return [slice(at, min(at + step, rows)) for at in range(0, max(rows, 1), step)]

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """One result per item, in order. The caller works too: waking a thread takes as long as a step on a sample."""
        several = list(items)
        if self._pool is None or len(several) < 2:
            return list(map(work, several))
        found: list[Any] = [None] * len(several)
        left = deque(range(len(several)))

        def take() -> None:
            while left:
                try:
                    at = left.popleft()
                except IndexError:  # another thread was faster
                    return
                found[at] = work(several[at])

        helpers = [self._pool.submit(take) for _ in range(min(self.size, len(several)) - 1)]
        try:
            take()
        finally:
            left.clear()
            errors = [helper.exception() for helper in helpers if not helper.cancel()]  # waits for those at work
        for error in filter(None, errors):
            raise error
        return found
