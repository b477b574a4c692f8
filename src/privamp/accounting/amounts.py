"""Costs as whole numbers of a tiny unit, so that any number of them adds up exactly, never below the truth.

A cost is read as the shortest decimal that names the double (0.1 is 0.1) and rounded up to the unit: 1e-15, and
1e-18 for a delta. A limit is rounded down. The decimal and the double differ by less than 2^-53 of the cost, so a
whole total errs by less than 2^-52 of the limit: certified limits are rounded up by more than that.
"""

import math
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from ..errors import InvalidInput, NoTheorem

_DIGITS = 15
_DELTA_DIGITS = 18
_LARGEST = 2**62  # room to add two of them in SQLite's 64-bit integers

Amounts = dict[str, int]


def _digits(name: str) -> int:
    return _DELTA_DIGITS if name == "delta" else _DIGITS


def cost_amounts(cost: Mapping[str, float]) -> Amounts:
    """A release's cost in the whole units that the store counts, rounded up."""
    return {name: _whole(name, value, ROUND_CEILING) for name, value in cost.items()}


def limit_amounts(limits: Mapping[str, float]) -> Amounts:
    """A limit in the whole units that the store counts, rounded down."""
    return {name: _whole(name, value, ROUND_FLOOR) for name, value in limits.items()}


def _whole(name: str, value: float, rounding: str) -> int:
    if not math.isfinite(value):
        raise NoTheorem(f"this release has no finite {name}, so a limit on it does not apply; use another rule")
    units = int(Decimal(repr(float(value))).scaleb(_digits(name)).to_integral_value(rounding=rounding))
    if not 0 <= units <= _LARGEST:
        raise InvalidInput(f"{name} must be from 0 to {_LARGEST * 10.0 ** -_digits(name):.4g}, got {value:g} instead")
    return units


def number_of(name: str, units: int) -> float:
    """Back to a number, for showing."""
    return float(Decimal(units).scaleb(-_digits(name)))
