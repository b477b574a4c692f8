"""Bracketed roots of monotone functions: the answer is on the asked side, or an error is raised."""

import math
from collections.abc import Callable

import numpy as np

from .log_domain import FloatArray


class NumericalFailure(ArithmeticError):
    """A root could not be bracketed or did not converge; no number is returned instead."""


def first_at_most(
    f: Callable[[FloatArray], FloatArray],
    target: float,
    *,
    start: float = 0.0,
    limit: float = 1e6,
    width: int = 65,
    rounds: int = 60,
) -> float:
    """The smallest x >= start with f(x) <= target for a non-increasing f, from the side where it holds.

    Vectorised sectioning: each round evaluates `width` points at once. Raises when f stays above the
    target up to `limit`, or returns NaN anywhere.
    """
    step = 1.0
    low, high = start, start
    if _value(f, start) <= target:
        return start
    while True:
        high = min(start + step, limit)
        if _value(f, high) <= target:
            break
        if high >= limit:
            raise NumericalFailure(f"no root below {limit:g}: the function stays above {target:g}")
        low, step = high, step * 4.0
    for _ in range(rounds):
        points = np.linspace(low, high, width)
        values = f(points)
        if np.any(np.isnan(values)):
            raise NumericalFailure("the function returned NaN while a root was sought")
        inside = np.flatnonzero(values <= target)
        first = int(inside[0]) if inside.size else width - 1
        new_low, new_high = float(points[max(first - 1, 0)]), float(points[first])
        if not new_low < new_high or (new_low, new_high) == (low, high):
            break
        low, high = new_low, new_high
        if high - low <= 4e-16 * max(abs(high), 1e-300):
            break
    if not _value(f, high) <= target:
        raise NumericalFailure("the bracketed root does not satisfy its own condition")
    return high


def _value(f: Callable[[FloatArray], FloatArray], x: float) -> float:
    value = float(f(np.asarray([x]))[0])
    if math.isnan(value):
        raise NumericalFailure("the function returned NaN while a root was sought")
    return value


def smallest_passing(
    passes: Callable[[float], bool], low: float, high: float, *, relative: float = 1e-9, rounds: int = 200
) -> float:
    """The smallest positive x in [low, high] with passes(x), to a relative width, always a passing one.

    `passes` is False then True as x grows. Raises when it fails at `high`.
    """
    if not passes(high):
        raise NumericalFailure(f"the condition fails even at {high:g}")
    if passes(low):
        return low
    for _ in range(rounds):
        if high <= low * (1.0 + relative):
            break
        middle = math.sqrt(low * high)
        if not low < middle < high:
            break
        if passes(middle):
            high = middle
        else:
            low = middle
    return high


def largest_passing(passes: Callable[[int], bool], low: int, high: int) -> int:
    """The largest whole x in [low, high] with passes(x), True then False; raises when `low` fails."""
    if not passes(low):
        raise NumericalFailure(f"the condition fails even at {low}")
    if passes(high):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if passes(middle) else (low, middle)
    return low
