"""Sums on a grid against fractions: rounded toward zero, added exactly, clipped to a radius in whole numbers."""

import math
from fractions import Fraction

import numpy as np
import pytest

from privamp.numerics.whole_sums import TOP, exact_total, sum_grid, toward_zero, whole_clipped


@pytest.mark.parametrize("shape", [(6,), (6, 3), (6, 2, 2)])
@pytest.mark.parametrize("grid", [2.0**-10, 0.25, 4.0])
def test_rows_are_rounded_toward_zero_and_never_lengthened(shape, grid):
    random = np.random.default_rng(1)
    rows, weights = random.normal(size=shape) * 100, random.choice([1.0, 1.7, 30.0], 6)
    for given in (None, np.ones(6), weights):
        units = toward_zero(rows, grid, given)
        for row, line, weight in zip(rows, units, np.ones(6) if given is None else given, strict=True):
            for x, whole in zip(row.ravel(), line.ravel(), strict=True):
                exact = Fraction(float(x)) * Fraction(float(weight)) / Fraction(grid)
                assert abs(int(whole)) <= abs(exact) < abs(int(whole)) + 1 + abs(exact) / 10**14
                assert int(whole) * exact >= 0


def test_an_entry_beyond_the_top_is_cut_there():
    assert toward_zero(np.array([1e300, -np.inf, 5.0]), 1.0).tolist() == [int(TOP), -int(TOP), 5]


@pytest.mark.parametrize(("noise", "bound"), [(1.0, 1.0), (100.0, 0.3), (1e-9, 5.0), (3.0, 1e12)])
def test_the_grid_is_fine_enough_and_leaves_room_for_weights(noise, bound):
    grid = sum_grid(noise, bound)
    assert math.frexp(grid)[0] == 0.5  # a power of two
    assert 2.0**32 * grid <= max(2.0**-20 * noise, 2.0**33 * 2.0**-40 * bound)
    assert bound / grid <= 2.0**40  # so that weights have the other 22 bits
    assert sum_grid(1e-320, 1e-320) >= 2.0**-1000


@pytest.mark.parametrize("counts", [[1, 1, 1, 1], [3, 0, 7, 1], [0, 0, 0, 0], [2, 2, 2, 2], [1000, 1, 5, 64]])
def test_totals_are_exact_beyond_int64(counts):
    units = np.array([[2**62, -(2**62)], [2**62, -5], [2**62 - 1, 7], [-3, -(2**62)]])
    total = exact_total(units, np.array(counts))
    assert total.tolist() == [sum(c * int(row[j]) for c, row in zip(counts, units, strict=True)) for j in (0, 1)]
    assert exact_total(units[:, 0], np.array(counts)) == total[0]


def test_a_total_of_nothing_is_zero():
    assert exact_total(np.zeros((0, 2), np.int64), np.zeros(0, np.int64)).tolist() == [0, 0]


@pytest.mark.parametrize("p", [1.0, 2.0])
@pytest.mark.parametrize("radius", [5.0, 5.5, 13.0, 1e9])
def test_whole_rows_stay_whole_and_within_the_radius(p, radius):
    random = np.random.default_rng(2)
    rows = np.concatenate([random.integers(-9, 9, (200, 3)), [[3, 4, 0], [5, 12, 0], [5, 0, 0], [2**31, 2**31, 0]]])
    found = whole_clipped(rows.astype(float), radius, p)
    power = int(p)
    for row, line in zip(rows.tolist(), found.tolist(), strict=True):
        assert all(x == int(x) for x in line)
        assert sum(abs(Fraction(x)) ** power for x in line) <= Fraction(radius) ** power
        if sum(abs(x) ** power for x in row) <= Fraction(radius) ** power:
            assert line == row  # also exactly at the radius
        else:
            assert sum(abs(x) for x in line) > 0  # shortened, not dropped


def test_single_numbers_are_cut_at_the_last_whole_number_inside():
    assert whole_clipped(np.array([7.0, -7.0, 3.0, 5.0]), 5.9, 1.0).tolist() == [5.0, -5.0, 3.0, 5.0]
