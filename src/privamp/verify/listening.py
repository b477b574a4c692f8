"""Capture a job's messages: log lines of every logger, warnings, printed lines, and errors as text."""

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator


def shown(problem: BaseException) -> str:
    """An error as one line: its kind, its text, its notes, and those of a group inside it."""
    inside = getattr(problem, "exceptions", ())  # of a group
    notes = [*getattr(problem, "__notes__", ()), *(" ← ".join(map(shown, chain(one))) for one in inside)]
    return " | ".join([f"{type(problem).__name__}: {problem}", *notes])


def chain(problem: BaseException | None) -> Iterator[BaseException]:
    """The error and what a traceback would show under it."""
    seen: list[BaseException] = []
    while problem is not None and problem not in seen:
        yield problem
        seen.append(problem)
        problem = problem.__cause__ or (None if problem.__suppress_context__ else problem.__context__)


class _Lines(logging.Handler):
    """Every log line, with what a handler could write of it."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__(logging.DEBUG)
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        more = [f"{name}={value!r}" for name, value in vars(record).items() if name not in _USUAL]
        if record.exc_info and record.exc_info[1]:
            more.append(" ← ".join(map(shown, chain(record.exc_info[1]))))
        self._lines.append(" ".join([f"log {record.levelname}: {record.getMessage()}", *more]))


_USUAL = {*vars(logging.makeLogRecord({})), "message", "asctime"}


@contextlib.contextmanager
def listening() -> Iterator[list[str]]:
    """Collect all log lines, warnings and printed lines; those of privamp at every level."""
    said: list[str] = []
    printed, handler = io.StringIO(), _Lines(said)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_heard_by(handler))
        caught = stack.enter_context(warnings.catch_warnings(record=True))
        stack.enter_context(contextlib.redirect_stdout(printed))
        stack.enter_context(contextlib.redirect_stderr(printed))
        warnings.simplefilter("always")
        yield said
    said += [f"warning {w.category.__name__}: {w.message} ({w.filename}:{w.lineno})" for w in caught or ()]
    said += [f"printed: {line}" for line in printed.getvalue().splitlines()]


@contextlib.contextmanager
def _heard_by(handler: logging.Handler) -> Iterator[None]:
    """Take the records of all loggers in place of their own handlers: a logger need not propagate its records."""
    root, own = logging.getLogger(), logging.getLogger("privamp")
    levels, handle = (root.level, own.level), logging.Logger.handle

    def heard(_: logging.Logger, record: logging.LogRecord) -> None:
        handler.handle(record)

    logging.Logger.handle = heard  # type: ignore[method-assign,assignment]
    root.setLevel(logging.INFO)
    own.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        logging.Logger.handle = handle  # type: ignore[method-assign]
        root.setLevel(levels[0])
        own.setLevel(levels[1])
