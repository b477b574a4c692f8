"""What an estimate owes to where its values lie: most tests have bounds that start at 0 and values about the middle.

The same key draws the same sample, and the noise is made the same too, so these are comparisons of numbers, not of
averages.
"""

import numpy as np
import pytest

from privamp import Poisson, PoissonPPS, Population, PrivateMean, RandomSize, WithoutReplacement, WithReplacement
from privamp.core.ledger import REGISTRY
from privamp.survey import estimate
from privamp.testing import seeded_key

SIZE = 400
VALUES = (np.arange(SIZE) * 7 % 50).astype(float)
CHANCES = np.where(np.arange(SIZE) % 3, 0.5, 0.8)
DESIGNS = {
    "poisson": (Poisson(0.5), {}),
    "poisson, public size": (Poisson(0.5), {"population": SIZE}),
    "own coins": (PoissonPPS(0.9, 0.4), {"probability": CHANCES}),
    "random size": (RandomSize.uniform(100, 200, SIZE), {}),
    "simple random": (WithoutReplacement(150, SIZE), {}),
    "with replacement": (WithReplacement(150, SIZE), {}),
}


def first_key():
    """A seeded key whose sample has not answered yet: its first answer has the same noise every time."""
    REGISTRY.clear()
    return seeded_key(5)


def estimated(name, values, bounds, **options):
    design, given = DESIGNS[name]
    columns = {"probability": CHANCES} if "probability" in given else {}
    sample = design.draw(Population(SIZE, **columns), first_key())
    return estimate(sample, values, bounds=bounds, epsilon=2.0, **given, **options)


@pytest.mark.parametrize("options", [{}, {"sd": "range"}, {"noise": "gaussian", "delta": 1e-6}], ids=str)
@pytest.mark.parametrize("name", DESIGNS)
def test_values_and_bounds_that_move_together_move_the_mean_and_no_error(name, options):
    here = estimated(name, VALUES, (0.0, 64.0), **options)
    there = estimated(name, VALUES + 1024.0, (1024.0, 1088.0), **options)
    assert there.value - 1024.0 == pytest.approx(here.value, abs=1e-6)
    assert there.noise_error == pytest.approx(here.noise_error, rel=1e-9)
    assert there.sampling_error == pytest.approx(here.sampling_error, rel=1e-6)


@pytest.mark.parametrize("noise", [{}, {"noise": "gaussian", "delta": 1e-6}], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("name", ["poisson", "own coins"])
def test_a_mean_far_from_the_middle_pays_for_the_noise_of_the_count(name, noise):
    """T/N at the end of the bounds, h from the middle: the noise of N counts h times, as much as that of T."""
    middle, end = (estimated(name, np.full(SIZE, at), (10.0, 30.0), **noise) for at in (20.0, 30.0))
    shortest = estimated(name, np.full(SIZE, 10.0), (10.0, 30.0), **noise)
    assert middle.value == pytest.approx(20.0, abs=2.0)
    away = [abs(found.value - 20.0) / 10.0 for found in (middle, end, shortest)]
    one = middle.noise_error / np.hypot(1.0, away[0])
    for found, far in ((end, away[1]), (shortest, away[2])):
        assert found.noise_error == pytest.approx(one * np.hypot(1.0, far), rel=1e-6)
        assert far > 0.8


def test_the_same_for_a_private_mean_of_a_secret_number_of_records():
    """A record adds `count` to the entry that counts, under the noise of the sums: N is uncertain by noise/count."""
    job = PrivateMean(bounds=(10.0, 30.0), epsilon=2.0, sampler=Poisson(0.5))
    count = job.task(1).rows.count
    found = [job.release(np.full(SIZE, at), key=first_key()) for at in (20.0, 25.0, 30.0)]
    away = np.array([abs(one.value - 20.0) for one in found])
    relative = np.array([one.noise_error for one in found]) / np.hypot(1.0, away / count)
    assert relative == pytest.approx(np.full(3, relative[0]), rel=1e-6)
    assert not 0.5 < count < 2.0  # otherwise times and over would nearly agree
    assert away[2] > 5.0
