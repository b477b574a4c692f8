"""Who writes into a budget store, where, with which program and when: stored with every entry, for auditors."""

import os
import platform
import socket
import sys
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from .. import __version__


def origin() -> dict[str, Any]:
    """The user as the system knows them, the machine, the process, the program and its versions."""
    return _origin(os.getpid(), os.getuid() if os.name == "posix" else 0, _program())


@lru_cache(maxsize=1)
def _origin(process: int, user: int, program: str) -> dict[str, Any]:
    return {
        "user": _user(),
        "host": socket.gethostname(),
        "process": process,
        "program": program,
        "version": f"privamp {__version__}, Python {platform.python_version()}",
    }


def now() -> str:
    """The time by this machine's clock, UTC. It may go back; the order of entries is that of their numbers."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def plain(value: Any) -> Any:
    """The same with text that a file can hold: half characters become question marks."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {plain(str(key)): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    return value


def _user() -> str:
    if os.name == "posix":
        import pwd

        number = os.getuid()
        try:
            return pwd.getpwuid(number).pw_name
        except KeyError:
            return f"uid {number}"
    return os.environ.get("USERNAME", "unknown")


def _program() -> str:
    """The script's name without its arguments, which may hold secrets."""
    return os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) and sys.argv[0] else "interactive"
