"""One run of a job with everything that leaves it: releases before noise, the result, messages, the error."""

import contextlib
import io
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..chance.stream import Stream
from ..core.ledger import REGISTRY
from ..core.tape import Taken, Tape, taping
from .traces import traces

Job = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Run:
    """What left one run of a job."""

    taken: tuple[Taken, ...]
    result: dict[str, str]
    said: tuple[str, ...]  # warnings, log lines, printed lines
    error: str | None


def observed(job: Job, data: Any, stream: Stream, answers: Sequence[Any] = ()) -> Run:
    """Run the job on the data with its noise taped; `answers` are given back in place of fresh noise.

    The ledgers of the run are its own, so that one key may be used on both data sets.
    """
    tape, result, error = Tape(stream, answers), None, None
    with _listening() as said, REGISTRY.set_aside(), taping(tape):
        try:
            result = job(data)
        except Exception as problem:
            error = " ← ".join(_chain(problem))
    return Run(tuple(tape.taken), {} if error else traces(result), tuple(said), error)


def _chain(problem: BaseException | None) -> Iterator[str]:
    """The error and what a traceback would show under it."""
    while problem is not None:
        yield f"{type(problem).__name__}: {problem}"
        problem = problem.__cause__ or (None if problem.__suppress_context__ else problem.__context__)


class _Lines(logging.Handler):
    def __init__(self, lines: list[str]) -> None:
        super().__init__(logging.DEBUG)
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(f"log {record.levelname}: {record.getMessage()}")


@contextlib.contextmanager
def _listening() -> Iterator[list[str]]:
    """Collect privamp's log, everybody's warnings, and what is printed."""
    said: list[str] = []
    printed, logger, handler = io.StringIO(), logging.getLogger("privamp"), _Lines(said)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        with (
            warnings.catch_warnings(record=True) as caught,
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
        ):
            warnings.simplefilter("always")
            yield said
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)
        said += [f"warning {w.category.__name__}: {w.message}" for w in caught]
        said += [f"printed: {line}" for line in printed.getvalue().splitlines()]
