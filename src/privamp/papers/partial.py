"""Finished parts of a long run, saved in its folder so that an interrupted run can resume.

The file is deleted when the run ends. A file written by other code, with other settings or from other data is ignored.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from ..atomic_files import write_atomically
from .data import data_seen


@dataclass(frozen=True, slots=True)
class Parts:
    """The finished parts by name, and the file they are saved in."""

    file: Path
    found: dict[str, list[float]]
    clock: list[float] = field(default_factory=lambda: [time.monotonic()])  # when the file was written last

    def save(self, every: float = 0.0) -> None:
        """Save all of them, unless that was done in the last `every` seconds."""
        if time.monotonic() - self.clock[0] < every:
            return
        self.clock[0] = time.monotonic()
        write_atomically(self.file, json.dumps({"code": _code(), "data": data_seen(), "parts": self.found}).encode())


_EVERY = 5.0  # seconds between two writes; a part may take milliseconds
_CURRENT: ContextVar[Parts | None] = ContextVar("parts of a long run", default=None)


@contextmanager
def resumed(file: Path) -> Iterator[None]:
    """Within the block, `part` looks in this file first and saves there what it computes."""
    parts = Parts(file, _read(file))
    token = _CURRENT.set(parts)
    try:
        yield
    except BaseException:
        if parts.found:
            parts.save()
        raise
    finally:
        _CURRENT.reset(token)
    file.unlink(missing_ok=True)


def part(name: Sequence[object], compute: Callable[[], Iterable[float]]) -> list[float]:
    """The numbers of one part; `name` must state everything that they depend on."""
    parts, key = _CURRENT.get(), json.dumps([str(word) for word in name])
    if parts is None:
        return list(map(float, compute()))
    if key not in parts.found:
        parts.found[key] = list(map(float, compute()))
        parts.save(_EVERY)
    return parts.found[key]


def _read(file: Path) -> dict[str, list[float]]:
    try:
        kept = json.loads(file.read_bytes())
        return dict(kept["parts"]) if (kept["code"], kept["data"]) == (_code(), data_seen()) else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


@cache
def _code() -> str:
    """A digest of privamp's sources: saved parts are valid only for the code that computed them."""
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()
