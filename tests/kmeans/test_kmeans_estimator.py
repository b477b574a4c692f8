"""PrivateKMeans as a scikit-learn estimator, and what of a fit may be seen afterwards."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

from privamp import InvalidInput, PrivateKMeans
from privamp.testing import seeds_allowed


def blobs(n: int = 3000, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    middles = np.array([[-0.6, -0.6], [-0.6, 0.6], [0.6, -0.6], [0.6, 0.6]])
    return middles[rng.integers(0, 4, n)] + 0.05 * rng.normal(size=(n, 2))


EXCEPTIONS = {
    "check_clustering": "asks for labels_ of the training data, which PrivateKMeans does not keep: they are secret",
    "check_dtype_object": "asks for an error about one cell, which would tell; such a cell is missing",
    "check_estimators_empty_data_messages": "asks for an error about an empty table, which would tell",
}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sampler": "uniform", "sample_size": 40, "noise": "gaussian", "delta": 1e-3},
        {"sampler": None, "center": "private", "radius": "private"},
    ],
)
def test_scikit_learns_own_checks(options: dict) -> None:
    model = PrivateKMeans(**({"n_clusters": 3, "epsilon": 1000.0, "radius": 10.0, "n_jobs": 1} | options))
    with seeds_allowed(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks warn about what they skip
        results = check_estimator(model, expected_failed_checks=EXCEPTIONS, on_fail=None)
    failed = [(r["check_name"], repr(r["exception"])) for r in results if r["status"] == "failed"]
    assert failed == []
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == EXCEPTIONS.keys()
    assert len(results) > 40


def test_it_finds_clusters() -> None:
    X = blobs()
    model = PrivateKMeans(4, epsilon=5.0, radius=1.5)
    labels = model.fit_predict(X)
    assert np.array_equal(labels, model.predict(X))
    distances = np.min(np.linalg.norm(np.sign(model.cluster_centers_) * 0.6 - model.cluster_centers_, axis=1))
    assert distances < 0.3
    assert model.transform(X).shape == (3000, 4)
    assert model.score(X) == pytest.approx(-np.sum(np.min(model.transform(X), axis=1) ** 2))
    assert model.guarantee_.epsilon() == 5.0
    assert model.guarantee_.is_private


def test_pipelines_clones_and_parameters() -> None:
    model = PrivateKMeans(4, epsilon=5.0, radius=1.5)
    assert clone(model).get_params() == model.get_params()
    pipe = make_pipeline(FunctionTransformer(), model).fit(blobs())
    assert pipe.predict(blobs()).shape == (3000,)


def test_tables_with_names() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(blobs(), columns=["east", "north"])
    model = PrivateKMeans(3, epsilon=5.0, radius=1.5).set_output(transform="pandas").fit(table)
    assert model.feature_names_in_.tolist() == ["east", "north"]
    out = model.transform(table)
    assert list(out.columns) == ["privatekmeans0", "privatekmeans1", "privatekmeans2"]
    assert model.get_feature_names_out().tolist() == list(out.columns)


def test_nothing_secret_is_kept_or_shown() -> None:
    X = blobs(777)
    model = PrivateKMeans(4, epsilon=2.0, radius=1.5, sample_size=300).fit(X)
    assert not hasattr(model, "labels_")
    with pytest.raises(AttributeError, match="secret"):
        model.labels_  # noqa: B018
    kept = pickle.dumps(model)
    for row in X:
        assert row.tobytes() not in kept
    assert len(kept) < 10_000
    assert all(len(value) != 777 for value in vars(model).values() if isinstance(value, np.ndarray))
    again = pickle.loads(kept)
    assert again.guarantee_.to_json(epsilon=2.0, delta=0.0) == model.guarantee_.to_json(epsilon=2.0, delta=0.0)
    assert again.guarantee_.because == model.guarantee_.because
    assert np.array_equal(again.predict(X), model.predict(X))
    assert float(model.sample_size_) != 300.0  # from the noisy histogram, not the realised size
    assert not float(model.n_records_).is_integer()


def test_seeds_are_for_tests() -> None:
    model = PrivateKMeans(2, epsilon=1.0, radius=1.5, random_state=3)
    with pytest.raises(InvalidInput, match="random_state"):
        model.fit(blobs())
    with seeds_allowed():
        first, second = (clone(model).fit(blobs()) for _ in range(2))
    assert np.array_equal(first.cluster_centers_, second.cluster_centers_)
    assert not first.guarantee_.is_private
    assert not pickle.loads(pickle.dumps(first)).guarantee_.is_private
    with pytest.raises(InvalidInput, match="random_state"):
        model.fit(blobs())
    one, two = (PrivateKMeans(2, epsilon=1.0, radius=1.5).fit(blobs()) for _ in range(2))
    assert not np.array_equal(one.cluster_centers_, two.cluster_centers_)


def test_progress_sees_released_centres() -> None:
    seen = []
    model = PrivateKMeans(3, epsilon=2.0, radius=1.5, n_iter=4, progress=lambda *a: seen.append(a)).fit(blobs())
    assert [step for step, _, _ in seen] == list(range(1, model.n_iter_ + 1))
    assert {steps for _, steps, _ in seen} == {model.n_iter_}
    assert np.array_equal(seen[-1][2], model.cluster_centers_)


def test_whole_numbers_do_not_overflow() -> None:
    """int16 squares would wrap around."""
    X = (blobs() * 20_000).astype(np.int16)
    with seeds_allowed():
        small, large = (
            PrivateKMeans(4, epsilon=5.0, radius=30_000.0, random_state=1).fit(table) for table in (X, X.astype(float))
        )
    assert np.array_equal(small.cluster_centers_, large.cluster_centers_)


def test_records_outside_the_radius_are_shortened() -> None:
    X = blobs()
    X[::50] *= 1e6
    shortened = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True) / 1.5, 1.0)
    with seeds_allowed():
        far, near = (PrivateKMeans(4, epsilon=5.0, radius=1.5, random_state=1).fit(t) for t in (X, shortened))
    np.testing.assert_allclose(far.cluster_centers_, near.cluster_centers_, rtol=0, atol=1e-9)
    assert np.max(np.linalg.norm(far.cluster_centers_, axis=1)) <= 1.5 * (1 + 1e-12)


def test_single_precision_tables() -> None:
    X = blobs()
    with seeds_allowed():
        single, double = (
            PrivateKMeans(4, epsilon=20.0, radius=1.5, random_state=1, sampler=None).fit(t)
            for t in (X.astype(np.float32), X)
        )
    np.testing.assert_allclose(single.cluster_centers_, double.cluster_centers_, atol=0.03)


@pytest.mark.parametrize(
    "options", [{"center": "private"}, {"radius": "private"}, {"center": "private", "radius": "private"}]
)
def test_a_private_ball_comes_out_of_the_budget(options: dict) -> None:
    X = blobs(20_000) + 3.0
    model = PrivateKMeans(4, **({"epsilon": 3.0, "radius": 6.0} | options)).fit(X)
    assert model.guarantee_.epsilon() == 3.0
    assert sum(m.profile(model.guarantee_.neighbors).epsilon() for m in model._fitted.paid) > 0.05 * 3.0
    if "center" in options:
        assert np.linalg.norm(model.center_ - 3.0) < 0.5
    if "radius" in options:
        assert 0.4 < model.radius_ < 10.0


def test_a_budget_s_entry_can_be_recomputed(tmp_path):
    """The charge is a promise, made before the first look; the entry ends with the certificate of what was done."""
    from privamp import Budget, Guarantee

    budget = Budget.create(tmp_path / "study.db", population="people", epsilon=2.0)
    rows = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    model = PrivateKMeans(n_clusters=2, epsilon=1.0, radius=2.0, n_iter=2, n_jobs=1).fit(rows, budget=budget)
    (entry,) = budget.log()
    assert entry.cost == {"epsilon": 1.0}
    assert entry.certificate == model.guarantee_.to_json()["certificate"]
    assert "FirstThenSample" in str(entry.certificate["claims"])
    assert Guarantee.from_json(entry.certificate).epsilon() == model.guarantee_.epsilon()
    budget.verify()


@pytest.mark.parametrize("center", [[0.0, 0.0], [5.0, -3.0]])
def test_predict_names_the_nearest_centre_wherever_the_ball_is(center) -> None:
    X = blobs()
    X = X[np.sum(X, axis=1) < 0.6] + center  # without one corner: a mirrored centre is then far from all records
    model = PrivateKMeans(3, epsilon=50.0, radius=1.5, center=center, random_state=3)
    with seeds_allowed():
        model.fit(X)
    distances = np.linalg.norm(X[:, None] - model.cluster_centers_, axis=2)
    assert np.array_equal(model.predict(X), np.argmin(distances, axis=1))
    assert np.allclose(model.transform(X), distances)
    assert np.mean(np.min(distances, axis=1)) < 0.15
