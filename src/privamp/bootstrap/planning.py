"""The plan of a bootstrap, from public facts alone: sizes, number of resamples, noise, and the guarantee.

Every released statistic is used for the point estimate AND the spread, so the budget is not split between them; the
free choices are the resample size m and the number of groups B. With q = m/n and k = B q,

    variance of the estimate = noise(q, B) + (1 + 1/k) * sampling variance.

noise(q, B) depends on q, B and the budget, not on n or the data; it falls as q grows, towards one release from all the
data; but the more is extrapolated (large k), the less the spread of the groups says about the sampling variance, and
the wider the interval must be. B = 80 with k = 4 (q = 1/20) is within a few per cent of the shortest interval for noisy
and for plentiful data alike: docs/bootstrap.md has the table.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, TypedDict, Unpack

from ..accounting.composition import compose
from ..amplification import amplify
from ..core.guarantee import Guarantee
from ..core.neighbors import Neighbors
from ..errors import InvalidInput
from ..validation import in_range, one_of, options_of, positive, whole
from .noise_needed import strength
from .procedure import METHODS, Procedure
from .spread import Spread

GROUPS, RATIO, FRACTION = 80, 4.0, 1.0 / 20.0
EACH = 2  # resamples of one little subset


@dataclass(frozen=True, slots=True)
class Plan:
    """A bootstrap before it is run. Nothing here depends on the data."""

    procedure: Procedure
    epsilon: float
    delta: float
    confidence: float
    strength: float  # sensitivity/sigma of every released statistic
    guarantee: Guarantee = field(repr=False, compare=False)

    def plot(self) -> Any:
        """A matplotlib figure of the guarantee's delta(epsilon), from both sides (pip install 'privamp[plots]')."""
        return self.guarantee.plot()

    def _repr_html_(self) -> str:
        """The plan as notebooks show it."""
        text: str = import_module("..report.shown_plans", __package__).bootstrap_fragment(self)
        return text

    @property
    def spread(self) -> Spread:
        """The rule that reads the group averages."""
        return Spread(self.procedure.groups, self.procedure.ratio, self.confidence)

    @property
    def resamples(self) -> int:
        """How many noisy statistics are released in all."""
        return self.procedure.groups * self.procedure.each

    def certified(self, neighbors: Neighbors | None = None) -> Guarantee:
        """The guarantee of all releases together, under replace-one or another relation that the designs cover."""
        if neighbors in (None, self.guarantee.neighbors):
            return self.guarantee
        noise = self.procedure.mechanism(1.0, self.strength)
        return compose(amplify(noise, self.procedure.design, neighbors), self.procedure.groups)

    def sigma(self, sensitivity: float) -> float:
        """The noise of a statistic with this sensitivity per entry of a resample, rounded up."""
        return sensitivity / self.strength * (1.0 + 1e-9)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """The public choices of a bootstrap; each is also a keyword of `plan` and of `run`."""

    method: str = "subsampling"  # or "m-out-of-n", "double", "little", "direct"
    epsilon: float = 1.0
    delta: float = 1e-6
    resamples: int | Sequence[int] | None = None  # their number, or (subsets, resamples of each) for "little"
    size: int | Sequence[int] | None = None  # of a resample, or (first stage, resample) for "double" and "little"
    confidence: float = 0.95

    def __post_init__(self) -> None:
        one_of(METHODS, method=self.method)
        positive(epsilon=self.epsilon)
        in_range(0, 1, open_ends=True, delta=self.delta, confidence=self.confidence)


class PlanKeywords(TypedDict, total=False):
    """The fields of `PlanOptions`, as keywords of a call."""

    method: str
    epsilon: float
    delta: float
    resamples: int | Sequence[int] | None
    size: int | Sequence[int] | None
    confidence: float


def plan(
    population: int, *, options: PlanOptions | None = None, least: int = 1, **chosen: Unpack[PlanKeywords]
) -> Plan:
    """Choose what is not given for this many records, and certify it.

    Options are keywords, or `PlanOptions` with the same names. `least` is the smallest resample that the
    statistic can be computed on.
    """
    asked = options_of(PlanOptions, options, chosen)
    whole(2, population=population)
    method, epsilon, delta = asked.method, float(asked.epsilon), float(asked.delta)
    groups, each = _counts(method, asked.resamples)
    sizes = _sizes(method, population, groups, asked.size, least)
    procedure = Procedure(method, population, sizes, groups, each)
    if min(procedure.sizes) < least:
        raise InvalidInput(
            f"this statistic needs resamples of at least {least} entries, and first stages too, got "
            f"{min(procedure.sizes)} instead"
        )
    theta, guarantee = strength(procedure, epsilon, delta)
    return Plan(procedure, epsilon, delta, float(asked.confidence), theta, guarantee)


def _counts(method: str, resamples: Any) -> tuple[int, int]:
    """(groups, resamples of each)."""
    each, usual = (EACH if method == "little" else 1), (1 if method == "direct" else GROUPS)
    given = _numbers(resamples, "resamples")
    if len(given) > 2:
        raise InvalidInput(f"resamples must be one number, or (subsets, resamples of each), got {resamples!r} instead")
    if not given:
        return usual, each
    return given[0], given[1] if len(given) == 2 else each


def _sizes(method: str, n: int, groups: int, size: Any, least: int) -> tuple[int, ...]:
    given = _numbers(size, "size")
    fraction = min(FRACTION, RATIO / max(groups, 1))
    last = max(math.ceil(fraction * n), least, 1)
    chosen = {
        "subsampling": (last,),
        "m-out-of-n": (last,),
        "double": (n, last),
        "little": (min(2 * last, n - 1), last),
        "direct": (n,),
    }
    if len(given) == 1 and len(chosen[method]) == 2:
        return (chosen[method][0], given[0])
    return given or chosen[method]


def _numbers(given: Any, what: str) -> tuple[int, ...]:
    """Whole numbers: none, one, or several."""
    entries = () if given is None else given if isinstance(given, (tuple, list)) else (given,)
    for entry in entries:
        if isinstance(entry, bool) or not hasattr(entry, "__index__"):
            raise InvalidInput(f"{what} must be whole numbers, got {given!r} instead")
    return tuple(int(entry) for entry in entries)
