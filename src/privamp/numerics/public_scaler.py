"""Scaling by public bounds, in place of a scaler that looks at the records.

`StandardScaler` and its kin take means and spreads from the records, which is a release that no budget pays for. Bounds
that are known without the data (an age is between 0 and 120) work as well and reveal nothing.
"""

import inspect
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InvalidInput
from .entries import table_of
from .log_domain import FloatArray


class PublicScaler:
    """Map columns from public bounds onto -1 to 1: a scikit-learn pipeline step that learns nothing.

    `bounds` are one pair (low, high) for all columns, or one pair for each. What lies outside is moved to the nearest
    bound; an entry that is missing or not a number counts as the middle, so that no record can stop a fit.

    >>> PublicScaler([(0, 120), (0, 10)]).fit_transform([[30.0, 5.0], [200.0, 10.0]]).tolist()
    [[-0.5, 0.0], [1.0, 1.0]]
    """

    def __init__(self, bounds: ArrayLike | Sequence[tuple[float, float]]) -> None:
        self.bounds = bounds
        self._ends()  # raises for bad bounds

    def fit(self, X: Any, y: Any = None) -> Self:
        """Nothing is learned; only the number of columns, which is public, is compared with the bounds."""
        self._checked(X)
        return self

    def transform(self, X: Any) -> FloatArray:
        """Each entry by itself: -1 at its lower bound, 1 at its upper one."""
        low, high = self._ends()
        rows = self._checked(X)
        middle, half = (low + high) / 2, (high - low) / 2
        scaled = (np.clip(np.where(np.isnan(rows), middle, rows), low, high) - middle) / half
        return np.asarray(np.clip(scaled, -1.0, 1.0))

    def fit_transform(self, X: Any, y: Any = None) -> FloatArray:
        """The same as `transform`."""
        return self.transform(X)

    def inverse_transform(self, X: Any) -> FloatArray:
        """Back to the units of the data, for released centres."""
        low, high = self._ends()
        return np.asarray(self._checked(X) * ((high - low) / 2) + (low + high) / 2)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """The columns keep their names."""
        if input_features is None:
            raise InvalidInput("this scaler is not fitted and does not know the column names; give input_features")
        return np.asarray(input_features, dtype=object)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name, as they were given."""
        return {"bounds": self.bounds}

    def set_params(self, **params: Any) -> Self:
        """Change parameters by name; returns the scaler."""
        for name in params:
            if name not in inspect.signature(type(self)).parameters:
                raise InvalidInput(f"PublicScaler takes bounds, got {name!r} instead")
        self.bounds = params.get("bounds", self.bounds)
        self._ends()
        return self

    def __sklearn_tags__(self) -> Any:
        """Nothing is fitted, and missing entries are no error, because an error would leak information."""
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            input_tags=InputTags(allow_nan=True),
            requires_fit=False,
        )

    def __sklearn_is_fitted__(self) -> bool:
        """Always: there is nothing to learn."""
        return True

    def __repr__(self) -> str:
        return f"PublicScaler(bounds={self.bounds!r})"

    def _ends(self) -> tuple[FloatArray, FloatArray]:
        try:
            pairs = np.asarray(self.bounds, dtype=np.float64)
        except (TypeError, ValueError):
            pairs = np.empty(0)
        if pairs.shape == (2,):
            pairs = pairs[None, :]
        if pairs.ndim != 2 or pairs.shape[1] != 2 or not pairs.size or not np.all(np.isfinite(pairs)):
            raise InvalidInput("bounds must be one pair (low, high) of numbers, or one pair for each column")
        if not np.all(pairs[:, 0] < pairs[:, 1]):
            raise InvalidInput("every pair of bounds must be (low, high) with low below high; swap them")
        return pairs[:, 0], pairs[:, 1]

    def _checked(self, X: Any) -> FloatArray:
        rows = table_of(X, "X")
        columns = self._ends()[0].size
        if columns not in (1, rows.shape[1]):
            raise InvalidInput(
                f"X must have as many columns as there are bounds, {columns}, got {rows.shape[1]} instead; give one "
                "pair per column"
            )
        return rows
