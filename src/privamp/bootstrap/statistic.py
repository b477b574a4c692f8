"""Statistics of a resample: a few numbers with a proved sensitivity, and the estimates made from them."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.bounds import pair_of
from ..errors import InvalidInput
from ..numerics.entries import column_of
from ..numerics.log_domain import FloatArray
from .spread import Finding, Spread

_LEAST, _MOST, _CLOSE = 1e-60, 1e60, 1e-9


@dataclass(frozen=True, slots=True)
class Series:
    """Released group averages, shape (B, d), the noise on every entry of them, and the rule that reads them."""

    averages: FloatArray
    noise: float
    spread: Spread
    kept: float  # what drawing with replacement keeps of a variance


class Statistic(ABC):
    """Frozen dataclass per kind; fields are public."""

    least: int = 1  # entries that a resample needs

    @abstractmethod
    def rows(self, values: Any) -> FloatArray:
        """The records as rows, clipped into the public bounds."""

    @abstractmethod
    def sensitivity(self, size: int) -> float:
        """How far (l2) the numbers of a resample of `size` entries move when ONE entry is replaced."""

    @abstractmethod
    def compute(self, rows: FloatArray, counts: FloatArray) -> FloatArray:
        """The numbers, shape (d,), of a resample that holds row i `counts[i]` times."""

    def remembered(self, size: int) -> "Statistic":
        """What a result keeps of the statistic, for resamples of this size; a user's function is not kept."""
        return self

    @abstractmethod
    def conclude(self, series: Series) -> tuple[Finding, ...]:
        """Estimates, errors and intervals: post-processing, at no cost."""


def range_of(bounds: Any, what: str = "bounds") -> tuple[float, float]:
    """Two public numbers whose distance doubles can square, and can tell from either of them."""
    low, high = pair_of(bounds, what)
    width, far = 0.5 * high - 0.5 * low, max(abs(low), abs(high))
    if not (_LEAST <= width <= _MOST and width >= _CLOSE * far):
        raise InvalidInput(
            f"{what} must be between {_LEAST:g} and {_MOST:g} apart, and not by less than a billionth of their size, "
            f"got {low:g} and {high:g} instead; change the unit of the values, or subtract a public number from them"
        )
    return low, high


def numbers(values: Any, bounds: tuple[float, float]) -> FloatArray:
    """One number per record, clipped to the bounds; their middle for an entry that is not a number."""
    column = column_of(values)
    return np.where(np.isnan(column), 0.5 * bounds[0] + 0.5 * bounds[1], np.clip(column, *bounds))


def at_least_two(column: FloatArray) -> FloatArray:
    """The column of at least two records; how many there are is public."""
    if column.size < 2:
        raise InvalidInput(f"values must be one column with at least 2 records, got shape {column.shape} instead")
    return column
