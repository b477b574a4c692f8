"""The regressions as scikit-learn's estimators: cloned, searched, scored, with two columns of chances."""

import pickle
import warnings

import numpy as np
import pytest

from privamp import Budget, InvalidInput, Poisson
from privamp import sgd as room
from privamp.errors import BudgetExceeded
from privamp.sgd import PrivateLinear, PrivateLogistic
from privamp.sgd.scikit_learn import words_of

sklearn = pytest.importorskip("sklearn")

X = np.stack([np.linspace(-1.0, 1.0, 120), np.ones(120)], axis=1)
LABELS = (X[:, 0] > 0).astype(int)


def model(kind=PrivateLogistic, **options):
    return kind(Poisson(0.5), **({"sigma": 1.0, "steps": 5, "population": 120} | options))


def test_the_room_is_a_public_name():
    assert room.PrivateLogistic is PrivateLogistic


@pytest.mark.parametrize("kind", [PrivateLinear, PrivateLogistic])
def test_a_model_is_cloned_with_its_parameters(kind):
    from sklearn.base import clone, is_classifier

    one = model(kind, learning_rate=0.3)
    again = clone(one)
    assert again.get_params() == one.get_params()
    assert again is not one
    assert not hasattr(again, "coef_")
    assert is_classifier(one) == (kind is PrivateLogistic)
    assert one.set_params(steps=7).descent.steps == 7
    with pytest.raises(InvalidInput, match="got 'speed'"):
        one.set_params(speed=1)


@pytest.mark.parametrize(("kind", "y"), [(PrivateLinear, X[:, 0]), (PrivateLogistic, LABELS)])
def test_a_grid_is_searched(kind, y):
    from sklearn.model_selection import GridSearchCV

    search = GridSearchCV(model(kind), {"learning_rate": [0.01, 1.0], "steps": [2, 4]}, cv=3).fit(X, y)
    assert set(search.best_params_) == {"learning_rate", "steps"}
    assert search.best_estimator_.guarantee_.steps == search.best_params_["steps"]
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("labels", [(0, 1), (-1, 1)])
def test_chances_have_one_column_per_label(labels):
    fitted = model(labels=labels).fit(X, np.where(LABELS == 1, labels[1], labels[0]))
    chances = fitted.predict_proba(X)
    assert chances.shape == (120, 2)
    assert np.allclose(chances.sum(axis=1), 1.0)
    assert np.array_equal(fitted.classes_[chances.argmax(axis=1)], fitted.predict(X))
    with pytest.warns(DeprecationWarning, match="guarantee_"):
        assert fitted.privacy_ is fitted.guarantee_


TELLS = {  # checks that ask for an error about what one record holds, or that it is there
    "check_dtype_object": "such a cell is missing",
    "check_estimators_empty_data_messages": "how many records there are is secret",
    "check_supervised_y_no_nan": "a record without a target adds nothing to any step",
}
TELLS_LABELS = TELLS | {
    "check_classifiers_classes": 'labels are given, labels=("no", "yes"), and never found in the data',
    "check_classifiers_regression_target": "a record with another label adds nothing to any step",
    "check_classifier_not_supporting_multiclass": "a record with another label adds nothing to any step",
}


@pytest.mark.parametrize(("kind", "exceptions"), [(PrivateLinear, TELLS), (PrivateLogistic, TELLS_LABELS)])
def test_scikit_learns_own_checks(kind, exceptions):
    from sklearn.utils.estimator_checks import check_estimator

    calm = {"sigma": 1e-12, "steps": 60, "clip": 5.0, "learning_rate": 0.5, "population": 100}  # two fits agree
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks warn about what they skip
        results = check_estimator(kind(Poisson(1.0), **calm), expected_failed_checks=exceptions, on_fail=None)
    assert [(r["check_name"], repr(r["exception"])) for r in results if r["status"] == "failed"] == []
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == exceptions.keys()
    assert len(results) > 45


def test_labels_can_be_text():
    words = np.where(LABELS == 1, "yes", "no")
    calm = {"labels": ("no", "yes"), "sigma": 0.1, "steps": 20, "learning_rate": 1.0}
    fitted = model(**calm).fit(X, words)
    assert set(fitted.predict(X)) <= {"no", "yes"}
    assert fitted.score(X, words) > 0.8
    odd = model(**calm).fit(X, [None, 7, *words[2:].tolist()])  # such a record adds nothing, and is not refused
    assert odd.predict_proba(X).shape == (120, 2)
    masked = np.ma.masked_array(words, mask=[True] + [False] * 119)
    assert model(**calm).fit(X, masked).score(X, masked) <= 119 / 120  # what is masked is no label
    for wrong in ("yes", iter(words), np.stack([words, words], axis=1)):
        with pytest.raises(InvalidInput, match="one column of labels"):
            model(**calm).fit(X, wrong)
    with pytest.raises(InvalidInput, match="intercept must be True or False"):
        model(intercept="yes").fit(X, LABELS)
    for labels in [("a", "a"), ("a", 1), "ab", 7]:
        with pytest.raises(InvalidInput, match="two texts"):
            model(labels=labels).fit(X, words)


@pytest.fixture
def paid(tmp_path):
    return Budget.create(tmp_path / "study.db", population="people", epsilon=30.0, delta=1e-3, order=2.0)


def costly(budget, **options):
    return model(budget=budget, sigma=0.3, steps=1, **options)


def test_a_model_with_a_budget_pays_once_for_every_fit(paid):
    from sklearn.base import clone

    first = costly(paid).fit(X, LABELS)
    assert [entry.state for entry in paid.log()] == ["answered"]
    clone(first).fit(X, LABELS)
    pickle.loads(pickle.dumps(first)).predict(X)  # nothing to pay
    assert len(paid.log()) == 2
    status = paid.status()
    fits = int(status.limit["renyi_loss"] // (status.spent["renyi_loss"] / 2))
    for _ in range(fits - 2):
        costly(str(paid.path)).fit(X, LABELS)  # the file, which is the same budget
    with pytest.raises(BudgetExceeded) as refused:
        costly(paid).fit(X, LABELS)
    assert "\n" not in str(refused.value)
    assert len(paid.log()) == fits


@pytest.mark.parametrize("as_file", [False, True])
def test_a_fitted_model_is_pickled_with_its_budget(paid, as_file):
    fitted = costly(str(paid.path) if as_file else paid).fit(X, LABELS)
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert again.guarantee_.epsilon(1e-6) == fitted.guarantee_.epsilon(1e-6)
    again.fit(X, LABELS)
    assert len(paid.log()) == 2


def test_a_fit_that_breaks_off_has_paid(paid, monkeypatch):
    from privamp.sgd.descent import Descent

    def broken(*_):
        assert len(paid.log()) == 1  # before anything is drawn
        raise KeyboardInterrupt

    monkeypatch.setattr(Descent, "_descended", broken)
    with pytest.raises(KeyboardInterrupt):
        costly(paid).fit(X, LABELS)
    assert len(paid.log()) == 1
    assert paid.log()[0].state != "released"
    assert paid.status().spent["renyi_loss"] > 0


def test_names_of_columns_are_kept_and_compared():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=["age", "one"])
    fitted = model().fit(table, LABELS)
    assert fitted.feature_names_in_.tolist() == ["age", "one"]
    assert fitted.predict(table).shape == (120,)
    with pytest.raises(InvalidInput, match="feature names should match"):
        fitted.predict(table[["one", "age"]])


@pytest.mark.parametrize("rate", [lambda step: 1 / step, lambda: 0.1, lambda step: -0.1, lambda step: "fast"])
def test_a_bad_learning_rate_is_refused_before_it_is_paid_for(rate, tmp_path):
    budget = Budget.create(tmp_path / "study.db", population="people", epsilon=5, delta=1e-5)
    model = PrivateLinear(Poisson(0.5), sigma=2.0, steps=2, population=20, learning_rate=rate)
    x = np.linspace(0, 1, 20)
    with pytest.raises(InvalidInput, match="learning_rate"):
        model.fit(x[:, None], x, budget=budget)
    assert not budget.log()


def test_a_masked_label_is_no_label_whatever_the_array_would_fill_it_with():
    labels = np.ma.masked_array(["yes", "no", "?"], mask=[False, True, False], fill_value="yes")
    assert words_of(labels).tolist() == ["yes", None, "?"]
