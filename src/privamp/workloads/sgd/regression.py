"""Linear and logistic regression by noisy descent.

The gradient of both losses is (residual) * x, residual = prediction - target, so clipping it to norm C is clipping the
residual to C/|x|: no record's gradient is ever written down.
"""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from ...chance.keys import Key
from ...core.design import Design
from ...core.guarantee import Guarantee
from ...core.neighbors import Neighbors
from ...core.population import Population
from ...errors import InvalidInput
from ...numerics.log_domain import FloatArray
from .descent import ClippedSum, Descent, Ints

Link = Callable[[FloatArray], FloatArray]


def clipped_sum_of(features: FloatArray, targets: FloatArray, link: Link, clip: float) -> ClippedSum:
    """The sum of clipped gradients of (link(x . parameters) - target) x; a residual that is not a number counts 0."""
    with np.errstate(divide="ignore", over="ignore"):
        limits = clip / np.hypot.reduce(features, axis=1)  # hypot: squares would vanish or overflow

    def clipped_sum(parameters: FloatArray, rows: Ints, counts: Ints) -> FloatArray:
        x, limit = features[rows], limits[rows]
        with np.errstate(over="ignore", invalid="ignore"):
            residuals = link(x @ parameters) - targets[rows]
        kept = np.clip(np.nan_to_num(residuals, nan=0.0), -limit, limit)
        total: FloatArray = x.T @ (counts * kept)
        return total

    return clipped_sum


class _Regression:
    """What both models share; fit leaves `coef_`, `intercept_`, `sigma_` and `privacy_`."""

    coef_: FloatArray
    intercept_: float
    sigma_: float  # of the noise on the sum of clipped gradients
    privacy_: Guarantee  # of the whole run

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
        records: int | None = None,
        neighbors: Neighbors | None = None,
        intercept: bool = True,
    ) -> None:
        self.descent = Descent(
            design=design, clip=clip, steps=steps, sigma=sigma, epsilon=epsilon, delta=delta, l2=l2, radius=radius,
            learning_rate=learning_rate, average=average, records=records, neighbors=neighbors,
        )  # fmt: skip
        self.intercept = intercept

    def fit(self, X: ArrayLike, y: ArrayLike, *, key: Key | None = None, population: Population | None = None) -> Self:
        """Train on records (X, y); a population gives them other ids or a label than 0, 1, ..."""
        features, targets = _numbers("X", X, 2), self._targets(y)
        if features.shape[0] != targets.shape[0] or (population is not None and population.size != targets.shape[0]):
            raise InvalidInput("X, y and the population must have one row per record, but their lengths differ")
        if features.shape[1] + self.intercept == 0:
            raise InvalidInput("there is nothing to fit: X must have a column, or intercept must be True")
        if self.intercept:
            features = np.hstack([features, np.ones((features.shape[0], 1))])
        found = self.descent.run(
            clipped_sum_of(features, targets, self._link, self.descent.clip),
            np.zeros(features.shape[1]),
            population or Population(targets.size),
            key,
        )
        width = features.shape[1] - self.intercept
        self.coef_ = found.parameters[:width]
        self.intercept_ = float(found.parameters[-1]) if self.intercept else 0.0
        self.sigma_, self.privacy_ = found.mechanism.sigma, found.guarantee
        return self

    def _score(self, X: ArrayLike) -> FloatArray:
        if not hasattr(self, "coef_"):
            raise InvalidInput("this model is not fitted yet; call fit(X, y) first")
        features = _numbers("X", X, 2)
        if features.shape[1] != self.coef_.size:
            raise InvalidInput(f"X must have the {self.coef_.size} columns of the fit, got {features.shape[1]} instead")
        return features @ self.coef_ + self.intercept_

    def _link(self, score: FloatArray) -> FloatArray:
        return score

    def _targets(self, y: ArrayLike) -> FloatArray:
        return _numbers("y", y, 1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.descent.design}, steps={self.descent.steps}, clip={self.descent.clip})"


class PrivateLinear(_Regression):
    """Linear regression with squared loss, (x . w + b - y)^2 / 2.

    >>> from privamp import WithReplacement
    >>> model = PrivateLinear(WithReplacement(50, population=1000), steps=10, epsilon=1.0, delta=1e-5)
    >>> model.fit([[0.0]] * 500 + [[1.0]] * 500, [0.0] * 500 + [1.0] * 500).privacy_.epsilon(1e-5) <= 1.0
    True
    """

    def predict(self, X: ArrayLike) -> FloatArray:
        """The predicted values."""
        return self._score(X)


class PrivateLogistic(_Regression):
    """Logistic regression. `labels` are the two values that y takes: (0, 1), or (-1, 1)."""

    def __init__(self, design: Design, *, labels: tuple[int, int] = (0, 1), **options: Any) -> None:
        if tuple(labels) not in ((0, 1), (-1, 1)):
            raise InvalidInput(f"labels must be (0, 1) or (-1, 1), got {labels!r} instead")
        self.labels = tuple(labels)
        super().__init__(design, **options)

    def predict(self, X: ArrayLike) -> FloatArray:
        """The likelier label."""
        low, high = self.labels
        return np.where(self._score(X) > 0, float(high), float(low))

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """The chance of the second label."""
        return self._link(self._score(X))

    def _link(self, score: FloatArray) -> FloatArray:
        chance: FloatArray = expit(score)
        return chance

    def _targets(self, y: ArrayLike) -> FloatArray:
        targets = _numbers("y", y, 1)
        if not np.all(np.isin(targets, self.labels)):
            raise InvalidInput(
                f"y must hold the labels {self.labels[0]} and {self.labels[1]} only, but it holds others; "
                "recode it, or declare labels=(-1, 1)"
            )
        ones: FloatArray = (targets == self.labels[1]).astype(np.float64)
        return ones


def _numbers(name: str, values: ArrayLike, dimensions: int) -> FloatArray:
    """A finite float array of the right number of dimensions; no message shows a value or a length."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"{name} must be an array of numbers, but it is not") from None
    if array.ndim != dimensions:
        what = "a table with one row per record" if dimensions == 2 else "one number per record"
        raise InvalidInput(f"{name} must be {what}, got an array of {array.ndim} dimensions instead")
    if not np.all(np.isfinite(array)):
        raise InvalidInput(f"{name} must be finite, but some rows hold nan or infinity; fill them or leave them out")
    return array
