"""Wrong parameters and odd tables: one sentence, or a documented behaviour; never a record's value."""

import warnings

import numpy as np
import pytest

from privamp import InvalidInput, PrivateKMeans
from privamp.kmeans.tables import table_of
from privamp.testing import seeds_allowed

GOOD = {"n_clusters": 3, "epsilon": 1.0, "radius": 2.0}
X = np.random.default_rng(0).normal(size=(200, 2))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"epsilon": None}, "epsilon must be chosen"),
        ({"epsilon": 0}, "epsilon must be a finite number above 0, got 0"),
        ({"epsilon": -1.0}, "epsilon must be"),
        ({"epsilon": np.nan}, "epsilon must be"),
        ({"epsilon": "1"}, "epsilon must be"),
        ({"radius": None}, "radius must be chosen"),
        ({"radius": 0.0}, "radius must be a finite number above 0"),
        ({"radius": -2.0}, "radius must be"),
        ({"radius": np.inf}, "radius must be"),
        ({"radius": "guess"}, "radius must be"),
        ({"delta": 1e-6}, 'delta must be 0 with noise="norm"'),
        ({"noise": "gaussian"}, "needs a delta"),
        ({"noise": "gaussian", "delta": 1.0}, "needs a delta"),
        ({"noise": "gaussian", "delta": 2.0}, "delta must be"),
        ({"noise": "laplace"}, "noise must be one of"),
        ({"sampler": "random"}, "sampler must be one of"),
        ({"sampler": "coreset"}, "sample_size"),
        ({"sample_size": 0}, "sample_size must be"),
        ({"n_clusters": 0}, "n_clusters must be"),
        ({"n_clusters": 2.5}, "n_clusters must be"),
        ({"n_iter": 0}, "n_iter must be"),
        ({"init": "k-means++"}, "init must be one of"),
        ({"init": [[1.0, 2.0]]}, "init must be finite numbers of shape"),
        ({"center": [0.0]}, "center must be finite numbers of shape"),
        ({"center": "mean"}, "center must be one of private"),
        ({"first_look": 0}, "first_look must be"),
        ({"first_look": 1}, "first_look must be"),
        ({"first_look": 1 - 1e-16}, "first_look must be at most"),
        ({"first_look": 0.9, "radius": "private"}, "private ball, which takes up to 0.17 of epsilon, got 0.9"),
        ({"first_look": 0.8, "radius": "private", "center": "private"}, "takes up to 0.22 of epsilon"),
        ({"n_jobs": 0}, "n_jobs must be"),
    ],
)
def test_wrong_parameters_are_one_sentence(options: dict, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as error:
        PrivateKMeans(**(GOOD | options)).fit(X)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1.7976931348623157e308])
def test_rows_that_are_not_numbers_count_by_a_public_rule(bad: float) -> None:
    """An error would tell that there is such a record: a missing entry is the centre's, an infinite one is far out."""
    table = X.copy()
    table[17] = [123.456, bad]
    model = PrivateKMeans(**(GOOD | {"radius": 0.5})).fit(table)
    assert np.all(np.isfinite(model.cluster_centers_))
    for method in (model.predict, model.transform, model.losses):
        assert np.all(np.isfinite(method(table)))
    stated = table.copy()
    stated[17, 1] = 0.0 if np.isnan(bad) else np.sign(bad) * 1e300
    assert np.array_equal(model.predict(table), model.predict(stated))
    assert np.array_equal(model.losses(table), model.losses(stated))


CELLS = [None, "secret text", "1e999", 10**30, -(10**400), 1j, np.nan, True, [1.0], {"foo": "bar"}, np.ma.masked]


@pytest.mark.parametrize("cell", CELLS, ids=repr)
def test_every_cell_of_an_object_table_has_an_answer(cell: object) -> None:
    table = np.empty((51, 2), dtype=object)
    table[:50] = X[:50]
    table[50, 0], table[50, 1] = cell, 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        numbers = table_of(table)
        model = PrivateKMeans(**GOOD).fit(table)
        model.predict(table)
    assert numbers.dtype == np.float64
    assert np.array_equal(numbers[:50], X[:50])


def test_lists_masks_and_frames() -> None:
    rows = X[:50].tolist()
    for cell in (None, "secret text", 10**30, 1j):
        assert np.array_equal(table_of([*rows, [cell, 0.5]])[:50], X[:50])
    masked = np.ma.masked_array(X[:3], mask=[[True, False], [False, False], [False, False]])
    assert np.isnan(table_of(masked)[0, 0])
    assert np.array_equal(table_of(masked)[1:], X[1:3])
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.5, None, 2.5], "b": [1, "secret text", 10**30]})
    assert np.array_equal(table_of(frame), [[1.5, 1.0], [np.nan, np.nan], [2.5, 1e30]], equal_nan=True)
    for ragged in ([[1.0, 2.0], [3.0]], [1.0, [2.0]]):
        with pytest.raises(InvalidInput, match="2D"):
            table_of(ragged)


@pytest.mark.parametrize("kind", [np.complex128, "datetime64[s]"])
def test_types_of_arrays_are_public_and_may_be_refused(kind: str) -> None:
    with pytest.raises(InvalidInput, match=r"real numbers"):
        PrivateKMeans(**GOOD).fit(np.zeros((5, 2), dtype=kind))


def test_wrong_shapes() -> None:
    model = PrivateKMeans(**GOOD).fit(X)
    with pytest.raises(ValueError, match="features"):
        model.predict(np.zeros((5, 3)))
    with pytest.raises(ValueError, match="0 feature"):
        model.fit(np.empty((7, 0)))
    with pytest.raises(ValueError, match="2D"):
        model.fit(np.zeros(5))


@pytest.mark.parametrize("rows", [0, 1, 2, 5])
def test_fewer_records_than_centres_is_no_error(rows: int) -> None:
    """An error would tell how many records there are; centres without records stay about where they started."""
    model = PrivateKMeans(**(GOOD | {"n_clusters": 8})).fit(X[:rows])
    assert model.cluster_centers_.shape == (8, 2)
    assert np.all(np.isfinite(model.cluster_centers_))
    assert np.all(np.linalg.norm(model.cluster_centers_, axis=1) <= 2.0 * (1 + 1e-12))
    assert model.guarantee_.epsilon() == 1.0


@pytest.mark.parametrize(
    "table", [np.zeros((50, 3)), np.full((50, 3), 1e300), np.full((50, 3), 1e-300), np.ones((50, 1))]
)
@pytest.mark.parametrize("noise", [{}, {"noise": "gaussian", "delta": 1e-6}])
def test_constant_huge_and_tiny_columns(table: np.ndarray, noise: dict) -> None:
    model = PrivateKMeans(**GOOD, **noise).fit(table)
    assert np.all(np.isfinite(model.cluster_centers_))
    assert np.all(model.losses(table) <= 1.0)


def test_a_sample_larger_than_the_data_is_all_of_it() -> None:
    for sampler in ("uniform", "privacy-constrained", "coreset"):
        model = PrivateKMeans(**GOOD, sampler=sampler, sample_size=1e9).fit(X)
        assert model.guarantee_.epsilon() == 1.0


def test_points_to_start_from() -> None:
    model = PrivateKMeans(**GOOD, init=[[0.0, 1.0], [1.0, 0.0], [-9.0, 0.0]]).fit(X)
    assert model.cluster_centers_.shape == (3, 2)
    assert PrivateKMeans(**GOOD, init="ball").fit(X).cluster_centers_.shape == (3, 2)


def test_bounds_of_the_columns_are_the_smallest_ball_about_them() -> None:
    """Every corner of the box is in it, two of them at its edge; and it is the fit with that radius and centre."""
    box = [(0.0, 2.0), (-1.0, 0.0), (3.0, 3.5)]
    rows = np.random.default_rng(3).uniform(*np.array(box).T, size=(200, 3))
    with seeds_allowed():
        model = PrivateKMeans(2, 2.0, bounds=box, n_iter=2, random_state=7).fit(rows)
        assert np.array_equal(model.center_, [1.0, -0.5, 3.25])
        assert model.radius_ == pytest.approx(np.sqrt(1.0 + 0.25 + 0.0625))
        ball = {"radius": model.radius_, "center": model.center_}
        same = PrivateKMeans(2, 2.0, **ball, n_iter=2, random_state=7).fit(rows)
        assert np.array_equal(model.cluster_centers_, same.cluster_centers_)
        one = PrivateKMeans(2, 2.0, bounds=(-1, 3), n_iter=2, random_state=7).fit(rows)
        assert one.radius_ == pytest.approx(2.0 * np.sqrt(3.0))
        assert PrivateKMeans(2, 2.0, bounds=4, n_iter=2, random_state=7).fit(rows).radius_ == 4.0
    for wrong, words in (((1, 0), "lowest below"), ([(0, 1)] * 2, "each of the 3 columns"), (-1.0, "above 0")):
        with pytest.raises(InvalidInput, match=words):
            PrivateKMeans(2, 2.0, bounds=wrong).fit(rows)
    with pytest.raises(InvalidInput, match="but not both"):
        PrivateKMeans(2, 2.0, bounds=4, radius=4).fit(rows)


@pytest.mark.parametrize("way_out", ["toarray", "tocsr"])
def test_anything_sparse_is_refused_with_the_way_out(way_out):
    """Some libraries' sparse tables have one of the two methods only; read as an object it would be one odd record."""
    table = type("Table", (), {way_out: lambda self: np.zeros((3, 2))})()
    with pytest.raises(InvalidInput, match="must be dense"):
        PrivateKMeans(n_clusters=2, epsilon=1.0, radius=1.0).fit(table)
