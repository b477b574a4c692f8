"""Distributions of counts are scipy's, and importing the designs does not load them."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from privamp.numerics.count_laws import binom, hypergeom, poisson


def test_they_are_those_of_scipy() -> None:
    counts = np.arange(6)
    assert np.array_equal(binom.pmf(counts, 5, 0.3), stats.binom.pmf(counts, 5, 0.3))
    assert np.array_equal(hypergeom.logpmf(counts, 20, 5, 7), stats.hypergeom.logpmf(counts, 20, 5, 7))
    assert np.array_equal(poisson.pmf(counts, 2.5), stats.poisson.pmf(counts, 2.5))


def test_they_can_be_copied_and_know_their_own_limits() -> None:
    assert copy.deepcopy(binom).pmf(0, 1, 0.5) == pickle.loads(pickle.dumps(binom)).pmf(0, 1, 0.5)
    with pytest.raises(AttributeError):
        getattr(binom, "no_such_function")  # noqa: B009


def test_reading_a_spec_does_not_load_them() -> None:
    code = "import sys; from privamp import spec; spec.design('poisson:rate=0.1'); print('scipy.stats' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
