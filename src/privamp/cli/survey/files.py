"""Secret files, a sample and its key: readable only by their owner and written atomically."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...chance.keys import Key

_PRIVATE = 0o600


def check_output(out: Path, overwrite: bool, *others: Path | None) -> None:
    """Check the file name before anything is drawn."""
    from ...errors import InvalidInput

    if out.suffix.lower() not in (".csv", ".parquet"):
        raise InvalidInput(f"a sample must be named .csv or .parquet, got {out.name!r} instead")
    for other in others:
        if other is not None and os.path.realpath(out) == os.path.realpath(other):
            raise InvalidInput(f"{str(out)!r} is already an input or the key file; write the sample to another file")
    if os.path.lexists(out) and not overwrite:
        raise InvalidInput(f"{str(out)!r} already exists; choose another name, or use --overwrite")
    _check_folder(out)


def _check_folder(path: Path) -> None:
    from ...errors import InvalidInput

    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK) or path.is_dir():
        raise InvalidInput(f"cannot write {str(path)!r}; choose a file in a folder that exists and is writable")


def key_from(path: Path | None) -> "tuple[Key, bool]":
    """The key in a file, or a fresh one, and whether it is fresh."""
    from ...chance.keys import Key
    from ...tables.key_providers import provider

    if path is not None and os.path.lexists(path):
        return provider(path).key(), False
    if path is not None:
        _check_folder(path)
    return Key.generate(), True


def write_secrets(out: Path, table: Any, key: "Key", key_file: Path | None, *, overwrite: bool) -> None:
    """Write the sample and, if `key_file` is given, its fresh key: both or neither."""
    from pyarrow.lib import ArrowException

    from ...atomic_files import draft_of
    from ...errors import InvalidInput

    made_key = False
    try:
        with draft_of(out, private=True, over=overwrite) as part:
            _writer(out)(table, part)
            if key_file is not None:
                handle = os.open(key_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE)
                made_key = True
                with os.fdopen(handle, "w", encoding="ascii") as file:
                    file.write(key.secret_bytes().hex() + "\n")
        made_key = False
    except ArrowException:
        raise InvalidInput(f"a column cannot be written as {out.suffix}; write .parquet, or drop the column") from None
    except OSError as error:
        why = error.strerror or "no reason given"
        raise InvalidInput(f"cannot write {str(error.filename or out)!r} ({why}); nothing was written") from None
    finally:
        if made_key and key_file is not None:
            key_file.unlink(missing_ok=True)


def _writer(out: Path) -> Callable[[Any, Path], None]:
    if out.suffix.lower() == ".csv":
        from pyarrow import csv

        return lambda table, part: csv.write_csv(table, part)

    from pyarrow import parquet

    return lambda table, part: parquet.write_table(table, part)


def typed(column: Any) -> Any:
    """Columns of text that are all whole numbers or all numbers, converted; '007' stays text."""
    import pyarrow as pa
    from pyarrow import compute

    filled = compute.if_else(compute.equal(column, ""), None, column)
    for kind in (pa.int64(), pa.float64()):
        try:
            numbers = compute.cast(filled, kind)
        except pa.lib.ArrowException:
            continue
        is_same = kind != pa.int64() or compute.cast(numbers, filled.type).equals(filled)
        return numbers if is_same else column
    return column
