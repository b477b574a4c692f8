"""The table of certified numbers and attacks: true to the library, and printed in the documentation."""

from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from privamp.cli.application import app
from privamp.report import bounds as table
from privamp.report.bounds import DESIGNS, NOISES, RELATIONS, bounds

PAGE = Path(__file__).parents[2] / "docs" / "theory.md"


@pytest.fixture(scope="module", autouse=True)
def each_row_once():
    """A row of the table is the same in every test and in the command, and takes long."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(table, "bound", cache(table.bound))
        yield


def run(*words):
    return CliRunner().invoke(app, ["audit", "bounds", *words])


def test_no_attack_is_above_its_bound_and_exact_theorems_are_reached():
    rows = list(bounds())
    assert len(rows) == len(DESIGNS) * len(NOISES) * len(RELATIONS)
    assert all(row.ratio is None or row.ratio >= 1.0 for row in rows)
    exact = {(row.design, row.relation, row.noise) for row in rows if row.ratio is not None and row.ratio < 1.0 + 1e-9}
    assert ("Poisson, rate .01", "add-remove", "Gaussian, sigma 2") in exact
    assert len(exact) > 35


def test_what_is_not_proved_has_no_number():
    row = table.bound("random size, 50 to 150 of 1,000", "add-remove", "Gaussian, sigma 2")
    assert row.upper is row.lower is row.ratio is None


def test_the_page_shows_what_the_command_prints():
    printed = run("--markdown").stdout.strip()
    assert printed in PAGE.read_text(encoding="utf-8"), "put the output of `privamp audit bounds --markdown` there"


@pytest.mark.slow
def test_the_page_shows_many_rounds_too():
    printed = run("--markdown", "--rounds", "100").stdout.strip()
    assert printed in PAGE.read_text(encoding="utf-8")


def test_the_command_and_its_refusals():
    assert "0.01704" in run("--only", "rate .01").stdout
    wrong = run("--only", "no such design")
    assert wrong.exit_code != 0
    assert run("--rounds", "0").exit_code != 0
