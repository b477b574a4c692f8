"""Where the data files of the experiments lie; the project does not carry them."""

import os
from pathlib import Path

from ..errors import InvalidInput


def shared_file(name: str) -> Path:
    """A data file that the project does not carry."""
    roots = [os.environ.get("PRIVAMP_SHARED"), Path.cwd() / "shared", Path.cwd().parent / "shared"]
    files = [Path(root) / "data" / name for root in roots if root]
    for file in files:
        if file.is_file():
            return file
    raise InvalidInput(
        f"this experiment needs the data file {name}, which is not here; put it into a folder shared/data beside the "
        "folder you work in, or set PRIVAMP_SHARED to the folder that holds data/"
    )
