"""Files that hold a sample: readable only by their owner, written atomically, with metadata about the draw.

Rows go to a hidden file beside the target, which is renamed once everything is on disk. A failure, an interrupt or a
full disk removes it. What a killed process leaves behind is overwritten by the next try; a running process holds a lock
on it. A finished file is never replaced without permission: the hidden file is renamed only if the name is free, and a
writer that waited for another one checks that its file is still the hidden one.
"""

import json
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..atomic_files import put_in_place, sync_folder
from ..errors import InvalidInput
from ..extras import missing
from .one_thread import one_after_another
from .pieces import Piece

try:
    import pyarrow as pa
except ModuleNotFoundError as error:
    raise missing(error, "storing a sample") from None

SECRET = "who is in this file is secret: the amplified guarantee is void once anyone sees it; a sample is not a release"
_MARK = b"privamp"
_VERSION = 1
_PRIVATE = 0o600
_FACTS = ("design", "label", "round", "reads", "clip", "ledger_id", "key_fingerprint")
_GROUP_ROWS = 1 << 17
_GROUP_BYTES = 1 << 26
_BUFFER = 1 << 22  # bytes that are written at once
_SUFFIXES = (".parquet", ".pq", ".feather", ".arrow")


def described(schema: pa.Schema, facts: dict[str, Any]) -> pa.Schema:
    """The schema with the public facts of the draw in its metadata."""
    text = json.dumps({"version": _VERSION, "secret": SECRET, **facts}, ensure_ascii=False)
    return schema.with_metadata({_MARK: text.encode()})


def described_in(pieces: Sequence[Piece], path: str | os.PathLike[str]) -> dict[str, Any]:
    """The facts that `described` put there."""
    metadata = pieces[0].fragment.physical_schema.metadata or {} if pieces else {}
    try:
        facts: dict[str, Any] = json.loads(metadata[_MARK])
        known = {name: facts[name] for name in _FACTS}
        return known | {
            "identity_version": facts.get("identity_version"),  # None: written before the field existed
            "assumes": [str(sentence) for sentence in facts.get("assumes", ())],
        }
    except (KeyError, ValueError):
        raise InvalidInput(f"{os.fspath(path)!r} was not written as a sample by privamp; draw one first") from None


def check_output(out: str | os.PathLike[str], overwrite: bool = False) -> Path:
    """Check the file name before anything is read."""
    path = Path(out)
    if str(path).lower().startswith("file:"):  # it would be read again from another place than it was written to
        raise InvalidInput(f"a sample is written to a path, got the address {os.fspath(out)!r} instead; omit file://")
    if path.suffix.lower() not in _SUFFIXES:
        raise InvalidInput(f"a sample must be named .parquet or .feather, got {path.name!r} instead")
    if os.path.lexists(path) and not overwrite:
        raise InvalidInput(f"{str(path)!r} already exists; choose another name, or allow overwriting")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK) or path.is_dir():
        raise InvalidInput(f"cannot write {str(path)!r}; choose a file in a folder that exists and is writable")
    return path


@contextmanager
def private_writer(
    out: str | os.PathLike[str], schema: pa.Schema, *, id: str | None = None, overwrite: bool = False
) -> Iterator[Callable[[pa.RecordBatch], None]]:
    """Write batches; the file appears when the block ends without an error. The column `id` holds no value twice."""
    path = check_output(out, overwrite)
    part = path.with_name(f".{path.name}.part")
    try:
        with _locked(part) as handle, os.fdopen(os.dup(handle), "wb") as file:
            try:
                with (
                    _buffered(file) as sink,
                    _writer(path, sink, schema, id) as write,
                    one_after_another(write) as later,
                ):
                    grouped = _Grouped(later, schema)
                    yield grouped.add
                    grouped.flush()
                os.fsync(handle)
                check_output(out, overwrite)
                put_in_place(part, path, over=overwrite)
            except BaseException:
                part.unlink(missing_ok=True)
                raise
    except FileExistsError:
        raise InvalidInput(f"{str(path)!r} already exists: another program was faster; nothing was replaced") from None
    except OSError as error:
        why = error.strerror or "no reason given"
        raise InvalidInput(f"cannot write {str(path)!r} ({why}); nothing was written") from None
    except pa.ArrowException:
        raise InvalidInput(f"a column cannot be written as {path.suffix}; leave it out with columns=…") from None
    sync_folder(path.parent)


@contextmanager
def _locked(part: Path) -> Iterator[int]:
    """The hidden file, empty, private and ours as long as it is open."""
    handle = _hidden(part)
    if os.name == "posix" and os.fstat(handle).st_nlink > 1:  # a process was killed before it could remove this name
        part.unlink()
        os.close(handle)
        handle = _hidden(part)
    try:
        os.ftruncate(handle, 0)
        yield handle
    finally:
        os.close(handle)


def _hidden(part: Path) -> int:
    """The file under the hidden name, opened and locked."""
    handle = os.open(part, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), _PRIVATE)
    try:
        if os.name == "posix":
            import fcntl

            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InvalidInput(f"another process is writing {str(part)!r}; wait for it") from None
            held = os.fstat(handle)
            if not stat.S_ISREG(held.st_mode):
                raise InvalidInput(f"{str(part)!r} is in the way; remove it")
            if not _is_named(part, held):  # its writer has finished in the meantime: this is now the finished file
                raise InvalidInput(f"another process has just written {str(part)!r}; try again")
            os.fchmod(handle, _PRIVATE)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _is_named(part: Path, held: os.stat_result) -> bool:
    try:
        named = os.stat(part, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino)


@contextmanager
def _buffered(file: Any) -> Iterator[Any]:
    """What Arrow writes to: large parts at a time, because each of them takes a turn of Python's. Closes the file."""
    sink = pa.BufferedOutputStream(pa.PythonFile(file, mode="w"), _BUFFER)
    try:
        yield sink
    except BaseException:
        with suppress(OSError, pa.ArrowException):
            sink.close()
        raise
    sink.close()


class _Grouped:
    """Collects small batches into row groups of a useful size, independent of the threads."""

    def __init__(self, write: Callable[[pa.Table], None], schema: pa.Schema) -> None:
        self._write, self._schema = write, schema
        self._batches: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Add a few rows."""
        self._batches.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= _GROUP_ROWS or self._bytes >= _GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what was collected."""
        if self._rows:
            self._write(pa.Table.from_batches(self._batches).replace_schema_metadata(self._schema.metadata))
        self._batches, self._rows, self._bytes = [], 0, 0


@contextmanager
def _writer(path: Path, file: Any, schema: pa.Schema, id: str | None) -> Iterator[Callable[[pa.Table], None]]:
    if path.suffix.lower() in (".feather", ".arrow"):
        with pa.ipc.new_file(file, schema) as writer:
            yield lambda rows: writer.write_table(rows.combine_chunks())
        return
    from pyarrow import parquet

    with parquet.ParquetWriter(file, schema, use_dictionary=_dictionaries(schema, id)) as writer:
        yield lambda rows: writer.write_table(rows.combine_chunks())


def _dictionaries(schema: pa.Schema, id: str | None) -> list[str]:
    """All columns but the ids and those of floats, which seldom repeat: collecting their values takes ten times as long
    as writing them."""
    from pyarrow import parquet

    sink = pa.BufferOutputStream()
    parquet.write_metadata(schema, sink)
    leaves = parquet.ParquetFile(pa.BufferReader(sink.getvalue())).schema
    columns = [leaves.column(k) for k in range(len(leaves))]
    repeated = [column for column in columns if column.physical_type not in ("FLOAT", "DOUBLE")]
    return [column.path for column in repeated if column.path != id]
