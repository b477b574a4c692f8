"""One goodness-of-fit test for the whole folder, with its false-alarm probability."""

import numpy as np
import pytest
from scipy.special import chdtrc

FALSE_ALARM = 1e-9  # chance that a correct sampler fails one test (seeds are fixed, so it is settled once)


@pytest.fixture(autouse=True)
def fixed_chance():
    """Here randomness is the operating system's, as it is outside tests."""


def _fits(draws, probabilities):
    """Chi-square of draws 0..len-1 against their probabilities; rare outcomes are pooled."""
    draws, p = np.asarray(draws), np.asarray(probabilities, dtype=float)
    assert abs(p.sum() - 1) < 1e-9
    assert draws.min() >= 0
    assert draws.max() < len(p)
    seen = np.bincount(draws, minlength=len(p)).astype(float)
    expected = p * len(draws)
    rare = expected < 25
    if rare.any():
        seen = np.append(seen[~rare], seen[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
        if expected[-1] < 25:  # still rare together: join the neighbour
            seen = np.append(seen[:-2], seen[-2:].sum())
            expected = np.append(expected[:-2], expected[-2:].sum())
    statistic = ((seen - expected) ** 2 / expected).sum()
    return bool(chdtrc(len(seen) - 1, statistic) > FALSE_ALARM)


@pytest.fixture
def fits():
    """fits(draws, probabilities): True unless the chi-square p-value is below 1e-9."""
    return _fits


@pytest.fixture
def fits_cdf():
    """fits_cdf(draws, cdf): the same on 64 equally likely cells of a continuous distribution."""
    return lambda draws, cdf: _fits(np.minimum((cdf(draws) * 64).astype(int), 63), np.full(64, 1 / 64))
