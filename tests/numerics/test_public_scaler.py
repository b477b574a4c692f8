"""Scaling by public bounds: each entry by itself, whatever it is, and back."""

import numpy as np
import pytest

from privamp import InvalidInput
from privamp.numerics.public_scaler import PublicScaler

BOUNDS = [(0, 120), (-3, 5)]


def test_ends_middle_outside_and_missing():
    rows = [[0.0, -3.0], [120.0, 5.0], [60.0, 1.0], [30.0, 3.0], [-9.0, 1e300], [np.nan, np.nan], [np.inf, -np.inf]]
    expected = [[-1, -1], [1, 1], [0, 0], [-0.5, 0.5], [-1, 1], [0, 0], [1, -1]]
    assert PublicScaler(BOUNDS).transform(rows).tolist() == expected
    assert PublicScaler(BOUNDS).fit(rows).fit_transform(rows).tolist() == expected


def test_one_pair_is_for_every_column_and_the_way_back_returns():
    rows = np.random.default_rng(1).uniform(2, 9, (20, 3))
    scaler = PublicScaler((2, 9))
    assert scaler.inverse_transform(scaler.transform(rows)) == pytest.approx(rows)
    assert scaler.inverse_transform([[-1.0, 0.0, 1.0]]).tolist() == [[2.0, 5.5, 9.0]]


def test_nothing_is_learned():
    rows = np.random.default_rng(2).uniform(0, 120, (20, 2))
    scaler = PublicScaler(BOUNDS).fit(rows)
    assert np.array_equal(scaler.transform(rows[:1]), PublicScaler(BOUNDS).fit(rows[5:]).transform(rows)[:1])
    assert scaler.__sklearn_is_fitted__()
    tags = scaler.__sklearn_tags__()
    assert tags.input_tags.allow_nan
    assert not tags.requires_fit
    assert not tags.target_tags.required


@pytest.mark.parametrize(
    "bounds", [5, "ab", [], [(1, 2, 3)], [(1, 1)], (2, 1), [(0, 1), (3, 2)], (0, np.inf), (np.nan, 1), [[[0, 1]]]]
)
def test_bad_bounds_are_refused_at_once(bounds):
    with pytest.raises(InvalidInput, match="bounds"):
        PublicScaler(bounds)
    with pytest.raises(InvalidInput, match="bounds"):
        PublicScaler(BOUNDS).set_params(bounds=bounds)


def test_the_number_of_columns_must_be_that_of_the_bounds():
    for columns in (1, 3):
        with pytest.raises(InvalidInput, match="as many columns"):
            PublicScaler(BOUNDS).fit(np.zeros((4, columns)))


def test_parameters_and_names():
    scaler = PublicScaler(BOUNDS)
    assert scaler.get_params() == {"bounds": BOUNDS}
    assert scaler.set_params(bounds=(0, 1)).get_params() == {"bounds": (0, 1)}
    assert scaler.get_feature_names_out(["age", "sex"]).tolist() == ["age", "sex"]
    with pytest.raises(InvalidInput, match="input_features"):
        scaler.get_feature_names_out()
    with pytest.raises(InvalidInput, match="got 'radius'"):
        scaler.set_params(radius=1)
