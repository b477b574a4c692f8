"""One reader for odd entries: the same number whoever reads it, and no warning that would tell."""

import warnings

import numpy as np
import pytest

from privamp import InvalidInput, PrivateSum
from privamp.kmeans.tables import column_of as column_of_kmeans
from privamp.numerics.entries import column_of, rows_of
from privamp.numerics.row_norms import finite

ODD = [None, "two", "2.5", 10**400, -(10**400), True, 1j, [1.0], np.array([7.0]), np.ma.masked, b"3", object()]


@pytest.mark.parametrize("place", range(len(ODD)))
def test_an_odd_entry_warns_nobody_and_reads_alike(place):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        one, other = column_of([1.0, ODD[place]]), column_of_kmeans([1.0, ODD[place]])
        listed = [1.0, 1.0, ODD[place]]  # a list is what most of its entries are
        of_sums = [rows_of(listed), rows_of([[x] for x in listed]), rows_of([[[x]] for x in listed])]
    assert not caught
    assert np.array_equal(one, other, equal_nan=True)
    assert all(np.array_equal(rows.ravel()[1:], one, equal_nan=True) for rows in of_sums)


@pytest.mark.parametrize("place", range(len(ODD)))
def test_sums_count_an_odd_entry_as_every_job_does(place):
    """Text that reads as a number was 0 in sums and that number in k-means, surveys and regressions."""
    total = PrivateSum(bounds=4.0, epsilon=1e9).release([1.0, 1.0, ODD[place]]).value
    expected = 2.0 + np.clip(finite(column_of([ODD[place]])), -4.0, 4.0)[0]
    assert total == pytest.approx(expected, abs=1e-3)


def test_a_list_in_a_cell_is_no_number_and_no_error():
    """One such record was refused as rows of different lengths: the error told that it is there."""
    assert np.array_equal(rows_of([[1.0, 2.0], [[3.0], 4.0]]), [[1.0, 2.0], [np.nan, 4.0]], equal_nan=True)


def test_types_of_arrays_are_kept_and_masked_entries_are_0():
    for kind in ("f2", "f4", "f8", "i1", "u8", "?"):
        numbers = np.array([[0, 1], [1, 1]], dtype=kind)
        assert rows_of(numbers).dtype == numbers.dtype
        masked = rows_of(np.ma.masked_array(numbers, [[False, False], [True, False]]))
        assert masked.dtype == numbers.dtype
        assert masked.tolist() == [[0, 1], [0, 1]]


@pytest.mark.parametrize("rows", [3.0, "text", np.array(["1"]), np.array([1j]), [[1.0, 2.0], [3.0]], [[1.0], 2.0]])
def test_shapes_and_types_are_public_and_may_be_refused(rows):
    with pytest.raises(InvalidInput, match="rows must"):
        rows_of(rows)
