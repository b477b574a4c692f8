"""scikit-learn's habits: searches pay for every fit or say that they did not, and scalers are named."""

import warnings

import numpy as np
import pytest

from privamp import Budget, Poisson, PrivampError, PrivateKMeans, PublicScaler
from privamp.core.several_fits import CHARGED_FITS, OTHER_FITS
from privamp.errors import BudgetExceeded, InvalidInput
from privamp.sgd import PrivateLogistic

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

X = np.stack([np.linspace(-1.0, 1.0, 120), np.ones(120)], axis=1)
Y = (X[:, 0] > 0).astype(int)


def logistic():
    return PrivateLogistic(Poisson(0.5), sigma=20.0, steps=1, population=120)


def kmeans():
    return PrivateKMeans(n_clusters=2, epsilon=1.0, radius=2.0, n_iter=1, n_jobs=1)


GRIDS = [(logistic, {"learning_rate": [0.1, 1.0]}), (kmeans, {"first_look": [0.1, 0.2]})]


@pytest.fixture
def budget(tmp_path):
    return Budget.create(tmp_path / "study.db", population="people", epsilon=1000.0, delta=1e-3, order=2.0)


@pytest.mark.parametrize(("make", "grid"), GRIDS)
def test_a_search_with_a_budget_charges_every_fit(make, grid, budget):
    search = GridSearchCV(make(), grid, cv=2).fit(X, Y, budget=budget)
    assert len(budget.log()) == 2 * 2 + 1  # every parameter on every fold, and the refit
    assert all(entry.state == "answered" for entry in budget.log())
    assert CHARGED_FITS in search.best_estimator_.guarantee_.assumes


@pytest.mark.filterwarnings("ignore")  # scikit-learn tells of fits that failed, and goes on to the refit
@pytest.mark.parametrize(("make", "grid"), GRIDS[1:])
def test_a_budget_that_is_too_small_refuses_the_search(make, grid, tmp_path):
    free = Budget.create(tmp_path / "free.db", population="people", epsilon=1000.0, delta=1e-3, order=2.0)
    make().fit(X, Y, budget=free)
    status = free.status()
    for_delta = 1000.0 - status.limit["renyi_loss"]
    enough = 2.5 * status.spent["renyi_loss"] + for_delta  # for two fits
    small = Budget.create(tmp_path / "small.db", population="people", epsilon=enough, delta=1e-3, order=2.0)
    search = GridSearchCV(make(), grid, cv=2)
    with pytest.raises(BudgetExceeded):
        search.fit(X, Y, budget=small)
    assert [entry.state for entry in small.log()] == ["answered"] * 2


def test_cross_validation_pays_fold_by_fold(budget):
    cross_val_score(logistic(), X, Y, cv=2, params={"budget": budget})
    assert len(budget.log()) == 2


@pytest.mark.parametrize(("make", "grid"), GRIDS)
def test_without_a_budget_the_refit_says_that_other_fits_are_not_in_it(make, grid):
    assert OTHER_FITS not in make().fit(X, Y).guarantee_.assumes
    search = GridSearchCV(make(), grid, cv=2).fit(X, Y)
    assert OTHER_FITS in search.best_estimator_.guarantee_.assumes
    found = cross_validate(make(), X, Y, cv=2, return_estimator=True)
    assert all(OTHER_FITS in one.guarantee_.assumes for one in found["estimator"])
    assert OTHER_FITS in search.best_estimator_.guarantee_.to_json(delta=1e-6)["certificate"]["assumes"]


@pytest.mark.parametrize("make", [logistic, kmeans])
def test_a_second_fit_of_one_estimator_says_so_too(make):
    model = make().fit(X, Y)
    assert OTHER_FITS in model.fit(X, Y).guarantee_.assumes


@pytest.mark.filterwarnings("ignore")
def test_one_key_fits_once_in_a_search():
    from privamp import Key

    search = GridSearchCV(kmeans(), {"first_look": [0.1, 0.2]}, cv=2)
    with pytest.raises(PrivampError, match="already drawn"):
        search.fit(X, Y, key=Key.generate())


def test_fit_predict_pays(budget):
    kmeans().fit_predict(X, budget=budget)
    kmeans().fit_transform(X, budget=budget)
    assert len(budget.log()) == 2


@pytest.mark.parametrize("make", [logistic, kmeans])
def test_a_step_that_learns_before_a_private_estimator_is_named(make):
    with pytest.warns(UserWarning, match="StandardScaler learned from the records.*PublicScaler"):
        model = make_pipeline(StandardScaler(), make()).fit(X, Y)
    assert any("StandardScaler" in said for said in model[-1].guarantee_.assumes)
    inside = make_pipeline(ColumnTransformer([("a", StandardScaler(), [0])]))
    with pytest.warns(UserWarning, match="ColumnTransformer"):
        make_pipeline(inside, make()).fit(X, Y)


@pytest.mark.parametrize("make", [logistic, kmeans])
@pytest.mark.parametrize("step", [PublicScaler((-2, 2)), FunctionTransformer(np.tanh), "passthrough"])
def test_a_step_that_learns_nothing_is_not(make, step):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = make_pipeline(step, make()).fit(X, Y)
    assert not any("learned" in said for said in model[-1].guarantee_.assumes)


def test_a_public_scaler_scales_each_entry_by_itself():
    scaler = PublicScaler([(0, 120), (-1, 1)])
    rows = np.array([[60.0, 0.5], [1e9, -np.inf], [np.nan, 1.0]])
    scaled = scaler.fit_transform(rows)
    assert scaled.tolist() == [[0.0, 0.5], [1.0, -1.0], [0.0, 1.0]]
    for at in range(3):  # no row moves another
        assert np.array_equal(scaler.fit(rows[:1]).transform(rows[at : at + 1])[0], scaled[at])
    assert np.allclose(scaler.inverse_transform(scaled)[0], [60.0, 0.5])
    again = clone(scaler)
    assert np.array_equal(again.transform(rows), scaled)
    assert scaler.set_params(bounds=(0, 2)).get_params() == {"bounds": (0, 2)}


@pytest.mark.parametrize("bounds", [(1, 0), (0, 0), "ab", [(0, 1, 2)], (0, np.inf), []])
def test_bounds_that_are_none_are_refused(bounds):
    with pytest.raises(InvalidInput, match="bounds"):
        PublicScaler(bounds)


def test_bounds_for_other_columns_are_refused():
    with pytest.raises(InvalidInput, match="as many columns as there are bounds, 3, got 2"):
        PublicScaler([(0, 1)] * 3).fit(X)
