from collections.abc import Callable

import pytest
from typer.testing import CliRunner

from privamp.cli.application import app


@pytest.fixture
def privamp(tmp_path, monkeypatch) -> Callable:
    """Run `privamp` in this process, in an empty folder; the result has exit_code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str):
        return CliRunner().invoke(app, list(arguments), prog_name="privamp")

    return run
