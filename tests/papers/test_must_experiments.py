"""The experiments of MUST: small versions with the verdict they must give, and controls that must fail."""

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest

from privamp import Population, WithoutReplacement
from privamp.errors import InvalidInput
from privamp.papers.must import (
    adult as must_adult,
)
from privamp.papers.must import (
    experiment as must_experiment,
)
from privamp.papers.must import (
    mnist as must_mnist,
)
from privamp.papers.must import (
    network as must_network,
)
from privamp.papers.must import (
    table_3 as must_table_3,
)
from privamp.papers.must import (
    table_4 as must_table_4,
)
from privamp.papers.must import (
    table_5 as must_table_5,
)
from privamp.papers.must import (
    table_7 as must_table_7,
)
from privamp.papers.must.classification import TOTAL, Task
from privamp.papers.printed import as_expected
from privamp.papers.registry import Entry, Outcome, entries

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("PRIVAMP_SHARED", ROOT.parent / "shared"))
NAMES = ["must-adult", "must-mnist", "must-table-3", "must-table-4", "must-table-5", "must-table-7"]


def needs(name):
    return pytest.mark.skipif(
        not (SHARED / "data" / name).is_file(),
        reason=f"{name} is not here; set PRIVAMP_SHARED to the folder that holds data/",
    )


@pytest.fixture
def shared(monkeypatch):
    monkeypatch.setenv("PRIVAMP_SHARED", str(SHARED))


def test_the_entries_are_found():
    assert set(NAMES) <= set(entries())
    assert all(entries()[name].full for name in NAMES if name != "must-table-3")


# Table 3


@pytest.mark.parametrize(("name", "b"), must_table_3.PRINTED)
def test_table_3_follows_the_recipe_but_for_its_errata(name, b):
    assert as_expected(must_table_3.delta_checks(name, b))


def test_table_3_notices_a_wrong_sigma(monkeypatch):
    monkeypatch.setitem(must_table_3.PRINTED, ("WOR", 0), ("0.14", "1.02", "3.0"))
    assert not as_expected(must_table_3.delta_checks("WOR", 0))


def test_table_3_honest_noise_holds_and_is_the_least():
    for name, b in (("Poisson", 0), ("WOR", 0), ("WR", 0), ("MUSTow", 10)):
        of, sensitivity = must_table_3.design(name, b), must_table_3.RANGE / must_table_3.M
        sigma, lower = must_table_3.truth(name, b)
        assert must_experiment.certified(of, sigma, sensitivity).delta(0.1) <= must_table_3.DELTA
        assert must_experiment.certified(of, 0.998 * sigma, sensitivity).delta(0.1) > must_table_3.DELTA
        assert not must_table_3.truth_check(name, b, lower).agrees
    assert lower > 230  # MUSTow, b = 10, where 0.1 is printed


@pytest.mark.slow
def test_table_3_runs(tmp_path):
    holds(must_table_3.run(tmp_path))


# Table 4


def holds(outcome: Outcome) -> None:
    assert outcome.ok, outcome.text
    assert " 0 unexpected." in outcome.text
    assert {p.suffix for p in outcome.files} == {".csv", ".html"}
    assert all(p.stat().st_size > 0 for p in outcome.files)


def test_table_4_runs_small(tmp_path):
    holds(must_table_4.reproduced(tmp_path, 10, 20, (("Poisson", 0), ("WOR", 0), ("MUSTow", 10))))


def test_table_4_estimators():
    """Over all resamples the mean is unbiased, and the variance is but for MUST's 1 - 1/b."""
    values = np.random.default_rng(1).normal(size=must_table_3.N).clip(-4, 4)
    spread = values.var(ddof=1)
    for name, b, factor in (("WOR", 0, 1.0), ("WR", 0, 1 - 1 / 300), ("MUSTow", 10, 0.9), ("Poisson", 0, 1 - 1 / 300)):
        mean, variance = must_table_4.estimates(name, must_table_3.design(name, b), values, 1500)
        assert mean == pytest.approx(values.mean(), abs=0.05)
        assert variance == pytest.approx(factor * spread, abs=0.16 if name == "Poisson" else 0.06)


def test_table_4_notices_other_numbers(monkeypatch):
    row = next(must_table_4.rows(10, 20, (("WOR", 0),)))
    assert as_expected(must_table_4.checks(row, row.noisy(row.printed_noise)))
    monkeypatch.setitem(must_table_4.PRINTED, ("WOR", 0), (0.0025, 0.058, 1.5, 0.092))
    assert not as_expected(must_table_4.checks(row, row.noisy(row.printed_noise)))


def test_variance_of_a_resample_moves_by_the_range_squared_over_m_per_copy():
    rng, m = np.random.default_rng(2), 6
    worst = 0.0
    for _ in range(3000):
        x = rng.choice([-4.0, 0.0, 4.0], m)
        u = int(rng.integers(1, m + 1))
        y = x.copy()
        y[rng.choice(m, u, replace=False)] = rng.choice([-4.0, 0.0, 4.0], u)
        worst = max(worst, abs(x.var(ddof=1) - y.var(ddof=1)) / (u * 64.0 / m))
    assert 0.9 < worst <= 1.0 + 1e-12


# Tables 5 and S2


@pytest.mark.parametrize(("epsilon", "name"), must_table_5.PRINTED)
def test_table_5_noise(epsilon, name):
    assert as_expected(must_table_5.noise_checks(epsilon, name))
    if name not in ("Poisson", "WOR"):  # the printed delta' comes out for the wrong theta, to its digits
        printed = float(must_table_5.PRINTED[epsilon, name][1])
        theta = must_table_5.CLIP / must_table_5.printed_sigma(epsilon, must_table_5.design(name))
        found = must_experiment.printed_bound(must_table_5.design(name), theta).delta(epsilon)
        assert found == pytest.approx(printed, abs=5e-4)


def test_table_5_runs_small(tmp_path):
    holds(must_table_5.reproduced(tmp_path, 2, ((0.01, "WOR"), (0.001, "Poisson"))))


def test_table_5_honest_noise_costs_accuracy():
    of = must_table_5.design("WOR")
    honest = must_table_5.honest_sigma(0.01, of)
    guarantee = must_experiment.certified(of, honest, 2 * must_table_5.CLIP / must_table_5.M)
    assert guarantee.delta(0.01) <= must_table_5.DELTA
    assert honest > 4.9 * must_table_5.printed_sigma(0.01, of)


# Table 7


def test_table_7_runs_small(tmp_path):
    holds(must_table_7.reproduced(tmp_path, 3))


def test_table_7_draws_lie_in_the_printed_range():
    for line in must_table_7.lines(10):
        least, _, most, _ = must_table_7.PRINTED[line.setting][line.name]
        assert least <= line.least <= line.most <= most


# Table 6


@pytest.mark.parametrize("task", [must_adult.TASK, must_mnist.TASK], ids=["adult", "mnist"])
def test_stored_noise_is_certified_for_simple_designs(task: Task):
    assert task.is_certified("WOR")
    assert task.attacked("WOR") > 10 * task.epsilon


@pytest.mark.slow
@pytest.mark.parametrize("name", must_experiment.FIVE)
@pytest.mark.parametrize("task", [must_adult.TASK, must_mnist.TASK], ids=["adult", "mnist"])
def test_stored_noise_is_the_least(task: Task, name: str):
    of, (step, whole) = task.design(name), task.stored[name]
    unit = 2.0 * task.clip
    assert task.is_certified(name)
    assert step == pytest.approx(
        must_experiment.honest(of, unit, task.epsilon, task.delta, start=step / unit), rel=0.02
    )
    again = must_experiment.honest(of, unit, TOTAL, task.delta, task.steps, start=whole / unit)
    assert whole == pytest.approx(again, rel=0.02)


def test_gradients_of_the_network_are_clipped_record_by_record():
    """Against differences of the loss, record by record; then clipped and added up with counts."""
    rng = np.random.default_rng(4)
    pixels, digits = rng.random((3, 784)).astype(np.float32), np.array([1, 7, 3])
    parameters = must_network.start(0)
    unclipped = must_network.clipped_sum_of(pixels, digits, 1e9)
    one = [unclipped(parameters, np.array([i]), np.array([1])) for i in range(3)]

    def loss(at, i):
        return -float(must_network.forward(at, pixels[[i]])[1][0, digits[i]])

    for i, gradient in enumerate(one):
        direction = gradient / np.linalg.norm(gradient)
        slope = (loss(parameters + 3e-4 * direction, i) - loss(parameters - 3e-4 * direction, i)) / 6e-4
        assert slope == pytest.approx(np.linalg.norm(gradient), rel=0.005)
    clip = 0.5 * min(np.linalg.norm(g) for g in one)
    counts = np.array([1, 4, 2])
    together = must_network.clipped_sum_of(pixels, digits, clip)(parameters, np.arange(3), counts)
    by_hand = sum(c * g * min(1.0, clip / np.linalg.norm(g)) for c, g in zip(counts, one, strict=True))
    assert np.allclose(together, by_hand, atol=1e-4 * clip)
    empty = must_network.clipped_sum_of(pixels, digits, clip)(parameters, np.array([], int), np.array([], int))
    assert np.array_equal(empty, np.zeros(must_network.PARAMETERS))


@needs("adult.csv.gz")
def test_adult_records(shared):
    x, y = must_adult.table(must_experiment.shared_file("adult.csv.gz"))
    assert x.shape == (41_292, 14)
    assert y.mean() == pytest.approx(0.2530, abs=1e-4)
    assert 0.0 <= x.min() <= x.max() <= 1.0


@pytest.mark.slow
@needs("adult.csv.gz")
def test_adult_runs(shared, tmp_path):
    holds(must_adult.run(tmp_path))


@pytest.mark.slow
@needs("mnist.npz")
def test_mnist_runs(shared, tmp_path):
    holds(must_mnist.run(tmp_path))


@pytest.mark.slow
def test_the_other_entries_run_as_they_are(tmp_path):
    for module in (must_table_4, must_table_5, must_table_7):
        holds(module.run(tmp_path))


@pytest.mark.parametrize("entry", ["must-adult", "must-mnist"])
def test_missing_data_is_one_sentence(entry, tmp_path, monkeypatch):
    monkeypatch.delenv("PRIVAMP_SHARED", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match=r"put it into a folder shared/data .* set PRIVAMP_SHARED"):
        entries()[entry].run(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_the_command_line_runs_quick_or_full(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from privamp.cli.application import app

    def says(word):
        return lambda folder: Outcome(word, (), True)

    entry = Entry("a", "paper", "title", "summary", says("quick"), says("full"))
    plain = Entry("b", "paper", "title", "summary", says("only"))
    monkeypatch.setattr("privamp.papers.registry.entries", lambda: {"a": entry, "b": plain})
    monkeypatch.chdir(tmp_path)

    def text(*arguments):
        return json.loads(CliRunner().invoke(app, ["reproduce", *arguments, "--json"]).stdout)["text"]

    assert [text("a"), text("a", "--full"), text("b", "--full")] == ["quick", "full", "only"]


def test_drawing_made_up_data_is_the_design():
    from privamp.testing import seeded_key

    found = must_table_4.drawn(WithoutReplacement(3, 10), Population(10), seeded_key(1))
    assert found.positions.size == 3
    assert math.isclose(must_experiment.base_epsilon(WithoutReplacement(3, 10), 0.1), math.log1p(math.expm1(0.1) / 0.3))
