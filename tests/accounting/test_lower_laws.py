"""Laws from below on coarse grids: under the curve between the grid's points too, in both directions, and near it."""

import numpy as np
import pytest

from privamp import Gaussian, Laplace, Neighbors, Poisson, WithoutReplacement, WithReplacement, amplify, compose
from privamp.accounting import discretize
from privamp.accounting.adaptive import adaptive_delta
from privamp.accounting.bridge import lower_hull
from privamp.accounting.discretize import loss_laws
from privamp.core.curves import pair_profile

RO = Neighbors.REPLACE_ONE
CASES = [
    (amplify(Gaussian(1.0), Poisson(0.05)), 0.05),
    (amplify(Gaussian(0.7), Poisson(1e-5)), 6e-6),
    (amplify(Laplace(1.0), Poisson(0.2)), 0.03),
    (amplify(Gaussian(2.0, neighbors=RO), WithoutReplacement(5, 100), RO), 0.01),
    (amplify(Gaussian(2.0), WithReplacement(5, 100)), 0.2),
]


def excess(profile, interval):
    """The largest of rebuilt curve over true curve, both directions, at many places between the grid's points."""
    at, found = np.geomspace(interval / 7.0, 400.0 * interval, 501), 0.0
    for law, curve in zip(loss_laws(profile, interval, upper=False), (profile.forward, profile.backward), strict=True):
        losses = law.index * law.interval
        gains = -np.expm1(np.minimum(at[:, None] - losses[None, :], 0.0))
        rebuilt, truth = gains @ law.weights + law.infinite, np.exp(curve(at))
        found = max(found, float(np.max(np.divide(rebuilt, truth, out=1.0 * (rebuilt > 0.0), where=truth > 0.0))))
    return found


@pytest.mark.parametrize(("guarantee", "interval"), CASES)
def test_a_law_from_below_stays_below(guarantee, interval):
    assert excess(guarantee.parts[0].lower, interval) <= 1.0 + 1e-12


def test_chords_that_are_lowered_too_little_are_caught(monkeypatch):
    honest = discretize._gaps
    monkeypatch.setattr(discretize, "_gaps", lambda *a: 0.3 * honest(*a))
    assert max(excess(guarantee.parts[0].lower, interval) for guarantee, interval in CASES) > 1.0 + 1e-6


def test_rare_steps_are_known_from_both_sides():
    many = compose(amplify(Gaussian(0.7), Poisson(1e-5)), 10**5)
    assert 0.0285 < many.lower.epsilon(1e-6) < many.epsilon(1e-6) < 0.0296  # from below .0119 before


def test_the_hull_is_the_largest_convex_function_below():
    rng = np.random.default_rng(1)
    at = np.unique(rng.integers(0, 400, 120))
    values = np.exp(-0.02 * at) * rng.uniform(1.0, 1.2, at.size)
    alpha = np.exp(at * 0.01)
    share = (alpha[:, None, None] - alpha[None, None, :]) / (alpha[None, :, None] - alpha[None, None, :] + 1e-300)
    inside = (at[None, :, None] <= at[:, None, None]) & (at[:, None, None] <= at[None, None, :])
    chords = np.where(inside, values[None, :, None] * share + values[None, None, :] * (1.0 - share), np.inf)
    exact = np.minimum(np.min(np.where(np.isfinite(chords), chords, np.inf), axis=(1, 2)), values)
    found = lower_hull(at, values, 0.01)
    assert found == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize(("gone", "interval"), [(0.0732, 0.01), (0.0732, 0.05), (0.366, 0.01), (0.131, 0.05)])
def test_no_law_from_below_has_more_mass_than_one(gone, interval):
    """P = (gone, 1 - gone), Q = (0, 1): the infinite loss is a part of the mass, too."""
    with np.errstate(divide="ignore"):
        pair = pair_profile(np.log([gone, 1.0 - gone]), np.log([0.0, 1.0]))
    for law in loss_laws(pair, interval, upper=False):
        assert float(np.sum(law.weights)) + law.infinite <= 1.0
    _, delta = adaptive_delta([pair], 3, interval=interval, reach=8.0, upper=False)
    assert np.all(delta <= 1.0 - (1.0 - gone) ** 3)  # an event of P alone in one of three rounds, at every epsilon
    assert delta[0] > 0.5 * (1.0 - (1.0 - gone) ** 3)
