"""Bracketed roots of monotone functions: the answer is on the requested side, or an error is raised."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .log_domain import FloatArray

_SLACK, _MORE = 0.05, 16.0  # of a logarithm: how far below its ceiling a function usually is; then more by this factor
_GUESSES, _FARTHER = 30, 1.4  # evaluations of a rough function; a first step in log x
_WIDE, _LAST_BITS, _REACH = 0.1, 2e-14, 2e-3  # of a bracket, relative: wide, narrow; how far beside its chord's root
_BESIDE, _SHRUNK = 5, 0.2  # points there with the ends; how much narrower they make it where the chord is good
_STEPS, _BEYOND = 8, 1.1  # from a guess: steps until the root is bracketed, and how far beyond it each of them goes
_CLOSING, _ASIDE = 40, 0.45  # evaluations that close the bracket; how far beside the root, in units of its last width
_DISTINCT = 16.0  # in the same units: points so far apart tell a slope in spite of rounding
_NEAR_FAILURE = 0.01  # how close to where a function cannot be computed


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
    ceiling: Callable[[FloatArray], FloatArray] | None = None,
    chords: bool = False,
) -> float:
    """The smallest x >= start with f(x) <= target for a non-increasing f, from the side where it holds.

    Vectorised sectioning: once the bracket is narrow each round evaluates `width` points at once; before, the middle,
    because values far from the root may be costly. With `chords` a few points beside the root of the bracket's chord
    are tried instead, for smooth functions. `ceiling` is a quick function that is nowhere below f: it says where to
    begin. Raises when f stays above the target up to `limit`, or returns NaN anywhere.
    """
    if ceiling is not None and _value(ceiling, limit) <= target:
        low, high = _below_ceiling(f, ceiling, target, start, limit)
    else:
        low, high = _by_steps(f, target, start, limit)
    if low == high:
        return start
    ends: tuple[float, float] | None = None  # what is left of the target there
    for _ in range(rounds):
        points = _in_bracket(low, high, ends, width)
        values = f(points)
        if np.any(np.isnan(values)):
            raise NumericalFailure("the function returned NaN during root finding")
        inside = np.flatnonzero(values <= target)
        first = int(inside[0]) if inside.size else points.size - 1
        new_low, new_high = float(points[max(first - 1, 0)]), float(points[first])
        if not new_low < new_high or (new_low, new_high) == (low, high):
            break
        is_near = new_high - new_low < _SHRUNK * (high - low) or points.size != _BESIDE
        if chords and is_near:
            ends = float(values[max(first - 1, 0)]) - target, float(values[first]) - target
        else:
            ends = None
        low, high = new_low, new_high
        if high - low <= 4e-16 * max(abs(high), 1e-300):
            break
    for nudge in range(24):  # an array may be rounded differently from a single number: step over the last bits
        if _value(f, high) <= target:
            return high
        high += max(abs(high), 1e-300) * 2.0 ** (nudge - 52)
    raise NumericalFailure("the bracketed root does not satisfy its own condition")


def _in_bracket(low: float, high: float, ends: tuple[float, float] | None, width: int) -> FloatArray:
    """Where to look: a chord over a narrow bracket errs by its square."""
    if high - low > _WIDE * abs(high):
        return np.linspace(low, high, 3)
    share = (high - low) / abs(high)
    if ends is None or share < _LAST_BITS or not math.isfinite(ends[1]) or ends[0] <= ends[1]:
        return np.linspace(low, high, width)
    root, reach = low + (high - low) * ends[0] / (ends[0] - ends[1]), (high - low) * max(2.0 * share, _REACH)
    inner = np.clip([root - reach, root, root + reach], low, high)
    return np.array([low, *inner, high])


def _by_steps(f: Callable[[FloatArray], FloatArray], target: float, start: float, limit: float) -> tuple[float, float]:
    """A bracket, found by growing steps; (start, start) when the target is met there."""
    step, low = 1.0, start
    if _value(f, start) <= target:
        return start, start
    while True:
        high = min(start + step, limit)
        if _value(f, high) <= target:
            return low, high
        if high >= limit:
            raise NumericalFailure(f"no root below {limit:g}: the function stays above {target:g}")
        low, step = high, step * 4.0


def _below_ceiling(
    f: Callable[[FloatArray], FloatArray],
    ceiling: Callable[[FloatArray], FloatArray],
    target: float,
    start: float,
    limit: float,
) -> tuple[float, float]:
    """A bracket: f passes where the ceiling does; then leftwards, where the ceiling is higher and higher."""
    high, slack = first_at_most(ceiling, target, start=start, limit=limit, rounds=20), _SLACK
    if not _value(f, high) <= target:  # it is not a ceiling
        return _by_steps(f, target, start, limit)
    while high > start:
        low = first_at_most(ceiling, target + slack, start=start, limit=limit, rounds=20)
        if low < high and _value(f, low) > target:
            return low, high
        high, slack = low, _MORE * slack
    return start, start


def _value(f: Callable[[FloatArray], FloatArray], x: float) -> float:
    value = float(f(np.asarray([x]))[0])
    if math.isnan(value):
        raise NumericalFailure("the function returned NaN during root finding")
    return value


def least_passing(
    excess: Callable[[float], float], low: float, high: float, *, relative: float = 1e-9, rounds: int = 200
) -> float:
    """The smallest x in [low, high] with excess(x) <= 0, to a relative width, always one where it holds.

    `excess` is positive, then not, as x > 0 grows. False position in log x (few evaluations of an expensive
    function), each round guarded by bisection. Raises when the condition fails at `high`.
    """
    above = excess(high)
    if not above <= 0:
        raise NumericalFailure(f"the condition fails even at {high:g}")
    below = excess(low)
    if below <= 0:
        return low
    a, b, guess = math.log(low), math.log(high), math.nan
    for turn in range(rounds):
        if b - a <= relative:
            break
        previous, guess = guess, _false_position(a, b, below, above, turn)
        if abs(guess - previous) < 0.1 * relative:  # converged from one side: step over to the other
            guess += 0.4 * relative if guess - a < b - guess else -0.4 * relative
        if not a < guess < b:
            guess = 0.5 * (a + b)
        value = excess(math.exp(guess))
        if math.isnan(value):
            raise NumericalFailure("the function returned NaN during root finding")
        if value <= 0:
            b, above = guess, value
        else:
            a, below = guess, value
    root = math.exp(b) if b < math.log(high) else high
    if not excess(root) <= 0:
        raise NumericalFailure("the bracketed root does not satisfy its own condition")
    return root


def rough_root(
    excess: Callable[[float], float], *, low: float, high: float, within: float = 0.02
) -> tuple[float, float] | None:
    """About where a function that falls with x > 0 crosses zero, and its slope in log x; None where that is not seen.

    Secants in log x from 1 on, kept inside of what is known; values may be infinite. Only a guess: nothing is certain.
    """
    least, most = math.log(low), math.log(high)
    a, b, x = least, most, min(max(0.0, least), most)
    last: tuple[float, float] | None = None
    for _ in range(_GUESSES):
        value, slope = excess(math.exp(x)), math.nan
        a, b = (a, min(b, x)) if value <= 0.0 else (max(a, x), b)
        step = _FARTHER if value > 0.0 else -_FARTHER
        if math.isfinite(value):
            if last is not None and last[0] != x:
                slope = (value - last[1]) / (x - last[0])
            last = x, value
            if slope < 0.0:
                step = min(max(-value / slope, -3.0), 3.0)
                if abs(step) < within:
                    return math.exp(min(max(x + step, least), most)), slope
        there = x + step
        x = there if a < there < b else 0.5 * (max(a, x - 3.0) + min(b, x + 3.0))
        if not least < x < most:
            return None
    return None


def passing_beside(
    excess: Callable[[float], float], guess: float, slope: float, *, low: float, high: float, relative: float
) -> float | None:
    """`least_passing` from a guess that is near: few evaluations of an expensive function; None if it is not near.

    `slope` is a guess of the change of `excess` with log x, below 0. The answer passes, and one that is smaller by
    `relative` does not.
    """
    found = _beside(excess, math.log(guess), slope, math.log(low), math.log(high), relative)
    if found is None:
        return None
    (a, below), (b, above) = found
    newest, slope = (found[0] if abs(below) < abs(above) else found[1]), (above - below) / (b - a)
    for turn in range(_CLOSING):
        if b - a <= relative:
            return math.exp(b)
        root = newest[0] - newest[1] / slope if slope < 0.0 else a  # by the two latest points that are far enough apart
        if turn % 6 == 5 or not a < root < b:
            root = _chord(a, b, below, above, turn)
        is_known = b - root < 1.5 * _ASIDE * relative  # that so little more passes
        x = root - _ASIDE * relative if is_known else root + _ASIDE * relative
        x = x if a < x < b else 0.5 * (a + b)
        value = excess(math.exp(x))
        if abs(x - newest[0]) > _DISTINCT * relative:
            slope = (value - newest[1]) / (x - newest[0])
        newest = x, value
        a, below, b, above = (a, below, x, value) if value <= 0.0 else (x, value, b, above)
    return None


def _beside(
    excess: Callable[[float], float], x: float, slope: float, least: float, most: float, relative: float
) -> tuple[tuple[float, float], tuple[float, float]] | None:
    """A point that does not pass and one that does, with their values; each step goes a little beyond the root."""
    value = excess(math.exp(x))
    for _ in range(_STEPS):
        if not (math.isfinite(value) and slope < 0.0):
            return None
        step = -_BEYOND * value / slope
        step += math.copysign(relative, step if value else -1.0)
        there = min(max(x + step, least), most)
        beyond = excess(math.exp(there))
        if not math.isfinite(beyond) or there == x:
            return None
        if (value <= 0.0) != (beyond <= 0.0):
            here = (x, value), (there, beyond)
            return here if value > 0.0 else here[::-1]
        slope, x, value = (beyond - value) / (there - x), there, beyond
    return None


def _chord(a: float, b: float, below: float, above: float, turn: int) -> float:
    """Where the chord crosses zero; now and then the midpoint, in case that one end never moves."""
    return 0.5 * (a + b) if turn % 6 == 5 or below == above else a + (b - a) * below / (below - above)


def _false_position(a: float, b: float, below: float, above: float, turn: int) -> float:
    """Where the chord crosses zero; the midpoint every third turn and where the chord says nothing."""
    if turn % 3 == 2 or not (math.isfinite(below) and math.isfinite(above)) or below == above:
        return 0.5 * (a + b)
    return a + (b - a) * below / (below - above)


def bisected(
    is_above: Callable[[FloatArray], NDArray[np.bool_]],
    low: FloatArray,
    high: FloatArray,
    *,
    rounds: int = 60,
    until: Callable[[FloatArray, FloatArray], bool | np.bool_] | None = None,
    geometric: bool = False,
) -> tuple[FloatArray, FloatArray]:
    """Brackets (low, high) of many roots, halved together; `is_above(x)` tells which entries of x lie above their root.

    The caller takes the side on which its condition holds, so nothing is interpolated. `geometric` halves on the
    logarithmic scale. It stops when no bracket can be halved further, or once `until(low, high)` holds; it raises when
    `rounds` do not suffice for that.

    >>> low, high = bisected(lambda x: x * x > 2.0, np.ones(1), np.full(1, 2.0))
    >>> bool(low[0] ** 2 <= 2.0 < high[0] ** 2), float(high[0] - low[0]) < 1e-15
    (True, True)
    """
    for _ in range(rounds):
        if until is not None and until(low, high):
            return low, high
        middle = np.sqrt(low * high) if geometric else 0.5 * (low + high)
        above = is_above(middle)
        before = low, high
        low, high = np.where(above, low, middle), np.where(above, middle, high)
        if (low == before[0]).all() and (high == before[1]).all():
            return low, high
    if until is not None and not until(low, high):
        raise NumericalFailure(f"{rounds} halvings did not narrow a root to the requested width")
    return low, high


def halved(
    is_above: Callable[[float], bool],
    low: float,
    high: float,
    *,
    rounds: int = 200,
    until: Callable[[float, float], bool] | None = None,
    geometric: bool = False,
) -> tuple[float, float]:
    """`bisected` for one root: the bracket (low, high) around it, `is_above` False at low and True at high.

    >>> low, high = halved(lambda x: x * x > 2.0, 1.0, 2.0)
    >>> low**2 <= 2.0 < high**2
    True
    """
    low, high = float(low), float(high)
    for _ in range(rounds):
        if until is not None and until(low, high):
            return low, high
        middle = math.sqrt(low * high) if geometric else 0.5 * (low + high)
        before = low, high
        low, high = (low, middle) if is_above(middle) else (middle, high)
        if (low, high) == before:
            return low, high
    if until is not None and not until(low, high):
        raise NumericalFailure(f"{rounds} halvings did not narrow a root to the requested width")
    return low, high


def passing_near(
    excess: Callable[[float], float], start: float, *, close: float, lowest: float, highest: float
) -> float | None:
    """A point with excess in (-close, 0] of a growing function: few evaluations where each is expensive.

    Steps from `start` until it is bracketed, then false position, halved where that is slow. Above `highest` the last
    point that passed is returned; None when nothing passes down to `lowest`. Where the function is infinite (it cannot
    be computed there), a point just below that may be returned, with any excess that passes.
    """
    high, at_high = start, excess(start)
    step = 0.25
    low, at_low = high, at_high
    while at_low > 0.0:
        high, at_high = low, at_low
        low, step = low - step, 2.0 * step
        at_low = excess(low)
        if low < lowest:
            return None
    step = 0.25
    while at_high <= 0.0:
        if at_high > -close:
            return high
        low, at_low = high, at_high
        high, step = high + step, 2.0 * step
        at_high = excess(high)
        if high > highest:
            return low
    for trial in range(60):
        if at_low > -close or high - low < (_NEAR_FAILURE if math.isinf(at_high) else 1e-6):
            break
        share = (at_low + 0.5 * close) / (at_low - at_high)
        middle = low + (high - low) * (share if trial % 3 != 2 and 0.02 < share < 0.98 else 0.5)
        value = excess(middle)
        low, at_low, high, at_high = (middle, value, high, at_high) if value <= 0.0 else (low, at_low, middle, value)
    return low


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
