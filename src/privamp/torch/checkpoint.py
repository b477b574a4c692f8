"""Checkpoints: a secret file that is written atomically, and a public file without secrets."""

import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..atomic_files import write_atomically
from ..errors import InvalidInput

FORMAT = 2


def write(path: str | os.PathLike[str], content: Any, *, secret: bool) -> None:
    """Write a file, atomically: a crash leaves the old one or the new one."""
    target = Path(path)
    try:
        write_atomically(target, to_bytes(content), private=secret)
    except PermissionError as error:
        raise InvalidInput(f"{target.name} cannot be written ({error.strerror}); choose another folder") from None


def to_bytes(content: Any) -> bytes:
    """The bytes of such a file."""
    buffer = io.BytesIO()
    torch.save(content, buffer)
    return buffer.getvalue()


def from_bytes(content: bytes) -> dict[str, Any]:
    """The content of such a file."""
    found: dict[str, Any] = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    return found


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """A checkpoint written by `write`; tensors and plain values only, no code is run."""
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise InvalidInput(f"there is no checkpoint {os.fspath(path)!r}; give the file that was saved") from None
    except Exception:
        raise InvalidInput(
            f"{os.fspath(path)!r} is not a checkpoint of a training run; give the file that was saved"
        ) from None
    if not isinstance(content, dict) or content.get("format") != FORMAT or "secret" not in content:
        raise InvalidInput(
            f"{os.fspath(path)!r} is not a secret checkpoint of this version; a published model cannot be resumed"
        )
    return content


def packed(values: dict[str, Any]) -> dict[str, Any]:
    """Arrays as tensors."""
    return {name: torch.from_numpy(v) if isinstance(v, np.ndarray) else v for name, v in values.items()}


def unpacked(values: dict[str, Any]) -> dict[str, Any]:
    """Tensors as arrays."""
    return {name: v.numpy() if isinstance(v, torch.Tensor) else v for name, v in values.items()}
