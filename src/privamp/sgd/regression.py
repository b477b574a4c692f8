"""Linear and logistic regression by noisy descent, as estimators that scikit-learn can clone and search with.

scikit-learn itself is not needed: what it asks of an estimator (get_params, set_params, score, tags) is written here.
"""

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from ..chance.keys import Key
from ..core.design import Design
from ..core.guarantee import Guarantee
from ..core.ledger import BudgetLike
from ..core.neighbors import Neighbors
from ..core.population import Population
from ..core.release import renamed
from ..core.several_fits import OneOfSeveral
from ..errors import InvalidInput
from ..numerics.entries import column_of, table_of
from ..numerics.log_domain import FloatArray
from .clipped_gradients import clipped_sum_of
from .descent import Descent


class _Regression(OneOfSeveral):
    """What both models share; fit leaves `coef_`, `intercept_`, `sigma_` and `guarantee_`."""

    _estimator_type: ClassVar[str]
    coef_: FloatArray
    intercept_: float
    sigma_: float  # of the noise on the sum of clipped gradients
    guarantee_: Guarantee  # of the whole run

    def __init__(
        self,
        design: Design,
        *,
        clip: float = 1.0,
        steps: int = 100,
        sigma: float | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        learning_rate: float | Callable[[int], float] = 0.1,
        l2: float = 0.0,
        radius: float | None = None,
        average: bool = False,
        population: int | None = None,
        neighbors: Neighbors | None = None,
        intercept: bool = True,
        records: int | None = None,
    ) -> None:
        if records is not None:
            renamed("records", "population")
        self.design, self.clip, self.steps, self.sigma = design, clip, steps, sigma
        self.epsilon, self.delta, self.learning_rate, self.l2 = epsilon, delta, learning_rate, l2
        self.radius, self.average, self.population, self.neighbors = radius, average, population, neighbors
        self.intercept, self.records = intercept, records
        _ = self.descent  # a sentence for the first parameter that breaks a rule

    @property
    def descent(self) -> Descent:
        """The checked plan of a fit."""
        given = {field.name: getattr(self, field.name) for field in fields(Descent)}
        return Descent(**given | {"population": self.records if self.population is None else self.population})

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name, as they were given."""
        return {name: getattr(self, name) for name in _parameters(type(self))}

    def set_params(self, **params: Any) -> Self:
        """Change parameters by name; returns the model."""
        known = _parameters(type(self))
        for name in params:
            if name not in known:
                raise InvalidInput(f"{type(self).__name__} takes {', '.join(known)}, got {name!r} instead")
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __sklearn_clone__(self) -> Self:
        """Another model with the same parameters, which knows that it is one of several."""
        other = type(self)(**self.get_params())
        other._is_clone = True
        return other

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        key: Key | None = None,
        population: Population | None = None,
        budget: BudgetLike | None = None,
    ) -> Self:
        """Train on records (X, y), charged to `budget` if given, before anything is drawn.

        A population gives the records other ids or a label than 0, 1, ...
        """
        features, targets, descent = table_of(X, "X"), self._targets(y), self.descent
        if features.shape[0] != targets.shape[0] or (population is not None and population.size != targets.shape[0]):
            raise InvalidInput("X, y and the population must have one row per record, but their lengths differ")
        if features.shape[1] + self.intercept == 0:
            raise InvalidInput("there is nothing to fit: X must have a column, or intercept must be True")
        if self.intercept:
            features = np.hstack([features, np.ones((features.shape[0], 1))])
        found = descent.run(
            clipped_sum_of(features, targets, self._link, descent.clip, descent.expected_size),
            np.zeros(features.shape[1]),
            population or Population(targets.size),
            key,
            is_proved=True,
            budget=budget,
        )
        width = features.shape[1] - self.intercept
        self.coef_ = found.parameters[:width]
        self.intercept_ = float(found.parameters[-1]) if self.intercept else 0.0
        guarantee = self._among_others(found.guarantee, charged=budget is not None)
        self.sigma_, self.guarantee_, self.n_features_in_ = found.mechanism.sigma, guarantee, width
        return self

    @property
    def privacy_(self) -> Guarantee:
        """The old name of `guarantee_`."""
        renamed("privacy_", "guarantee_")
        return self.guarantee_

    def _score(self, X: ArrayLike) -> FloatArray:
        if not hasattr(self, "coef_"):
            raise InvalidInput("this model is not fitted yet; call fit(X, y) first")
        features = table_of(X, "X")
        if features.shape[1] != self.coef_.size:
            raise InvalidInput(f"X must have the {self.coef_.size} columns of the fit, got {features.shape[1]} instead")
        return features @ self.coef_ + self.intercept_

    def _link(self, score: FloatArray) -> FloatArray:
        return score

    def _targets(self, y: ArrayLike) -> FloatArray:
        return column_of(y, "y")

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn wants to know; missing entries are no error, because an error would tell."""
        from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags

        is_classifier = self._estimator_type == "classifier"
        return Tags(
            estimator_type=self._estimator_type,
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(multi_class=False) if is_classifier else None,
            regressor_tags=None if is_classifier else RegressorTags(),
            input_tags=InputTags(allow_nan=True),
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.design}, steps={self.steps}, clip={self.clip})"


def _parameters(kind: type) -> list[str]:
    return [name for name in inspect.signature(kind).parameters if name != "self"]


class PrivateLinear(_Regression):
    """Linear regression with squared loss, (x . w + b - y)^2 / 2.

    >>> from privamp import WithReplacement
    >>> model = PrivateLinear(WithReplacement(50, population=1000), steps=10, epsilon=1.0, delta=1e-5)
    >>> model.fit([[0.0]] * 500 + [[1.0]] * 500, [0.0] * 500 + [1.0] * 500).guarantee_.epsilon(1e-5) <= 1.0
    True
    """

    _estimator_type = "regressor"

    def predict(self, X: ArrayLike) -> FloatArray:
        """One predicted value per row of X, shape (rows,)."""
        return self._score(X)

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """R^2 on records of your own: a diagnostic without privacy."""
        truth = column_of(y, "y")
        spread = float(np.sum((truth - truth.mean()) ** 2))
        return 1.0 - float(np.sum((truth - self.predict(X)) ** 2)) / max(spread, 1e-300)


class PrivateLogistic(_Regression):
    """Logistic regression. `labels` are the two values that y takes: (0, 1), or (-1, 1).

    A record with any other label adds nothing to any step; refusing it would tell that it is there.
    """

    _estimator_type = "classifier"

    def __init__(
        self,
        design: Design,
        *,
        labels: tuple[int, int] = (0, 1),
        clip: float = 1.0,
        steps: int = 100,
        sigma: float | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        learning_rate: float | Callable[[int], float] = 0.1,
        l2: float = 0.0,
        radius: float | None = None,
        average: bool = False,
        population: int | None = None,
        neighbors: Neighbors | None = None,
        intercept: bool = True,
        records: int | None = None,
    ) -> None:
        if tuple(labels) not in ((0, 1), (-1, 1)):
            raise InvalidInput(f"labels must be (0, 1) or (-1, 1), got {labels!r} instead")
        self.labels = labels
        super().__init__(
            design, clip=clip, steps=steps, sigma=sigma, epsilon=epsilon, delta=delta, learning_rate=learning_rate,
            l2=l2, radius=radius, average=average, population=population, neighbors=neighbors, intercept=intercept,
            records=records,
        )  # fmt: skip

    @property
    def classes_(self) -> FloatArray:
        """The two labels, in the order of the columns of `predict_proba`: public, not found in the data."""
        return np.asarray(self.labels)

    def predict(self, X: ArrayLike) -> FloatArray:
        """The likelier of the two labels for each row of X, shape (rows,)."""
        return self.classes_[(self._score(X) > 0).astype(np.intp)]

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """The chances of both labels, one row per record."""
        second = self._link(self._score(X))
        return np.stack([1.0 - second, second], axis=1)

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """The score: above 0 for the second label."""
        return self._score(X)

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """The share of your own records whose label is predicted: a diagnostic without privacy."""
        return float(np.mean(self.predict(X) == column_of(y, "y")))

    def _link(self, score: FloatArray) -> FloatArray:
        chance: FloatArray = expit(score)
        return chance

    def _targets(self, y: ArrayLike) -> FloatArray:
        targets, (low, high) = column_of(y, "y"), self.labels
        return np.where(targets == high, 1.0, np.where(targets == low, 0.0, np.nan))
