"""IS Figures 1 and 2: what the paper says about them holds, and the numbers are right."""

import math

import numpy as np
import pytest

from privamp.papers.importance_sampling import figure_1 as is_figure_1
from privamp.papers.importance_sampling import figure_2 as is_figure_2
from privamp.papers.importance_sampling.figure_2 import CONSTRAINED, ORACLE, UNIFORM, Panel, Points, proportional
from privamp.papers.printed import as_expected
from privamp.papers.registry import entry


@pytest.mark.parametrize("name", ["is-figure-1", "is-figure-2"])
def test_the_entry_holds(tmp_path, name):
    outcome = entry(name).run(tmp_path / "new folder")
    assert outcome.ok, outcome.text
    assert " 0 unexpected." in outcome.text
    assert {p.suffix for p in outcome.files} == {".csv", ".html", ".png"}
    if name == "is-figure-2":
        assert "Gap to the variance-optimal oracle: 1.38% at 19 points" in outcome.text


@pytest.fixture(scope="module")
def points() -> Points:
    return Points.made_up()


def test_losses_are_those_of_theorem_6(points):
    panel = Panel.at(points, 30.0, 1.0)
    for name in (CONSTRAINED, UNIFORM, ORACLE):
        q = panel.probabilities[name]
        direct = max(math.log1p(p * math.expm1(u / 30.0 / p)) for p, u in zip(q, points.l1, strict=True))
        assert panel.loss(name) == pytest.approx(direct, rel=1e-12)
        assert float(np.sum(q)) == pytest.approx(panel.size, rel=1e-12)
    assert panel.loss(CONSTRAINED) <= 1.0


def test_the_exact_error_is_that_of_many_samples(points):
    """1000 samples of a mean square over 10 dimensions: 2% standard error, 10% is five of them."""
    panel = Panel.at(points, 30.0, 1.0)
    for name in (CONSTRAINED, UNIFORM, ORACLE):
        assert panel.simulated(name, np.random.default_rng(8)) == pytest.approx(panel.error(name), rel=0.1)


def test_no_other_probabilities_beat_the_oracle(points):
    """Probabilities of the same sum, a little away from the oracle's: the sampling variance only grows."""
    norms = points.l2
    for size in (19.0, 400.0, 950.0):  # the last two with probabilities cut at 1
        best = proportional(norms, size)
        assert np.sum(best) == pytest.approx(size)
        assert best.max() <= 1.0
        least = float(np.sum(norms**2 / best))
        rng = np.random.default_rng(9)
        for _ in range(200):
            i, j = rng.choice(norms.size, 2, replace=False)
            step = 0.1 * min(best[i], 1.0 - best[j])
            moved = best.copy()
            moved[i] -= step
            moved[j] += step
            assert float(np.sum(norms**2 / moved)) >= least - 1e-9


def test_a_wrong_oracle_is_seen(points):
    """Negative control: probabilities by l1 norms are not the best for this error."""
    panel = Panel.at(points, 30.0, 1.0)
    wrong = Panel(points, 30.0, {**panel.probabilities, ORACLE: proportional(points.l1, panel.size)})
    assert wrong.sampling_error(ORACLE) > 1.005 * panel.sampling_error(ORACLE)
    compared = list(is_figure_2.checks(panel, [panel]))
    assert as_expected(compared)
    swapped = Panel(points, 30.0, {**panel.probabilities, CONSTRAINED: panel.probabilities[UNIFORM]})
    assert not as_expected(is_figure_2.checks(swapped, [swapped]))


def test_figure_1_keeps_what_its_rules_say():
    found = is_figure_1.sampled()
    for name, rule in found.rules.items():
        expected = rule.expected_size(found.norms)
        assert expected == pytest.approx(is_figure_1.SIZE, rel=0.05)
        assert abs(len(found.kept[name]) - expected) < 5 * math.sqrt(expected)
