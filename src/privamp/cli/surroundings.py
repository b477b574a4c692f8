"""Closed streams, full disks, interrupts and termination: what a shell can do to a command at any moment."""

import contextlib
import errno
import io
import os
import signal
import sys
from typing import Any

_INTERRUPTED, _TERMINATED = 130, 143
_received: list[int] = []


class _Closed(io.TextIOBase):
    """Replaces a closed standard output: writing fails, as for every program."""

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


def before_imports() -> None:
    """Ctrl-C during the first second ends the process as the system does, without a traceback."""
    if os.name == "posix" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not one that is ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def prepare() -> None:
    """Set up streams and signal handlers; called once, before the command starts."""
    if os.name == "posix":
        _occupy_closed_handles()
        for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, _terminate)):
            if signal.getsignal(number) == signal.SIG_DFL:  # the parent may want it ignored, as nohup does
                signal.signal(number, handler)
    if sys.stdout is None:
        sys.stdout = _Closed()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # do not fail on a terminal without Greek letters


def is_output_error(error: BaseException) -> bool:
    """Whether an answer could not be written to standard output."""
    return isinstance(error, OSError) and error.filename is None and error.errno in _OUTPUT


_OUTPUT = (errno.ENOSPC, errno.EBADF, errno.EIO, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))


def discard_output() -> None:
    """Drop what could not be written, so that the interpreter does not try again at exit."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if isinstance(sys.stdout, _Closed):
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115


def _occupy_closed_handles() -> None:
    """So that no file opened later gets the descriptor of standard output."""
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(handle)


def _terminate(*_: Any) -> None:
    """SIGTERM cleans up as Ctrl-C does."""
    _received.append(_TERMINATED)
    raise KeyboardInterrupt


def interrupted() -> int:
    """The exit code of an interrupt: 143 when it was SIGTERM, else 130."""
    return _received[-1] if _received else _INTERRUPTED
