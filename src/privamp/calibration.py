"""calibrate: the noise, rate or size that reaches a target guarantee. The answer always satisfies it."""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import overload

from .accounting.composition import compose, rough_profile, rough_step
from .amplification import roughly, without_attacks
from .core.design import Design
from .core.guarantee import Guarantee
from .core.mechanism import Mechanism
from .core.neighbors import Neighbors
from .core.schedule import Schedule
from .errors import DegradingDesign, Infeasible, InvalidInput
from .numerics.roots import NumericalFailure, largest_passing, least_passing, passing_beside, rough_root
from .validation import in_range, positive, whole

_SMALLEST, _LARGEST = 1e-9, 1e9
_PRECISE, _OF_MANY = 1e-10, 1e-7  # relative, of an unknown of one step and of many
_MOST_FOURS = 512  # 4^512 is above all doubles


@overload
def calibrate(
    mechanism: Callable[[float], Mechanism],
    design: Design | Schedule,
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
    design: Design | Schedule | Callable[..., Design],
    *,
    epsilon: float,
    delta: float = 0.0,
    steps: int = 1,
    neighbors: Neighbors | None = None,
    within: tuple[float, float] | None = None,
) -> Mechanism | Design:
    """Solve for the one unknown: a mechanism's parameter, or a design's rate or size.

    Pass a function of the unknown in place of the mechanism (the least noise is returned) or of the design (the
    largest sample is returned). The design may also be a schedule of many rounds. `within` bounds the
    unknown; two whole numbers make it a whole number, such as a size. `steps` fresh draws with a release each must
    together be (epsilon, delta)-DP under `neighbors` (None: the relation of the design's theorem). The answer
    passes, and the next value towards less privacy does not, or lies outside `within`.

    >>> from privamp import Gaussian, Poisson
    >>> noise = calibrate(Gaussian, Poisson(0.01), epsilon=1.0, delta=1e-6)
    >>> f"{noise.sigma:.3f}"
    '0.776'
    """
    positive(epsilon=epsilon)
    in_range(0, 1, delta=delta)
    if delta >= 1:
        raise InvalidInput(f"delta must be below 1, got {delta!r} instead")
    whole(1, steps=steps)
    if isinstance(mechanism, Mechanism) == isinstance(design, (Design, Schedule)):
        raise InvalidInput(
            "calibrate needs exactly one unknown: pass a function in place of the mechanism or of the design"
        )

    def guaranteed(m: Mechanism, d: Design | Schedule, is_rough: bool) -> Guarantee:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DegradingDesign)
            one = (roughly if is_rough else without_attacks)(m, d, neighbors)
        return compose(one, steps) if steps > 1 else one

    target = _Target(epsilon, delta)
    precision = _PRECISE if steps == 1 and not isinstance(design, Schedule) else _OF_MANY
    if isinstance(design, (Design, Schedule)):
        make, drawn = mechanism, design
        within = within or (_SMALLEST, _LARGEST)
        noise = _solve(lambda x, rough: guaranteed(make(x), drawn, rough), target, within, precision)  # type: ignore[operator]
        return make(noise)  # type: ignore[operator]
    known = mechanism
    sample = _solve(lambda x, rough: guaranteed(known, design(x), rough), target, within or (1e-12, 1.0), precision)  # type: ignore[arg-type]
    return design(sample)


@dataclass(frozen=True, slots=True)
class _Target:
    epsilon: float
    delta: float

    def excess(self, guarantee: Guarantee) -> float:
        """How far a guarantee is from the target; at most 0 when it is reached."""
        try:
            if self.delta == 0.0:
                return guarantee.epsilon() / self.epsilon - 1.0
            return float(guarantee.upper.log_delta(self.epsilon)) - math.log(self.delta)
        except (NumericalFailure, InvalidInput):
            return math.inf  # losses too large or too many to be composed: counted as not reached

    def rough(self, guarantee: Guarantee) -> float:
        """Nearly the same, quickly; for steering only. One step that does not reach it is not composed."""
        try:
            alone = float(rough_step(guarantee).log_delta(self.epsilon)) - math.log(self.delta)
            if alone > 0.0 and guarantee.steps > 1:
                return alone - math.log(self.delta)  # above all others, which are at most -log delta
            return float(rough_profile(guarantee).log_delta(self.epsilon)) - math.log(self.delta)
        except (NumericalFailure, InvalidInput):
            return math.inf


def _solve(
    at: Callable[[float, bool], Guarantee], target: _Target, within: tuple[float, float], precision: float
) -> float:
    """The least private value that passes; the two ends show which direction that is."""
    low, high = within
    if not low < high:
        raise InvalidInput(f"within must be (low, high) with low < high, got ({low}, {high}) instead")
    excess = cache(
        lambda x: target.excess(at(x, False))
    )  # many steps take a while to compose, and brackets are handed on
    try:
        if isinstance(low, int) and isinstance(high, int):
            return _whole(excess, low, high)
        if target.delta > 0.0 and low > 0.0:  # the guess is sought in log x
            found = _from_guess(excess, cache(lambda x: target.rough(at(x, True))), low, high, precision)
            if found is not None:
                return found
        at_high = excess(high)
        if at_high <= 0:
            at_low = _excess_or_never(excess, low)
            if at_low <= 0:
                return low if at_low > at_high else high
            return least_passing(excess, *_narrowed(excess, low, high), relative=precision)
        flipped = least_passing(lambda y: excess(1.0 / y), *_narrowed(lambda y: excess(1.0 / y), 1.0 / high, 1.0 / low))
        return min(max(1.0 / flipped, low), high)
    except NumericalFailure:
        raise Infeasible(
            f"no value from {low:g} to {high:g} reaches the target guarantee; allow a larger epsilon or delta, "
            "fewer steps, or widen `within`"
        ) from None


def _from_guess(
    excess: Callable[[float], float], rough: Callable[[float], float], low: float, high: float, precision: float
) -> float | None:
    """The answer, sought with a rough function and confirmed by `excess` beside it; None where that fails."""
    x = min(max(1.0, low), high)
    other = 4.0 * x if 4.0 * x <= high else max(0.25 * x, low)
    here, there = (_excess_or_never(rough, value) for value in (x, other))
    if (there <= here) == (other > x):  # falls as x grows
        return _beside_guess(excess, rough, low, high, precision)
    flipped = _beside_guess(lambda y: excess(1.0 / y), lambda y: rough(1.0 / y), 1.0 / high, 1.0 / low, precision)
    return 1.0 / flipped if flipped is not None and low <= 1.0 / flipped <= high else None


def _beside_guess(
    excess: Callable[[float], float], rough: Callable[[float], float], low: float, high: float, precision: float
) -> float | None:
    guess = rough_root(lambda x: _excess_or_never(rough, x), low=low, high=high)
    if guess is None:
        return None
    return passing_beside(lambda x: _excess_or_never(excess, x), *guess, low=low, high=high, relative=precision)


def _excess_or_never(excess: Callable[[float], float], value: float) -> float:
    """The excess; infinite where the mechanism or the design rejects the value."""
    try:
        return excess(value)
    except InvalidInput:
        return math.inf


def _whole(excess: Callable[[float], float], low: int, high: int) -> int:
    """The last whole number that passes on the way to the failing end; the less private end if both pass."""
    at_low, at_high = excess(low), excess(high)
    if at_low <= 0 and at_high <= 0:
        return low if at_low > at_high else high
    if at_low <= 0:
        return largest_passing(lambda x: excess(x) <= 0, low, high)
    return -largest_passing(lambda x: excess(-x) <= 0, -high, -low)


def _narrowed(excess: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """A bracket within a factor of four around the answer, found outward from 1; (low, high) if it fails at both."""
    x = min(max(1.0, low), high)

    def place(fours: int) -> float:
        return float(min(max(x * 4.0**fours if fours < _MOST_FOURS else high, low), high))

    def passes(fours: int) -> bool:
        return _excess_or_never(excess, place(fours)) <= 0

    if excess(x) <= 0:
        down = _first(lambda k: not passes(-k) or place(-k) <= low)
        return place(-down), place(1 - down)
    up = _first(lambda k: passes(k) or place(k) >= high)
    return place(up - 1), place(up)


def _first(holds: Callable[[int], bool]) -> int:
    """The first of 1, 2, 3, ... from which on it holds, in twice as many looks as it has binary digits."""
    most = 1
    while not holds(most):
        most *= 2
    return 1 + largest_passing(lambda k: k == 0 or not holds(k), most // 2, most)
