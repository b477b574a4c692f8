"""Where the data files of the experiments lie; the project does not carry them."""

import gzip
import os
import zipfile
import zlib
from pathlib import Path

from ..errors import InvalidInput


def shared_file(name: str) -> Path:
    """A data file that the project does not carry."""
    roots = [os.environ.get("PRIVAMP_SHARED"), Path.cwd() / "shared", Path.cwd().parent / "shared"]
    files = [Path(root) / "data" / name for root in roots if root]
    for file in files:
        if file.is_file():
            _check(file)
            return file
    raise InvalidInput(
        f"this experiment needs the data file {name}, which is not here; put it into a folder shared/data beside the "
        "folder you work in, or set PRIVAMP_SHARED to the folder that holds data/"
    )


def _check(file: Path) -> None:
    """A file that is damaged, or may not be read, is one sentence."""
    try:
        if file.suffix == ".gz":
            with gzip.open(file) as content:
                while content.read(1 << 20):
                    pass
        elif not zipfile.is_zipfile(file):
            raise EOFError
    except (OSError, EOFError, zlib.error):
        raise InvalidInput(
            f"the data file {file.name} cannot be read or is damaged; put a whole copy in its place"
        ) from None
