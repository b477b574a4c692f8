"""DPIS Tables 3 to 6: the sentences about them, and what is said where torch or data are missing."""

from itertools import pairwise

import numpy as np
import pytest

from privamp.extras import is_installed
from privamp.papers.dpis import (
    accuracies,
    adam,
    inputs,
    measured,
    scattering,
    table_3,
    table_4,
    table_5,
    table_6,
    training,
)
from privamp.papers.dpis.cells import Cell, changed, every_cell
from privamp.papers.dpis.measured import Accuracy, Found
from privamp.papers.dpis.printed_tables import TABLE_3
from privamp.papers.dpis.settings import FULL, Setting
from privamp.papers.printed import AGREES, APART, DIFFERS, as_expected


@pytest.mark.parametrize("table", [table_3, table_4, table_5, table_6])
def test_the_sentences_hold_but_for_the_errata(table):
    assert as_expected(table.sentences())


def test_a_wrong_digit_is_noticed(monkeypatch):
    monkeypatch.setitem(TABLE_3["MNIST"], "DPIS", (96.8, 97.2, 98.6, 98.8, 98.9))
    assert not as_expected(table_3.sentences())


def flat(value: float, but: dict[Cell, float] | None = None) -> dict[Cell, Accuracy]:
    """Every cell of the same accuracy, in three runs, but for some."""
    return {
        cell: Accuracy(tuple((but or {}).get(cell, value) + d for d in (-0.05, 0.0, 0.05))) for cell in every_cell()
    }


def test_every_cell_of_the_four_tables_is_trained_once():
    cells = every_cell()
    rows = [row for table in (table_3, table_4, table_5, table_6) for row in table.rows_of_table()]
    assert len(rows) == 70 + 24 + 12 + 12
    assert len(cells) == len(set(cells)) == 100
    assert changed("MNIST", 1.0, "k = 5") == changed("MNIST", 1.0, "a fixed clip") == Cell("MNIST", "DPIS", 1.0)
    assert changed("IMDb", 1.0, "adaptive clipping") == Cell("IMDb", "DPIS", 1.0)
    assert changed("IMDb", 1.0, "k = 5").options == {"growth": 5.0}


def test_cells_are_never_counted_as_agreement():
    rows = list(table_3.rows_of_table())
    checks = list(accuracies.beside(rows, Found(flat(97.0), "made up")))
    assert {c.kind for c in checks} == {APART}
    assert checks[0].ours == "97.0 ± 0.0 (3 runs)"
    (missing,) = accuracies.beside(rows[:1], Found({}, "nothing"))
    assert accuracies.NO_RUN in missing.verdict


def test_a_sentence_that_our_runs_contradict_differs():
    def verdicts(table, found):
        return {c.what.removeprefix(accuracies.OURS): c.kind for c in table.of_ours(found)}

    tie = verdicts(table_3, flat(97.0))
    assert tie["MNIST: DPIS outperforms every competitor at every epsilon"] == DIFFERS
    ahead = {cell: 99.0 for cell in every_cell() if cell.method == "DPIS"}
    assert verdicts(table_3, flat(97.0, ahead))["IMDb: DPIS is 2-3% above the best competitor"] == AGREES
    assert set(verdicts(table_4, flat(97.0)).values()) == {DIFFERS}
    assert set(verdicts(table_5, flat(97.0)).values()) == set(verdicts(table_6, flat(97.0)).values()) == {AGREES}
    low = {changed("MNIST", 1.0, "a_E = 0.8"): 96.0, changed("MNIST", 1.0, "k = 3"): 96.0}
    assert next(table_5.of_ours(flat(97.0, low))).kind == next(table_6.of_ours(flat(97.0, low))).kind == DIFFERS
    assert not list(accuracies.said_of_ours(table_3.of_ours, {}))


def test_the_page_says_where_kept_accuracies_are_from():
    kept = measured.kept()
    assert "not computed now" in kept.source or not kept.accuracies
    assert set(kept.accuracies) <= set(every_cell())
    for setting in FULL.values():
        assert str(setting) in kept.source, "measured.json was made with another setting"


def test_scattering_sees_directions_and_no_constant():
    lines = np.zeros((3, 28, 28), dtype=np.uint8)
    lines[0, 4:24, 13:15] = lines[1, 13:15, 4:24] = 255
    lines[2] = 255
    x = scattering.features(lines)
    assert x.shape == (3, 81 * 49)
    assert np.isfinite(x).all()
    assert np.linalg.norm(x[0] - x[1]) > 0.5 * np.linalg.norm(x[0])
    _, waves = scattering.filters()
    assert np.abs(waves[:, :, 0, 0]).max() < 1e-6


@pytest.mark.slow
def test_the_noise_of_the_phases_has_epsilon():
    from privamp import Gaussian, Poisson, amplify, compose

    setting = Setting("MNIST", 1000, 10, 100, 8)
    noises = training.decaying(setting, 2.0)
    assert all(b == pytest.approx(training.FALL * a) for a, b in pairwise(noises))
    whole = compose([compose(amplify(Gaussian(s, 1.0), Poisson(0.1)), 2) for s in noises])
    assert 1.9 < whole.epsilon(setting.delta) <= 2.0


@pytest.mark.slow
@pytest.mark.skipif(not is_installed("torch"), reason="PyTorch is not installed")
def test_features_by_torch_are_those_by_numpy():
    pictures = np.random.default_rng(1).integers(0, 256, (3, 28, 28)).astype(np.uint8)
    assert np.abs(scattering.features(pictures) - scattering.features(pictures, "cpu").numpy()).max() < 1e-4


@pytest.mark.slow
@pytest.mark.skipif(not is_installed("torch"), reason="PyTorch is not installed")
@pytest.mark.parametrize("data", ["MNIST", "IMDb"])
@pytest.mark.parametrize("method", TABLE_3["MNIST"])
def test_every_method_trains(data, method, monkeypatch):
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 300)
    x = np.zeros((300, 28, 28), dtype=np.uint8)
    x[np.arange(300), 2 + 2 * labels, :] = 255
    if data == "IMDb":
        x = np.repeat(labels[:, None] + 2, 80, axis=1)
    monkeypatch.setattr(inputs, "raw", lambda *_: (x[:200], labels[:200], x[200:], labels[200:]))
    inputs.examples.cache_clear()
    monkeypatch.setattr(training, "constant_noise", lambda *_: 1.0)
    monkeypatch.setattr(training, "decaying", lambda *_: (1.4, 1.2, 1.0, 0.8))
    setting = Setting(data, 200, 100, 40, 8)
    found = training.trained(method, setting, 50.0)  # 200 records leave little of a smaller budget
    inputs.examples.cache_clear()
    assert 0.0 <= found.accuracy <= 100.0
    assert found.steps == 8


def test_runs_with_adam_stand_beside_the_print():
    where, found = adam.kept()
    assert "torch" in where
    assert set(found) <= set(every_cell())
    rows = [*table_3.rows_of_table(), *table_4.rows_of_table()]
    checks = list(adam.with_adam(rows))
    assert {c.kind for c in checks} == {APART}
    assert len(checks) == 10 + 8
    lead = [found[Cell("IMDb", "DPIS", e)][0.01] - found[Cell("IMDb", "DP-SGD", e)][0.01] for e in table_3.EPSILONS]
    assert -1.7 < min(lead) <= max(lead) < -0.7, "what accuracies.ADAPTS says of them"
