"""The regressions as scikit-learn's estimators: cloned, searched, scored, with two columns of chances."""

import numpy as np
import pytest

from privamp import InvalidInput, Poisson
from privamp import sgd as room
from privamp.sgd import PrivateLinear, PrivateLogistic

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
