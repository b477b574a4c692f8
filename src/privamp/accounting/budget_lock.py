"""The lock that every access to a budget store holds beside SQLite's own.

SQLite's locks belong to the process, which loses them when any part of it closes the file; this one (flock) belongs to
one open file, shared for reading and exclusive for writing. A second, fleeting lock hands out turns: a writer waits
with its turn in hand, and readers need one too, so that readers cannot keep a writer out for ever. Turns are only a
matter of fairness. Where the system has no such locks (Windows), SQLite's must do.
"""

import contextlib
import os
from pathlib import Path

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

_TURN = 1 << 62  # a byte that neither SQLite nor any content reaches


class FileLock:
    """Open, ask for a turn, lock; each only once however often it is tried."""

    def __init__(self, path: Path, *, exclusive: bool) -> None:
        self._path = path
        self._exclusive = exclusive
        self._has_turn = False
        self.handle = -1

    def try_once(self) -> bool:
        """True when the lock is held now."""
        if self.handle < 0:
            how = os.O_RDWR if self._exclusive else os.O_RDONLY
            self.handle = os.open(self._path, how | getattr(os, "O_CLOEXEC", 0))
        if fcntl is None:
            return True
        kind = (fcntl.LOCK_EX if self._exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB
        self._has_turn = self._has_turn or _granted(fcntl.lockf, self.handle, kind, 1, _TURN)
        if not self._has_turn or not _granted(fcntl.flock, self.handle, kind):
            return False
        with contextlib.suppress(OSError):
            fcntl.lockf(self.handle, fcntl.LOCK_UN, 1, _TURN)
        return True

    def release(self) -> None:
        """Unlock, also for copies of the handle that a child between fork and exec may have, and close."""
        if self.handle >= 0 and fcntl is not None:
            with contextlib.suppress(OSError):
                fcntl.flock(self.handle, fcntl.LOCK_UN)
        self.forget()

    def forget(self) -> None:
        """Close this copy of the handle; the lock stays with the process that holds another."""
        handle, self.handle, self._has_turn = self.handle, -1, False
        if handle >= 0:
            os.close(handle)


def _granted(lock: object, *arguments: int) -> bool:
    try:
        lock(*arguments)  # type: ignore[operator]
    except (BlockingIOError, PermissionError):
        return False
    return True
