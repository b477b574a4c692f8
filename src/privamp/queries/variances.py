"""The variance of a column, from its noisy sums of powers.

With numbers t from -1 to 1 around the middle of the bounds, their number N and their sums of powers S_1, S_2, the
variance is Q/N, Q = sum (t - m)^2 = S_2 - 2 m S_1 + m^2 N at m = S_1/N. Its interval is Fieller's (1954): all v for
which Q - v N = S_2 - 2 m S_1 + (m^2 - v) N is as near to zero as the level says. The noise of that is known. The sample
gives it the variance spread * sum ((t - m)^2 - v)^2, for which the sums of third and fourth powers are released, too.
That m is off by an error e makes Q/N too small by e^2, whose mean is added.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from ..numerics.half_width import half_widths
from ..numerics.log_domain import FloatArray
from .answers import Answer, end_of
from .public_facts import PublicFacts
from .questions import AboutNumbers, Asking, Level

_SHARES = (0.5, 1.0)  # of the entries of t and t^2; near the best for means off the middle by 0.3
_COUNT = 0.4
_HIGHER = (0.1, 0.1)  # of t^3 and t^4, for the sampling error
_TRIED, _FAR = 256, 8.0  # variances that are tried, everywhere and so many standard errors around the estimate
_WIDE = 0.4  # standard errors of the fourth powers that are added, as for means


@dataclass(frozen=True, slots=True, kw_only=True)
class Variance(AboutNumbers):
    """The variance of a column: the mean squared distance from its mean."""

    what: ClassVar[str] = "variance"

    def shares(self, asking: Asking) -> tuple[float, ...]:
        """Of the entries: t, t^2, the count where it is not public, and in a sample t^3, t^4."""
        known = asking.is_fixed and self.groups is None and self.missing is not None
        return (*_SHARES, *(() if known else (_COUNT,)), *(_HIGHER if asking.is_sampled else ()))

    def cells(self, asking: Asking) -> tuple[tuple[int, int], ...]:
        """One cell of this many numbers."""
        return ((1, len(self.shares(asking))),)

    def reach(self, asking: Asking) -> float:
        """The largest norm of a row."""
        return asking.norm(*self.shares(asking))

    def need(self, asking: Asking) -> float:
        """Where the mean is 0.3 of half the width off the middle."""
        return math.hypot(1.0 / _SHARES[1], 0.6 / _SHARES[0], 0.1 / _COUNT)

    def levels(self, batch: pa.RecordBatch, asking: Asking) -> Iterator[Level]:
        """A row for every record."""
        t, cell = self.around_middle(batch)
        shares = self.shares(asking)
        powers = [t, t * t]
        if len(shares) in (3, 5):
            powers.append(np.ones(len(t)))
        if asking.is_sampled:
            powers += [t**3, t**4]
        yield np.column_stack([share * power for share, power in zip(shares, powers, strict=True)]), cell

    def answer(self, totals: Sequence[FloatArray], told: PublicFacts, asking: Asking) -> list[Answer]:
        """One answer for the group."""
        shares = self.shares(asking)
        found = [float(x) / share for x, share in zip(totals[0][0], shares, strict=True)]
        has_count = len(shares) in (3, 5)
        higher = (found[-2], found[-1]) if asking.is_sampled else (0.0, 0.0)
        records = found[2] if has_count else float(asking.size or 0)
        count_noise = told.noise / _COUNT if has_count else 0.0
        law = Spread(found[0], found[1], records, *higher, told, count_noise, self.half**2)
        return [law.answer]


@dataclass(frozen=True, slots=True)
class Spread:
    """The law of a variance, in units of `unit`; it lies between 0 and 1 of them."""

    first: float
    second: float
    records: float
    third: float
    fourth: float
    told: PublicFacts
    count_noise: float
    unit: float

    @property
    def _known(self) -> float:
        """The number of records, no less than its error: fewer cannot be distinguished from none."""
        return max(self.records, 2.0 * self.count_noise, 1.0)

    @property
    def _mean(self) -> float:
        return min(max(self.first / self._known, -1.0), 1.0)

    @property
    def value(self) -> float:
        """Of the numbers themselves."""
        return min(max(self._ratio() / self._known + self._bias(), 0.0), 1.0) * self.unit

    def _ratio(self) -> float:
        m = self._mean
        return self.second - 2.0 * m * self.first + m * m * self.records

    def _bias(self) -> float:
        """The mean square of the error of the mean."""
        m, n = self._mean, self._known
        noise = math.hypot(self.told.noise / _SHARES[0], m * self.count_noise)
        return min((noise * noise + self.told.spread * min(max(self._ratio(), 0.0), n)) / n**2, 1.0)

    def _noise(self, v: FloatArray) -> FloatArray:
        m, one = self._mean, self.told.noise
        fixed = math.hypot(one / _SHARES[1], 2.0 * m * one / _SHARES[0])
        return np.hypot(fixed, (m * m - v) * self.count_noise)

    def _sampling(self, v: FloatArray) -> FloatArray:
        """The variance of Q - v N by the sample."""
        told, m, n = self.told, self._mean, self._known
        if not told.spread:
            return np.zeros(len(v))
        powers = (self.fourth, -4.0 * m * self.third, 6.0 * m * m * self.second, -4.0 * m**3 * self.first, m**4 * n)
        blur = told.noise * math.hypot(1.0 / _HIGHER[1], 4.0 * m / _HIGHER[0])
        squares = min(max(self._ratio(), 0.0), n)
        far = (1.0 + abs(m)) ** 2
        fourth = min(max(math.fsum(powers), squares * squares / n) + _WIDE * blur, far * max(squares, told.noise))
        around = np.maximum(fourth - 2.0 * v * squares + v * v * n, 0.0)
        shared = (squares - v * n) ** 2 / n if told.size is not None else 0.0
        return told.spread * np.maximum(around - shared, 0.0) + told.spread_of_size * shared

    def interval(self, level: float) -> tuple[float, float]:
        """Clipped to the possible range of a variance within the bounds; the whole range if there may be no records."""
        if self.count_noise and self.records < 2.0 * self.count_noise:
            return 0.0, self.unit
        near = self.value / self.unit + self.standard_error() / self.unit * np.linspace(-_FAR, _FAR, _TRIED + 1)
        v = np.unique(np.clip(np.concatenate([near, np.linspace(0.0, 1.0, _TRIED + 1)]), 0.0, 1.0))
        width = half_widths(np.sqrt(self._sampling(v)), self._noise(v), self.told.kind, level)
        room = width - np.abs(self._ratio() - (v - self._bias()) * self.records)
        inside = np.flatnonzero(room >= 0.0)
        if not inside.size:
            return self.value, self.value
        low, high = end_of(v, room, int(inside[0]), -1), end_of(v, room, int(inside[-1]), 1)
        return low * self.unit, high * self.unit

    def standard_error(self) -> float:
        """Noise and sampling together."""
        return math.hypot(self.answer.noise, self.answer.sampling)

    @property
    def answer(self) -> Answer:
        """The variance."""
        v = np.array([self.value / self.unit])
        noise, sampling = float(self._noise(v)[0]), math.sqrt(float(self._sampling(v)[0]))
        each = self.unit / self._known
        return Answer(self.value, noise * each, sampling * each, self)
