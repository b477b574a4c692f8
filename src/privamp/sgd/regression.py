"""Linear and logistic regression by noisy descent, as scikit-learn's estimators (scikit_learn.py)."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from ..accounting.budget import Budget
from ..chance.keys import Key
from ..core.design import Design
from ..core.guarantee import Guarantee
from ..core.ledger import BudgetLike
from ..core.neighbors import Neighbors
from ..core.population import Population
from ..core.release import renamed
from ..errors import InvalidInput
from ..numerics.entries import column_of
from ..numerics.log_domain import FloatArray
from .clipped_gradients import clipped_sum_of
from .descent import Descent
from .scikit_learn import Estimator, features_of, names_of, not_fitted, targets_of, words_of


class _Regression(Estimator):
    """What both models have in common; fit sets `coef_`, `intercept_`, `sigma_` and `guarantee_`.

    Parameters are those of `Descent`, `intercept`, and `budget`: a `Budget` or the file of one, which every fit is
    charged to, clones too. All are checked by `fit`, before it reads a record.
    """

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
        budget: BudgetLike | str | None = None,
    ) -> None:
        if records is not None:
            renamed("records", "population")
        self.design, self.clip, self.steps, self.sigma = design, clip, steps, sigma
        self.epsilon, self.delta, self.learning_rate, self.l2 = epsilon, delta, learning_rate, l2
        self.radius, self.average, self.population, self.neighbors = radius, average, population, neighbors
        self.intercept, self.records, self.budget = intercept, records, budget

    @property
    def descent(self) -> Descent:
        """The checked plan of a fit."""
        if self.intercept not in (True, False):
            raise InvalidInput(f"intercept must be True or False, got {self.intercept!r} instead")
        given = {field.name: getattr(self, field.name) for field in fields(Descent)}
        return Descent(**given | {"population": self.records if self.population is None else self.population})

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        key: Key | None = None,
        population: Population | int | None = None,
        budget: BudgetLike | None = None,
    ) -> Self:
        """Train on records (X, y), charged to `budget` before anything is drawn; by default to that of the model.

        A population gives the records ids other than 0, 1, ..., or a label.
        """
        descent, budget = self.descent, _opened(self.budget) if budget is None else budget
        features, targets = features_of(X), self._targets(targets_of(y, type(self).__name__))
        population = None if population is None else Population.of(population)
        if features.shape[0] != targets.shape[0] or (population is not None and population.size != targets.shape[0]):
            raise InvalidInput("X, y and the population must have the same length, one row per record; check them")
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
        names_of(X, self, reset=True)
        return self

    @property
    def privacy_(self) -> Guarantee:
        """The old name of `guarantee_`."""
        renamed("privacy_", "guarantee_")
        return self.guarantee_

    def _score(self, X: ArrayLike) -> FloatArray:
        if not hasattr(self, "coef_"):
            raise not_fitted(type(self).__name__)
        names_of(X, self, reset=False)
        features = features_of(X)
        if features.shape[1] != self.coef_.size:
            raise InvalidInput(
                f"X has {features.shape[1]} features, but {type(self).__name__} is expecting {self.coef_.size} "
                "features as input"
            )
        return features @ self.coef_ + self.intercept_

    def _link(self, score: FloatArray) -> FloatArray:
        return score

    def _targets(self, y: ArrayLike) -> FloatArray:
        return column_of(y, "y")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.design}, steps={self.steps}, clip={self.clip})"


def _opened(budget: Any) -> BudgetLike | None:
    """A budget, or that of a file."""
    if isinstance(budget, str) or hasattr(budget, "__fspath__"):
        return Budget.open(budget)
    found: BudgetLike | None = budget
    return found


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
        """R^2 on the given records: a diagnostic, NOT PRIVATE."""
        truth = column_of(y, "y")
        spread = float(np.sum((truth - truth.mean()) ** 2))
        return 1.0 - float(np.sum((truth - self.predict(X)) ** 2)) / max(spread, 1e-300)


class PrivateLogistic(_Regression):
    """Logistic regression. `labels` are the two values that y takes: (0, 1), (-1, 1), or two texts as ("no", "yes").

    A record with any other label adds nothing to any step; rejecting it would reveal that it is there.
    """

    _estimator_type = "classifier"

    def __init__(
        self,
        design: Design,
        *,
        labels: tuple[Any, Any] = (0, 1),
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
        budget: BudgetLike | str | None = None,
    ) -> None:
        self.labels = labels
        super().__init__(
            design, clip=clip, steps=steps, sigma=sigma, epsilon=epsilon, delta=delta, learning_rate=learning_rate,
            l2=l2, radius=radius, average=average, population=population, neighbors=neighbors, intercept=intercept,
            records=records, budget=budget,
        )  # fmt: skip

    @property
    def descent(self) -> Descent:
        """The checked plan of a fit."""
        _checked(self.labels)
        return super().descent

    @property
    def classes_(self) -> FloatArray:
        """The two labels, in the order of the columns of `predict_proba`: public, not taken from the data."""
        return np.asarray(_checked(self.labels))

    def predict(self, X: ArrayLike) -> FloatArray:
        """The likelier of the two labels for each row of X, shape (rows,)."""
        return self.classes_[(self._score(X) > 0).astype(np.intp)]

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """The probabilities of both labels, one row per record."""
        second = self._link(self._score(X))
        return np.stack([1.0 - second, second], axis=1)

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """The score: above 0 for the second label."""
        return self._score(X)

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """The accuracy on the given records: a diagnostic, NOT PRIVATE."""
        truth: Any = words_of(y) if isinstance(self.labels[0], str) else column_of(y, "y")
        return float(np.mean(self.predict(X) == truth))

    def _link(self, score: FloatArray) -> FloatArray:
        chance: FloatArray = expit(score)
        return chance

    def _targets(self, y: ArrayLike) -> FloatArray:
        low, high = _checked(self.labels)
        targets: Any = words_of(y) if isinstance(low, str) else column_of(y, "y")
        return np.where(targets == high, 1.0, np.where(targets == low, 0.0, np.nan))


def _checked(labels: Any) -> tuple[Any, Any]:
    """Two labels, which are public."""
    pair = tuple(labels) if isinstance(labels, (tuple, list, np.ndarray)) else ()
    if pair in ((0, 1), (-1, 1)) or (len(pair) == 2 and all(isinstance(a, str) for a in pair) and pair[0] != pair[1]):
        return pair
    raise InvalidInput(f'labels must be (0, 1), (-1, 1) or two texts such as ("no", "yes"), got {labels!r} instead')
