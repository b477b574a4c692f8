"""Columns of anything: every entry has a number or nan, whatever stands beside it, and none is refused."""

import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from privamp import InvalidInput
from privamp.numerics.entries import column_of, is_flat, rows_of, table_of


class Hostile:
    def __float__(self):
        raise ZeroDivisionError("1234567")

    def __array__(self, *_, **__):
        raise RuntimeError("1234567")


ODD = {
    "text": ("lots", np.nan), "digits": (" 2.5 ", 2.5), "none": (None, np.nan), "nan": (np.nan, np.nan),
    "inf": (-np.inf, -np.inf), "huge": (10**400, np.inf), "huge negative": (-(10**400), -np.inf),
    "bool": (True, 1.0), "list": ([1.0], np.nan), "dict": ({}, np.nan), "hostile": (Hostile(), np.nan),
    "complex": (1j, np.nan), "decimal": (Decimal("1.5"), 1.5), "fraction": (Fraction(1, 4), 0.25),
    "big fraction": (Fraction(10**400), np.inf), "masked": (np.ma.masked, np.nan), "bytes": (b"\xff", np.nan),
    "array": (np.array([1.0]), np.nan), "number of no dimension": (np.array(1.0), np.nan),
    "denormal": (5e-324, 5e-324), "minus zero": (-0.0, -0.0),
    "largest": (1.7976931348623157e308, 1.7976931348623157e308),
    "date": (np.datetime64("2020-01-01"), np.nan), "numpy": (np.float32(0.1), float(np.float32(0.1))),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_an_odd_entry_changes_no_other(name):
    odd, expected = ODD[name]
    beside = [0.1, True, 3, "0.25", -7.5e300, 2**63 + 1]
    plain = column_of(beside)
    for at in range(len(beside) + 1):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found = column_of([*beside[:at], odd, *beside[at:]])
        assert not told
        assert np.array_equal(found[at : at + 1], [expected], equal_nan=True)
        assert np.array_equal(np.delete(found, at), plain)
    table = np.empty((3, 2), dtype=object)
    table[:] = 0.1
    table[1, 1] = odd
    found = table_of(table)
    assert np.array_equal(found[1], [0.1, expected], equal_nan=True)
    assert np.array_equal(found[[0, 2]], np.full((2, 2), 0.1))


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", "i1", "i8", "u8", "?", "O", "g"])
def test_types_of_arrays_keep_their_values(kind):
    numbers = np.array([0, 1, 1, 0], dtype=kind)
    assert column_of(numbers).dtype == np.float64
    assert column_of(numbers).tolist() == [0.0, 1.0, 1.0, 0.0]
    masked = np.ma.masked_array(numbers, mask=[False, True, False, False])
    assert np.array_equal(column_of(masked), [0.0, np.nan, 1.0, 0.0], equal_nan=True)
    found = column_of(numbers)
    numbers[0] = 1
    assert found[0] == 0.0  # a copy


def test_long_doubles_beyond_the_doubles_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert column_of(np.array([np.longdouble("1e4000"), 1], dtype=np.longdouble)).tolist() == [np.inf, 1.0]


@pytest.mark.parametrize("values", [np.array(["1", "2"]), np.array([1j]), np.array(["2020"], "M8[D]"), np.ones((2, 2))])
def test_types_and_shapes_are_public_and_may_be_refused(values):
    with pytest.raises(InvalidInput, match=r"values must be"):
        column_of(values)


def test_a_table_of_lists_has_rows_of_one_length():
    assert table_of([[1, None], ("x", 10**400)]).tolist()[1][1] == np.inf
    assert table_of([np.array([1.0, 2.0]), [3, 4]]).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    for bad in ([[1, 2], [3]], [], [1, 2], np.ones(3)):
        with pytest.raises(InvalidInput, match="table with one row per record"):
            table_of(bad)


def test_no_single_entry_decides_whether_a_list_is_a_table():
    rows = [[1.0, 2.0]] * 3
    assert all(map(is_flat, ([1.0, None, 2.0], [[1.0], 2.0, 3.0], [])))
    assert not any(map(is_flat, (rows, [None, *rows])))  # the first one did: all others became missing


def test_a_masked_object_is_missing_whatever_the_array_would_fill_it_with():
    masked = np.ma.masked_array(np.array([1, 2, 3], dtype=object), mask=[False, True, False], fill_value=7)
    assert np.array_equal(column_of(masked), [1.0, np.nan, 3.0], equal_nan=True)
    assert np.array_equal(rows_of(masked[:, None])[:, 0], [1.0, np.nan, 3.0], equal_nan=True)
