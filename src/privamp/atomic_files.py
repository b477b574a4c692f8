"""Atomic files: written beside the target first, then moved over it."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .errors import InvalidInput

_PRIVATE, _SHARED = 0o600, 0o666


@contextmanager
def draft_of(path: Path, *, private: bool = False, over: bool = True) -> Iterator[Path]:
    """An empty file in the folder of `path`, with its suffix; it gets that name when the block ends without an error.

    With `over` it replaces a file of that name; otherwise it raises FileExistsError, even if the file has just
    appeared.

    It is flushed to the disk before the move, and the move after it, so that a crash or a power cut leaves the old file
    or the new one. A private file is readable by its owner only, from the start.
    """
    draft = _new(path, private)
    try:
        yield draft
        _sync(draft, os.O_RDWR)
        put_in_place(draft, path, over=over)
    finally:
        draft.unlink(missing_ok=True)
    sync_folder(path.parent)


def check_draft(path: Path) -> None:
    """Raise OSError unless a draft of this file can be made; none is left behind."""
    _new(path, private=True).unlink()


def _new(path: Path, private: bool) -> Path:
    draft = path.with_name(f".{path.stem}.{secrets.token_hex(8)}{path.suffix}")
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE if private else _SHARED))
    return draft


def put_in_place(draft: Path, path: Path, *, over: bool) -> None:
    """Give a finished draft its name in one step; without `over` only if the name is free."""
    if over:
        os.replace(draft, path)
        return
    try:
        os.link(draft, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        os.replace(draft, path)
        return
    draft.unlink()


def write_atomically(path: Path, data: bytes, *, private: bool = False) -> Path:
    """Write these bytes atomically: no reader ever sees half a file."""
    if not path.parent.is_dir():
        raise InvalidInput(f"the folder of {path.name!r} must exist, got {str(path.parent)!r} instead; create it first")
    if path.is_dir():
        raise InvalidInput(f"the output must be a file, got the folder {str(path)!r} instead; add a file name")
    with draft_of(path, private=private) as draft:
        draft.write_bytes(data)
    return path


def sync_folder(folder: Path) -> None:
    """Flush a new file name to the disk, where the system supports it."""
    with suppress(OSError):
        _sync(folder, os.O_RDONLY)


def _sync(path: Path, how: int) -> None:
    handle = os.open(path, how)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
