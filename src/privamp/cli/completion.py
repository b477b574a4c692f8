"""Shell completion: specs word by word and key by key, reproductions, columns of the given file.

`privamp --install-completion` sets it up. Completion must be fast and never fail: only the start of a table is read,
and an unreadable file has no columns. Shells evaluate completions, and the header of a table is untrusted text: only
names of plain characters are offered.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..core.words import Word

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_LONGEST_HEADER = 1 << 16


def designs(incomplete: str) -> list[str]:
    """Specs of designs and schedules.

    >>> designs("pois")
    ['poisson:', 'poisson-pps:']
    >>> designs("wor:si"), designs("wor:size=10,")
    (['wor:size='], ['wor:size=10,population='])
    """
    from ..spec import DESIGNS, SCHEDULES

    return _specs(incomplete, DESIGNS | SCHEDULES)


def mechanisms(incomplete: str) -> list[str]:
    """Specs of mechanisms.

    >>> mechanisms("gaussian:sigma=2,sen")
    ['gaussian:sigma=2,sensitivity=']
    """
    from ..spec import MECHANISMS

    return _specs(incomplete, MECHANISMS)


def reproductions(incomplete: str) -> list[str]:
    """Names of the papers' tables and figures.

    >>> reproductions("sd-f")
    ['sd-figure-2']
    """
    from ..papers.registry import entries

    return _starting(incomplete, ("list", "all", *entries()))


def theorems(incomplete: str) -> list[str]:
    """Ids of theorems."""
    from ..proofs import proofs

    return _starting(incomplete, proofs())


def columns(incomplete: str) -> list[str]:
    """Columns of the first table on the command line so far."""
    names = next(filter(None, map(_header, _typed())), [])
    return _starting(incomplete, filter(_PLAIN.fullmatch, names))


def _typed() -> list[str]:
    """The words before the cursor. Click has not parsed them all yet: the option that is completed has no value."""
    import os
    import shlex

    line = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")
    try:
        return shlex.split(line)
    except ValueError:  # a quote is still open
        return line.split()


def _specs(incomplete: str, words: Mapping[str, Word]) -> list[str]:
    name, colon, rest = incomplete.partition(":")
    if not colon:
        return [f"{word}:" for word in _starting(name, words)]
    if name not in words:
        return []
    *given, last = rest.split(",")
    taken = {item.partition("=")[0] for item in given}
    before = "".join(f"{item}," for item in given)
    keys = (*words[name].required, *words[name].optional)
    return [f"{name}:{before}{key}=" for key in _starting(last, keys) if key not in taken]


def _starting(incomplete: str, words: Iterable[str]) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]


def _header(word: str) -> list[str]:
    path = Path(word)
    try:
        if path.suffix == ".parquet" and path.is_file():
            import pyarrow.parquet as parquet

            return list(parquet.read_schema(path).names)
        if path.suffix == ".csv" and path.is_file():
            import csv

            with path.open(encoding="utf-8-sig", newline="") as lines:
                header = lines.readline(_LONGEST_HEADER)
            return next(csv.reader([header]), []) if header.endswith("\n") else []
    except Exception:  # the shell shows nothing rather than a traceback
        pass
    return []
