"""One reader for odd entries: the same number whoever reads it, and no warning that would tell."""

import warnings

import numpy as np
import pytest

from privamp.kmeans.tables import column_of as column_of_kmeans
from privamp.numerics.entries import column_of

ODD = [None, "two", "2.5", 10**400, -(10**400), True, 1j, [1.0], np.array([7.0]), np.ma.masked, b"3", object()]


@pytest.mark.parametrize("place", range(len(ODD)))
def test_an_odd_entry_warns_nobody_and_reads_alike(place):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        one, other = column_of([1.0, ODD[place]]), column_of_kmeans([1.0, ODD[place]])
    assert not caught
    assert np.array_equal(one, other, equal_nan=True)
