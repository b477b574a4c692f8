"""Tables that are more than their files: Delta, Iceberg, Hudi. Read as plain Parquet, erased rows would come back.

Such a table keeps a log of which files, and which of their rows, belong to it. Its old files stay in the folder until
they are cleaned up, with the records of people who asked to be erased.
"""

from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

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
                raise InvalidInput(
                    f"{folder!r} is a {kind} table, and its files alone may hold erased or outdated rows; {way_out}"
                )
        inside = PurePosixPath(folder.replace("\\", "/")).name
