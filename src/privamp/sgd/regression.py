"""Linear and logistic regression by noisy descent.

The gradient of both losses is (residual) * x, residual = prediction - target, so clipping it to norm C is clipping the
residual to C/|x|. Scores and gradients are computed column by column with one operation per entry, so that a record's
gradient is a function of that record and the parameters alone, bit for bit. Each entry is rounded toward zero to a
whole number of a small unit, which lengthens nothing, and whole numbers add up exactly. A record that holds anything
but finite numbers, or a label that is none of the two, adds nothing.
"""

import math
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from ..chance.keys import Key
from ..core.design import Design
from ..core.guarantee import Guarantee
from ..core.neighbors import Neighbors
from ..core.population import Population
from ..errors import InvalidInput
from ..numerics.entries import column_of, table_of
from ..numerics.log_domain import FloatArray
from .descent import ClippedSum, Descent, Ints

Link = Callable[[FloatArray], FloatArray]


_MOST = 2.0**53  # whole numbers that doubles hold


def clipped_sum_of(
    features: FloatArray, targets: FloatArray, link: Link, clip: float, expected: float = 1.0
) -> ClippedSum:
    """The sum of clipped gradients of (link(x . parameters) - target) x, for samples of about `expected` copies.

    Entries are whole multiples of the clip times 2^-30 (more for samples beyond two million copies). A sum of more than
    four times the expected copies, all of them in one direction, is cut: no two sums come farther apart by that.
    """
    columns = np.ascontiguousarray(features.T)
    usable = np.isfinite(targets) & np.isfinite(columns).all(axis=0)
    columns, goals = np.where(usable, columns, 0.0), np.where(usable, targets, 0.0)
    limits = np.where(usable, _limits(columns, clip), 0.0)
    unit = _unit(clip, expected)

    def clipped_sum(parameters: FloatArray, rows: Ints, counts: Ints) -> FloatArray:
        with np.errstate(all="ignore"):  # a warning would tell about the records
            score = np.zeros(rows.size)
            for column, parameter in zip(columns, parameters, strict=True):
                score += column[rows] * parameter
            residuals = np.nan_to_num(link(score) - goals[rows], nan=0.0)
            kept = np.clip(residuals, -limits[rows], limits[rows])
            sums = [int((counts * np.trunc(column[rows] * kept / unit).astype(np.int64)).sum()) for column in columns]
        return np.array([min(max(float(total), -_MOST), _MOST) * unit for total in sums])

    return clipped_sum


def _limits(columns: FloatArray, clip: float) -> FloatArray:
    """clip/|x| for every record, rounded down; inf for x = 0."""
    length = np.zeros(columns.shape[1])
    with np.errstate(all="ignore"):
        for column in columns:
            length = np.hypot(length, column)  # squares would vanish or overflow
        return np.asarray(clip / length * (1.0 - (columns.shape[0] + 8) * 2.0**-51))


def _unit(clip: float, expected: float) -> float:
    """A power of two near clip 2^-30, such that four times the expected copies add up within the doubles."""
    spare = math.log2(max(expected, 2.0**21)) - 21.0
    return 2.0 ** math.ceil(math.log2(clip) - 30.0 + spare)


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
        features, targets = table_of(X, "X"), self._targets(y)
        if features.shape[0] != targets.shape[0] or (population is not None and population.size != targets.shape[0]):
            raise InvalidInput("X, y and the population must have one row per record, but their lengths differ")
        if features.shape[1] + self.intercept == 0:
            raise InvalidInput("there is nothing to fit: X must have a column, or intercept must be True")
        if self.intercept:
            features = np.hstack([features, np.ones((features.shape[0], 1))])
        found = self.descent.run(
            clipped_sum_of(features, targets, self._link, self.descent.clip, self.descent.expected_size),
            np.zeros(features.shape[1]),
            population or Population(targets.size),
            key,
            is_proved=True,
        )
        width = features.shape[1] - self.intercept
        self.coef_ = found.parameters[:width]
        self.intercept_ = float(found.parameters[-1]) if self.intercept else 0.0
        self.sigma_, self.privacy_ = found.mechanism.sigma, found.guarantee
        return self

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
    """Logistic regression. `labels` are the two values that y takes: (0, 1), or (-1, 1).

    A record with any other label adds nothing to any step; refusing it would tell that it is there.
    """

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
        targets, (low, high) = column_of(y, "y"), self.labels
        return np.where(targets == high, 1.0, np.where(targets == low, 0.0, np.nan))
