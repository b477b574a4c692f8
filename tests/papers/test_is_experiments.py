"""IS Figures 3 to 7, Tables 1 to 3, the coreset property and streams: small versions, and controls that must fail."""

import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from privamp.errors import InvalidInput
from privamp.papers.importance_sampling import coreset_property, dp_lloyd, streaming, table_1, timing, trade_offs
from privamp.papers.importance_sampling.data_sets import Rows, prepared, read
from privamp.papers.importance_sampling.timing_rows import lines
from privamp.papers.printed import DIFFERS, ERRATUM, as_expected
from privamp.papers.registry import entries
from privamp.rules.coreset_size import all_centres_size, coreset_size

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("PRIVAMP_SHARED", ROOT.parent / "shared"))
SLOW = [
    "is-table-1",
    "is-figure-3",
    "is-figure-4",
    "is-figure-6",
    "is-figure-7",
    "is-tables-2-3",
    "is-coreset-property",
]


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_the_entry_holds(name, tmp_path, shared):
    outcome = entries()[name].run(tmp_path)
    assert outcome.ok, outcome.text


@pytest.mark.skipif(not (SHARED / "data" / "ijcnn1.npz").is_file(), reason="ijcnn1.npz is not here; set PRIVAMP_SHARED")
def test_table_1_on_ijcnn1(monkeypatch):
    monkeypatch.setenv("PRIVAMP_SHARED", str(SHARED))
    assert as_expected(table_1.checks("Ijcnn1", read("Ijcnn1")))


def test_the_preparation_cuts_and_centres():
    rows = prepared(np.random.default_rng(1).normal(3.0, 1.0, (1000, 4)))
    assert len(rows.x) == 975
    assert np.allclose(rows.x.mean(axis=0), 0.0, atol=1e-12)


def test_every_line_of_the_tables_is_consistent(monkeypatch):
    assert len(list(lines())) == 120
    assert as_expected([*timing.shares(), *timing.totals(), *timing.sentences()])
    first, *others = lines()
    for wrong in (replace(first, share="3.53"), replace(first, relative="3.59")):
        monkeypatch.setattr(timing, "lines", lambda wrong=wrong: iter([wrong, *others]))
        assert not as_expected([*timing.shares(), *timing.totals()])


@pytest.fixture(scope="module")
def rows() -> Rows:
    rng = np.random.default_rng(5)
    x = np.concatenate([rng.normal(c, 0.03, (300, 3)) for c in ((0.0, 0.0, 0.1), (0.5, 0.2, 0.0), (-0.4, 0.3, 0.2))])
    return Rows(x - x.mean(axis=0))


@pytest.mark.parametrize("sampler", ["unif", "core", "opt"])
def test_a_plan_keeps_epsilon_over_all_steps(rows, sampler):
    plan = dp_lloyd.plan(sampler, rows, 100, 2.0)
    q = plan.rule.of_norms(rows.norms)
    per_step = 1.0 / plan.counts + rows.norms / plan.sums
    losses = np.log1p(q * np.expm1(dp_lloyd.STEPS * per_step / q))
    assert losses.max() <= 2.0 + 1e-9
    assert plan.rule.guarantee().epsilon() == pytest.approx(2.0, rel=1e-6)
    assert q.sum() == pytest.approx(100, rel=0.05)


def test_the_noise_of_the_sums_has_a_gamma_radius(rows):
    plan = dp_lloyd.Plan(None, 0.001, 1e-9)
    start = np.zeros((1, 3))
    rng = np.random.default_rng(2)
    truth = rows.x.mean(axis=0)
    radii = [np.linalg.norm(dp_lloyd.one_step(rows.x, np.ones(900), start, plan, rng) - truth) for _ in range(400)]
    assert 900 * np.mean(radii) == pytest.approx(3 * 0.001, rel=0.15)  # Gamma(3), not Exponential: 5 standard errors


def test_sentences_notice_a_better_uniform_sample():
    epsilons = (1.0, 10.0, 1000.0, math.inf)
    found = {
        (s, 100, e): c * (1.0 + 1.0 / e) for s, c in (("unif", 0.4), ("core", 0.3), ("opt", 0.3)) for e in epsilons
    }
    found |= {(s, 100, e): 0.2 for s in dp_lloyd.SAMPLERS for e in epsilons[2:]}
    good = trade_offs.Costs("made up", 1000, found)
    assert as_expected(trade_offs.over_epsilon(good))
    swapped = {(s, m, e): found["core" if s == "unif" else "unif" if s == "core" else s, m, e] for s, m, e in found}
    assert not as_expected(trade_offs.over_epsilon(trade_offs.Costs("made up", 1000, swapped)))


def test_a_cost_above_no_learning_is_an_erratum_only_where_the_released_noise_hides_it():
    epsilons = (0.5, 1000.0, math.inf)
    found = {(s, 100, e): 0.2 + 0.5 / e for s in dp_lloyd.SAMPLERS for e in epsilons}
    for released, kind in (({100: 0.3}, ERRATUM), ({100: 1.1}, DIFFERS), ({}, DIFFERS)):
        *_, last = trade_offs.over_epsilon(trade_offs.Costs("made up", 1000, found, released))
        assert last.kind == kind
        assert not last.agrees


def test_the_released_noise_is_d_times_too_small():
    """Its radius has the mean b, that of the private one d b."""
    rng, d = np.random.default_rng(5), 40
    rows = Rows(np.zeros((2000, d)))
    radii = []
    for shape in (None, 1):
        plan = dp_lloyd.Plan(None, 0.01, 1e-9, shape)
        steps = (
            dp_lloyd.one_step(rows.single, np.ones(2000, np.float32), np.zeros((1, d)), plan, rng) for _ in range(400)
        )
        radii.append(2000 * np.mean([np.linalg.norm(step) for step in steps]))
    assert radii[0] == pytest.approx(0.01 * d, rel=0.1)
    assert radii[1] == pytest.approx(0.01, rel=0.3)


def test_an_epsilon_at_which_a_sampler_has_no_such_size_is_told_apart():
    epsilons = (0.5, 1.0, 1000.0, math.inf)
    found = {(s, 100, e): 0.2 + 0.1 / e for s in dp_lloyd.SAMPLERS for e in epsilons}
    del found["opt", 100, 0.5]
    costs = trade_offs.Costs("made up", 1000, found)
    assert costs.common(100) == [1.0, 1000.0]
    checks = list(trade_offs.over_epsilon(costs))
    assert [check.what for check in checks if check.apart] == ["made up, m = 100: the three samplers at epsilon 0.5"]
    assert len(trade_offs.picture([costs], "epsilon").axes) == 1


def test_sentences_over_the_size_notice_a_rising_cost():
    sizes, epsilons = (100, 500, 900), (3.0,)
    found = {
        (s, m, e): c + 10.0 / m
        for s, c in (("unif", 0.3), ("core", 0.28), ("opt", 0.28))
        for m in sizes
        for e in epsilons
    }
    found |= {("full", 1000, 3.0): 0.29}
    assert as_expected(trade_offs.over_size(trade_offs.Costs("made up", 1000, found)))
    rising = {**found, ("opt", 900, 3.0): 0.6}
    assert not as_expected(trade_offs.over_size(trade_offs.Costs("made up", 1000, rising)))


def heavy() -> np.ndarray:
    """Many records at the centre, a few far out, which carry most of the cost."""
    x = np.random.default_rng(1).normal(0.0, 0.01, (20_000, 2))
    x[:4] = [[1.0, 0.0], [1.0, 0.1], [-1.0, 0.0], [-1.0, 0.1]]
    return x - x.mean(axis=0)


def test_a_coreset_of_the_proved_size_has_the_error_and_a_uniform_sample_has_not():
    x = heavy()
    several = list(coreset_property.centres(x, 12, np.random.default_rng(3)))
    size = coreset_size(0.5, 1e-6, 12 * 5)
    found = [coreset_property.errors(x, size, 0.5, several, seed).max() for seed in range(5)]
    uniform = [coreset_property.errors(x, size, 1.0, several, seed).max() for seed in range(5)]
    assert max(found) <= 0.5
    assert max(uniform) > 0.5


def test_the_two_inequalities_of_the_proof():
    """d(x, C) <= A(4s + 8), and a kept record adds at most 16/m in units of A."""
    x = heavy()[:2000]
    squares = np.sum(x**2, axis=1)
    spread = squares.mean()
    for at in coreset_property.centres(x, 30, np.random.default_rng(4)):
        nearest = np.min(np.sum((x[:, None] - at[None]) ** 2, axis=2), axis=1)
        half = 0.5 * (nearest.mean() + spread)
        assert np.all(nearest <= half * (4 * squares / spread + 8) * (1 + 1e-12))
        assert np.all(nearest / (half * 0.5 * (1 + squares / spread)) <= 16 * (1 + 1e-12))


def test_sizes_of_coresets():
    assert coreset_size(0.1) > 3.9 * coreset_size(0.2)
    assert all_centres_size(0.5, 10, 22, 1e-3) == pytest.approx((220 * math.log(10) + math.log(1000)) / 0.25)
    with pytest.raises(InvalidInput, match="error"):
        coreset_size(0.0)


def test_a_stream_gives_the_sample_of_one_piece():
    assert as_expected(streaming.checks(300))
