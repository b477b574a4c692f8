""" "Which design?" shows what `amplify` and `compose` say, and what is copied says the same."""

import contextlib
import io
import json
import shlex
from dataclasses import replace

import pytest

from privamp import Gaussian, Laplace, Neighbors, amplify, compose, spec
from privamp.app import which_design as view
from privamp.app.report import report
from privamp.app.which_design_shown import show
from privamp.app.work import Failed
from privamp.errors import NoTheorem
from privamp.numerics.printing import shown_down, shown_up

STATE = view.State(population=1000, size=100, noise=3.0)


def computed(state):
    found = {}
    for job in view.jobs(state):
        try:
            found[job.name] = view.answer(job)
        except NoTheorem as reason:
            found[job.name] = Failed(str(reason))
    return found


@pytest.fixture(scope="module")
def results():
    return computed(STATE)


def test_rows_are_the_numbers_of_amplify(results) -> None:
    noise = Gaussian(3.0, 1.0, Neighbors.ADD_REMOVE)
    assert len(results) == 9
    for name, text in view.designs(STATE):
        found, row = amplify(noise, spec.design(text), Neighbors.REPLACE_ONE), results[name]
        assert row.epsilon_upper == found.epsilon(1e-6)
        assert row.epsilon_lower == (found.lower.epsilon(1e-6) if found.lower else None)
        assert row.deltas_upper == tuple(found.delta(list(row.epsilons)))
        assert row.because == found.because
        assert row.assumes == found.assumes


def test_rounds_and_people_are_those_of_compose() -> None:
    state = replace(STATE, rounds=2, relation="add-remove")
    row = view.answer(view.jobs(state)[0])
    assert row.epsilon_upper == compose(amplify(state.mechanism, spec.design(row.spec)), 2).epsilon(1e-6)
    state = replace(STATE, records=2, kind="laplace")
    row = view.answer(view.jobs(state)[0])
    found = amplify(Laplace(3.0), spec.design(row.spec), Neighbors.REPLACE_ONE.for_person(2))
    assert row.epsilon_upper == found.epsilon(1e-6)


def pasted(code: str) -> dict[str, list[str]]:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    return {line.rsplit(" ", 2)[0]: line.rsplit(" ", 2)[1:] for line in printed.getvalue().splitlines()}


def test_the_copied_python_prints_the_numbers_of_the_page(results) -> None:
    said = pasted(view.python(STATE, results))
    assert list(said) == [row.name for row in view.ranked(list(results.values()))]
    for name, (upper, lower) in said.items():
        assert float(upper) == results[name].epsilon_upper
        assert lower == str(results[name].epsilon_lower)


def test_the_copied_command_prints_the_numbers_of_the_page(results) -> None:
    from typer.testing import CliRunner

    from privamp.cli.application import app

    asked = shlex.split(view.command(STATE, results).replace("\\\n", " "))[1:]
    said = CliRunner().invoke(app, [*asked, "--json"])
    assert said.exit_code == 0, said.output
    rows = json.loads(said.stdout)["designs"]
    assert [row["epsilon_upper"] for row in rows] == sorted(row.epsilon_upper for row in results.values())


def test_the_page_shows_them_ranked_with_theorem_and_assumptions(results) -> None:
    shown = show(STATE, results)
    (table,) = shown.tables
    best = view.ranked(list(results.values()))[0]
    assert table.rows[0][:3] == (f"1. {best.name}", shown_up(best.epsilon_upper, 4), shown_down(best.epsilon_lower, 4))
    lines = [line for detail in table.details[0] for line in detail.lines]
    assert {best.spec, *best.because, *best.assumes} <= set(lines)
    assert best.name in shown.summary
    assert "so far" not in shown.summary
    assert [len(chart.options["series"]) for chart in shown.charts] == [2, 18]


def test_what_is_not_ready_is_said_to_be_on_its_way(results) -> None:
    shown = show(STATE, {"Poisson": results["Poisson"], "Two stages": Failed("nothing is proved for this")})
    words = {row[0]: row[1] for row in shown.tables[0].rows}
    assert words["Two stages"] == "no theorem"
    assert words["Simple random"] == "computing…"
    assert "so far" in shown.summary
    assert show(STATE, {}).summary.endswith("computing…")


@pytest.mark.parametrize(
    "state",
    [
        view.State(population=20, size=1_000_000),
        view.State(population=20, size=1),
        view.State(population=10_000_000, size=1_000_000),
        view.State(population=37, size=36, noise=0.1, delta=1e-12),
    ],
)
def test_every_corner_has_designs_that_can_be_read(state) -> None:
    found = view.designs(state)
    assert ("Poisson", f"poisson:rate={state.drawn / state.population!r}") in found
    for _, text in found:
        assert abs(spec.design(text).expected_size(state.population) - state.drawn) <= 0.051 * state.drawn + 1e-9
    row = view.answer(view.jobs(state)[0])
    show(state, {"Poisson": row})


def test_the_report_is_one_file_that_loads_nothing(results) -> None:
    page = report("Which design?", show(STATE, results), view.python(STATE, results), view.command(STATE, results))
    assert "default-src 'none'" in page
    assert "src=" not in page.replace("default-src", "").replace("img-src", "").replace("style-src", "")
    assert shown_up(results["Poisson"].epsilon_upper, 4) in page
    assert "    &#x27;Poisson&#x27;: spec.design(" in page  # indented as it was


def test_names_are_escaped() -> None:
    evil = Failed("<script>alert(1)</script>")
    assert "<script>" not in show(STATE, {"Poisson": evil}).tables[0].html()
