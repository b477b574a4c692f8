"""The direct interval of a mean: what a record moves, what is answered, what is refused."""

import numpy as np
import pytest

from privamp import bootstrap
from privamp.bootstrap.direct import WEIGHT, DirectMean
from privamp.errors import InvalidInput
from privamp.testing import seeded_key


def moved(weight: float) -> float:
    """The farthest that (z, w z²) moves when z is replaced, by a grid of both ends."""
    z = np.linspace(-1.0, 1.0, 2001)
    return float(np.max(np.hypot(z[:, None] - z, weight * (z[:, None] ** 2 - z**2))))


def test_squares_cost_nothing_beside_the_mean() -> None:
    assert moved(WEIGHT) == pytest.approx(2.0, abs=1e-12)
    assert moved(1.68) > 2.0 + 1e-4  # a little more weight is no longer free
    u = np.linspace(0.0, 2.0, 200_001)
    assert np.min(4.0 - u - WEIGHT**2 * u * (2.0 - u) ** 2) > 0.01


def test_the_statistic_moves_within_its_sensitivity() -> None:
    rng = np.random.default_rng(3)
    asked = DirectMean((-2.0, 6.0), 40)
    rows = asked.rows(rng.uniform(-3, 7, 40))
    for place, value in [(0, -2.0), (3, 6.0), (7, 2.0), (9, 0.5), (11, 3.4)]:
        other = rows.copy()
        other[place] = asked.rows([value, value])[0]
        one, two = (asked.compute(r, np.ones(40)) for r in (rows, other))
        assert np.linalg.norm(one - two) <= asked.sensitivity(40)


def run(x: np.ndarray, seed: int = 1, **options: object) -> bootstrap.Result:
    return bootstrap.run(x, bounds=(-4, 4), key=seeded_key(seed), jobs=1, **{"method": "direct", **options})


def test_it_is_narrower_than_resampling_and_keeps_the_budget() -> None:
    x = np.random.default_rng(1).standard_normal(1000)
    direct, resampled = run(x), run(x, method="subsampling")
    widths = [float(np.diff(found.interval(0.95))[0]) for found in (direct, resampled)]
    assert widths[0] < 0.85 * widths[1]
    assert direct.guarantee.delta(1.0) <= 1e-6
    assert direct.guarantee.neighbors == resampled.guarantee.neighbors
    assert abs(direct.value - x.mean()) < 5 * direct.noise_error
    assert direct.details["groups"] == 1
    assert direct.interval(0.5)[0] > direct.interval(0.99)[0]


@pytest.mark.parametrize(("n", "epsilon", "spread"), [(1000, 1.0, 1.0), (300, 8.0, 0.2), (2000, 0.2, 1.5)])
def test_it_covers(n: int, epsilon: float, spread: float) -> None:
    """400 data sets: a share below 0.92 would be more than 2.7 standard errors from 0.95."""
    rng, covered = np.random.default_rng(n), 0
    for seed in range(400):
        x = np.clip(0.5 + spread * rng.standard_normal(n), -4, 4)
        low, high = run(x, seed, epsilon=epsilon).interval(0.95)
        covered += low <= 0.5 <= high
    assert covered / 400 >= 0.92


def test_what_is_refused() -> None:
    x = np.arange(50.0)
    with pytest.raises(InvalidInput, match="is for a mean"):
        run(x, statistic="variance")
    with pytest.raises(InvalidInput, match="neither size nor resamples"):
        run(x, resamples=20)
    with pytest.raises(InvalidInput, match="neither size nor resamples"):
        run(x, size=20)
