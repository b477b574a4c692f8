"""The private histogram of norms: every record in one bin, and noise of the stated epsilon on each."""

import math

import numpy as np
import pytest

from privamp import DiscreteLaplace, InvalidInput, private_norm_histogram
from privamp.core.tape import Tape, taping
from privamp.rules.norm_histogram import octave_bins
from privamp.testing import seeded_key, seeded_stream


def counted(norms):
    """Counts before noise."""
    with taping(Tape(seeded_stream(1))) as tape:
        private_norm_histogram(norms, radius=1.0, epsilon=1.0, key=seeded_key(90001))
    return tape.taken[0].value


@pytest.mark.parametrize("odd", [-1.0, -np.inf, np.nan, np.inf, 0.0, 5e-324, "secret text", None, 10**400, [1.0], 1j])
def test_every_norm_is_counted_once(odd):
    """An error about one norm would tell."""
    added = counted([0.5, 0.7, odd]) - counted([0.5, 0.7])
    assert np.sum(added) == np.sum(np.abs(added)) == 1
    assert added[-1 if odd in (np.inf, 10**400) else 0] == 1


def test_norms_at_the_ends_of_bins():
    ends = octave_bins(1.0)
    assert np.array_equal(counted(ends), np.ones(ends.size))
    assert counted(np.nextafter(ends, 9.0))[-1] == 2
    assert counted(np.nextafter(ends, 0.0))[0] == 1


def test_its_cost_is_its_epsilon_and_the_noise_has_that_scale():
    with taping(Tape(seeded_stream(1))) as tape:
        _, guarantee = private_norm_histogram(np.ones(5), radius=1.0, epsilon=0.25, key=seeded_key(7))
    assert guarantee.epsilon() == pytest.approx(0.25)
    assert tape.taken[0].mechanism == DiscreteLaplace(4.0)


def test_counts_are_near_the_truth_and_none_is_negative():
    """Noise of scale 1/5 on 30 bins: beyond 6 with a chance of 30 e^-30."""
    norms = np.linspace(0.001, 1.0, 5000)
    found, _ = private_norm_histogram(norms, radius=1.0, epsilon=5.0, key=seeded_key(8))
    assert np.all(np.abs(np.array(found.counts) - counted(norms)) <= 6)
    assert min(found.counts) >= 0


def test_nobody_is_one_record_at_the_radius():
    """Of 40 empty histograms some have noise in no bin, and are not left empty."""
    for seed in range(40):
        found, _ = private_norm_histogram(np.empty(0), radius=2.0, epsilon=9.0, key=seeded_key(100 + seed))
        assert found.population >= 1
        if found.population == 1 and found.counts[-1] == 1:
            return
    raise AssertionError("no histogram came out empty")


def test_bins_end_at_the_radius():
    ends = octave_bins(1.0)
    assert ends[-1] == 1.0
    assert np.all(np.diff(ends) > 0)


@pytest.mark.parametrize("bad", [{"radius": 0.0, "epsilon": 1.0}, {"radius": 1.0, "epsilon": math.nan}])
def test_bad_parameters(bad):
    with pytest.raises(InvalidInput):
        private_norm_histogram(np.ones(3), **bad)
    with pytest.raises(InvalidInput, match="one number per record"):
        private_norm_histogram(np.ones((1, 1)), radius=1.0, epsilon=1.0)
