"""Everything that touches the data is on the bill, and the bill does not depend on the data."""

from dataclasses import replace

import numpy as np
import pytest

from privamp import ImportanceSampling, Influence, Neighbors, NoTheorem, PrivateKMeans, amplify
from privamp.core.sample import SeededSample
from privamp.kmeans import compiled
from privamp.kmeans import fit as fit_module
from privamp.kmeans.ball import Ball, scan, squares, taken_inside
from privamp.kmeans.ball import lengths as ball_lengths
from privamp.kmeans.first_look import EDGES, norm_counts
from privamp.kmeans.fit_plan import FitPlan, Split
from privamp.kmeans.privacy_spend import FirstThenSample
from privamp.kmeans.threads import ThreadPool
from privamp.testing import seeds_allowed

AR = Neighbors.ADD_REMOVE
rng = np.random.default_rng(5)
X = 0.3 * rng.normal(size=(4000, 6)) * np.array([2.0, 1.0, 1.0, 0.1, 0.01, 0.0])
METHODS = [
    {},
    {"sample_size": 500},
    {"sampler": "uniform", "sample_size": 500},
    {"sampler": "coreset", "sample_size": 500},
    {"sampler": None},
    {"noise": "gaussian", "delta": 1e-6, "sample_size": 500},
    {"noise": "gaussian", "delta": 1e-6, "sampler": "uniform", "sample_size": 500},
    {"noise": "gaussian", "delta": 1e-6, "sampler": "coreset", "sample_size": 500},
    {"noise": "gaussian", "delta": 1e-6, "sampler": None},
]


@pytest.mark.parametrize("options", METHODS)
@pytest.mark.parametrize("epsilon", [0.1, 4.0])
def test_the_ledger_is_the_plan_and_meets_the_budget(options: dict, epsilon: float, monkeypatch) -> None:
    samples = []

    def caught(sample):
        samples.append(SeededSample(sample.design, sample._ids, sample._drawn, sample._key))
        return samples[-1]

    monkeypatch.setattr(fit_module.SeededSample, "of", staticmethod(caught))
    with seeds_allowed():
        model = PrivateKMeans(3, epsilon=epsilon, radius=1.0, random_state=1, **options).fit(X)
    (sample,) = samples
    fitted, delta = model._fitted, model.delta
    assert sample.ledger.entries == fitted.plan.mechanisms == sample.ledger.plan
    assert len(sample.ledger.entries) == 1 + model.n_iter_  # the overall mean comes first
    assert sample.design == ImportanceSampling(fitted.rule)
    planned = amplify(fitted.plan, ImportanceSampling(fitted.rule))
    assert sample.guarantee().delta(fitted.left) == planned.delta(fitted.left) <= delta
    assert sample.guarantee().epsilon(delta) == pytest.approx(fitted.left, rel=2e-2)  # the budget is used
    paid = sum(m.profile(AR).epsilon() for m in fitted.paid)
    assert paid + fitted.left <= epsilon
    assert paid == pytest.approx(0.05 * epsilon)
    assert model.guarantee_.epsilon(delta) == pytest.approx(epsilon, rel=1e-12)
    assert model.guarantee_.neighbors == AR
    losses = model.losses(X)
    assert losses.shape == (4000,)
    assert np.all((losses > 0) & (losses <= epsilon))


@pytest.mark.parametrize("options", METHODS[1:6])
def test_the_guarantee_does_not_depend_on_the_data(options: dict) -> None:
    tables = [X, 1e9 * X, X[:3], np.zeros((10, 6)), np.repeat(X[:1], 9000, axis=0)]
    said = []
    for table in tables:
        model = PrivateKMeans(3, epsilon=1.0, radius=1.0, **options).fit(table)
        answer = model.guarantee_.to_json(epsilon=1.0, delta=model.delta)
        del answer["certificate"]  # names the rule, which the released first look chose
        said.append((answer, model.guarantee_.assumes))
    assert all(answer == said[0] for answer in said)


def test_a_sample_that_costs_more_than_is_left_is_refused() -> None:
    """Negative control: the check at the end of a fit fails when the noise is too small."""
    model = PrivateKMeans(3, epsilon=1.0, radius=1.0, sample_size=500).fit(X)
    fitted = model._fitted
    honest = amplify(fitted.plan, ImportanceSampling(fitted.rule))
    whole = FirstThenSample(1.0, 0.0, fitted.paid, fitted.plan, fitted.rule)
    assert whole.certified(honest) == whole.guarantee() == replace(model.guarantee_, assumes=whole.guarantee().assumes)
    with pytest.raises(NoTheorem, match="nothing is certified"):
        replace(whole, epsilon=0.99).certified(honest)


@pytest.fixture(params=["numpy", "numba"])
def passes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes over the records as NumPy makes them, and as they are compiled for large tables."""
    if request.param == "numba" and not compiled.has_numba():
        pytest.skip("numba is not installed (the extra `fast`)")
    monkeypatch.setattr(compiled, "_WORTH_IT", 0 if request.param == "numba" else np.inf)


@pytest.mark.usefixtures("passes")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("center", [0.0, 0.25])
def test_one_record_moves_the_first_look_by_at_most_one(dtype: type, center: float) -> None:
    """The l1 sensitivity of both releases, with records inside, at and far outside the radius."""
    ball = Ball(np.full(6, center), 0.8)
    newcomers = np.concatenate([X[:20], 100.0 * X[:20], 1e20 * X[:5], np.zeros((1, 6))]).astype(dtype)
    with ThreadPool(1) as pool:
        for newcomer in newcomers:
            (length,), squares = scan(ball, newcomer[None], pool)
            assert np.sum(squares) <= 1.0
            true = np.linalg.norm((newcomer.astype(np.float64) - center) / 0.8)
            assert length >= true
            assert length <= true * (1 + 1e-9) + 1e-90
            assert np.searchsorted(EDGES[1:-1], length) < EDGES.size - 1


@pytest.mark.usefixtures("passes")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_contribution_is_longer_than_the_norm_it_was_weighted_by(dtype: type) -> None:
    table = np.concatenate([X, 50.0 * X]).astype(dtype)
    for ball in (Ball(np.zeros(6), 0.7), Ball(np.full(6, 0.2), 0.7)):
        with ThreadPool(2) as pool:
            lengths, _ = scan(ball, table, pool)
            rows = taken_inside(ball, table, np.arange(len(table)), np.arange(6), lengths, pool).astype(np.float64)
        assert np.all(np.linalg.norm(rows, axis=1) <= np.minimum(lengths, 1.0))


@pytest.mark.skipif(not compiled.has_numba(), reason="numba is not installed (the extra `fast`)")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("center", [0.0, 0.25])
@pytest.mark.parametrize("scale", [1.0, 1e-20, 1e20])  # of single precision, beyond which squares need care
def test_compiled_passes_find_what_numpy_finds(
    dtype: type, center: float, scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = np.concatenate([X, 50.0 * X, np.zeros((1, 6))]).astype(dtype) * dtype(scale)
    ball, taken = Ball(np.full(6, center), 0.8 * scale), np.arange(0, len(table), 3)
    found = []
    for worth_it in (0, np.inf):
        monkeypatch.setattr(compiled, "_WORTH_IT", worth_it)
        with ThreadPool(2) as pool:
            lengths, squares = scan(ball, table, pool)
            rows = taken_inside(ball, table, taken, np.array([1, 4]), lengths, pool)
        found.append((lengths, squares, rows, norm_counts(lengths, fast=worth_it == 0)))
    for mine, theirs in zip(*found, strict=True):
        assert np.array_equal(mine, theirs)
    assert np.sum(found[0][3]) == len(table)


@pytest.mark.usefixtures("passes")
@pytest.mark.parametrize("d", [1, 3, 4, 5, 8, 9, 15, 16, 31, 33, 40, 47, 71])
def test_squares_of_any_number_of_columns_are_those_of_each_row(d: int) -> None:
    """Columns are added in panels, single vectors and a rest; rows outside the ball, and odd ones, by themselves."""
    rng = np.random.default_rng(d)
    table = rng.normal(size=(150, d)) / np.sqrt(d)
    table[40:44] *= 9.0
    table[90, d // 2], table[110, 0] = np.nan, np.inf
    for each in (table, table[:30], table.astype(np.float32), (100 * np.nan_to_num(table, posinf=9)).astype(np.int32)):
        ball = Ball(np.full(d, 0.1), 1.5 if each.dtype.kind == "f" else 150.0)
        with ThreadPool(2) as pool:
            found, total = scan(ball, each, pool, norm_counts)
        wanted = np.concatenate([ball_lengths(ball, row[None]) for row in each])
        assert np.array_equal(found, wanted)
        sums = [squares(ball, row[None], length[None]) for row, length in zip(each, wanted, strict=True)]
        assert np.array_equal(total, np.concatenate([np.sum(sums, axis=0), norm_counts(wanted)]))


@pytest.mark.parametrize("is_gaussian", [False, True])
def test_the_split_between_sums_and_counts_is_the_best(is_gaussian: bool) -> None:
    d, square = 54, 0.25
    split = Split(is_gaussian, d, square)

    def variance(ratio: float) -> float:
        if is_gaussian:  # at 1/s² + 1/c² = 1
            s = np.sqrt(1 + ratio**-2)
            return d * s**2 + square * (ratio * s) ** 2
        b = 1 + 1 / ratio
        return d * (d + 1) * b**2 + 2 * square * (ratio * b) ** 2

    best = variance(split.count_to_sum)
    assert all(best <= variance(split.count_to_sum * f) for f in (0.5, 0.9, 0.99, 1.01, 1.1, 2.0))
    if not is_gaussian:
        assert split.count_to_sum == pytest.approx(18.1, abs=0.05)
        assert best == pytest.approx(3490, abs=5)


@pytest.mark.parametrize("is_gaussian", [False, True])
def test_the_steps_use_the_whole_influence(is_gaussian: bool) -> None:
    split = Split(is_gaussian, 10, 0.3)
    plan = FitPlan(np.arange(10), np.full(10, 0.03), 0.3, 6, 24, split)
    total = Influence.total([m.influence for m in plan.mechanisms(0.7, 12)])
    assert total.per_norm == pytest.approx(0.7)
    assert total.per_record == pytest.approx(0.7 / split.count_to_sum)
    assert total.kind == split.influence(0.7).kind


def test_the_expected_sample_size_is_met() -> None:
    table = 0.3 * rng.normal(size=(40_000, 3))
    for options in ({}, {"sampler": "uniform"}, {"sampler": "coreset"}, {"noise": "gaussian", "delta": 1e-6}):
        model = PrivateKMeans(3, epsilon=1.0, radius=1.0, sample_size=4000, **options).fit(table)
        norms = np.minimum(np.linalg.norm(table, axis=1), 1.0)
        assert model._fitted.rule.expected_size(norms) == pytest.approx(4000, rel=0.15)
        assert model.sample_size_ == pytest.approx(4000, rel=0.05)
