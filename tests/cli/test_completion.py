"""What a shell offers after a tab, asked as the shell does."""

import os
import subprocess
import sys

import pytest

ASK = "import sys; sys.argv = ['privamp']; from privamp.cli import main; main()"


def offered(line, folder):
    surroundings = {**os.environ, "_TYPER_COMPLETE_ARGS": line, "_PRIVAMP_COMPLETE": "complete_fish"}
    surroundings["_TYPER_COMPLETE_FISH_ACTION"] = "get-args"
    run = subprocess.run([sys.executable, "-c", ASK], env=surroundings, cwd=folder, capture_output=True, text=True)
    assert not run.stderr
    return run.stdout.split()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "people.csv").write_text("income,age,id\n1,2,3\n", encoding="utf-8")
    (tmp_path / "evil.csv").write_text('age,"\\$(touch PWNED)",`id`,*,a b,ä\n1,2,3,4,5,6\n', encoding="utf-8")
    with (tmp_path / "huge.csv").open("wb") as file:
        file.write(b"income,")
        file.truncate(1 << 34)  # no line ends; a sparse file
    (tmp_path / "broken.parquet").write_text("no table", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("privamp amplify --design pois", ["poisson:", "poisson-pps:"]),
        ("privamp amplify --mechanism gaussian:sigma=2,s", ["gaussian:sigma=2,sensitivity="]),
        ("privamp reproduce sd-f", ["sd-figure-2"]),
        ("privamp query people.csv --mean i", ["income", "id"]),
        ("privamp query broken.parquet --mean i", []),
        ("privamp query evil.csv --mean ", ["age"]),  # a shell would run the others
        ("privamp query huge.csv --mean ", []),
        ("privamp theorem poisson-", ["poisson-1", "poisson-2"]),
    ],
)
def test_the_shell_is_offered(line, wanted, folder):
    assert offered(line, folder) == wanted
