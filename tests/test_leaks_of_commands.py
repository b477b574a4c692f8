"""No command shows a record's value, an id, a key or the realised size of a sample: in text, JSON, HTML or its log.

A command that has no case here fails the test: give it one, or list it among those that take no records.
"""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from canaries import NAMES, SECRET, VALUES, leaks
from privamp.cli.application import app


def leaves(command, path=()) -> list[tuple[str, ...]]:
    if hasattr(command, "commands"):
        return [leaf for name, part in command.commands.items() for leaf in leaves(part, (*path, name))]
    return [path]


TAKES_NO_RECORDS = {
    ("amplify",), ("compare",), ("calibrate",), ("weights",), ("reproduce",), ("demo",), ("budget", "create"),
    ("budget", "show"), ("budget", "log"), ("budget", "cancel"), ("budget", "head"), ("budget", "verify"),
    ("budget", "backup"),
    ("budget", "rotate-key"), ("budget", "migrate"), ("audit", "designs"), ("audit", "release"), ("audit", "workloads"),
    ("audit", "bounds"), ("audit", "mistakes"), ("audit", "records"), ("verify",), ("theorem",), ("example",),
    ("serve",),
}  # fmt: skip
RECORDS = {
    ("survey", "plan"): [["people.csv", "--size", "60", "--value", "value", "--bounds", "0:9000", "--epsilon", "1"]],
    ("survey", "draw"): [
        ["people.csv", "--id", "id", "--design", "poisson:rate=0.5", "--out", "drawn.csv"],
        ["people.csv", "--id", "value", "--design", "poisson:rate=0.5", "--out", "bad.csv"],
        ["people.csv", "--id", "mixed", "--design", "poisson:rate=0.5", "--out", "bad.csv"],
    ],
    ("survey", "pilot"): [
        ["people.csv", "--size", "60", "--value", "value", "--bounds", "0:9000", "--epsilon", "1",
         "--report", "p.html"],
        ["people.csv", "--size", "60", "--value", "mixed", "--bounds", "0:9000", "--epsilon", "1"],
        ["people.csv", "--size", "60", "--value", "id", "--bounds", "0:9000", "--epsilon", "1"],
    ],
    ("survey", "estimate"): [
        ["people.csv", "--size", "60", "--value", "value", "--bounds", "0:9000", "--epsilon", "1"],
        ["people.csv", "--size", "60", "--value", "mixed", "--bounds", "0:9000", "--epsilon", "1"],
        ["people.csv", "--size", "60", "--value", "id", "--bounds", "0:9000", "--epsilon", "1"],
        ["people.csv", "--size", "60", "--value", "mixed", "--value", "value", "--bounds", "0:9000", "--epsilon", "1",
         "--by", "id", "--groups", "a,b"],
    ],
    ("bootstrap",): [
        ["people.csv", "--column", "value", "--bounds", "0:9000", "--report", "b.html"],
        ["people.csv", "--column", "mixed", "--bounds", "0:9000"],
        ["people.csv", "--column", "id", "--bounds", "0:9000"],
    ],
    ("query",): [
        ["people.csv", "--mean", "value", "--median", "mixed", "--bounds", "0:9000", "--epsilon", "1",
         "--report", "q.html"],
        ["people.csv", "--count", "--by", "value", "--values", "a,b", "--epsilon", "1"],
        ["people.csv", "--sum", "id", "--histogram", "value:4", "--bounds", "0:9000", "--epsilon", "1",
         "--rate", "0.5"],
    ],
    ("kmeans",): [
        [
            "people.csv", "--k", "2", "--epsilon", "1", "--radius", "9000", "--columns", "value", "--out", "c.csv",
            "--report", "k.html", "--overwrite",
        ],
        ["people.csv", "--k", "2", "--epsilon", "1", "--radius", "9000", "--columns", "mixed", "--out", "d.csv"],
    ],
    ("train",): [
        ["--data", "people.csv", "--model", "logistic", "--epsilon", "1", "--delta", "1e-5", "--population", "400"],
        ["--data", "people.csv", "--model", "mlp", "--epsilon", "1", "--delta", "1e-5"],
    ],
    ("sample",): [
        ["people.csv", "--id", "id", "--design", "poisson:rate=0.5", "--key-file", "s.key", "--out", "s.parquet"],
        ["people.csv", "--id", "value", "--design", "poisson:rate=0.5", "--key-file", "s.key", "--out", "t.parquet"],
        ["people.csv", "--id", "mixed", "--design", "poisson:rate=0.5", "--key-file", "s.key", "--out", "t.parquet"],
    ],
}  # fmt: skip


def test_every_command_has_a_case_or_takes_no_records():
    assert set(leaves(typer.main.get_command(app))) == {*TAKES_NO_RECORDS, *RECORDS}


@pytest.mark.parametrize("command", RECORDS, ids=" ".join)
def test_commands_keep_secrets(command, tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    rows = [f"{name},{value!r},{value!r}x" for name, value in zip(NAMES, VALUES.tolist(), strict=True)]
    Path("people.csv").write_text("\n".join(["id,value,mixed", *rows]) + "\n")
    key_file = Path("s.key")
    key_file.touch(0o600)
    key_file.write_text(SECRET.hex() + "\n")
    for arguments in RECORDS[command]:
        for more in ([], ["--json"]):
            for left in (*Path().glob("drawn.csv"), *Path().glob("s.parquet")):
                left.unlink()
            with caplog.at_level("DEBUG"):
                result = CliRunner().invoke(app, [*command, *arguments, *more])
            assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
            size = len(Path("drawn.csv").read_text().splitlines()) - 1 if Path("drawn.csv").exists() else 0
            shown = result.output + caplog.text + "".join(page.read_text() for page in Path().glob("*.html"))
            assert not leaks(shown, *[size] * bool(size)), result.output
