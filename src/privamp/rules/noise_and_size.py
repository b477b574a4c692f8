"""Noise for a target expected sample size, or the size for given noise, from public facts alone.

With the target epsilon fixed, more noise lets every record be kept more rarely: the expected size falls as the noise
grows. The least noise is the one with which the record at the radius is kept with probability 1, and it has the largest
expected size that can be reached. The noise must never be fitted to the real norms: give a public histogram of them, or
one released by `private_norm_histogram`, whose cost adds to the total.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from ..core.influence import Influence
from ..core.mechanism import Mechanism
from ..errors import Infeasible, InvalidInput, NoTheorem
from ..numerics.roots import NumericalFailure, least_passing
from ..validation import positive
from .norm_histogram import NormHistogram
from .privacy_constrained import privacy_constrained
from .profiles import GaussianProfile, LinearProfile
from .rule import Rule

EVALUATIONS = 10  # of all weights, at most
_PRECISE = 1e-4  # the size is reached to this accuracy, from below
_EDGE = 1.0 + 1e-12  # noise that is enough at the radius in spite of rounding


@dataclass(frozen=True, slots=True)
class SizedNoise:
    """A mechanism, the rule made for it, and the expected size they have for the histogram."""

    mechanism: Mechanism
    rule: Rule
    noise: float
    expected_size: float
    evaluations: int


def size_for_noise(
    mechanism: Mechanism,
    histogram: NormHistogram,
    *,
    epsilon: float,
    delta: float = 0.0,
    radius: float | None = None,
    max_weight: float | None = None,
) -> float:
    """The expected size of the privacy-constrained sample for a mechanism (a Joint for several releases).

    `histogram` has the public norms, `radius` what records are clipped to, `max_weight` caps the weights. Every record
    loses at most `epsilon` (at `delta`), whatever the histogram: only the size depends on it.

    >>> from privamp import Laplace
    >>> round(size_for_noise(Laplace(10.0), NormHistogram([1.0, 4.0], [900, 100]), epsilon=1.0, radius=4.0), 3)
    37.215
    """
    rule = _rule(mechanism, epsilon, delta, _radius(histogram, radius), max_weight)
    return rule.expected_size(*histogram.arrays())


def noise_for_size(
    mechanism: Callable[[float], Mechanism],
    histogram: NormHistogram,
    *,
    size: float,
    epsilon: float,
    delta: float = 0.0,
    radius: float | None = None,
    max_weight: float | None = None,
) -> SizedNoise:
    """The least noise with which the privacy-constrained sample has an expected size of at most `size`.

    `mechanism` makes the mechanism from its noise scale, such that twice the noise halves the influence. At most ten
    evaluations of the weights of all bins.

    `histogram` has the public (or privately released) norms, `radius` the norm that records are clipped to (that of the
    last bin when None), and `max_weight` caps the weights. Every record loses at most epsilon (at `delta`), whatever
    the histogram: only the size depends on it.

    >>> from privamp import Laplace
    >>> found = noise_for_size(Laplace, NormHistogram([1.0, 4.0], [900, 100]), size=50, epsilon=1.0, radius=4.0)
    >>> f"{found.noise:.2f} {found.expected_size:.1f}"
    '8.17 50.0'
    """
    positive(size=size)
    end = _radius(histogram, radius)
    unit = _influence(mechanism(1.0))
    if abs(float(_influence(mechanism(2.0)).at(end)) / float(unit.at(end)) - 0.5) > 1e-9:
        raise InvalidInput(
            "mechanism must be a function of the noise scale whose influence halves when the scale doubles"
        )
    limit = _limit(mechanism(1.0), epsilon, delta, max_weight)
    least = float(unit.at(end)) / limit * _EDGE
    search = _Search(mechanism, histogram, epsilon, delta, end, max_weight)
    largest = search.at(least)
    if size > largest.expected_size * (1.0 + 1e-9):
        raise Infeasible(
            f"an expected size of {size:g} cannot be reached at epsilon {epsilon:g}: with the least noise that a "
            f"record at the radius allows, {least:g}, it is {largest.expected_size:g}; use a smaller size, or a "
            "larger epsilon"
        )
    if size >= largest.expected_size * (1.0 - _PRECISE):
        return largest
    return search.down_to(size, least, largest)


def noise_for_guarantee(
    mechanism: Callable[[float], Mechanism],
    rule: Callable[[Mechanism], Rule],
    *,
    epsilon: float,
    delta: float = 0.0,
    within: tuple[float, float] = (1e-9, 1e9),
) -> Mechanism:
    """The least noise with which a rule of fixed size (uniform, coreset, variance-optimal) has the guarantee.

    `mechanism` makes the mechanism from its noise, and `rule` the rule for a mechanism; `within` brackets the noise.
    The returned mechanism keeps (epsilon, delta) for every record; slightly less noise would not. Raises when the
    largest noise of the bracket does not suffice.

    >>> from privamp import Laplace, uniform
    >>> make = lambda noise: uniform(LinearProfile.of(noise), rate=0.1, radius=4.0)
    >>> f"{noise_for_guarantee(Laplace, make, epsilon=1.0).scale:.3f}"
    '13.791'
    """
    positive(epsilon=epsilon)

    def excess(noise: float) -> float:
        guarantee = rule(mechanism(noise)).guarantee()
        if delta == 0.0:
            return guarantee.epsilon() / epsilon - 1.0
        return float(guarantee.upper.log_delta(epsilon)) - math.log(delta)

    try:
        return mechanism(least_passing(excess, *within, relative=1e-10))
    except NumericalFailure:
        raise Infeasible(
            f"no noise from {within[0]:g} to {within[1]:g} reaches epsilon {epsilon:g}; raise it or widen `within`"
        ) from None


class _Search:
    """Secant steps in (log noise, log size), kept inside a bracket."""

    def __init__(
        self,
        mechanism: Callable[[float], Mechanism],
        histogram: NormHistogram,
        epsilon: float,
        delta: float,
        radius: float,
        max_weight: float | None,
    ) -> None:
        self.make, self.histogram, self.evaluations = mechanism, histogram, 0
        self.target = (epsilon, delta, radius, max_weight)

    def at(self, noise: float) -> SizedNoise:
        self.evaluations += 1
        mechanism = self.make(noise)
        rule = _rule(mechanism, *self.target)
        size = rule.expected_size(*self.histogram.arrays())
        return SizedNoise(mechanism, rule, noise, size, self.evaluations)

    def down_to(self, size: float, least: float, largest: SizedNoise) -> SizedNoise:
        """From too large a sample at the least noise down to at most the target size."""
        goal = math.log(size) - 0.5 * _PRECISE
        low, over = math.log(least), math.log(largest.expected_size) - goal
        high, under, best = math.inf, -math.inf, None
        x = low + over  # the size falls about as fast as the noise grows
        while self.evaluations < EVALUATIONS:
            found = self.at(math.exp(x))
            gap = math.log(found.expected_size) - goal
            before = low, over
            if gap <= 0.5 * _PRECISE:
                best = found if best is None or found.noise < best.noise else best
                if gap >= -0.5 * _PRECISE:
                    return best
                high, under = x, gap
            else:
                low, over = x, gap
            x = _next(low, over, high, under, before, (x, gap))
        if best is None:
            raise Infeasible(
                f"an expected size of {size:g} needs more noise than was found in {EVALUATIONS} steps; records "
                "without influence are kept with probability at least 1/max_weight: raise max_weight, or use a "
                "larger size"
            )
        return best


def _next(
    low: float, over: float, high: float, under: float, before: tuple[float, float], now: tuple[float, float]
) -> float:
    """A secant step through the last two points, or the chord of the bracket, or outwards."""
    slope = (now[1] - before[1]) / (now[0] - before[0]) if now[0] != before[0] else -1.0
    step = now[0] - now[1] / slope if slope < 0 else math.nan
    if math.isinf(high):
        return step if step > low and step < low + 30.0 else low + 4.0
    if low < step < high:
        return step
    chord = low + (high - low) * over / (over - under)
    return chord if low < chord < high else 0.5 * (low + high)


def _rule(mechanism: Mechanism, epsilon: float, delta: float, radius: float, max_weight: float | None) -> Rule:
    if _influence(mechanism).kind == "gaussian":
        return privacy_constrained(GaussianProfile.of(mechanism), epsilon, delta, radius=radius, max_weight=max_weight)
    if delta:
        raise InvalidInput(f"delta must be 0 for a pure mechanism, got {delta!r} instead")
    return privacy_constrained(LinearProfile.of(mechanism), epsilon, radius=radius, max_weight=max_weight)


def _limit(mechanism: Mechanism, epsilon: float, delta: float, max_weight: float | None) -> float:
    """The largest influence of a record that is kept with probability 1."""
    if _influence(mechanism).kind == "pure":
        positive(epsilon=epsilon)
        return float(epsilon)
    rule = privacy_constrained(GaussianProfile.of(mechanism), epsilon, delta, max_weight=max_weight)
    return rule.largest_influence


def _influence(mechanism: Mechanism) -> Influence:
    if mechanism.influence is None:
        raise NoTheorem(
            f"{type(mechanism).__name__} does not state how far a record moves it, so no rule can be made for it; "
            "use Laplace, Gaussian or NormNoise"
        )
    return mechanism.influence


def _radius(histogram: NormHistogram, radius: float | None) -> float:
    end = histogram.norms[-1] if radius is None else float(radius)
    if end < histogram.norms[-1]:
        raise InvalidInput(f"radius must not be below the histogram's largest norm, got {radius!r} instead")
    return end
