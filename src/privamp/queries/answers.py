"""From noisy totals to answers: values, both errors, and intervals that cover.

Totals are scaled to the population. A total of numbers z over a sample has a variance of at most `spread` times the
population's sum of z^2 (`Design.spread`), and the noise is known. A mean is a ratio S/N of two such totals. Its
interval is Fieller's (1954): all m for which S - m N, whose own errors are those of one total, is as close to zero as
the level requires. It needs no large N, and lies within the bounds.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri

from ..numerics.half_width import half_width, half_widths
from ..numerics.log_domain import FloatArray
from .drawn_numbers import NORMAL, chance_below, cumulative, panjer
from .public_facts import PublicFacts

_TRIED = 33  # points at which the width of an interval is known
_FINER = 64  # points between two of them at which its ends are looked for
_WIDE = 0.4  # standard errors of the squares: with this, intervals reach their coverage (benchmarks/query_coverage.py)
_SUMS = 64  # sums that are tried to each side
_NOTHING = 3.0  # standard errors of the noise: a sum of no more may be that of an empty sample


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


@dataclass(frozen=True, slots=True)
class Counted:
    """The law of a number of records: all sizes of the group that do not make the noisy count too unlikely."""

    total: float
    told: PublicFacts

    @property
    def answer(self) -> Answer:
        """The count; its sampling error is no less than that of a group of which half a record is drawn."""
        told, most = self.told, math.inf if self.told.size is None else self.told.size
        about = min(max(self.total, 0.5 * told.weight), most)
        return Answer(self.total, told.noise, told.error_of_count(about), self)

    def interval(self, level: float) -> tuple[float, float]:
        """The ends have at most half of the remaining chance beyond them; counts are at least 0, at most all."""
        told, beyond = self.told, 0.5 * (1.0 - level)
        most = math.inf if told.size is None else told.size
        if not told.spread:
            half = half_width(0.0, told.noise, told.kind, level)
            return min(max(self.total - half, 0.0), most), min(max(self.total + half, 0.0), most)

        need, wide = float(ndtri(beyond)), math.hypot(told.noise, self.answer.sampling)

        def not_too_small(records: int) -> float:
            return float(ndtri(1.0 - chance_below(self.total, records, told))) - need

        def too_large(records: int) -> float:
            return need - float(ndtri(chance_below(self.total, records, told)))

        low = _first(not_too_small, self.total + need * wide, wide, most)
        high = _first(too_large, self.total - need * wide, wide, most + 1) - 1
        return float(low), float(max(high, low))

    def standard_error(self) -> float:
        """Noise and sampling together."""
        return math.hypot(self.answer.noise, self.answer.sampling)


def _first(excess: Callable[[int], float], near: float, wide: float, most: float) -> int:
    """The least whole number from 0 to `most`, about `near`, from which on the excess is above 0; or `most`."""
    n, step = int(min(max(near, 0.0), most)), max(int(wide / 4.0), 1)
    low, high, under, over = -1, most, -math.inf, math.inf
    while n < most:  # away from the guess, in growing steps, until it lies between two numbers
        found = excess(n)
        if found > 0.0:
            high, over = n, found
        else:
            low, under = n, found
        if high - low <= step or (low >= 0 and high < most):
            break
        n, step = (max(n - step, 0) if found > 0.0 else int(min(n + step, most))), 2 * step
    turn = 0
    while high - low > 1:
        share = under / (under - over) if math.isfinite(under) and math.isfinite(over) and turn % 3 < 2 else 0.5
        n = int(min(max(low + share * (min(high, low + 2**53) - low), low + 1), high - 1))
        found, turn = excess(n), turn + 1
        low, under, high, over = (low, under, n, found) if found > 0.0 else (n, found, high, over)
    return int(high)


def count_of(total: float, told: PublicFacts) -> Answer:
    """A number of records."""
    return Counted(total, told).answer


@dataclass(frozen=True, slots=True)
class Summed:
    """The law of a sum of numbers from -1 to 1, in units of `reach`: all sums that are not too far from the noisy one.

    Its variance is that of the hypothesis: numbers from 0 to 1 with the sum s have squares that sum to at most s. They
    are taken from the estimate only where the noisy sum shows that something was drawn: an empty sample has no
    information about the squares of others, and then they are as large as possible.
    """

    total: float
    squares: float  # estimates the sum of squares
    reach: float
    ends: tuple[float, float]  # between which the sum must lie; from 0 on, no number is negative
    told: PublicFacts
    blur: float = 0.0  # the standard error of the squares

    @property
    def answer(self) -> Answer:
        """The sum."""
        sampling = math.sqrt(float(self._variance(np.array(self.total))))
        return Answer(self.total * self.reach, self.told.noise * self.reach, sampling * self.reach, self)

    def interval(self, level: float) -> tuple[float, float]:
        """Clipped to the ends."""
        told, total = self.told, self.total
        steps = np.linspace(-1.0, 1.0, 2 * _SUMS + 1)
        tried = np.clip(total + self._farthest(level) * steps * np.abs(steps), *self.ends)
        errors = np.sqrt(self._variance(tried))
        room = half_widths(errors, np.full(len(tried), told.noise), told.kind, level) - np.abs(tried - total)
        inside = np.flatnonzero(room >= 0.0)
        if not inside.size:  # noise has carried the sum beyond its ends
            return (min(max(total, self.ends[0]), self.ends[1]) * self.reach,) * 2
        low, high = end_of(tried, room, int(inside[0]), -1), end_of(tried, room, int(inside[-1]), 1)
        return low * self.reach, high * self.reach

    def _variance(self, total: FloatArray) -> FloatArray:
        """Where this is the sum: of the squares, or, in a public number of records, of those around their mean."""
        told, n = self.told, math.inf if self.told.size is None else float(self.told.size)
        shared, squares = total * total / n, np.full(np.shape(total), self.squares)
        most = np.maximum(np.abs(total) - shared, 0.0) if self._is_of_one_sign else np.full(np.shape(total), math.inf)
        if self._is_of_one_sign and told.size is None:  # with more or fewer records, squares grow as the sum does
            squares = squares * np.abs(total) / max(self._drawn, told.noise)
        around = np.maximum(squares - 2.0 * total * self.total / n + shared, 0.0) + _WIDE * self.blur
        around = np.minimum(around, most) if self._drawn else most
        return np.asarray(told.spread * around + told.spread_of_size * shared)

    @property
    def _is_of_one_sign(self) -> bool:
        return self.ends[0] >= 0.0 or self.ends[1] <= 0.0

    @property
    def _drawn(self) -> float:
        """The least that the sum of those drawn is in size, but for rare noise; 0 where it may be nothing."""
        if not self._is_of_one_sign:
            return math.inf
        return max((self.total if self.ends[0] >= 0.0 else -self.total) - _NOTHING * self.told.noise, 0.0)

    def _farthest(self, level: float) -> float:
        """From the noisy sum: with all the variance that squares and size may have, and what it has around others."""
        told = self.told
        most = told.spread * (max(self.squares, 0.0) + _WIDE * self.blur) + told.spread_of_size * (told.size or 0)
        far = 3.0 * half_width(math.sqrt(most), told.noise, told.kind, level)
        if self._drawn:
            return far
        noise, one = (half_width(sd, of, told.kind, level) for sd, of in ((0.0, told.noise), (told.spread**0.5, 0.0)))
        near = abs(self.total) + noise  # and up to f farther away: f^2 = one^2 (near + f)
        return max(far, 1.5 * (noise + 0.5 * one * (one + math.sqrt(one * one + 4.0 * near))))

    def standard_error(self) -> float:
        """Noise and sampling together."""
        return math.hypot(self.answer.noise, self.answer.sampling)


@dataclass(frozen=True, slots=True)
class Ratio:
    """The law of S/N for numbers from -1 to 1, told in the unit of the values: middle + half S/N."""

    total: float
    records: float
    squares: float  # estimates the sum of squares
    count_share: float  # what a record adds to the count's entry; 0 where the number of records is public
    middle: float
    half: float
    told: PublicFacts
    blur: float = 0.0  # the standard error of the squares

    def errors(self, m: Any) -> tuple[Any, Any]:
        """Noise and sampling error of S - m N."""
        ratio = m / self.count_share if self.count_share else 0.0 * m
        noise, around = self.told.noise * np.hypot(1.0, ratio), self._around(m, m * ratio * self.told.noise)
        return noise, np.sqrt(self.told.spread * around)

    def _around(self, m: Any, blur: Any) -> Any:
        """The sum of (z - m)^2, raised by some of its noise, and with one record fewer than were drawn."""
        found = self.squares - 2.0 * m * self.total + m * m * max(self.records, 0.0)
        blur = np.sqrt(self.blur**2 + (2.0 * m * self.told.noise) ** 2 + blur**2) if self.blur else 0.0
        one = self.told.weight / max(self.records, self.told.weight)
        return (np.maximum(found, 0.0) + _WIDE * blur) * (1.0 + one)

    @property
    def answer(self) -> Answer:
        """The mean, clipped to its bounds, with the errors of a ratio."""
        records = max(self.records, 1.0)
        m = min(max(self.total / records, -1.0), 1.0)
        noise, sampling = (self.half * float(error) / records for error in self.errors(m))
        return Answer(self.middle + self.half * m, noise, sampling, self)

    def interval(self, level: float) -> tuple[float, float]:
        """Fieller's interval, clipped to the bounds."""
        at = np.linspace(-1.0, 1.0, _TRIED)
        noise, sampling = self.errors(at)
        wide = half_widths(sampling, noise, self.told.kind, level)
        best = min(max(self.total / max(self.records, 1.0), -1.0), 1.0)
        tried = np.unique(np.append(np.linspace(-1.0, 1.0, _FINER * (_TRIED - 1) + 1), best))
        room = np.interp(tried, at, wide) - np.abs(self.total - tried * self.records)  # straight between two of them
        inside = np.flatnonzero(room >= 0.0)
        if not inside.size:  # noise has carried the ratio beyond the bounds
            return (self.middle + self.half * best,) * 2
        ends = end_of(tried, room, int(inside[0]), -1), end_of(tried, room, int(inside[-1]), 1)
        return self.middle + self.half * ends[0], self.middle + self.half * ends[1]

    def standard_error(self) -> float:
        """Noise and sampling together."""
        return math.hypot(self.answer.noise, self.answer.sampling)


@dataclass(frozen=True, slots=True)
class Share(Ratio):
    """The law of a share: S/N for numbers that are -1 or 1, so that a hypothesis knows all about their law."""

    def interval(self, level: float) -> tuple[float, float]:
        """All shares with which S - m N is not too unlikely, by the law of how many of the rarer side are drawn."""
        if not self.told.spread:
            return Ratio.interval(self, level)
        need = float(ndtri(0.5 * (1.0 - level)))
        low = _root(lambda m: float(ndtri(1.0 - self._chance_below(m))) - need)
        high = _root(lambda m: need - float(ndtri(self._chance_below(m))))
        return self.middle + self.half * low, self.middle + self.half * max(low, high)

    def _chance_below(self, m: float) -> float:
        """Pr[S - m N at most what it is], where m is the mean."""
        told, share, records = self.told, 0.5 * (1.0 + m), max(self.records, 0.0)
        noise, at = float(self.errors(m)[0]), np.array([self.total - m * self.records])
        variance = told.spread * records * share * (1.0 - share)
        if variance == 0.0 or variance > NORMAL * told.weight**2:
            return float(cumulative(at, 2.0 * math.sqrt(variance), noise, told.kind)[0])
        rare = min(share, 1.0 - share) * records
        numbers, chances = panjer(rare / told.weight, variance / told.weight**2)
        away = 2.0 * (told.weight * numbers - rare)
        found = float(chances @ cumulative(at - away if share <= 0.5 else at + away, 0.0, noise, told.kind))
        return min(max(found, 0.0), 1.0)


def _root(excess: Callable[[float], float]) -> float:
    """Where a rising function of -1 to 1 passes 0, or the end."""
    if excess(-1.0) >= 0.0:
        return -1.0
    if excess(1.0) <= 0.0:
        return 1.0
    return float(brentq(lambda m: min(max(excess(m), -40.0), 40.0), -1.0, 1.0, xtol=1e-9, rtol=1e-9))


def end_of(tried: FloatArray, room: FloatArray, last: int, side: int) -> float:
    """Where the room beyond the last point inside ends, or the bounds."""
    out = last + side
    if not 0 <= out < len(tried):
        return float(tried[last])
    return float(tried[last] + (tried[out] - tried[last]) * room[last] / (room[last] - room[out]))


def release_parts(answers: Sequence[Answer], kind: str, *, is_one: bool) -> tuple[Any, Any, Any, Any]:
    """Value, noise error, sampling error and law, as a `Release` takes them: arrays, or numbers for the only answer."""
    if is_one:
        [only] = answers
        return only.value, only.noise, only.sampling, only.law or kind
    value, noise, sampling = (np.array([getattr(a, what) for a in answers]) for what in ("value", "noise", "sampling"))
    return value, noise, sampling, Several(tuple(answers), kind)
