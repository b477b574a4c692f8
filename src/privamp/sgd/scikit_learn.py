"""The scikit-learn estimator interface, without scikit-learn.

Parameters by name, clones, tags, and the messages that its checks expect. Only public facts can be rejected: the type
and the shape of a table, the names of its columns. If scikit-learn is installed, its own error and warning classes are
used, so that they can be caught.
"""

import inspect
import warnings
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.several_fits import OneOfSeveral
from ..errors import InvalidInput
from ..numerics.entries import table_of
from ..numerics.log_domain import FloatArray


class Estimator(OneOfSeveral):
    """Parameters by name, clones that are marked as such, and tags."""

    _estimator_type: ClassVar[str]

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
        """Another model with the same parameters, marked as one of several fits."""
        other = type(self)(**self.get_params())
        other._is_clone = True
        return other

    def __sklearn_tags__(self) -> Any:
        """Tags for scikit-learn; missing entries are no error, because an error would leak information."""
        from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags

        is_classifier = self._estimator_type == "classifier"
        return Tags(
            estimator_type=self._estimator_type,
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(multi_class=False) if is_classifier else None,
            regressor_tags=None if is_classifier else RegressorTags(),
            input_tags=InputTags(allow_nan=True),
        )


def _parameters(kind: type) -> list[str]:
    return [name for name in inspect.signature(kind).parameters if name != "self"]


def features_of(X: Any) -> FloatArray:
    """A dense table of real numbers, one row per record."""
    if hasattr(X, "tocsr") or hasattr(X, "toarray"):
        raise InvalidInput("X must be dense, got sparse data instead; use X.toarray()")
    array = X if isinstance(X, (list, tuple, np.ndarray)) else np.asarray(X)
    if isinstance(array, np.ndarray) and array.dtype.kind == "c":
        raise InvalidInput("Complex data not supported: X must be a table of real numbers")
    if isinstance(array, np.ndarray) and array.ndim != 2:
        raise InvalidInput(
            f"X must be a table with one row per record: Expected 2D array, got an array of {array.ndim} dimensions "
            "instead; Reshape your data"
        )
    table = table_of(array, "X")
    if table.shape[1] == 0:
        raise InvalidInput("X has 0 feature(s) (shape=(, 0)) while a minimum of 1 is required.")
    return table


def targets_of(y: Any, model: str) -> ArrayLike:
    """One target per record; a table of one column is that column."""
    if y is None:
        raise InvalidInput(f"{model} requires y to be passed, but the target y is None")
    array: Any = y if isinstance(y, (list, tuple, np.ndarray)) else np.asarray(y)
    if isinstance(array, (list, tuple)) or array.ndim != 2 or array.shape[1] != 1:
        return array  # type: ignore[no-any-return]
    warnings.warn(
        "A column-vector y was passed when a 1d array was expected", _known("DataConversionWarning"), stacklevel=3
    )
    column: ArrayLike = array[:, 0]
    return column


def words_of(y: Any) -> NDArray[Any]:
    """One text per record, entry by entry; None if it is not text."""
    if isinstance(y, np.ma.MaskedArray):
        hidden, y = np.ma.getmaskarray(y), np.array(np.ma.getdata(y), dtype=object)
        y[hidden] = None
    entries = y if isinstance(y, (list, tuple)) else np.asarray(y, dtype=object)
    if isinstance(entries, np.ndarray) and entries.ndim != 1:
        raise InvalidInput(f"y must be one column of labels, got an array of {entries.ndim} dimensions instead")
    words = np.empty(len(entries), dtype=object)
    words[:] = [entry if isinstance(entry, str) else None for entry in entries]
    return words


def names_of(X: Any, model: Any, *, reset: bool) -> None:
    """Store the column names of a fit, if all are text; later calls must have the same."""
    given = getattr(X, "columns", None)
    names = None if given is None or not all(isinstance(name, str) for name in given) else list(given)
    if reset:
        model.__dict__.pop("feature_names_in_", None)
        if names is not None:
            model.feature_names_in_ = np.asarray(names, dtype=object)
    elif names is not None and hasattr(model, "feature_names_in_") and names != model.feature_names_in_.tolist():
        raise InvalidInput(
            f"The feature names should match those that were passed during fit: {', '.join(model.feature_names_in_)}; "
            f"got {', '.join(names)} instead"
        )


def not_fitted(model: str) -> InvalidInput:
    """The error of a model that is used before its fit."""
    kind = _known("NotFittedError")
    sentence = f"this {model} is not fitted yet; call fit(X, y) first"
    if issubclass(kind, Warning):
        return InvalidInput(sentence)
    both: InvalidInput = type("NotFitted", (InvalidInput, kind), {})(sentence)
    return both


def _known(name: str) -> Any:
    """A class of scikit-learn's, where it is installed; else a plain warning."""
    try:
        import sklearn.exceptions as known
    except ImportError:
        return UserWarning
    return getattr(known, name)
