"""Upper bounds on a convex curve, known point by point: between two points the chord is a bound as well.

The curve is delta as a function of alpha >= 1, which is convex for every pair of laws. Points come from a parameter:
`sampled(parameters)` gives log(alpha - 1) and the logarithm of a bound on delta there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from .log_domain import FloatArray, log1mexp, log_diff, log_expm1

OUTWARD = 1e-12  # relative, on alpha - 1: a value is claimed for a slightly larger alpha than it was computed at
_ROUNDS = 14  # that halve bad gaps
_ENDLESS = np.inf  # where the rounds are limit enough
Ints = NDArray[np.intp]

Sampled = Callable[[FloatArray], tuple[FloatArray, FloatArray]]  # parameter → (log(alpha - 1), log delta)


@dataclass(frozen=True, slots=True)
class Table:
    """Upper bounds log_v[i] at log(alpha - 1) = log_x[i], increasing, log_x[0] = -inf."""

    log_x: FloatArray
    log_v: FloatArray

    def at(self, log_x: FloatArray) -> FloatArray:
        """The chord in alpha; beyond the last point its value, because delta never grows with alpha."""
        i = np.clip(np.searchsorted(self.log_x, log_x, side="right") - 1, 0, self.log_x.size - 2)
        low, high = self.log_x[i], self.log_x[i + 1]
        with np.errstate(invalid="ignore"):
            log_w = np.where(i == 0, log_x - high, log_diff(np.maximum(log_x, low), low) - log_diff(high, low))
        log_w = np.minimum(np.where(np.isnan(log_w), -np.inf, log_w), 0.0)
        return np.logaddexp(self.log_v[i] + log1mexp(log_w), self.log_v[i + 1] + log_w)

    def log_delta(self, epsilon: FloatArray) -> FloatArray:
        """log delta at epsilon >= 0."""
        return self.at(log_expm1(epsilon)) + OUTWARD

    @property
    def log_slope(self) -> FloatArray:
        """log of minus the slope to the right of each point but the last."""
        with np.errstate(invalid="ignore"):
            return log_diff(self.log_v[:-1], self.log_v[1:]) - log_diff(self.log_x[1:], self.log_x[:-1])


def tabulated(sampled: Sampled, at_zero: float, points: FloatArray, tolerance: float, most: int) -> Table:
    """Halve the gaps whose chord is off by more than the tolerance (each halving leaves a quarter of the error), until
    none is left or there are too many points; far out the tolerance is looser."""
    known = _Points(points, *sampled(points), at_zero)
    return known.halved(sampled, np.arange(points.size - 1), tolerance, most).table


class Growing:
    """The same table, of which only what is asked for is made: a gap is halved when first looked at.

    How one gap is halved depends on that gap alone, so no answer depends on what was asked before. The shift is added
    to both logarithms of the table.
    """

    def __init__(
        self, sampled: Sampled, at_zero: float, points: FloatArray, tolerance: float, shift: float = 0.0
    ) -> None:
        self._sampled, self._tolerance, self._shift = sampled, tolerance, shift
        self._known = _Points(points, *sampled(points), at_zero)
        self._starts, self._is_halved = points, np.zeros(points.size + 1, dtype=np.bool_)
        self._is_halved[[0, -1]] = True  # before the first point, and after the last one
        self._lock = Lock()
        self._edges = np.maximum.accumulate(self._known.log_x) + OUTWARD

    @cached_property
    def _table(self) -> Table:
        table = self._known.table
        return Table(table.log_x + self._shift, table.log_v + self._shift)

    def at(self, log_x: FloatArray) -> FloatArray:
        """`Table.at`."""
        asked = np.unique(np.searchsorted(self._edges, log_x - self._shift, side="right"))
        with self._lock:  # tables are shared by threads
            gaps = asked[~self._is_halved[asked]]
            if gaps.size:
                places = np.searchsorted(self._known.points, self._starts[gaps - 1])
                self._known = self._known.halved(self._sampled, places, self._tolerance, _ENDLESS)
                self._is_halved[gaps] = True
                self.__dict__.pop("_table", None)
            table = self._table
        return table.at(log_x)

    def log_delta(self, epsilon: FloatArray) -> FloatArray:
        """`Table.log_delta`."""
        return self.at(log_expm1(epsilon)) + OUTWARD


@dataclass(frozen=True, slots=True)
class _Points:
    """Parameters in rising order, and what was sampled there."""

    points: FloatArray
    log_x: FloatArray
    log_v: FloatArray
    at_zero: float

    def halved(self, sampled: Sampled, new: Ints, tolerance: float, most: float) -> "_Points":
        """With the gaps to the right of these points halved where their chords are off."""
        points, log_x, log_v = self.points, self.log_x, self.log_v
        for _ in range(_ROUNDS):
            middle = 0.5 * (points[new] + points[new + 1])
            mx, mv = sampled(middle)
            with np.errstate(invalid="ignore"):  # both are zero: nothing is off
                off = _sorted(log_x, log_v, self.at_zero).at(mx) - mv
            wrong = off > tolerance * np.maximum(1.0, np.abs(0.05 * mv) ** 3)
            points, order = np.unique(np.concatenate([points, middle]), return_index=True)
            log_x, log_v = np.concatenate([log_x, mx])[order], np.concatenate([log_v, mv])[order]
            place = np.searchsorted(points, middle[wrong])
            new = np.unique(np.concatenate([place - 1, place]))
            if new.size == 0 or points.size > most:
                break
        return _Points(points, log_x, log_v, self.at_zero)

    @property
    def table(self) -> Table:
        return _sorted(self.log_x, self.log_v, self.at_zero)


def _sorted(log_x: FloatArray, log_v: FloatArray, at_zero: float) -> Table:
    """With the value at alpha = 1, without points that are not strictly to the right of those before."""
    with np.errstate(invalid="ignore"):
        keep = np.diff(np.maximum.accumulate(log_x), prepend=-np.inf) > 1e-12
    values = np.minimum.accumulate(np.append(at_zero, log_v[keep]))
    return Table(np.append(-np.inf, log_x[keep] + OUTWARD), values)
