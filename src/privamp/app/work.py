"""Computation in separate processes: results arrive one by one, and jobs that are no longer needed are stopped.

When a slider moves, all running jobs become useless. Threads cannot be stopped, so each job is a process: forked from a
server that has already imported privamp (some milliseconds), or started fresh where there is no fork.
"""

import multiprocessing
import os
import signal
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Any, ClassVar

from ..errors import PrivampError

LONGEST = 120.0  # seconds that one job may take
_REMEMBERED = 512
_GLANCE = 0.2  # seconds after which a job that waits looks whether it is still wanted
_NICE = 5  # the browser and the server come first
_FAILED = "this could not be computed; try other values"


@dataclass(frozen=True, slots=True)
class Failed:
    """Why a job has no result, in one sentence."""

    reason: str


Answer = Callable[[Any], Any]
Found = Callable[[Any, Any], None]  # job, result


class Work:
    """The jobs of one view: `start` ends the earlier ones, and reports each new result as it comes."""

    _lanes = threading.BoundedSemaphore(max(2, os.cpu_count() or 1))
    _memory: ClassVar[OrderedDict[Any, Any]] = OrderedDict()
    _lock = threading.Lock()

    def __init__(self, answer: Answer, longest: float = LONGEST) -> None:
        self.answer = answer
        self.longest = longest
        self._turn = 0
        self._running: set[Any] = set()

    def start(
        self,
        jobs: Iterable[Any],
        found: Found,
        done: Callable[[], None] | None = None,
        is_loaded: threading.Event | None = None,
    ) -> None:
        """Report cached results at once, the rest from threads when ready; `done` after the last.

        All jobs but the first wait for `is_loaded`: a browser that is loading the page needs the cores itself.
        """
        turn = self.stop()
        waiting: deque[Any] = deque()
        for job in jobs:
            with self._lock:
                known = self._memory.get(job)
            if known is None:
                waiting.append(job)
            else:
                found(job, known)
        left = [len(waiting)]
        if not waiting and done:
            done()
        for lane in range(min(len(waiting), max(2, os.cpu_count() or 1))):
            gate = None if lane == 0 else is_loaded
            arguments = (turn, waiting, left, found, done, gate, is_loaded)
            threading.Thread(target=self._lane, args=arguments, daemon=True).start()

    def stop(self) -> int:
        """Stop all running jobs; nothing more is reported."""
        with self._lock:
            self._turn += 1
            ended, self._running = self._running, set()
            for process in ended:
                process.terminate()
            return self._turn

    def _lane(
        self,
        turn: int,
        waiting: "deque[Any]",
        left: list[int],
        found: Found,
        done: Callable[[], None] | None,
        gate: threading.Event | None,
        is_loaded: threading.Event | None,
    ) -> None:
        while True:
            while gate and not gate.wait(_GLANCE):
                if turn != self._turn:
                    return
            gate = is_loaded
            with self._lock:
                if turn != self._turn or not waiting:
                    return
                job = waiting.popleft()
            with self._lanes:
                result = self._computed(turn, job)
            if result is None:
                return
            with self._lock:
                if turn != self._turn:
                    return
                left[0] -= 1
                is_last = left[0] == 0
            found(job, result)
            if is_last and done:
                done()

    def _computed(self, turn: int, job: Any) -> Any:
        """The result of a process, or None if it was stopped."""
        ours, theirs = multiprocessing.Pipe(duplex=False)
        process = _context().Process(target=_work, args=(theirs, self.answer, job), daemon=True)
        with self._lock:
            if turn != self._turn:
                return None
            with _interrupts_held():
                process.start()
            self._running.add(process)
        theirs.close()
        try:
            result = ours.recv() if ours.poll(self.longest) else Failed(f"no answer within {self.longest:g} seconds")
        except (EOFError, OSError):
            result = Failed(_FAILED)
        process.terminate()
        process.join()
        with self._lock:
            self._running.discard(process)
            if turn != self._turn:
                return None
            if not isinstance(result, Failed):
                self._memory[job] = result
                while len(self._memory) > _REMEMBERED:
                    self._memory.popitem(last=False)
        return result


def _work(theirs: "Connection", answer: Answer, job: Any) -> None:
    """In the process: compute, send, end. No traceback, and nothing about a job in a log."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends its processes
    if hasattr(os, "nice"):
        os.nice(_NICE)
    try:
        result = answer(job)
    except PrivampError as error:
        result = Failed(str(error))
    except Exception:
        result = Failed(_FAILED)
    with suppress(OSError):  # nobody is waiting for it
        theirs.send(result)
    theirs.close()


@cache
def _context() -> Any:
    """Processes forked from a server that has imported what they need."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["privamp.app.warm"])
    return context


def _nothing(job: Any) -> Any:
    return job


def begin() -> None:
    """Start the fork server and do not wait: it imports what jobs need while the caller imports the framework."""
    if _context().get_start_method() == "forkserver":
        from multiprocessing import forkserver

        with _interrupts_held():
            forkserver.ensure_running()


def warm_up() -> None:
    """Wait for the fork server, so that the first job does not wait for its imports."""
    process = _context().Process(target=_nothing, args=(0,), daemon=True)
    with _interrupts_held():
        process.start()
    process.join()


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Processes started here ignore Ctrl-C, which is for the server: it stops them itself."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # starting it later would let interrupts through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
