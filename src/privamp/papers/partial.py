"""Finished parts of a long run, kept in its folder so that a run that was stopped goes on where it was.

The file is removed when the run ends. One made by other code, or of other numbers of anything, is not used.
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


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts that are finished, by name, and the file they are kept in."""

    file: Path
    found: dict[str, list[float]]
    clock: list[float] = field(default_factory=lambda: [time.monotonic()])  # when the file was written last

    def save(self, every: float = 0.0) -> None:
        """Write all of them, unless that was done in the last `every` seconds."""
        if time.monotonic() - self.clock[0] < every:
            return
        self.clock[0] = time.monotonic()
        write_atomically(self.file, json.dumps({"code": _code(), "parts": self.found}).encode())


_EVERY = 5.0  # seconds between two writes; a part may take milliseconds
_CURRENT: ContextVar[Parts | None] = ContextVar("parts of a long run", default=None)


@contextmanager
def resumed(file: Path) -> Iterator[None]:
    """Within the block `part` looks into this file first and keeps there what it had to compute."""
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
    """The numbers of one part; `name` holds everything that they depend on."""
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
        return dict(kept["parts"]) if kept["code"] == _code() else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


@cache
def _code() -> str:
    """A digest of privamp's sources: kept parts count only for the code that made them."""
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()
