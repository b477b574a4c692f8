"""The file of a budget store: who may use it, that it is still the same file, and one transaction at a time.

SQLite with a rollback journal: what is committed is in the main file, on disk, before it is acknowledged
(synchronous=EXTRA), so a plain copy of the file holds it, and a reader needs no right to write. Every transaction has
a connection of its own (budget_gate.py says why) and a lock beside SQLite's (budget_lock.py).
"""

import contextlib
import os
import random
import sqlite3
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from ..errors import InvalidInput, PrivampError
from .budget_chain import Broken
from .budget_gate import GATE
from .budget_lock import FileLock

PATIENCE = 60.0  # seconds to wait for other processes
_LONGEST = 255 - len("-journal")  # bytes of a name
_OTHERS = stat.S_IRWXO
_GROUP = stat.S_IRWXG
_DAMAGED = "{name} is not a privamp budget store, or it is damaged{where}; give another file, or restore a copy"
_GONE = (
    "{name} was moved, deleted or replaced while it was in use, and {result}; restore it, or start again after "
    "'privamp budget verify'"
)
_KEPT, _LOST = "nothing was spent", "the cost may be counted in the file that is gone"
_LEAKED: list[sqlite3.Connection] = []  # connections of a parent process: SQLite forbids even closing them

Identity = tuple[int, int]  # device and inode


def exists(path: str | os.PathLike[str]) -> bool:
    """Whether a file of this name exists; raises for invalid names."""
    name = os.path.basename(os.fspath(path))
    if "\0" in os.fspath(path) or len(os.fsencode(name)) > _LONGEST:
        raise InvalidInput(
            f"a budget store needs a name of at most {_LONGEST} bytes without NUL, with room for its journal's; "
            "choose a shorter one"
        )
    return os.path.lexists(path)


class StoreFile:
    """A path and the file that was found there first; any other file under the path is refused."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(os.path.abspath(path))
        try:
            found = self.path.is_file()
        except (OSError, ValueError):  # a loop of links, a name that no file can have
            found = False
        if not found:
            raise InvalidInput(f"there is no budget store at {self.path.name!r}; create one first")
        self.identity: Identity | None = None
        with self._explained(), GATE.passed():  # closing the file gives SQLite's locks away
            handle = os.open(self.path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
            try:
                self.identity = self._checked(handle)
            finally:
                os.close(handle)

    @property
    def name(self) -> str:
        """The file's name as messages print it."""
        return self.path.name

    def check_rights(self, *, shared: bool) -> None:
        """Refuse to write where other users could: 0600, or 0660 for a store that is shared with a group."""
        with self._explained():
            mode = stat.S_IMODE(os.stat(self.path).st_mode)
        if os.name == "posix" and mode & (_OTHERS if shared else _OTHERS | _GROUP):
            right = "660" if shared else "600"
            raise InvalidInput(
                f"{self.name} is open to other users (mode {mode:04o}), so its entries cannot be trusted; check "
                f"them with 'privamp budget verify', then chmod {right} it, or create it for a group"
            )

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A transaction that sees one moment and writes nothing."""
        with self._explained():
            self._recover()
            with self._access("ro", "BEGIN") as connection:
                yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that nobody else reads or writes in; on disk when the block ends, undone when it fails."""
        with self._explained(), self._access("rw", "BEGIN EXCLUSIVE") as connection:
            yield connection

    # -- one access ---------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _access(self, mode: str, begin: str) -> Iterator[sqlite3.Connection]:
        process = os.getpid()
        lock, connection = self._begun(mode, begin)
        try:
            self._checked(lock.handle)
            yield connection
            self._checked(lock.handle)
            _stop_in_a_fork(process)
            connection.execute("COMMIT")
            self._checked(lock.handle, done=True)
        finally:
            if process == os.getpid():
                connection.close()  # a transaction that did not come to its end is rolled back
                lock.release()
                GATE.leave()
            else:
                _LEAKED.append(connection)
                lock.forget()

    def _begun(self, mode: str, begin: str) -> tuple[FileLock, sqlite3.Connection]:
        """Through the gate, locked and in a transaction; tried again while other processes are in the way."""
        deadline, lock = time.monotonic() + PATIENCE, FileLock(self.path, exclusive=mode == "rw")
        try:
            while True:
                GATE.enter()
                connection = None
                try:
                    if lock.try_once():
                        connection = self._connected(mode, begin)
                        if connection is not None:
                            return lock, connection
                        lock.release()
                finally:
                    if connection is None:
                        GATE.leave()
                if time.monotonic() > deadline:
                    raise PrivampError(
                        f"{self.name} was busy for {PATIENCE:.0f} seconds, so nothing was spent; try again"
                    )
                time.sleep(random.uniform(0.0005, 0.004))
        except BaseException:
            lock.release()
            raise

    def _connected(self, mode: str, begin: str) -> sqlite3.Connection | None:
        """A connection in a transaction; None while a program other than privamp holds SQLite's locks."""
        connection = self._connect(mode)
        try:
            connection.execute(begin)
        except BaseException as error:
            connection.close()
            if _is_busy(error):
                return None
            raise
        return connection

    def _connect(self, mode: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"file:{quote(os.fsencode(self.path))}?mode={mode}", uri=True, timeout=0.0, isolation_level=None
        )
        for setting in ("trusted_schema = OFF", "cell_size_check = ON", "synchronous = EXTRA", "fullfsync = ON"):
            connection.execute(f"PRAGMA {setting}")
        return connection

    def _checked(self, handle: int, *, done: bool = False) -> Identity:
        """The file's identity; refuses one that was moved, deleted or replaced, or that has a second name."""
        held, named = os.fstat(handle), _stat_or_none(self.path)
        identity = (held.st_dev, held.st_ino)
        if named is None or (named.st_dev, named.st_ino) != identity or self.identity not in (None, identity):
            raise PrivampError(_GONE.format(name=self.name, result=_LOST if done else _KEPT))
        if held.st_nlink > 1 and not self._drop_draft(identity):
            raise InvalidInput(
                f"{self.name} has a second name (a hard link), under which a crash would go unnoticed; remove that name"
            )
        return identity

    def _drop_draft(self, identity: Identity) -> bool:
        """Remove the other name that a kill leaves behind while a store is made."""
        for other in self.path.parent.glob(".privamp.*.draft"):
            found = _stat_or_none(other)
            if found is not None and (found.st_dev, found.st_ino) == identity:
                with contextlib.suppress(OSError):
                    other.unlink()
        return os.stat(self.path).st_nlink == 1

    def _recover(self) -> None:
        """Undo what a crashed program left half-written; SQLite does it for whoever may write."""
        journal = Path(f"{os.path.realpath(self.path)}-journal")  # beside the file itself, whatever link led to it
        if journal.exists() and os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK):
            with self._access("rw", "BEGIN EXCLUSIVE"):
                pass

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """SQLite's and the system's errors as one sentence."""
        try:
            yield
        except Broken as error:
            raise InvalidInput(_DAMAGED.format(name=self.name, where=f" ({error})")) from None
        except sqlite3.OperationalError as error:
            raise self._operational(error) from None
        except (sqlite3.DatabaseError, UnicodeDecodeError, OverflowError):  # a broken schema may name what is no text
            raise InvalidInput(_DAMAGED.format(name=self.name, where="")) from None
        except FileNotFoundError:
            raise PrivampError(_GONE.format(name=self.name, result=_KEPT)) from None
        except OSError as error:
            raise PrivampError(self._unusable(error.strerror or "no reason given")) from None

    def _operational(self, error: sqlite3.OperationalError) -> PrivampError:
        name = getattr(error, "sqlite_errorname", None) or ""
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return PrivampError(f"{self.name} was busy, so nothing was spent; try again")
        if name == "SQLITE_READONLY_DBMOVED" or not self.path.exists():
            return PrivampError(_GONE.format(name=self.name, result=_KEPT))
        if name.startswith(("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
            return PrivampError(self._unusable(str(error)))
        return InvalidInput(_DAMAGED.format(name=self.name, where=""))

    def _unusable(self, why: str) -> str:
        return (
            f"{self.name} could not be read or written ({why}), so nothing was spent; check the disk and the "
            "permissions"
        )


def _stop_in_a_fork(process: int) -> None:
    if process != os.getpid():
        raise PrivampError("this process was forked in the middle of a budget transaction, so it spends nothing")


def _stat_or_none(path: Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None


def _is_busy(error: BaseException) -> bool:
    name = getattr(error, "sqlite_errorname", None) or ""
    return isinstance(error, sqlite3.OperationalError) and name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))
