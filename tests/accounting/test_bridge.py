"""Lower hulls in alpha: never below the chord of exact arithmetic, however far apart its ends are."""

import numpy as np
import pytest
from mpmath import mp, mpf

from privamp.accounting.bridge import bridged, lower_hull


def bumpy(seed: int, interval: float) -> tuple[np.ndarray, np.ndarray]:
    """A falling curve over many orders of magnitude with dents, so that the hull has long chords."""
    random = np.random.default_rng(seed)
    at = np.unique(np.append(0, random.integers(0, 4000, 60)))
    logs = -np.cumsum(random.exponential(2.0, at.size)) - 0.1 * at * interval
    return at, np.exp(np.minimum.accumulate(logs))


def exact_hull(at: np.ndarray, values: np.ndarray, interval: float) -> list[mpf]:
    """At every point the least chord over it, in 60 digits: the points and abscissas are taken as exact."""
    x = [mp.e ** (mpf(int(i)) * mpf(interval)) for i in at]
    y = [mpf(float(v)) for v in values]
    found = []
    for k in range(len(x)):
        chords = [y[i] + (y[j] - y[i]) * (x[k] - x[i]) / (x[j] - x[i]) for i in range(k) for j in range(k + 1, len(x))]
        found.append(min([y[k], *chords]))
    return found


def interpolated(at: np.ndarray, values: np.ndarray, interval: float) -> np.ndarray:
    """What stood here before: np.interp, whose rounding is relative to the larger end of the chord."""
    alpha, hull = np.exp(at * interval), lower_hull(at, values, interval)
    kept = hull >= values
    return np.interp(alpha, alpha[kept], values[kept])


@pytest.mark.parametrize("interval", [1e-2, 1e-5])
def test_hulls_are_above_exact_chords_and_hardly_more(interval) -> None:
    caught = 0
    with mp.workdps(60):
        for seed in range(3):
            at, values = bumpy(seed, interval)
            hull, exact = lower_hull(at, values, interval), exact_hull(at, values, interval)
            assert all(h >= e for h, e in zip(hull.tolist(), exact, strict=True))
            assert all(h <= e * (1 + mpf(1e-9)) for h, e in zip(hull.tolist(), exact, strict=True))
            caught += sum(h < e for h, e in zip(interpolated(at, values, interval).tolist(), exact, strict=True))
    assert caught > 0


def test_two_directions_are_bridged_from_above() -> None:
    """Points of two true curves, raised here and there: the hull stays above both curves."""
    from scipy.stats import norm

    def truth(epsilon):  # Gaussian noise of scale 1
        return norm.cdf(0.5 - epsilon) - np.exp(epsilon) * norm.cdf(-0.5 - epsilon)

    random = np.random.default_rng(1)
    at = np.unique(np.append(0, random.integers(0, 3000, 200)))
    interval = 1e-3
    own, other = (truth(at * interval) * (1 + random.choice([0.0, 0.3, 2.0], at.size)) for _ in range(2))
    own, other = np.minimum.accumulate(own), np.minimum.accumulate(other)
    for (_, found), given in zip(bridged((at, own), (at, other), interval), (own, other), strict=True):
        assert np.all(found >= truth(at * interval) * (1 - 1e-12))
        assert np.all(found <= given)
