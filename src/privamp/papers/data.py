"""Find the data files of the experiments, which the project does not ship."""

import gzip
import os
import zipfile
import zlib
from pathlib import Path

from ..errors import InvalidInput


def _folders() -> list[Path]:
    roots = [os.environ.get("PRIVAMP_SHARED"), Path.cwd() / "shared", Path.cwd().parent / "shared"]
    return [Path(root) / "data" for root in roots if root]


def data_seen() -> list[list[str | int]]:
    """Name, size and time of every data file at hand: if they are the same, a later run reads the same data."""
    files = [file for folder in _folders() if folder.is_dir() for file in sorted(folder.iterdir()) if file.is_file()]
    return [[file.name, (told := file.stat()).st_size, told.st_mtime_ns] for file in files]


def shared_file(name: str) -> Path:
    """The path of a data file that the project does not ship."""
    for file in (folder / name for folder in _folders()):
        if file.is_file():
            _check(file)
            return file
    raise InvalidInput(
        f"this experiment needs the data file {name}, which was not found; put it into a folder shared/data in "
        "or next to the working directory, or set PRIVAMP_SHARED to the folder that contains data/"
    )


def _check(file: Path) -> None:
    """Turn a damaged or unreadable file into one clear error."""
    try:
        if file.suffix == ".gz":
            with gzip.open(file) as content:
                while content.read(1 << 20):
                    pass
        elif not zipfile.is_zipfile(file):
            raise EOFError
    except (OSError, EOFError, zlib.error):
        raise InvalidInput(
            f"the data file {file.name} cannot be read or is damaged; replace it with a complete copy"
        ) from None
