""" "Plan a training" shows what `amplify` says about each schedule, and the gain at the same epsilon."""

import contextlib
import io
import shlex

import pytest

from privamp import CyclicPoisson, Gaussian, Poisson, Rounds, amplify, spec
from privamp.accounting.banded import prefix_error
from privamp.app import plan_training as view
from privamp.app.plan_training_shown import show
from privamp.numerics.printing import shown_up

STATE = view.State(records=1000, batch=250, epochs=1, noise=4.0, bands=2, delta=1e-5)


@pytest.fixture(scope="module")
def results():
    quick = ("Poisson, 1", "Cyclic Poisson, 1")
    return {job.name: view.answer(job) for job in view.jobs(STATE) if job.name in quick}


@pytest.fixture(scope="module")
def everything():
    return {job.name: view.answer(job) for job in view.jobs(STATE)}


def test_points_are_the_numbers_of_amplify(results) -> None:
    found = amplify(Gaussian(4.0), Rounds(Poisson(0.25), 4))
    point = results["Poisson, 1"]
    assert point.epsilon_upper == found.epsilon(1e-5)
    assert point.epsilon_lower == found.lower.epsilon(1e-5)
    assert point.because == found.because
    assert results["Cyclic Poisson, 1"].epsilon_upper == amplify(Gaussian(4.0), CyclicPoisson(0.25, 2, 4)).epsilon(1e-5)


@pytest.mark.slow
def test_the_gain_is_at_the_same_epsilon(everything) -> None:
    gain = everything[view.GAIN]
    assert gain.epsilon == everything["Poisson, 1"].epsilon_upper
    assert amplify(Gaussian(gain.sigma), CyclicPoisson(0.25, 2, 4)).epsilon(1e-5) <= gain.epsilon
    assert amplify(Gaussian(0.99 * gain.sigma), CyclicPoisson(0.25, 2, 4)).epsilon(1e-5) > gain.epsilon
    assert gain.factor == 4.0 * prefix_error(4) / (gain.sigma * prefix_error(4, 2))


@pytest.mark.slow
def test_the_copied_python_prints_the_numbers_of_the_page(everything) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(view.python(STATE, everything), {})
    said = {line.rsplit(" ", 2)[0]: line.rsplit(" ", 2)[1] for line in printed.getvalue().splitlines()}
    assert {name: float(value) for name, value in said.items()} == {
        name: everything[f"{name}, 1"].epsilon_upper for name in view.specs(STATE, 1)
    }


@pytest.mark.slow
def test_the_copied_commands_are_read() -> None:
    from typer.testing import CliRunner

    from privamp.cli.application import app

    lines = view.command(STATE, {}).splitlines()
    assert len(lines) == len(view.specs(STATE, 1))
    said = CliRunner().invoke(app, shlex.split(lines[0])[1:])
    assert said.exit_code == 0, said.output


def test_the_page_shows_them(results) -> None:
    shown = show(STATE, results | {view.GAIN: view.Gain(2.0, 5.0, 6.0, 4.0)})
    ends, gain = shown.tables
    assert (f"{shown_up(results['Poisson, 1'].epsilon_upper, 4)}") in [row[1] for row in ends.rows]
    assert gain.caption.endswith("the error is 1.5 times smaller")
    assert "costs least so far," in shown.summary
    assert "computing…" in str(show(STATE, {}))


@pytest.mark.parametrize(
    "state", [view.State(records=100, batch=1_000_000, epochs=1000, bands=64), view.State(10_000_000, 1, 1000, 0.3)]
)
def test_every_corner_has_schedules_that_can_be_read(state) -> None:
    for epochs in view.epochs_shown(state):
        for text in view.specs(state, epochs).values():
            spec.design_or_schedule(text)
    show(state, {})
