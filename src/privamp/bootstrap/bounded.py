"""A user-defined statistic with public bounds.

Its value is clipped into the bounds, so that one entry (or any number of them) moves it by at most their distance. For
a statistic that is known to move less, declare `sensitivity`, a number or a function of the resample's size: the most
that ONE replaced entry of the resample may move it. privamp cannot check that declaration: it is an assumption of the
guarantee. A value that is not a finite number counts as the middle of the bounds, and so does an error; warnings on the
way are not shown. Other effects of the function are not checked: that it prints and stores nothing, and terminates, is
an assumption too.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import InvalidInput
from ..numerics.entries import column_of, is_flat, table_of
from ..numerics.log_domain import FloatArray
from ..validation import positive
from .spread import Finding
from .statistic import Series, Statistic, range_of

TRUSTED = "the user's statistic returns a number and does nothing else: it shows, keeps and changes nothing, and ends"
DECLARED = "the declared sensitivity of the user's statistic holds for one replaced entry of a resample"


@dataclass(frozen=True, slots=True)
class Bounded(Statistic):
    """`function` of an array with the resample's entries (repeated ones repeated), clipped into `bounds`."""

    function: Callable[[Any], float]
    bounds: tuple[float, float]
    change: float | Callable[[int], float] | None = None  # replace-one sensitivity per copy; None: the whole range
    name: str = "statistic"

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InvalidInput(f"the statistic must be a function of an array, got {self.function!r} instead")
        object.__setattr__(self, "bounds", range_of(self.bounds, "bounds of the statistic"))

    def rows(self, values: Any) -> FloatArray:
        """The records as they are: only the value is bounded. Lists, which have no type, are read as numbers, and so
        are masked arrays, whose masked entries are nan."""
        if isinstance(values, (list, tuple, np.ma.MaskedArray)):
            rows = column_of(values) if is_flat(values) else table_of(values)
        else:
            rows = np.asarray(values)
        if rows.ndim == 0 or rows.shape[0] < 2:
            raise InvalidInput(f"values must have one row per record, at least 2, got shape {rows.shape} instead")
        return rows

    def probe(self, rows: FloatArray, size: int) -> None:
        """Raise if the function cannot be called at all; tried on zeros, not on the data."""
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                self.function(np.zeros((size, *rows.shape[1:]), rows.dtype))
        except (TypeError, AttributeError, NameError, IndexError, KeyError) as error:
            raise InvalidInput(f"the statistic fails on {size} zeros ({type(error).__name__}); correct it") from None
        except Exception:  # zeros may have no such statistic
            return

    def sensitivity(self, size: int) -> float:
        """The declared sensitivity, never more than the range."""
        whole = self.bounds[1] - self.bounds[0]
        if self.change is None:
            return whole
        declared = self.change(size) if callable(self.change) else self.change
        positive(sensitivity=declared)
        return min(float(declared), whole)

    def compute(self, rows: FloatArray, counts: FloatArray) -> FloatArray:
        """The statistic of one sample, clipped to the bounds."""
        try:
            with np.errstate(all="ignore"):  # a warning would leak information about the records
                value = float(self.function(np.repeat(rows, counts.astype(np.intp), axis=0)))
        except Exception:  # the error may leak information about the records
            value = math.nan
        low, high = self.bounds
        return np.asarray([min(max(value, low), high) if math.isfinite(value) else 0.5 * (low + high)])

    def remembered(self, size: int) -> "Bounded":
        """Bounds, name and sensitivity; the function may hold anything, so it is dropped."""
        return replace(self, function=_let_go, change=self.sensitivity(size))

    def conclude(self, series: Series) -> tuple[Finding, ...]:
        """Read as a mean of the statistic over resamples."""
        return (series.spread.finding(self.name, series.averages[:, 0], series.noise).within(*self.bounds),)


def _let_go(entries: Any) -> float:
    """Replaces a function that a result does not keep."""
    raise InvalidInput("a result does not keep the statistic's function; call your own function instead")
