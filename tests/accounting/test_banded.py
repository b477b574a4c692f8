"""The error of prefix sums under banded noise, against dense matrices."""

import numpy as np
import pytest

from privamp.accounting.banded import band, prefix_error


def by_matrices(steps: int, column) -> float:
    """||A C^-1||_F / sqrt(steps), C the Toeplitz matrix of this column."""
    c = sum(np.diag(np.full(steps - k, value), -k) for k, value in enumerate(column))
    return float(np.linalg.norm(np.tri(steps) @ np.linalg.inv(c)) / np.sqrt(steps))


@pytest.mark.parametrize(("steps", "bands"), [(1, 1), (5, 1), (7, 3), (12, 12), (50, 8), (60, 2)])
def test_it_is_the_norm_of_the_error_matrix(steps, bands) -> None:
    assert prefix_error(steps, bands) == pytest.approx(by_matrices(steps, band(bands)), rel=1e-12)


def test_bands_have_norm_one_and_square_to_ones() -> None:
    for bands in (1, 2, 5, 64):
        assert np.linalg.norm(band(bands)) == pytest.approx(1.0, abs=1e-15)
    root = band(30) / band(30)[0]
    assert np.allclose(np.convolve(root, root)[:30], 1.0)  # (1-x)^(-1/2) squared is 1/(1-x)


def test_another_column_is_told_apart() -> None:
    wrong = band(5)[::-1]
    assert abs(by_matrices(20, wrong) - prefix_error(20, 5)) > 0.1


def test_more_bands_than_steps_are_all_the_steps_and_long_runs_stay_finite() -> None:
    assert prefix_error(4, 9) == prefix_error(4, 4)
    assert prefix_error(100_000, 64) < prefix_error(100_000, 8) < prefix_error(100_000)
