"""The journal of a run beside its checkpoint: which steps were begun, and every noisy sum before it is used.

A step is released once. Its attempt is written down before anything of it is drawn, and its noisy sum before the
optimiser sees it. After a crash a stored noisy sum is used again, which costs nothing; a step that was begun and left
none is counted as spent and made anew, with other coins and other noise. Which of the two happens depends on what the
file holds, never on a comparison of sums. SECRET, like the checkpoint: it holds norms.
"""

import io
import os
import pickle
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from ..errors import InvalidInput

_LENGTH = 8  # bytes before each entry
_BROKEN = (EOFError, RuntimeError, ValueError, OSError, pickle.UnpicklingError, zipfile.BadZipFile)


class Journal:
    """An append-only file; `restart` empties it when a checkpoint holds everything."""

    def __init__(self, checkpoint: Path) -> None:
        self.path = checkpoint.with_name(checkpoint.name + ".steps")

    def append(self, entry: dict[str, Any]) -> None:
        """Write one entry and wait until it is on the disk."""
        buffer = io.BytesIO()
        torch.save(entry, buffer)
        content = buffer.getvalue()
        handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(handle, "ab") as file:
            file.write(len(content).to_bytes(_LENGTH, "little") + content)
            file.flush()
            os.fsync(file.fileno())

    def restart(self) -> None:
        """Forget every entry."""
        try:
            handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        except OSError as error:
            raise InvalidInput(
                f"{self.path.name} cannot be written ({error.strerror}); choose a folder that exists"
            ) from None
        with os.fdopen(handle, "wb") as file:
            os.fsync(file.fileno())

    def entries(self) -> Iterator[dict[str, Any]]:
        """What was written, in order, up to an entry that a crash cut off."""
        if not self.path.exists():
            return
        content, start = self.path.read_bytes(), 0
        while start + _LENGTH <= len(content):
            stop = start + _LENGTH + int.from_bytes(content[start : start + _LENGTH], "little")
            try:
                yield torch.load(io.BytesIO(content[start + _LENGTH : stop]), map_location="cpu", weights_only=True)
            except _BROKEN:
                return
            start = stop
