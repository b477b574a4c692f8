"""The papers' data, which do not ship."""

import os
from pathlib import Path

import pytest


@pytest.fixture
def shared(monkeypatch):
    """The folder that holds data/; without it the test is skipped."""
    folder = Path(os.environ.get("PRIVAMP_SHARED", Path(__file__).parents[3] / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip("the data files are not here; set PRIVAMP_SHARED to the folder that holds data/")
    monkeypatch.setenv("PRIVAMP_SHARED", str(folder))
    return folder
