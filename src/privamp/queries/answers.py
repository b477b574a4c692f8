"""From noisy totals to answers: values, both errors, and intervals that cover.

Totals are scaled to the population. A total of numbers z over a sample has a variance of at most `spread` times the
population's sum of z^2 (`Design.spread`), and the noise is known. A mean is a ratio S/N of two such totals. Its
interval is Fieller's (1954): all m for which S - m N, whose own errors are those of one total, is as near to zero as
the level says. It needs no large N, and lies within the bounds. A quantile's is Woodruff's (1952): the noisy
distribution function plus and minus its errors, inverted.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..numerics.half_width import half_width
from ..numerics.log_domain import FloatArray
from ..numerics.roots import halved

_TRIED = 17  # points at which the width of an interval is known
_FINER = 256  # points between two of them at which its ends are looked for


@dataclass(frozen=True, slots=True)
class Told:
    """What is public about one question's totals."""

    noise: float  # standard error of one entry, in units of what a record adds, scaled to the population
    kind: str  # of the noise: laplace or gaussian
    spread: float  # of the design; 0 where everybody is asked
    size: int | None = None  # the number of records, where the design makes it public

    @property
    def source(self) -> str:
        """Where the sampling error comes from."""
        return "private estimate" if self.spread else "no sampling"


@dataclass(frozen=True, slots=True)
class Answer:
    """One number with its errors; `law` where its interval is more than a normal error plus noise."""

    value: float
    noise: float
    sampling: float
    law: Any = None

    def interval(self, level: float, kind: str) -> tuple[float, float]:
        """The two ends."""
        if self.law is not None:
            low, high = self.law.interval(level)
            return float(low), float(high)
        half = half_width(self.sampling, self.noise, kind, level)
        return self.value - half, self.value + half


@dataclass(frozen=True, slots=True)
class Several:
    """The law of several answers, each with an interval of its own; a `Release` takes it as its law."""

    answers: tuple[Answer, ...]
    kind: str

    def interval(self, level: float) -> tuple[Any, Any]:
        """All lower ends and all upper ends."""
        ends = np.array([answer.interval(level, self.kind) for answer in self.answers])
        return ends[:, 0], ends[:, 1]

    def standard_error(self) -> FloatArray:
        """Noise and sampling together."""
        return np.array([math.hypot(answer.noise, answer.sampling) for answer in self.answers])


def count_of(total: float, told: Told) -> Answer:
    """A number of records."""
    if told.size is not None:  # a fixed number is drawn: only who they are varies
        inside = min(max(total, 0.0), told.size)
        return Answer(total, told.noise, math.sqrt(told.spread * inside * (1.0 - inside / told.size)))
    return Answer(total, told.noise, math.sqrt(told.spread * max(total, 0.0)))


def sum_of(total: float, squares: float, reach: float, told: Told) -> Answer:
    """A sum of values up to `reach`; `squares` estimates the sum of their squares in units of reach^2."""
    return Answer(total * reach, told.noise * reach, math.sqrt(told.spread * squares) * reach)


@dataclass(frozen=True, slots=True)
class Ratio:
    """The law of S/N for numbers from -1 to 1, told in the unit of the values: middle + half S/N."""

    total: float
    records: float
    squares: float  # estimates the sum of squares
    count_share: float  # what a record adds to the count's entry; 0 where the number of records is public
    middle: float
    half: float
    told: Told

    def errors(self, m: float) -> tuple[float, float]:
        """Noise and sampling error of S - m N."""
        ratio = m / self.count_share if self.count_share else 0.0
        around = max(self.squares - 2.0 * m * self.total + m * m * max(self.records, 0.0), 0.0)
        return self.told.noise * math.hypot(1.0, ratio), math.sqrt(self.told.spread * around)

    @property
    def answer(self) -> Answer:
        """The mean, cut to its bounds, with the errors of a ratio."""
        records = max(self.records, 1.0)
        m = min(max(self.total / records, -1.0), 1.0)
        noise, sampling = (self.half * error / records for error in self.errors(m))
        return Answer(self.middle + self.half * m, noise, sampling, self)

    def interval(self, level: float) -> tuple[float, float]:
        """Fieller's interval, cut to the bounds."""
        at = np.linspace(-1.0, 1.0, _TRIED)
        wide = np.array([self._half_width(m, level) for m in at])
        best = min(max(self.total / max(self.records, 1.0), -1.0), 1.0)
        tried = np.unique(np.append(np.linspace(-1.0, 1.0, _FINER * (_TRIED - 1) + 1), best))

        def is_in(m: Any) -> Any:
            return np.abs(self.total - m * self.records) <= np.interp(m, at, wide)

        inside = np.flatnonzero(is_in(tried))
        if not inside.size:  # noise has carried the ratio beyond the bounds
            return (self.middle + self.half * best,) * 2
        low, high = int(inside[0]), int(inside[-1])
        least = _edge(is_in, tried[max(low - 1, 0)], tried[low])
        most = _edge(lambda m: not is_in(m), tried[high], tried[min(high + 1, len(tried) - 1)])
        return self.middle + self.half * least[0], self.middle + self.half * most[1]

    def _half_width(self, m: float, level: float) -> float:
        noise, sampling = self.errors(m)
        return half_width(sampling, noise, self.told.kind, level)

    def standard_error(self) -> float:
        """Noise and sampling together."""
        return math.hypot(self.answer.noise, self.answer.sampling)


def _edge(is_above: Callable[[float], Any], low: float, high: float) -> tuple[float, float]:
    """The last doubles around the end of an interval; it may also end at the bounds."""
    if low == high or is_above(low) == is_above(high):
        return low, high
    return halved(lambda m: bool(is_above(m)), float(low), float(high))


@dataclass(frozen=True, slots=True)
class Quantile:
    """The law of one quantile: a noisy distribution function on a public grid of edges, inverted."""

    below: FloatArray  # noisy numbers of records below each edge
    first: FloatArray  # how many noisy counts of the first level each of them is made of: those also add up to all
    deeper: FloatArray  # and how many of the others
    edges: FloatArray
    probability: float
    told: Told

    @property
    def records(self) -> float:
        """How many there are."""
        return max(float(self.below[-1]), 1.0) if self.told.size is None else float(self.told.size)

    def errors(self) -> tuple[float, float]:
        """Noise and sampling error of the number of records below the quantile, minus its share of all."""
        p, at = self.probability, int(np.searchsorted(self.edges, float(self.value)))
        first, deeper = float(self.first[at]), float(self.deeper[at])
        if self.told.size is None:  # all records are the sum of the first level
            first = first * (1.0 - p) ** 2 + (float(self.first[-1]) - first) * p * p
        own = self.told.noise * math.sqrt(first + deeper)
        return own, math.sqrt(self.told.spread * self.records * p * (1.0 - p))

    @property
    def value(self) -> float:
        """Where the distribution function reaches the probability."""
        return self._inverse(self.probability * self.records)

    @property
    def answer(self) -> Answer:
        """The quantile; its errors are those of the distribution function over its slope."""
        noise, sampling = self.errors()
        both = math.hypot(noise, sampling)
        low, high = (self._inverse(self.probability * self.records + sign * both) for sign in (-1.0, 1.0))
        slope = (high - low) / (2.0 * both) if both else 0.0
        return Answer(self.value, noise * slope, sampling * slope, self)

    def interval(self, level: float) -> tuple[float, float]:
        """Woodruff's interval; it ends at edges of the grid, outward."""
        noise, sampling = self.errors()
        half = half_width(sampling, noise, "gaussian", level)  # many noisy counts together are nearly normal
        wanted = self.probability * self.records
        rising, falling = _monotone(self.below)
        smooth = 0.5 * (rising + falling)
        low = int(np.searchsorted(smooth, wanted - half, side="left"))
        high = int(np.searchsorted(smooth, wanted + half, side="right"))
        return float(self.edges[max(low - 1, 0)]), float(self.edges[min(high, len(self.edges) - 1)])

    def _inverse(self, wanted: float) -> float:
        rising, falling = _monotone(self.below)
        return float(np.interp(wanted, 0.5 * (rising + falling), self.edges))

    def standard_error(self) -> float:
        """Noise and sampling together."""
        answer = self.answer
        return math.hypot(answer.noise, answer.sampling)


def _monotone(below: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The least rising function above, and the largest below."""
    return np.maximum.accumulate(below), np.minimum.accumulate(below[::-1])[::-1]


def release_parts(answers: Sequence[Answer], kind: str, *, is_one: bool) -> tuple[Any, Any, Any, Any]:
    """Value, noise error, sampling error and law, as a `Release` takes them: arrays, or numbers for the only answer."""
    if is_one:
        [only] = answers
        return only.value, only.noise, only.sampling, only.law or kind
    value, noise, sampling = (np.array([getattr(a, what) for a in answers]) for what in ("value", "noise", "sampling"))
    return value, noise, sampling, Several(tuple(answers), kind)
