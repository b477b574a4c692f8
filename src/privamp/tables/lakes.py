"""Tables that are more than their files: Delta, Iceberg, Hudi. Read as plain Parquet, erased rows would come back.

Such a table keeps a log of which files, and which of their rows, belong to it. Its old files stay in the folder until
they are cleaned up, with the records of people who asked to be erased.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePath, PurePosixPath

from ..errors import InvalidInput

_LOGS = {"_delta_log": "Delta", ".hoodie": "Hudi", "metadata/*.metadata.json": "Iceberg"}
_DATA = "data"  # the folder of an Iceberg table's files


def check_plain(folders: Sequence[str], exists: Callable[[str, str], bool], way_out: str) -> None:
    """Raise if data belongs to such a table. `folders` are its own and those above it, the innermost first;
    `exists(folder, pattern)` tells whether something of that name is inside."""
    inside = None
    for folder in folders:
        for log, kind in _LOGS.items():
            if (kind != "Iceberg" or inside in (None, _DATA)) and exists(folder, log):
                raise _refusal(folder, kind, way_out)
        inside = PurePosixPath(folder.replace("\\", "/")).name


def check_plain_inside(listed: Iterable[PurePath], root: str, way_out: str) -> None:
    """Raise if a folder below `root` is such a table. `listed` is what lies there, hidden or not, relative to it.

    What an Iceberg table keeps beside its data is not hidden, so it is refused as files of another kind.
    """
    for path in listed:
        for depth, part in enumerate(path.parts):
            if part in _LOGS:
                raise _refusal("/".join([root.rstrip("/"), *path.parts[:depth]]), _LOGS[part], way_out)


def _refusal(folder: str, kind: str, way_out: str) -> InvalidInput:
    return InvalidInput(
        f"{folder!r} is a {kind} table, and its files alone may hold erased or outdated rows; {way_out}"
    )
