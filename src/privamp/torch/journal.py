"""The journal of a run beside its checkpoint: which steps were begun, and every noisy sum before it is used.

A step is released once. Its attempt is recorded before anything of it is drawn, and its noisy sum before the optimiser
uses it. After a crash a stored noisy sum is used again, which costs nothing; a step that was begun without one counts
as spent and is repeated with fresh randomness. Which of the two happens depends on what the file holds, never on a
comparison of sums. SECRET, like the checkpoint: it holds norms.

The file begins with a mark of the program that writes it. A program that resumes the run puts its own mark there, and
the earlier one can no longer write.
"""

import contextlib
import io
import os
import pickle
import secrets
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from ..atomic_files import sync_folder
from ..errors import InvalidInput, PrivampError

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

_KIND = b"privamp\x02"
_MARK = 16  # bytes after it
_HEAD = len(_KIND) + _MARK
_LENGTH = 8  # bytes before each entry
_BROKEN = (EOFError, RuntimeError, ValueError, OSError, pickle.UnpicklingError, zipfile.BadZipFile)


class Journal:
    """An append-only file; `empty` drops its entries when a checkpoint holds everything."""

    def __init__(self, checkpoint: Path) -> None:
        self.path = checkpoint.with_name(checkpoint.name + ".steps")
        self.mark = secrets.token_bytes(_MARK)
        self._end = _HEAD  # what lies behind it was cut off by an error

    @contextlib.contextmanager
    def taken_over(self) -> Iterator[None]:
        """No other program writes during this block; after it the journal is empty and belongs to this program."""
        with self._opened(os.O_CREAT) as handle:
            yield
            os.pwrite(handle, _KIND + self.mark, 0)  # first, so that a journal always has an owner
            self._write(handle, _HEAD, b"")
        sync_folder(self.path.parent)

    def append(self, entry: dict[str, Any]) -> None:
        """Write one entry and wait until it is on the disk."""
        buffer = io.BytesIO()
        torch.save(entry, buffer)
        content = buffer.getvalue()
        with self.mine() as handle:
            self._write(handle, self._end, len(content).to_bytes(_LENGTH, "little") + content)

    def empty(self, handle: int) -> None:
        """Forget every entry, in `mine`."""
        self._write(handle, _HEAD, b"")

    @contextlib.contextmanager
    def mine(self) -> Iterator[int]:
        """The open file, while no other program may write it; raises if another one resumed the run."""
        with self._opened() as handle:
            if os.pread(handle, _HEAD, 0) != _KIND + self.mark:
                raise InvalidInput(
                    f"another program resumed this training from the checkpoint beside {self.path.name}, so nothing "
                    "more is drawn here; run only one of them"
                )
            yield handle

    def stored(self) -> tuple[bytes | None, Iterator[dict[str, Any]]]:
        """The mark of the program that wrote the file, and its entries up to one that a crash cut off."""
        content = self.path.read_bytes() if self.path.exists() else b""
        if not content.startswith(_KIND):
            return None, _entries(content, 0)
        return content[len(_KIND) : _HEAD], _entries(content, _HEAD)

    def remove(self) -> None:
        """Delete the file."""
        self.path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _opened(self, how: int = 0) -> Iterator[int]:
        try:
            handle = os.open(self.path, os.O_RDWR | how, 0o600)
        except FileNotFoundError:
            if not self.path.parent.is_dir():
                raise InvalidInput(
                    f"the folder of {self.path.name!r} must exist, got {str(self.path.parent)!r} instead; create it "
                    "first"
                ) from None
            raise InvalidInput(
                f"{self.path.name} was moved or deleted while it was in use, so nothing more is drawn; save the run "
                "with engine.save(…) under another name and continue from there"
            ) from None
        except OSError as error:
            raise InvalidInput(
                f"{self.path.name} cannot be written ({error.strerror}); choose a folder that exists"
            ) from None
        try:
            if fcntl is not None:
                with contextlib.suppress(OSError):  # a file system without locks
                    fcntl.flock(handle, fcntl.LOCK_EX)
            yield handle
        finally:
            os.close(handle)

    def _write(self, handle: int, at: int, content: bytes) -> None:
        """Put this at a place, as the file's end, on the disk. What an error cuts off is written over the next time."""
        try:
            os.ftruncate(handle, at)
            view, place = memoryview(content), at
            while view:
                written = os.pwrite(handle, view, place)
                view, place = view[written:], place + written
            os.fsync(handle)
        except OSError as error:
            raise PrivampError(
                f"{self.path.name} could not be written ({error.strerror}), so the run stopped; free some space and "
                "continue"
            ) from None
        self._end = at + len(content)


def _entries(content: bytes, start: int) -> Iterator[dict[str, Any]]:
    while start + _LENGTH <= len(content):
        stop = start + _LENGTH + int.from_bytes(content[start : start + _LENGTH], "little")
        try:
            yield torch.load(io.BytesIO(content[start + _LENGTH : stop]), map_location="cpu", weights_only=True)
        except _BROKEN:
            return
        start = stop
