"""How far one replaced entry moves each statistic, by enumeration, with the wrong divisor as negative control."""

from itertools import combinations_with_replacement

import numpy as np
import pytest

from privamp.bootstrap import Bounded, Mean, Quantile, Regression, Variance


def value(statistic, rows):
    """The statistic of an array with every entry counted once."""
    return statistic.compute(rows, np.ones(len(rows)))


def largest_move(statistic, entries, size):
    """Over all arrays of `size` of the possible rows and all replacements of their first entry."""
    worst = 0.0
    for others in combinations_with_replacement(range(len(entries)), size - 1):
        found = np.array([value(statistic, entries[[first, *others]]) for first in range(len(entries))])
        gaps = np.linalg.norm(found[:, None] - found[None], axis=2)
        worst = max(worst, float(gaps.max()))
    return worst


@pytest.mark.parametrize("size", [2, 3, 4, 5])
@pytest.mark.parametrize("kind", [Mean, Variance])
def test_moments_are_exact(kind, size):
    statistic = kind((-1.0, 2.0))
    entries = statistic.rows(np.linspace(-1.0, 2.0, 7))
    assert largest_move(statistic, entries, size) == pytest.approx(statistic.sensitivity(size), rel=1e-12)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_shares_of_bins_are_exact(size):
    statistic = Quantile((0.0, 1.0), bins=4)
    entries = statistic.rows(np.linspace(0.0, 1.0, 9))
    assert set(entries) == {0, 1, 2, 3}
    assert largest_move(statistic, entries, size) == pytest.approx(statistic.sensitivity(size), rel=1e-12)


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_second_moments_are_bounded_and_nearly_attained(columns):
    statistic = Regression([(0.0, 4.0)] * columns + [(-1.0, 1.0)])
    rng = np.random.default_rng(columns)
    corners = np.array(np.meshgrid(*[[-1.0, 1.0]] * (columns + 1))).reshape(columns + 1, -1).T
    inner = rng.uniform(-1.0, 1.0, (200, columns + 1))
    rows = np.rint(2**26 * np.hstack([np.ones((len(corners) + 200, 1)), np.vstack([corners, inner])]))
    found = np.array([value(statistic, rows[[i]]) for i in range(len(rows))])
    worst = float(np.linalg.norm(found[:, None] - found[None], axis=2).max())
    assert worst <= statistic.sensitivity(1)
    assert worst >= 0.94 * statistic.sensitivity(1)


def test_copies_add_up():
    statistic = Variance((0.0, 1.0))
    before = statistic.compute(statistic.rows([1.0, 0.0]), np.array([3.0, 3.0]))
    after = statistic.compute(statistic.rows([0.0, 0.0]), np.array([3.0, 3.0]))
    assert abs(before - after)[0] <= 3 * statistic.sensitivity(6)


def test_counts_mean_the_same_as_repeated_rows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6, 2)), rng.normal(size=6)
    counts = np.array([1, 3, 2, 1, 1, 4])
    for statistic, values in (
        (Mean((-2, 2)), y),
        (Variance((-2, 2)), y),
        (Quantile((-2, 2), 0.3, 8), y),
        (Regression([(-2, 2)] * 3), (X, y)),
        (Bounded(np.median, (-2, 2)), y),
    ):
        rows = statistic.rows(values)
        once = value(statistic, np.repeat(rows, counts, axis=0))
        np.testing.assert_allclose(statistic.compute(rows, counts.astype(float)), once, rtol=1e-12)


def test_variance_agrees_with_numpy_and_values_are_clipped():
    x = np.array([-9.0, 0.5, 1.0, 7.0])
    statistic = Variance((-1.0, 2.0))
    assert value(statistic, statistic.rows(x))[0] == pytest.approx(np.var([-1.0, 0.5, 1.0, 2.0], ddof=1))


def test_a_sensitivity_over_n_would_be_caught():
    """The negative control: dividing by the size of the data, where m entries are averaged."""
    statistic, n, m = Mean((-1.0, 2.0)), 100, 4
    assert largest_move(statistic, statistic.rows(np.array([-1.0, 2.0])), m) > 10 * statistic.sensitivity(n)
