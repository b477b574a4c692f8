"""The registry: every module in a paper's folder that defines an `ENTRY` reproduces one figure or table.

To add one, add a file there with `ENTRY = Entry(...)`; nothing else changes.
"""

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

from ..errors import InvalidInput
from ..validation import meant
from .partial import resumed
from .printed import Check


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a run: a text with printed and computed values, the files written, and a verdict.

    `ok` means that every number agrees with the printed one except the known errata, and that each erratum is still
    confirmed.
    """

    text: str
    files: tuple[Path, ...]
    ok: bool
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """One figure or table of one paper."""

    name: str
    paper: str
    title: str
    summary: str
    run: Callable[[Path], Outcome]  # writes its files into the folder atomically
    full: Callable[[Path], Outcome] | None = None  # the paper's full setting, if `run` is a quick version
    errata: str = ""  # anchor of the section of docs/errata.md with its errata

    def reproduce(self, out_dir: Path, full: bool = False) -> Outcome:
        """Run it; an interrupted full run resumes with the parts it had finished."""
        if not full or self.full is None:
            return self.run(out_dir)
        with resumed(out_dir / f"{self.name}.partial.json"):
            return self.full(out_dir)


@cache
def _found() -> tuple[Entry, ...]:
    package = __name__.rpartition(".")[0]
    path = import_module(package).__path__
    modules = [import_module(info.name) for info in pkgutil.walk_packages(path, f"{package}.")]
    return tuple(module.ENTRY for module in modules if isinstance(getattr(module, "ENTRY", None), Entry))


def entries() -> dict[str, Entry]:
    """All entries by name, in alphabetical order.

    >>> "must-table-s1" in entries()
    True
    """
    return {entry.name: entry for entry in sorted(_found(), key=lambda entry: entry.name)}


def entry(name: str) -> Entry:
    """The entry with this name; InvalidInput lists the known names."""
    known = entries()
    if name not in known:
        raise InvalidInput(f"the name must be one of {', '.join(known)}, got {name!r} instead{meant(name, known)}")
    return known[name]
