"""Far losses on a coarser grid: beside one grid for all, and with the two mistakes one could make."""

import numpy as np
import pytest

from privamp import InvalidInput
from privamp.accounting.adaptive import Recursion, Window, steps_of
from privamp.accounting.far_losses import STRIDE, FarLosses, nearness
from privamp.accounting.gaussian_rounds import GaussianRounds

WINDOW, NEAR, INTERVAL = Window(0.002, 800, 104), 96, 0.002
ROUNDS = 40


@pytest.fixture(scope="module")
def pairs():
    return GaussianRounds(1.0, "ball", 3, 500).attacks()


def followed(pairs, *, upper, near):
    steps = steps_of(pairs, INTERVAL, upper=upper, near=None if upper else near)
    return Recursion(steps, WINDOW, upper=upper, near=near).advance(ROUNDS)


def test_two_grids_enclose_one_from_both_sides(pairs):
    for upper in (True, False):
        one, two = (followed(pairs, upper=upper, near=near) for near in (None, NEAR))
        excess = (two - one) if upper else (one - two)
        assert np.min(excess) > -1e-11  # of rounding, which is added on top in both
        assert np.all(excess[one > 1e-6] <= 0.02 * one[one > 1e-6])
    assert np.all(followed(pairs, upper=False, near=NEAR) <= followed(pairs, upper=True, near=NEAR))


def test_chords_that_are_not_lowered_would_be_caught(pairs, monkeypatch):
    """From below, W at the coarse points themselves has chords above W: the bound would not be one."""
    honest = followed(pairs, upper=False, near=NEAR)
    monkeypatch.setattr(FarLosses, "_lowered", lambda self, values, last: values[::STRIDE].copy())
    assert np.max(followed(pairs, upper=False, near=NEAR) - honest) > 1e-9


def test_far_losses_off_the_coarse_grid_are_refused_from_below(pairs):
    steps = steps_of(pairs, INTERVAL, upper=False)
    with pytest.raises(InvalidInput, match="coarse grid"):
        Recursion(steps, WINDOW, upper=False, near=NEAR)


def test_a_split_loss_keeps_both_probabilities(pairs):
    steps = steps_of(pairs, INTERVAL, upper=True)
    far = FarLosses(steps, NEAR, 905, INTERVAL, upper=True)
    for step in steps:
        at = np.arange(step.first, step.first + step.mass.size)
        is_far = np.abs(at) > NEAR
        first, mass = far._coarse(step)
        coarse = (first + np.arange(mass.size)) * STRIDE
        assert np.sum(mass) == pytest.approx(np.sum(step.mass[is_far]), rel=1e-12)
        other = np.sum(step.mass[is_far] * np.exp(-at[is_far] * INTERVAL))
        assert np.sum(mass * np.exp(-coarse * INTERVAL)) == pytest.approx(other, rel=1e-10)


def test_how_near_is_near(pairs):
    steps = steps_of(pairs, INTERVAL, upper=True)
    near = nearness(steps, 800)
    assert near is not None
    assert near % STRIDE == 0
    wide = GaussianRounds(4.0, "ball", 5, 10).attacks()
    assert nearness(steps_of(wide, INTERVAL, upper=True), 800) is None  # nothing is near
