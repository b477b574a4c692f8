"""`privamp survey estimate --groups`: groups of a Poisson sample are declared, and one record shows in none of them."""

from itertools import product
from unittest.mock import patch

import pytest
from typer.testing import CliRunner

from privamp.chance.keys import Key
from privamp.cli.application import app
from privamp.core.neighbors import Neighbors
from privamp.testing import seeded_key
from privamp.verify import check_release
from privamp.verify.one_record import Pair

ROWS = [("north", "1.5"), ("south", "3"), ("north", "-2"), ("south", "0.25")]
HARD = [*product(("north", "east", "", "nan"), ("2", "1e400", "", "text")), ("south", "9" * 400)]
COMMON = ["--value", "x", "--bounds", "0:4", "--epsilon", "1", "--design", "poisson:rate=0.9", "--by", "where"]
FORMS = {
    "totals": ["--statistic", "total", "--groups", "north,south"],
    "means": ["--groups", "north=3,south=2"],
}


def file_of(path, rows):
    path.write_text("where,x\n" + "".join(f"{where},{x}\n" for where, x in rows), encoding="utf-8")
    return str(path)


def asked(path, rows, *options):
    return CliRunner().invoke(app, ["survey", "estimate", file_of(path, rows), *COMMON, *options])


@pytest.mark.parametrize("form", FORMS)
def test_one_record_moves_no_more_than_declared(tmp_path, form):
    def job(rows):
        with patch.object(Key, "generate", lambda: seeded_key(14)):
            result = asked(tmp_path / "people.csv", rows, *FORMS[form], "--json")
        return result.stdout, result.stderr, result.exit_code

    added = [Pair(f"{hard}", ROWS, [*ROWS, hard], Neighbors.ADD_REMOVE) for hard in HARD]
    gone = [Pair("the last of a group", ROWS[:2], ROWS[:1], Neighbors.ADD_REMOVE), Pair("the first", [], ROWS[:1])]
    report = check_release(job, [*added, *gone])
    assert report.ok, str(report)


@pytest.mark.parametrize("form", FORMS)
def test_the_answer_has_the_declared_groups(tmp_path, form):
    result = asked(tmp_path / "people.csv", ROWS, *FORMS[form])
    assert result.exit_code == 0, result.output
    assert {"north", "south"} <= {*result.stdout.split()}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--groups"),
        (["--groups", "north,south"], "public sizes"),
        (["--groups", "north=3,south"], "for all groups or for none"),
        (["--groups", "north=3,south=-1"], "whole numbers of records"),
        (["--groups", "north,north"], "each once"),
        (["--groups", ""], "each once"),
    ],
)
def test_what_must_be_public_is_asked_for(tmp_path, options, message):
    result = asked(tmp_path / "people.csv", ROWS, *options)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
