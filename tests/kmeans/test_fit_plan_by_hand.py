"""The plan of a fit by the rules in its description, for many amounts of noise; merging and starts point by point."""

import math

import numpy as np
import pytest

from privamp.kmeans.centres import Cells, NoiseOfStep, OverallMean, cells_of
from privamp.kmeans.first_look import MIDDLES, FirstLook
from privamp.kmeans.fit_plan import FitPlan, Split, _Noise, choose
from privamp.kmeans.merging import _costs, _few, _lloyd, _squared, _starts, merged
from privamp.kmeans.starts import into_ball, start
from privamp.mechanisms.gaussian import Gaussian
from privamp.mechanisms.laplace import Laplace
from privamp.mechanisms.norm_noise import NormNoise
from privamp.testing import seeded_stream

SQUARES = np.array([0.05, 0.2, 0.001, 0.1])
SHARES = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7)
LEVELS = [10.0**power for power in np.arange(-4.0, 2.0, 0.25)]


def look(records=5000.0, squares=SQUARES, error=1000.0):
    histogram = np.zeros(MIDDLES.size)
    histogram[-1] = records
    return FirstLook(histogram, squares, error)


def variance_in(columns, share, per_norm, is_gaussian):
    """In a column of a sum: b² for Gaussian noise, b²(d + 1) for norm noise, b = 1/(t s) or 1/(t sqrt s)."""
    scale = 1.0 / (per_norm * (math.sqrt(share) if is_gaussian else share))
    return scale**2 * (1.0 if is_gaussian else columns + 1.0)


def relative(columns, share, per_norm, is_gaussian, records=4000.0):
    """m(s): of d columns of a mean of N records, less the error in their number, over all variance."""
    return columns * variance_in(columns, share, per_norm, is_gaussian) / records**2 / SQUARES.sum()


def kept_columns(clusters, share, per_norm, is_gaussian):
    """By falling squares, as many as make the sum of g tau²/(g + tau²) and of what is left out least."""
    order = [1, 3, 0, 2]
    if is_gaussian:
        return [0, 1, 2, 3]
    g, costs = [0.5 * SQUARES[c] for c in order], []
    for d in range(1, 5):
        tau = variance_in(d, share, per_norm, False) * clusters**2 / 4000.0**2
        costs.append(sum(g[d:]) + sum(one * tau / (one + tau) for one in g[:d]))
    return sorted(order[: int(np.argmin(costs)) + 1])


@pytest.mark.parametrize("is_gaussian", [False, True])
@pytest.mark.parametrize("clusters", [2, 7, 100])
def test_plans_follow_their_rules(is_gaussian, clusters):
    seen = set()
    for per_norm in LEVELS:
        found = choose(look(), clusters, 6, is_gaussian, per_norm)
        columns = kept_columns(clusters, 1.0, per_norm, is_gaussian)
        kept = SQUARES[columns].sum() / SQUARES.sum()
        between = 0.5 * kept * (1.0 - 1.0 / clusters)
        costs = {1.0: relative(4, 1.0, per_norm, is_gaussian) + 1.0}
        for a in SHARES:
            x = relative(len(columns), 1.0 - a, per_norm, is_gaussian) * clusters**2
            costs[a] = relative(4, a, per_norm, is_gaussian) + 1.0 - between**2 / (between + x)
        share = min(costs, key=costs.get)
        assert found.mean_share == share
        steps = 0
        if share < 1.0:
            effective = SQUARES.sum() ** 2 / float(np.sum(SQUARES**2))
            x = relative(len(columns), 1.0, per_norm, is_gaussian) * clusters**2 * clusters ** (2.0 / effective)
            below = [
                n for n, most in ((8, 2e-6), (5, 2e-5), (3, 1e-3), (2, 0.015)) if x < most * (3 if is_gaussian else 1)
            ]
            steps = min([*below, 1][0], 6)
            columns = kept_columns(clusters, (1.0 - share) / steps, per_norm, is_gaussian)
        assert found.steps == steps
        assert found.columns.tolist() == columns
        assert found.squares.tolist() == SQUARES[columns].tolist()
        x = relative(len(columns), 1.0, per_norm, is_gaussian) * clusters**2
        each = [*(n for n, most in ((16, 3e-4), (8, 0.003), (4, 0.1), (2, 0.5)) if x < most), 1][0]
        assert found.cells == max(min(clusters * each, 1024), clusters)
        assert found.split == Split(is_gaussian, len(columns), pytest.approx(SQUARES[columns].sum()))
        seen.add(steps)
    assert {0, 1} < seen
    assert max(seen) > 3 or clusters == 100


def test_noise_is_planned_for_fewer_records_than_were_seen():
    noise = _Noise(look(error=0.0), 7, True, 0.1)
    fewer = _Noise(look(error=4500.0), 7, True, 0.1)
    assert fewer.of_mean(0.5) == pytest.approx(100.0 * noise.of_mean(0.5))
    nobody = _Noise(look(error=1e9), 7, True, 0.1)
    assert nobody.of_mean(1.0) == pytest.approx(relative(4, 1.0, 0.1, True, records=1.0))


def test_splits_by_their_formulas():
    pure, gaussian = Split(False, 3, 0.25), Split(True, 3, 0.25)
    assert pure.count_to_sum == pytest.approx((3 * 4 / 0.5) ** (1 / 3))
    assert gaussian.count_to_sum == pytest.approx((3 / 0.25) ** 0.25)
    assert Split(True, 3, 7.0).count_to_sum == pytest.approx(3**0.25)  # no centre is longer than 1
    assert Split(True, 3, 0.0).count_to_sum == pytest.approx(3e6**0.25)
    assert pure.scale(2.0, 0.25) == 2.0
    assert gaussian.scale(2.0, 0.25) == 1.0
    assert pure.column_variance(3.0) == 36.0
    assert pure.column_variance(3.0, 7) == 72.0
    assert gaussian.column_variance(3.0, 7) == 9.0
    assert pure.count_error(3.0) == pytest.approx(3.0 * pure.count_to_sum * math.sqrt(2.0))
    assert gaussian.count_error(3.0) == pytest.approx(3.0 * gaussian.count_to_sum)
    step = pure.step(2.0, 0.25, 7)
    assert (step.sums, step.counts) == (NormNoise(2.0, 7), Laplace(2.0 * pure.count_to_sum))
    assert pure.step(2.0, 0.25).sums == NormNoise(2.0, 3)
    step = gaussian.step(2.0, 0.25)
    assert (step.sums, step.counts) == (Gaussian(1.0), Gaussian(gaussian.count_to_sum))
    influence = pure.influence(0.6)
    assert (influence.kind, influence.per_norm) == ("pure", 0.6)
    assert influence.per_record == pytest.approx(0.6 / pure.count_to_sum)


def test_steps_share_what_the_mean_leaves():
    plan = FitPlan(np.arange(3), np.full(3, 0.1), 0.2, 4, 8, Split(True, 3, 0.3))
    assert plan.step_share == pytest.approx(0.2)
    mean, *steps = plan.mechanisms(2.0, 5)
    assert mean == plan.split.step(2.0, 0.2, 5)
    assert steps == [plan.split.step(2.0, plan.step_share)] * 4
    alone = FitPlan(np.arange(3), np.full(3, 0.1), 1.0, 0, 8, Split(True, 3, 0.3))
    assert len(alone.mechanisms(2.0, 5)) == 1


def test_cells_are_pulled_column_by_column():
    """g = [sum of count²((y - m)² - tau²)/sum of count²]+, and y moves to m + (y - m) g/(g + tau²)."""
    sums, counts = np.array([[60.0, 5.0], [-20.0, 12.0], [3.0, 3.0]]), np.array([100.0, 50.0, 2.0])
    mean, noise = OverallMean(np.array([0.1, 0.15]), 0.0), NoiseOfStep(40.0, 8.0)
    size = np.array([100.0, 50.0, 8.0])  # no smaller than the error of a count
    y, tau = sums / size[:, None], 40.0 / size**2
    expected = np.empty((3, 2))
    for c in range(2):
        g = max(float(np.sum(size**2 * ((y[:, c] - mean.point[c]) ** 2 - tau)) / np.sum(size**2)), 0.0)
        expected[:, c] = mean.point[c] + (y[:, c] - mean.point[c]) * g / (g + tau)
    found = cells_of(sums, counts, mean, noise)
    assert np.all(np.linalg.norm(expected, axis=1) < 1.0)
    np.testing.assert_allclose(found.points, expected, rtol=1e-12)
    assert found.counts.tolist() == [100.0, 50.0, 0.0]


def test_the_overall_mean_is_pulled_as_a_whole():
    """By 1 - (d - 2) tau²/|y|² for three columns and more; it lies in the ball."""
    total = np.array([30.0, -40.0, 10.0])
    found = OverallMean.of(total, 100.0, 150.0)
    kept = 1.0 - 0.015 / float(np.sum((total / 100.0) ** 2))
    np.testing.assert_allclose(found.point, kept * total / 100.0, rtol=1e-12)
    assert found.variance == pytest.approx(0.015)
    assert np.linalg.norm(OverallMean.of(50.0 * total, 100.0, 150.0).point) == pytest.approx(1.0)
    assert found.of_columns(np.array([2, 0])).point.tolist() == found.point[[2, 0]].tolist()


def test_squared_distances_and_costs():
    points, centres = np.array([[0.0, 0.0], [3.0, 4.0], [1.0, 0.0]]), np.array([[[0.0, 0.0], [3.0, 0.0]]])
    assert _squared(points, centres)[0].tolist() == [[0.0, 9.0], [25.0, 16.0], [1.0, 4.0]]
    assert _costs(points, np.array([2.0, 0.5, 3.0]), centres).tolist() == [0.5 * 16.0 + 3.0]


def test_a_start_is_drawn_in_proportion_to_counts_and_squared_distances():
    """On a line at 0, 1, 3, 7 with counts 1, 2, 1, 4; the best of two tries is taken for every centre."""
    points, counts = np.array([[0.0], [1.0], [3.0], [7.0]]), np.array([1.0, 2.0, 1.0, 4.0])
    squared = _squared(points, points)
    # first centre: 0.05 and 0.9 of 8 are cells 0 and 3; costs 2 + 9 + 196 and 49 + 72 + 16
    # second: chances 49, 72, 16, 0: 0.1 and 0.95 of 137 are cells 0 and 2; costs 2 + 9 and 9 + 8
    uniforms = np.array([[[0.05, 0.9], [0.1, 0.95]], [[0.2, 0.2], [0.999, 0.0]]])
    found = _starts(squared, counts, uniforms)
    # second start: 0.2 of 8 is cell 1; chances 1, 0, 4, 144: 0.999 and 0 of 149 are cells 3 and 0; costs 1 + 4, 4 + 144
    assert found.tolist() == [[3, 0], [1, 3]]


def test_lloyd_steps_from_several_starts():
    points, counts = np.array([[0.0], [1.0], [10.0], [14.0]]), np.array([1.0, 3.0, 1.0, 1.0])
    found = _lloyd(points, counts, np.array([[[0.0], [1.0]], [[1.0], [14.0]], [[0.5], [99.0]]]))
    np.testing.assert_allclose(found[:, :, 0], [[0.75, 12.0], [0.75, 12.0], [27.0 / 6.0, 99.0]])


def test_few_cells_are_centres_the_fullest_first():
    cells = Cells(np.arange(8.0).reshape(4, 2), np.array([3.0, 0.0, 9.0, 5.0]))
    assert _few(cells, 3).tolist() == [[4.0, 5.0], [6.0, 7.0], [0.0, 1.0]]
    assert _few(cells, 5).tolist() == [[4.0, 5.0], [6.0, 7.0], [0.0, 1.0], [4.0, 5.0], [4.0, 5.0]]
    centres, which = merged(cells, 3, seeded_stream(1))
    assert centres.tolist() == _few(cells, 3).tolist()
    assert which.tolist() == [2, 0, 0, 1]  # cell 1, at (2, 3), is empty and as near to both: the first


def test_starts_have_the_spread_of_their_columns():
    mean, variances = np.array([0.1, -0.2]), np.array([1e-4, 4e-4])
    points = start("spread", 256, mean, variances, 3)
    np.testing.assert_allclose(points.mean(axis=0), mean, atol=1e-3)
    np.testing.assert_allclose(points.std(axis=0), np.sqrt(variances), rtol=0.03)
    ball = start("ball", 256, mean, variances, 3)
    np.testing.assert_allclose(np.linalg.norm(ball, axis=1), 0.5)
    directions = (points - mean) / np.sqrt(variances)
    np.testing.assert_allclose(ball, 0.5 * directions / np.linalg.norm(directions, axis=1, keepdims=True), rtol=1e-9)
    assert start("spread", 1, mean, variances, 3).shape == (1, 2)
    assert into_ball(np.array([[3.0, 4.0], [0.3, 0.4]])).tolist() == [[0.6, 0.8], [0.3, 0.4]]
