"""Figures 3, 5, 6, S1, S3, S4, S5, Table 8 and section S13 of MUST: small versions, and controls that must fail."""

import os
from pathlib import Path

import numpy as np
import pytest

from privamp.papers.must import (
    composed_delta,
    experiment,
    figure_3,
    figure_5,
    figure_6,
    figure_s4,
    figure_s5,
    losses,
    table_8,
)
from privamp.papers.printed import as_expected
from privamp.papers.registry import entries

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("PRIVAMP_SHARED", ROOT.parent / "shared"))
SLOW = ["must-figure-3", "must-figure-5", "must-figure-s1", "must-figure-s3", "must-figure-s4", "must-figure-s5",
        "must-figure-6", "must-table-8", "must-s13"]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_the_entry_holds(name, tmp_path, shared):
    outcome = entries()[name].run(tmp_path)
    assert outcome.ok, outcome.text
    assert outcome.checks


def test_figure_3_on_two_sizes(monkeypatch):
    monkeypatch.setattr(figure_3, "SIZES", ((50, 100), (400, 500)))
    found = figure_3.points()
    assert as_expected(figure_3.checks(found))
    spoiled = {**found, "WOR": [(0.5, 0.1)]}
    assert not as_expected(figure_3.checks(spoiled))
    assert [figure_3.kind_of(*p) for p in ((0.5, -1), (0.5, 1), (1.5, -1), (1.5, 1))] == [
        "strong", "type I weak", "type II weak", "dilution"]  # fmt: skip


def test_figure_5_on_its_corners(monkeypatch):
    monkeypatch.setattr(figure_5, "MS", (100, 150))
    monkeypatch.setattr(figure_5, "BS", (150, 200))
    found = {name: figure_5.surface(name) for name in figure_5.NAMES}
    assert as_expected(figure_5.checks(found))
    swapped = dict(zip(figure_5.NAMES, reversed(found.values()), strict=True))
    assert not as_expected(figure_5.checks(swapped))


@pytest.mark.parametrize(("less", "holds"), [(0.01, True), (0.0005, False), (-0.01, False)])
def test_an_order_by_chance_is_not_agreement(less, holds):
    """With five runs MUST came out smaller in some runs and larger in others: only a clear difference counts."""
    rng = np.random.default_rng(1)
    runs = {name: 0.55 + rng.normal(0.0, 0.003, (5, 15)) for name in ("no noise", *experiment.FIVE)}
    runs |= {name: several - less for name, several in runs.items() if name.startswith("MUST")}
    check = figure_s5.order(runs)
    assert check.agrees is holds
    assert check.as_expected


def test_table_8_goes_with_the_different_records():
    assert as_expected(table_8.sentences())
    assert table_8.distinct(table_8.MNIST, "MUSTww") == pytest.approx(1442, abs=1)


def test_composed_delta_of_sampling_without_replacement():
    line = composed_delta.line("WOR", 2)
    assert line.in_units_of_n < 1e-30
    assert composed_delta.UPPER["WOR"] < line.attack <= line.certified


def test_losses_are_kept_step_by_step():
    found = figure_s4.one_run("WOR", 1e-9, steps=30)
    assert len(found) == 30
    assert found[-1] < 0.8 * found[0]
    assert losses.last([5.0] * 90 + [1.0] * 10) == 1.0
    alike = losses.converge_alike({"no noise": [1.0], "WOR": [1.2]}, 0.1, "alike")
    assert not alike.agrees
    assert losses.converge_alike({"no noise": [1.0], "WOR": [1.05]}, 0.1, "alike").agrees


def test_the_order_of_noise_reverses():
    assert as_expected(figure_6.noise())
    assert np.argmin([figure_6.TASK.stored[name][1] for name in ("WOR", "WR", "MUSTow", "MUSTww")]) == 0
