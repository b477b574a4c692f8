"""Public bounds on the records, in one form for every job.

    bounds=(low, high)               every number lies between the two
    bounds=[(low, high), …]          one pair per column
    bounds={stratum: (low, high)}    one pair per stratum, where there are strata
    bounds=r                         from -r to r; for rows that are added up, their norm is at most r

They are chosen from public knowledge, never from the records. Records are clipped to them.
"""

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from ..errors import InvalidInput
from ..validation import positive

Pair = tuple[float, float]


def is_number(bounds: Any) -> bool:
    """Whether the bounds are given as one number, a radius."""
    return isinstance(bounds, Real) or (isinstance(bounds, np.ndarray) and bounds.ndim == 0)


def pair_of(bounds: Any, what: str = "bounds") -> Pair:
    """Two public finite numbers, the smaller first.

    >>> pair_of((0, 100)), pair_of(5)
    ((0.0, 100.0), (-5.0, 5.0))
    """
    if bounds is None:
        raise InvalidInput(
            f"{what} must be two public numbers (lowest, highest) between which the values lie, got none instead"
        )
    if is_number(bounds):
        positive(**{what: bounds})
        return -float(bounds), float(bounds)
    try:
        low, high = (float(end) for end in bounds)
    except (TypeError, ValueError):
        raise InvalidInput(f"{what} must be two numbers (lowest, highest), got {bounds!r} instead") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidInput(f"{what} must be finite with the lowest below the highest, got {bounds!r} instead")
    return low, high


def is_pair(bounds: Any) -> bool:
    """Whether the bounds are one pair of numbers, and not one pair per column."""
    return hasattr(bounds, "__len__") and len(bounds) == 2 and all(is_number(end) for end in bounds)


def pairs_of(bounds: Any, columns: int) -> tuple[Pair, ...]:
    """One pair per column, from one pair for all columns or a list of pairs."""
    if is_number(bounds) or is_pair(bounds) or not isinstance(bounds, (list, tuple, np.ndarray)):
        return (pair_of(bounds),) * columns
    if len(bounds) != columns:
        raise InvalidInput(
            f"bounds must be one pair, or one pair for each of the {columns} columns, got {len(bounds)} pairs instead"
        )
    return tuple(pair_of(pair) for pair in bounds)


def pairs_by_name(bounds: Any, names: Sequence[Any]) -> tuple[Pair, ...]:
    """One pair per name (of a stratum, say), from one pair for all names or a dictionary."""
    if not isinstance(bounds, Mapping):
        return (pair_of(bounds),) * len(names)
    missing = [name for name in names if name not in bounds]
    if missing:
        raise InvalidInput(f"bounds must name every stratum, got nothing for {missing[0]!r} instead")
    return tuple(pair_of(bounds[name]) for name in names)
