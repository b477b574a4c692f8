"""calibrate: the noise, rate or size that reaches a wanted guarantee. The answer always satisfies it."""

import warnings
from collections.abc import Callable
from typing import overload

from .accounting.composition import compose
from .amplification import amplify
from .core.design import Design
from .core.mechanism import Mechanism
from .core.neighbors import Neighbors
from .errors import DegradingDesign, Infeasible, InvalidInput
from .numerics.roots import NumericalFailure, largest_passing, smallest_passing
from .validation import in_range, positive, whole

_SMALLEST, _LARGEST = 1e-9, 1e9


@overload
def calibrate(
    mechanism: Callable[[float], Mechanism],
    design: Design,
    *,
    epsilon: float,
    delta: float = ...,
    steps: int = ...,
    neighbors: Neighbors | None = ...,
    within: tuple[float, float] | None = ...,
) -> Mechanism: ...


@overload
def calibrate(
    mechanism: Mechanism,
    design: Callable[[float], Design] | Callable[[int], Design],
    *,
    epsilon: float,
    delta: float = ...,
    steps: int = ...,
    neighbors: Neighbors | None = ...,
    within: tuple[float, float] | None = ...,
) -> Design: ...


def calibrate(
    mechanism: Mechanism | Callable[[float], Mechanism],
    design: Design | Callable[..., Design],
    *,
    epsilon: float,
    delta: float = 0.0,
    steps: int = 1,
    neighbors: Neighbors | None = None,
    within: tuple[float, float] | None = None,
) -> Mechanism | Design:
    """Solve for the one unknown: a mechanism's parameter, or a design's rate or size.

    Give a function of the unknown in the place of the mechanism (the least noise is returned) or of the design (the
    largest sample is returned). `within` bounds the unknown; two whole numbers make it a whole number, such as
    a size.

    >>> from privamp import Gaussian, Poisson
    >>> noise = calibrate(Gaussian, Poisson(0.01), epsilon=1.0, delta=1e-6)
    >>> f"{noise.sigma:.3f}"
    '0.993'
    """
    positive(epsilon=epsilon)
    in_range(0, 1, delta=delta)
    if delta >= 1:
        raise InvalidInput(f"delta must be below 1, got {delta!r} instead")
    whole(1, steps=steps)
    if isinstance(mechanism, Mechanism) == isinstance(design, Design):
        raise InvalidInput("calibrate needs exactly one unknown: a function in the place of the mechanism or of the design")

    def reaches(m: Mechanism, d: Design) -> bool:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DegradingDesign)
            one = amplify(m, d, neighbors)
        guarantee = compose(one, steps) if steps > 1 else one
        if delta == 0.0:
            return guarantee.epsilon() <= epsilon
        return float(guarantee.delta(epsilon)) <= delta

    if isinstance(design, Design):
        make = mechanism
        noise = _solve(lambda x: reaches(make(x), design), within, steps)  # type: ignore[operator]
        return make(noise)  # type: ignore[operator,no-any-return]
    known = mechanism
    sample = _solve(lambda x: reaches(known, design(x)), within or (1e-12, 1.0), steps)  # type: ignore[arg-type]
    return design(sample)


def _solve(passes: Callable[[float], bool], within: tuple[float, float] | None, steps: int) -> float:
    low, high = within or (_SMALLEST, _LARGEST)
    if not low < high:
        raise InvalidInput(f"within must be (low, high) with low < high, got ({low}, {high}) instead")
    try:
        if isinstance(low, int) and isinstance(high, int):
            return _whole(passes, low, high)
        precision = 1e-10 if steps == 1 else 1e-7
        if passes(high):
            return smallest_passing(passes, *_narrowed(passes, low, high), relative=precision)
        return 1.0 / smallest_passing(lambda y: passes(1.0 / y), 1.0 / high, 1.0 / low, relative=precision)
    except NumericalFailure:
        raise Infeasible(
            f"no value from {low:g} to {high:g} reaches the wanted guarantee; allow a larger epsilon or delta, fewer steps, "
            "or widen `within`"
        ) from None


def _whole(passes: Callable[[float], bool], low: int, high: int) -> int:
    """Sizes lose privacy as they grow; whole-number noise would gain it."""
    if passes(low):
        return largest_passing(passes, low, high)
    return -largest_passing(lambda x: passes(-x), -high, -low)


def _narrowed(passes: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """A bracket within a factor of four around the answer, found outward from 1."""
    x = min(max(1.0, low), high)
    if passes(x):
        while x > low and passes(max(x / 4.0, low)):
            x = max(x / 4.0, low)
        return max(x / 4.0, low), x
    while x < high and not passes(min(x * 4.0, high)):
        x = min(x * 4.0, high)
    return x, min(x * 4.0, high)
