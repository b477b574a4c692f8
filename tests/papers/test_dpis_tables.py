"""DPIS Tables 3 to 6: the sentences about them, and what is said where torch or data are missing."""

from itertools import pairwise

import numpy as np
import pytest

from privamp.extras import is_installed
from privamp.papers.dpis import scattering, table_3, table_4, table_5, table_6, trained_cells, training
from privamp.papers.dpis.printed_tables import TABLE_3
from privamp.papers.printed import APART, as_expected


@pytest.mark.parametrize("table", [table_3, table_4, table_5, table_6])
def test_the_sentences_hold_but_for_the_errata(table):
    assert as_expected(table.sentences())


def test_a_wrong_digit_is_noticed(monkeypatch):
    monkeypatch.setitem(TABLE_3["MNIST"], "DPIS", (96.8, 97.2, 98.6, 98.8, 98.9))
    assert not as_expected(table_3.sentences())


def test_cells_are_never_counted_as_agreement(monkeypatch):
    monkeypatch.setattr(trained_cells, "is_installed", lambda name: True)
    found: dict[str, float] = {}
    checks = list(trained_cells.trained([("a", 97.7, lambda setting: 90.0)], False, found))
    assert [c.kind for c in checks] == [APART]
    assert found == {"a": 90.0}
    monkeypatch.setattr(trained_cells, "is_installed", lambda name: False)
    (left_out,) = trained_cells.trained([("a", 97.7, lambda setting: 90.0)], False, found)
    assert "needs PyTorch" in left_out.verdict


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

    setting = training.Setting("MNIST", 1000, 10, 100, 8)
    noises = training.decaying(setting, 2.0)
    assert all(b == pytest.approx(training.FALL * a) for a, b in pairwise(noises))
    whole = compose([compose(amplify(Gaussian(s, 1.0), Poisson(0.1)), 2) for s in noises])
    assert 1.8 < whole.epsilon(setting.delta) <= 2.0


@pytest.mark.slow
@pytest.mark.skipif(not is_installed("torch"), reason="PyTorch is not installed")
@pytest.mark.parametrize("method", training.METHODS)
def test_every_method_trains(method, monkeypatch):
    rng = np.random.default_rng(1)
    digits = rng.integers(0, 10, 300)
    images = np.zeros((300, 28, 28), dtype=np.uint8)
    images[np.arange(300), 2 + 2 * digits, :] = 255
    monkeypatch.setattr(training, "pictures", lambda *_: (images[:200], digits[:200], images[200:], digits[200:]))
    training.inputs.cache_clear()
    setting = training.Setting("made up", 200, 100, 40, 8)
    assert 0.0 <= training.accuracy(method, setting, 4.0) <= 100.0
    training.inputs.cache_clear()
