"""Random allocation against quadrature, enumeration and published values; a rounding that loses the mean is caught."""

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from scipy import integrate, stats

from privamp import ApproxDP, Gaussian, Laplace, Neighbors, Poisson, PureDP, amplify
from privamp.accounting import convex_order
from privamp.accounting.convex_order import one_of_many
from privamp.core.curves import pair_profile
from privamp.core.profile import Profile

AR = Neighbors.ADD_REMOVE

# (sigma, epsilon) -> D(P||Q), D(Q||P) for t = 2, by two-dimensional quadrature in 30 digits
TWO_ROUNDS = {
    (1.0, 1.0): (5.9206501086e-2, 5.0197662369e-2),
    (1.0, 2.0): (4.7457776332e-3, 2.0559245297e-3),
    (2.0, 1.0): (6.4612837198e-4, 4.7900624223e-4),
    (0.5, 2.0): (2.3232134346e-1, 1.8644914839e-1),
}


def both(profile: Profile, epsilon: float) -> tuple[float, float]:
    return tuple(float(np.exp(curve(np.asarray(epsilon)))) for curve in (profile.forward, profile.backward))


def between(
    profile: Profile, rounds: int, epsilon: float, truth: tuple[float, float], loose: float = 3e-4, tight: float = 1e-4
) -> None:
    """Both directions: truth <= upper <= truth (1 + tight), truth (1 - loose) <= lower <= truth.

    Lower bounds lose an order of the interval at atoms, which few grid points hit.
    """
    upper = both(one_of_many(profile, rounds), epsilon)
    lower = both(one_of_many(profile, rounds, upper=False), epsilon)
    for low, exact, high in zip(lower, truth, upper, strict=True):
        assert low <= exact * (1 + 1e-9) + 1e-300
        assert exact <= high * (1 + 1e-9)
        assert high <= exact * (1 + tight)
        assert low >= exact * (1 - loose)


@pytest.mark.parametrize(("sigma", "epsilon"), TWO_ROUNDS)
def test_two_gaussian_rounds_agree_with_quadrature(sigma: float, epsilon: float) -> None:
    between(Gaussian(sigma).profile(AR), 2, epsilon, TWO_ROUNDS[sigma, epsilon])


@pytest.mark.parametrize(
    ("sigma", "rounds", "delta", "low", "high"),
    [(1.0, 100, 1e-6, 0.85793, 0.85808), (1.0, 100, 1e-5, 0.62091, 0.62102), (2.0, 10, 1e-6, 0.72882, 0.72899)],
)
def test_known_intervals(sigma: float, rounds: int, delta: float, low: float, high: float) -> None:
    """Intervals of an independent prototype (geometric grid of .005): ours overlap them and are narrower than 2e-4."""
    profile = Gaussian(sigma).profile(AR)
    upper, lower = (one_of_many(profile, rounds, upper=side).epsilon(delta) for side in (True, False))
    assert lower <= high
    assert upper >= low
    assert 0 < upper - lower <= 2e-4


@pytest.mark.parametrize("rounds", [2, 3, 7, 100])
@pytest.mark.parametrize("epsilon", [0.1, 0.5])
def test_randomised_response_agrees_with_the_binomial_law(rounds: int, epsilon: float) -> None:
    strength = 1.0
    yes = np.arange(rounds + 1)
    without = stats.binom.pmf(yes, rounds, 1 / (1 + math.exp(strength)))
    ratio = (yes * math.exp(strength) + (rounds - yes) * math.exp(-strength)) / rounds
    a = math.exp(epsilon)
    truth = float(np.sum(without * np.maximum(ratio - a, 0))), float(np.sum(without * np.maximum(1 - a * ratio, 0)))
    between(PureDP(strength).profile(AR), rounds, epsilon, truth, loose=0.1)


Prices = Callable[[np.ndarray], np.ndarray]  # v -> E(W - v)+ of one round


def by_quadrature(prices: Prices, value: np.ndarray, weight: np.ndarray, epsilon: float) -> tuple[float, float]:
    """t = 2: E(W1 + W2 - 2a)+ is the mean over W1 of the price at 2a - W1; below 0 the price is 1 - v."""
    a = math.exp(epsilon)

    def call(v: np.ndarray) -> np.ndarray:
        return np.where(v <= 0, 1 - v, prices(np.maximum(v, 1e-300)))

    level = 2 / a  # E(level - W1 - W2)+ = level - 2 + E(W1 + W2 - level)+
    forward, below = (float(np.sum(weight * call(x - value))) for x in (2 * a, level))
    return 0.5 * forward, 0.5 * a * (level - 2 + below)


def test_laplace_agrees_with_quadrature() -> None:
    theta = 1.5
    profile = Laplace(1.0, theta).profile(AR)
    x, w = np.polynomial.legendre.leggauss(2000)
    middle, half = theta * (x + 1) / 2, theta * w / 2  # the loss changes between 0 and theta only
    value = np.concatenate([[math.exp(-theta)], np.exp(2 * middle - theta), [math.exp(theta)]])
    weight = np.concatenate([[0.5], 0.5 * np.exp(-middle) * half, [0.5 * math.exp(-theta)]])

    def prices(v: np.ndarray) -> np.ndarray:
        inside = 1 - np.exp((np.log(v) - theta) / 2)
        return np.where(v >= math.exp(theta), 0.0, np.where(v <= math.exp(-theta), 1 - v, inside))

    for epsilon in (0.2, 0.8, 1.3):
        between(profile, 2, epsilon, by_quadrature(prices, value, weight, epsilon), loose=0.01)


def test_a_pair_with_two_different_directions_keeps_its_orientation() -> None:
    theta, q = 1 / 0.7, 0.6
    profile = amplify(Gaussian(0.7), Poisson(q)).upper
    x = np.linspace(-12, 12, 48_001)
    value, weight = 1 - q + q * np.exp(theta * x - theta**2 / 2), stats.norm.pdf(x) * (x[1] - x[0])

    def prices(v: np.ndarray) -> np.ndarray:
        u = np.maximum((v - 1 + q) / q, 1e-300)
        edge = np.log(u) / theta + theta / 2
        return np.where(v <= 1 - q, 1 - v, q * (stats.norm.sf(edge - theta) - u * stats.norm.sf(edge)))

    turned = Profile(profile.backward, profile.forward)
    for epsilon in (0.2, 0.6):
        truth = by_quadrature(prices, value, weight, epsilon)
        between(profile, 2, epsilon, truth, loose=0.02, tight=5e-3)
        with pytest.raises(AssertionError):
            between(turned, 2, epsilon, truth, loose=0.02, tight=5e-3)


def test_what_is_lost_for_sure_stays_lost() -> None:
    """An (eps, delta) box: outcomes that only P has, outcomes that only Q has, and randomised response."""
    strength, lost, rounds = 0.7, 0.05, 3
    keep = 1 - lost
    p = np.asarray([lost, 0.0, keep * math.exp(strength) / (1 + math.exp(strength)), keep / (1 + math.exp(strength))])
    q = np.asarray([0.0, lost, keep / (1 + math.exp(strength)), keep * math.exp(strength) / (1 + math.exp(strength))])
    with_record, without = [], []
    for outcome in product(range(4), repeat=rounds):
        o = list(outcome)
        without.append(math.prod(q[o]))
        with_record.append(sum(p[o[i]] * math.prod(q[o[:i] + o[i + 1 :]]) for i in range(rounds)) / rounds)
    with np.errstate(divide="ignore"):
        exact = pair_profile(np.log(with_record), np.log(without))
    for epsilon in (0.1, 0.4):
        between(ApproxDP(strength, lost).profile(AR), rounds, epsilon, both(exact, epsilon), loose=0.01)


def test_many_rounds_and_small_noise() -> None:
    for sigma, rounds in ((1.0, 10_000), (0.3, 100), (8.0, 37), (300.0, 20)):
        profile = Gaussian(sigma).profile(AR)
        upper, lower = (one_of_many(profile, rounds, upper=side, points=2000).epsilon(1e-6) for side in (True, False))
        assert 0 < lower < upper < 1.1 * lower
        assert upper < profile.epsilon(1e-6)


def test_pure_noise_gains_nothing_at_delta_zero() -> None:
    profile = Laplace(1.0).profile(AR)
    assert one_of_many(profile, 10).epsilon(0.0) == profile.epsilon(0.0)
    assert one_of_many(profile, 1) is profile


def test_hardly_any_noise_gains_nothing() -> None:
    profile = Gaussian(0.01).profile(AR)
    assert one_of_many(profile, 10) is profile
    assert one_of_many(profile, 10, upper=False).delta(0.0) == 0.0


def test_a_rounding_that_loses_the_mean_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Putting every sum on the lower grid point looks harmless and is no upper bound."""
    honest = convex_order.places

    def downwards(interval: float, farthest: int) -> convex_order.Places:
        at = honest(interval, farthest)
        return convex_order.Places(at.nearest, at.place, 0.0 * at.share)

    monkeypatch.setattr(convex_order, "places", downwards)
    with pytest.raises(AssertionError):
        between(Gaussian(1.0).profile(AR), 2, 1.0, TWO_ROUNDS[1.0, 1.0])


@pytest.mark.parametrize("upper", [True, False])
def test_cutting_off_the_ends_keeps_the_mean(upper: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With an eighth cut off at either end instead of 1e-26; a likelihood ratio has the mean 1 before and after."""
    monkeypatch.setattr(convex_order, "_NEGLIGIBLE", 0.12)
    mass = np.array([0.02, 0.05, 0.1, 0.3, 0.3, 0.1, 0.08, 0.03])
    law = convex_order.Law(upper, 0.2, -4, mass, mass * np.exp(0.2 * np.arange(-4, 4)), 0.02, 0.01)
    cut = convex_order._trimmed(law)
    assert cut.mass.size < mass.size
    assert float(cut.mass.sum()) + cut.zero == pytest.approx(1.0)
    before, after = (float(one.moment.sum()) + one.infinite for one in (law, cut))
    assert after == pytest.approx(before)
    if upper:
        assert cut.moment == pytest.approx(cut.mass * cut.values)
        assert cut.infinite > law.infinite


def test_reference_by_scipy() -> None:
    """The table above, one entry recomputed here: D(P||Q) for t = 2, sigma = 1, eps = 1."""
    a = math.e

    def inner(x: float) -> float:
        rest = 2 * a - math.exp(x - 0.5)
        if rest <= 0:
            return 0.5 * (1 - rest)
        edge = math.log(rest) + 0.5
        return 0.5 * float(stats.norm.sf(edge - 1) - rest * stats.norm.sf(edge))

    value, _ = integrate.quad(
        lambda x: inner(x) * stats.norm.pdf(x), -10, 10, points=[math.log(2 * a) + 0.5], limit=400
    )
    assert value == pytest.approx(TWO_ROUNDS[1.0, 1.0][0], rel=1e-9)
