""" "Plan a survey" shows what `survey.allocate` and `survey.plan` say; bad tables are answered by a sentence."""

import contextlib
import io
import json
import shlex

import numpy as np
import pytest

from privamp import datasets, survey
from privamp.app import plan_survey as view
from privamp.app import strata
from privamp.app.plan_survey_shown import show
from privamp.app.work import Failed
from privamp.errors import Infeasible, InvalidInput

STATE = view.State(epsilon=2.0)
CELLS = [survey.Stratum("E", 180, 1600, 198), survey.Stratum("M", 60, 4200, 333), survey.Stratum("H", 60, 4200, 558)]


@pytest.fixture(scope="module")
def results():
    return {job.name: view.answer(job) for job in view.jobs(STATE)}


def test_rows_are_the_numbers_of_allocate(results) -> None:
    for method in view.METHODS:
        found, row = survey.allocate(CELLS, 60, 2.0, method), results[method]
        assert row.sizes == found.sizes
        assert row.error == pytest.approx(found.variance**0.5, rel=1e-12)
        assert row.epsilon == found.guarantee.epsilon()
        assert row.cost == sum({"E": 20, "M": 30, "H": 40}[name] * size for name, size in found.sizes.items())


def test_designs_are_those_of_plan(results) -> None:
    frame = {"stratum": ["E"] * 180 + ["M"] * 60 + ["H"] * 60}
    bounds = {"E": (0, 1600), "M": (0, 4200), "H": (0, 4200)}
    found = survey.plan(frame, size=60, epsilon=2.0, strata="stratum", bounds=bounds, sd={"E": 198, "M": 333, "H": 558})
    assert results[view.DESIGNS] == found


def test_a_target_error_is_reached_by_few_interviews() -> None:
    state = view.State(goal="error", error=90.0, epsilon=2.0)
    for method in ("optimal", "proportional"):
        row = view.answer(view.Job(state, method))
        assert row.error <= 90.0
        assert survey.allocate(CELLS, row.interviews - 1, 2.0, method).variance ** 0.5 > 90.0
    with pytest.raises(Infeasible, match="use a larger epsilon"):
        view.answer(view.Job(view.State(goal="error", error=0.001), "optimal"))


def test_the_copied_python_prints_the_numbers_of_the_page(results) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(view.python(STATE, results), {})
    for line in printed.getvalue().splitlines():
        method, sizes, error, epsilon = line.split(" | ")
        assert sizes == str(results[method].sizes)
        assert float(error) == pytest.approx(results[method].error, rel=1e-12)
        assert float(epsilon) == results[method].epsilon


def test_the_copied_command_prints_the_designs_of_the_page(results, tmp_path, monkeypatch) -> None:
    from typer.testing import CliRunner

    from privamp.cli.application import app

    monkeypatch.chdir(tmp_path)
    made, asked = view.command(STATE, results).splitlines()
    python, flag, code, into, target = shlex.split(made)
    assert (python, flag, into) == ("python", "-c", ">")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    (tmp_path / target).write_text(printed.getvalue())
    said = CliRunner().invoke(app, [*shlex.split(asked)[1:], "--json"])
    assert said.exit_code == 0, said.output
    rows = json.loads(said.stdout)["designs"]
    assert [row["standard_error"] for row in rows] == [row.standard_error for row in results[view.DESIGNS].rows]


def test_the_page_shows_them(results) -> None:
    shown = show(STATE, results)
    allocations, sizes, designs = shown.tables
    assert allocations.rows[0][2] == f"{results['optimal'].error:.4g}"
    assert sizes.rows[0][0] == "E"
    assert designs.rows[0][0] == results[view.DESIGNS].rows[0].name
    assert "optimal allocation is best" in shown.summary
    assert "computing…" in show(STATE, {}).summary
    assert show(STATE, {"optimal": Failed("no way")}).summary.endswith("no way.")


def test_the_examples_are_those_of_the_data_sets() -> None:
    for name, group, value in (("schools", "level", "enroll"), ("people", "region", "income")):
        table = datasets.load(name)
        for line in strata.read(strata.EXAMPLES[name]):
            values = table[value][table[group] == line.name].astype(float)
            assert line.population == len(values)
            assert line.low <= values.min() <= values.max() <= line.high
            assert line.sd == pytest.approx(float(np.std(values, ddof=1)), rel=0.01)


HEAD = "stratum,population,low,high,sd,cost\n"
BAD = [
    ("", "must start with a header line"),
    ("id,income\nAnna,43000\n", "must start with a header line"),
    (HEAD, "1 to 50 strata, got 0"),
    (HEAD + "a,10,0,1,,\n" * 51, "1 to 50 strata, got 51"),
    (HEAD + "a,10,0,1\n", "line 2 of the table must have 6 cells"),
    (HEAD + "a,ten,0,1,,\n", "line 2: population must be a number"),
    (HEAD + "a,10.5,0,1,,\n", "line 2: population must be a whole number"),
    (HEAD + "a,1e9,0,1,,\n", "line 2: population must be a whole number"),
    (HEAD + "a,10,1,1,,\n", "line 2: low must be below high"),
    (HEAD + "a,10,nan,1,,\n", "line 2: low must be a number"),
    (HEAD + "a,10,0,inf,,\n", "line 2: high must be a number"),
    (HEAD + "a,10,0,1,-1,\n", "line 2: sd and cost must be at least 0"),
    (HEAD + "a,10,,1,,\n", "line 2: low is missing"),
    (HEAD + "a,10,0,1,,\na,10,0,1,,\n", "got one twice"),
    (HEAD + "a,10,0,1,0.6,\n", "line 2: sd of stratum 'a' must be at most"),
    (HEAD + "=cmd(),10,0,1,,\n", "a stratum's name must be"),
    (HEAD + "'; rm -rf,10,0,1,,\n", "a stratum's name must be"),
    (HEAD + 'a,"10,0,1,,\n', "not valid CSV"),
    (HEAD + "a,600000,0,1,,\nb,600000,0,1,,\n", "at most 1,000,000 records"),
    ("x" * 5000, "at most 4,000 bytes"),
    ("\0", "header line|CSV"),
]


@pytest.mark.parametrize(("text", "reason"), BAD)
def test_bad_tables_are_answered_by_a_sentence(text, reason) -> None:
    with pytest.raises(InvalidInput, match=reason) as caught:
        strata.checked(text)
    said = str(caught.value)
    assert "\n" not in said
    assert "43000" not in said  # no cell is repeated
    assert "Anna" not in said


def test_bad_files_are_answered_by_a_sentence() -> None:
    with pytest.raises(InvalidInput, match="UTF-8"):
        strata.decoded(b"\xff\xfe\x00")
    with pytest.raises(InvalidInput, match="not records"):
        strata.decoded(b"x" * 4001)
    assert strata.checked(strata.decoded(b"\xef\xbb\xbf" + HEAD.encode() + b"a,10,0,1,,\n")).endswith("a,10,0,1,,1\n")


def test_strata_without_standard_deviations_have_no_neyman_allocation() -> None:
    state = view.State(table=strata.checked("stratum,population,low,high\na,50,0,1\nb,50,0,2\n"), size=1)
    assert state.drawn == 2
    assert state.notes()
    with pytest.raises(InvalidInput, match="neyman allocation needs"):
        view.answer(view.Job(state, "neyman"))
    assert view.answer(view.Job(state, view.DESIGNS)).rows
