"""One thread of a process at a time is inside a budget store, and no fork happens while it is.

SQLite keeps its knowledge of locks in the process's memory. A fork copies that memory but not the locks, so a
connection that lives across a fork lets parent and child write at the same time. Hence a connection lives for one
transaction only, inside this gate, and `os.fork` waits at the gate until it is closed. A child that was made in
another way (a C library, or a signal handler inside the transaction) notices, and refuses to use any store.
"""

import contextlib
import logging  # noqa: F401  its own fork hook must be registered before ours, so that ours runs first
import os
import threading
from collections.abc import Iterator

from ..errors import PrivampError

_PATIENCE = 120.0  # seconds; longer than any transaction waits for other processes
_BROKEN = (
    "this process was forked in the middle of a budget transaction and cannot use budgets; "
    "fork before or after it, or start a new process"
)


class Gate:
    """A lock that knows its thread and its process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._thread: int | None = None
        self._forking = threading.local()
        self._broken = False

    def enter(self) -> None:
        """Wait for the other threads; raise if waiting could deadlock."""
        if self._process != os.getpid():  # forked by something that does not call Python's hooks
            self._renew(broken=self._thread is not None)
        if self._broken:
            raise PrivampError(_BROKEN)
        if self._thread == threading.get_ident():
            raise PrivampError(
                "a signal handler used a budget in the middle of a budget transaction, so nothing was spent; "
                "only set a flag in the handler, and spend later"
            )
        if not self._lock.acquire(timeout=_PATIENCE):
            raise PrivampError(f"another thread used a budget for {_PATIENCE:.0f} seconds; nothing was spent")
        self._thread = threading.get_ident()

    def leave(self) -> None:
        """Let the next thread in."""
        self._thread = None
        self._lock.release()

    @contextlib.contextmanager
    def passed(self) -> Iterator[None]:
        """Hold the gate for one block, so that one thread at a time is in a transaction."""
        self.enter()
        try:
            yield
        finally:
            self.leave()

    def _before_fork(self) -> None:
        self._forking.inside = self._thread == threading.get_ident()
        if not self._forking.inside:
            self._lock.acquire()

    def _after_fork_in_parent(self) -> None:
        if not self._forking.inside:
            self._lock.release()

    def _after_fork_in_child(self) -> None:
        self._renew(broken=self._forking.inside)

    def _renew(self, *, broken: bool) -> None:
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._thread = None
        self._broken = self._broken or broken


GATE = Gate()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=GATE._before_fork,
        after_in_parent=GATE._after_fork_in_parent,
        after_in_child=GATE._after_fork_in_child,
    )
