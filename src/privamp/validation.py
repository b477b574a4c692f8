"""Checks for public arguments; each failure is one sentence that names and shows the value.

>>> in_range(0, 1, rate=1.5)
Traceback (most recent call last):
    ...
privamp.errors.InvalidInput: rate must be a number from 0 to 1, got 1.5 instead
"""

import math
import operator
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from .errors import InvalidInput

Options = TypeVar("Options")


def _number(name: str, value: Any, rule: str) -> float:
    if isinstance(value, (bool, str, bytes)) or getattr(value, "ndim", 0) != 0:
        raise InvalidInput(f"{name} must be {rule}, got {value!r} instead")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{name} must be {rule}, got {value!r} instead") from None
    if math.isnan(number):
        raise InvalidInput(f"{name} must be {rule}, got nan instead")
    return number


def positive(**named: Any) -> None:
    """Finite numbers above zero."""
    for name, value in named.items():
        rule = "a finite number above 0"
        number = _number(name, value, rule)
        if not 0 < number < math.inf:
            raise InvalidInput(f"{name} must be {rule}, got {value!r} instead")


def nonnegative(**named: Any) -> None:
    """Finite numbers, zero included."""
    for name, value in named.items():
        rule = "a finite number of at least 0"
        number = _number(name, value, rule)
        if not 0 <= number < math.inf:
            raise InvalidInput(f"{name} must be {rule}, got {value!r} instead")


def in_range(low: float, high: float, /, *, open_ends: bool = False, **named: Any) -> None:
    """Numbers from `low` to `high`, ends included unless `open_ends`."""
    for name, value in named.items():
        rule = f"a number {'strictly between' if open_ends else 'from'} {low} {'and' if open_ends else 'to'} {high}"
        number = _number(name, value, rule)
        inside = low < number < high if open_ends else low <= number <= high
        if not inside:
            raise InvalidInput(f"{name} must be {rule}, got {value!r} instead")


def whole(low: int, high: int | None = None, /, **named: Any) -> None:
    """Whole numbers from `low` up to `high` (no upper end when None)."""
    rule = f"a whole number of at least {low}" if high is None else f"a whole number from {low} to {high}"
    for name, value in named.items():
        if isinstance(value, bool):
            raise InvalidInput(f"{name} must be {rule}, got {value!r} instead")
        try:
            number = operator.index(value)
        except TypeError:
            raise InvalidInput(f"{name} must be {rule}, got {value!r} instead") from None
        if number < low or (high is not None and number > high):
            raise InvalidInput(f"{name} must be {rule}, got {value!r} instead")


def one_of(choices: Iterable[str], **named: Any) -> None:
    """Words out of a short list."""
    words = tuple(choices)
    for name, value in named.items():
        if value not in words:
            raise InvalidInput(f"{name} must be one of {', '.join(words)}, got {value!r} instead{meant(value, words)}")


def meant(given: Any, words: Iterable[str]) -> str:
    """The end of an error sentence: "did you mean", or nothing.

    >>> meant("poison", ["wor", "poisson"]), meant("cat", ["wor", "poisson"])
    ("; did you mean 'poisson'?", '')
    """
    from difflib import get_close_matches

    alike = get_close_matches(given, list(words), 1, 0.7) if isinstance(given, str) else []
    return f"; did you mean {alike[0]!r}?" if alike else ""


def in_order(name: str, value: Any) -> Any:
    """The value; sets are rejected because they have no order, mappings because only their keys would be read."""
    if isinstance(value, (Mapping, set, frozenset)):
        raise InvalidInput(f"{name} must be a list or tuple in a public order, got a {type(value).__name__} instead")
    return value


def options_of(kind: type[Options], options: Options | None, given: Mapping[str, Any]) -> Options:
    """The options of a call, from an options object, from keywords, or from an object changed by keywords."""
    if options is None:
        return kind(**given)
    if not isinstance(options, kind):
        raise InvalidInput(f"options must be {kind.__name__}(…), got {type(options).__name__} instead")
    return replace(options, **given)  # type: ignore[type-var]
