"""Composing loss laws by FFT with an explicit error bound, relative to the tail that is asked about.

An FFT is right to about 1e-16 of the largest mass, so plain convolution certifies nothing below 1e-13. Weighting
every mass by e^(tilt loss) before, and undoing it after, moves the largest mass to the losses in question: the
error at epsilon shrinks to a Chernoff factor e^(K(tilt) - tilt epsilon) of it. Written here, and not
dp-accounting's `self_compose`, because that has no error bound; tests compare the two.

A step that has no loss with probability 1 - p, and a loss of law w with probability p, has the transform
1 + p(w^ - 1), and k of them exp(k log1p(p(w^ - 1))): its error grows with k p, the number of steps in which something
happens, and not with k. NumPy's complex log1p loses its digits near 0; log1p(x + iy) is
log1p(2x + x^2 + y^2)/2 + i atan2(y, 1 + x).

Both sides of a table fall as epsilon grows. Above, all terms do. Below, the error is taken at the left end of a cell
of the grid, and no value is below that of a later cell.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..numerics.log_domain import FloatArray, as_floats, log_sum
from .discretize import LossLaw, discounted

_OUTSIDE = 1e-15  # mass dropped at the ends of a law, or outside the window and folded back in: counted as error
_UNIT = 1.2e-16
_SMALL = 600.0  # an exponent whose exponential is a double
_UNDERFLOW = 1e-300  # no entry is known better than this, in units of the one at the tilted law's top
_HIGHEST = 600.0  # log of the largest factor by which a mass is multiplied: what lies left of it is left out
_NOTHING = -80.0  # log of a power that is not computed
_RARE = 0.25  # steps with a loss in fewer cases than this are composed by the logarithm
_AWAY = tuple(2.0**k for k in (*range(-12, 10), 12, 15, 18))  # for the window, in units of 1/width of one law

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Losses:
    """The losses of one law that occur, to be taken `steps` times: masses at grid indices."""

    index: Ints
    mass: FloatArray
    interval: float
    infinite: float
    steps: int

    @classmethod
    def of(cls, law: LossLaw, steps: int) -> "Losses":
        """The masses that are not 0."""
        live = law.weights > 0
        return cls(law.index[live], law.weights[live], law.interval, law.infinite, steps)

    @cached_property
    def _log_mass(self) -> FloatArray:
        return np.log(self.mass)

    @cached_property
    def _active(self) -> tuple[FloatArray, FloatArray]:
        """Index and mass of the losses that are not 0."""
        active = self.index != 0
        return as_floats(self.index[active]), self.mass[active]

    def moment(self, tilt: float) -> tuple[float, float]:
        """log E e^(tilt loss), and its error: that of the losses that are not 0, where they are rare.

        The mass at 0 is what the others leave of 1; so nothing is lost by adding a small number to 1.
        """
        unit = self.interval * tilt
        largest = max(abs(float(self.index[0])), abs(float(self.index[-1]))) * unit if self.index.size else 0.0
        index, mass = self._active
        if float(np.sum(mass)) <= _RARE and largest < _SMALL:
            exponent = index * unit
            terms = mass * np.expm1(exponent)
            total = float(np.sum(terms)) - self.infinite
            size = float(np.sum(np.abs(terms) * (1.0 + np.abs(exponent)))) + self.infinite
            if total > -0.5:
                return math.log1p(total), _UNIT * 64.0 * size / (1.0 + total)
        value = float(log_sum(self._log_mass + self.index * unit))
        return value, _UNIT * (64.0 + abs(value) + largest)

    def tilted(self, tilt: float) -> "Tilted":
        """The tilted law; ends that weigh less than `_OUTSIDE` over all steps are dropped and counted as error."""
        weights = np.exp(self._log_mass + tilt * self.interval * self.index - self.moment(tilt)[0])
        spare = 0.5 * _OUTSIDE / self.steps
        low = int(np.searchsorted(np.cumsum(weights), spare, side="right"))
        high = weights.size - int(np.searchsorted(np.cumsum(weights[::-1]), spare, side="right"))
        kept = slice(low, max(high, low + 1))
        return Tilted(self.index[kept], weights[kept], self.interval, self.steps)


@dataclass(frozen=True)
class Tilted:
    """A tilted law without its far ends, to be taken `steps` times: weights at grid indices."""

    index: Ints
    weights: FloatArray
    interval: float
    steps: int

    @cached_property
    def _log_weights(self) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.log(self.weights)

    @cached_property
    def variance(self) -> float:
        """Of the sum of all steps, in units of the grid. Plain sums: on busy cores BLAS waits for its threads."""
        total = float(np.sum(self.weights))
        mean = float(np.sum(self.weights * self.index)) / total
        return self.steps * float(np.sum(self.weights * (self.index - mean) ** 2)) / total

    def log_moment(self, tilt: float) -> float:
        """log E e^(tilt loss) of all steps."""
        return self.steps * float(log_sum(self._log_weights + tilt * self.interval * self.index))

    def spectrum(self, size: int) -> tuple[NDArray[np.complex128], float]:
        """The transform of all steps together, and the sum of the relative errors of one step's and of the power.

        Each entry of an FFT errs by at most 2 u log2(N) times the sum of the weights, and a k-th power by k times that.
        """
        from scipy import fft

        active = self.index != 0
        rest = float(np.sum(self.weights[active]))
        one = _UNIT * (2.0 * math.log2(size) + 4.0)
        if rest > _RARE:
            values = fft.rfft(np.bincount(self.index % size, self.weights, size))
            return _power(values, self.steps), self.steps * (one + 4.0 * _UNIT)
        values = fft.rfft(np.bincount(self.index[active] % size, self.weights[active], size)) - rest
        x, y = values.real, values.imag
        power = np.exp(self.steps * (0.5 * np.log1p(x * (2.0 + x) + y * y) + 1j * np.arctan2(y, 1.0 + x)))
        return power, self.steps * rest * (one + 32.0 * _UNIT) * 2.0 + 16.0 * _UNIT  # 2: |1 + p(w^ - 1)| >= 1/2


@dataclass(frozen=True)
class Table:
    """The composed law at one tilt, in units of e^log_scale: delta at the points of the grid, and between them."""

    tilt: float
    first: int  # grid index of entry 0
    interval: float
    log_scale: float
    values: FloatArray  # delta at the grid's points, falling to 0 at the last
    discounted: FloatArray  # the sum of mass_j e^(loss_i - loss_j) over j >= i
    log_error: float  # log of the convolution's total error, before the factor e^(-tilt epsilon)
    relative: float  # relative error of the sums and of the scale
    is_cut: bool  # whether losses below the first entry were left out

    @property
    def end(self) -> float:
        """Where the table's delta is 0."""
        return (self.first + self.values.size) * self.interval

    def above(self, epsilon: FloatArray, log_infinite: float) -> FloatArray:
        """log of an upper bound; it never rises."""
        values, i = self._values(epsilon)
        bound = np.logaddexp(self._log(values * (1.0 + self.relative) + self._underflow), self._tilted(epsilon))
        bound = np.minimum(np.logaddexp(bound, log_infinite), 0.0)
        return np.asarray(np.where((i < 0) & self.is_cut, 0.0, bound))

    def below(self, epsilon: FloatArray, log_infinite: float) -> FloatArray:
        """log of a lower bound."""
        main, error = self._apart(epsilon)
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(main > error, -np.expm1(np.minimum(error - main, 0.0)), 0.0)
            return np.logaddexp(np.where(share > 0.0, main + np.log(share), -np.inf), log_infinite + math.log1p(-1e-9))

    def below_falling(self, epsilon: FloatArray, log_infinite: float) -> FloatArray:
        """log of a lower bound; it never rises."""
        values, i = self._values(epsilon)
        cell = np.clip(i, 0, self.values.size - 1)
        here = values * (1.0 - self.relative) - self._cell_error[cell]
        if self.tilt:
            here = np.where(i < 0, 0.0, here)  # left of all cells the error is not constant
        later = self._later[np.clip(i + 1, 0, self.values.size - 1)]
        return np.logaddexp(self._log(np.maximum(here, later)), log_infinite + math.log1p(-1e-9))

    def is_loose(self, epsilon: float, log_infinite: float, share: float) -> bool:
        """Whether the error is not below this share of delta; `log_infinite` is what is lost anyhow."""
        main, error = self._apart(np.asarray([epsilon]))
        return not float(error[0]) < float(np.logaddexp(main[0], log_infinite)) + math.log(share)

    def _values(self, epsilon: FloatArray) -> tuple[FloatArray, Ints]:
        """delta, and the cell: the index of the last grid point that is not above epsilon (-1: there is none)."""
        last = self.values.size - 1
        i = np.clip(np.floor(epsilon / self.interval) - self.first, -1.0, float(last)).astype(np.int64)
        after = np.minimum(i + 1, last)
        gap = np.minimum(epsilon - (self.first + after) * self.interval, 0.0)
        values = self.values[after] - np.expm1(gap) * self.discounted[after]
        highest = np.where(i < 0, np.inf, self.values[np.maximum(i, 0)])
        return np.minimum(values, highest), i

    def _apart(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """log of the computed delta, and of a bound on its error."""
        values, i = self._values(epsilon)
        error = np.logaddexp(self._log(values * self.relative + self._underflow), self._tilted(epsilon))
        return self._log(values), np.asarray(np.where((i < 0) & self.is_cut, np.inf, error))

    @property
    def _underflow(self) -> float:
        return self.values.size * _UNDERFLOW

    def _log(self, values: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.maximum(values, 0.0)) + self.log_scale)

    def _tilted(self, epsilon: FloatArray) -> FloatArray:
        return np.asarray(self.log_error - (self.tilt * epsilon if self.tilt else 0.0))

    @cached_property
    def _cell_error(self) -> FloatArray:
        """The error in the cell from each grid point to the next, but for the relative one."""
        points = (self.first + np.arange(self.values.size)) * self.interval
        exponent = self.log_error - self.log_scale - self.tilt * (points - 8.0 * _UNIT * np.abs(points))
        return np.asarray(np.exp(np.minimum(exponent, 700.0)) * (1.0 + 1e-12) + self._underflow)

    @cached_property
    def _later(self) -> FloatArray:
        """The largest lower bound at this grid point or a later one."""
        at_points = self.values * (1.0 - self.relative) - self._cell_error
        return np.maximum.accumulate(np.maximum(at_points, 0.0)[::-1])[::-1]


def table(laws: list[Losses], tilt: float, moments: tuple[float, float]) -> Table:
    """Multiply the transforms of the tilted laws, transform back, undo the tilt, sum up."""
    from scipy import fft

    parts = [law.tilted(tilt) for law in laws]
    first, last = window(parts)
    size = fft.next_fast_len(max(last - first + 1, 2), real=True)
    spectrum, relative = parts[0].spectrum(size)
    for part in parts[1:]:
        power, of_power = part.spectrum(size)
        spectrum, relative = spectrum * power, relative + of_power
    cyclic, start = fft.irfft(spectrum, size), first % size
    mass = np.concatenate([cyclic[start:], cyclic[:start]])[: last - first + 1]
    # a k-th power errs by k |value|^(k-1) times the error of its base; summed over the grid at most the 2-norm over
    # all frequencies (Parseval, Cauchy-Schwarz); the way back errs in the 2-norm like the way there
    least = min(part.steps for part in parts)
    height = np.abs(spectrum[spectrum != 0.0]) ** (1.0 - 1.0 / least)
    error = _OUTSIDE * (1.0 + len(parts)) + relative * math.sqrt(2.0) * _norm(height)
    error += _UNIT * math.sqrt(size) * _norm(mass) * (2.0 * math.log2(size) + 4.0) + size * math.exp(_NOTHING)
    return _summed(mass, tilt, first, parts[0].interval, moments, error)


def _summed(
    mass: FloatArray, tilt: float, first: int, interval: float, moments: tuple[float, float], error: float
) -> Table:
    """Undo the tilt, leave out what is too large to be of interest at this tilt, and add up from the far end."""
    log_moment, of_moment = moments
    top, unit = int(np.argmax(mass)), tilt * interval
    start = max(0, math.ceil(top - _HIGHEST / unit)) if unit > 0.0 else 0
    untilted = np.maximum(mass[start:], 0.0)
    if unit > 0.0:
        untilted *= np.exp(np.arange(top - start, top - mass.size, -1.0) * unit)
    later, values = np.zeros(untilted.size + 1), np.zeros(untilted.size + 1)
    later[:-1] = discounted(untilted, interval)
    # delta_i = sum_{j>i} mass_j (1 - e^(loss_i - loss_j)), by adding positive pieces from the far end
    np.cumsum(later[:0:-1], out=values[-2::-1])
    values *= -math.expm1(-interval)
    return Table(
        tilt=tilt,
        first=first + start,
        interval=interval,
        log_scale=log_moment - tilt * (first + top) * interval,
        values=values,
        discounted=later,
        log_error=math.log(error) + log_moment + of_moment,
        relative=8.0 * _UNIT * (mass.size + unit * (mass.size + abs(first)) + abs(log_moment) + 8.0)
        + math.expm1(min(of_moment, 1.0)),
        is_cut=start > 0,
    )


def window(parts: list[Tilted]) -> tuple[int, int]:
    """Grid indices outside which the sum has at most `_OUTSIDE` of its mass (Chernoff)."""
    interval, budget = parts[0].interval, math.log(2.0 / _OUTSIDE)
    least, most = (float(sum(int(p.index[end]) * p.steps for p in parts)) for end in (0, -1))
    widest = max(float(p.index[-1] - p.index[0]) for p in parts) * interval
    away: list[float] = [a / widest for a in _AWAY if math.isfinite(a / widest)] if widest > 0 else []
    if not away:
        return math.floor(least), int(most)
    usual = math.sqrt(2.0 * budget / max(sum(p.variance for p in parts), 1e-300)) / interval
    start = int(np.argmin(np.abs(np.log(np.asarray(away) / usual))))

    def end(sign: float) -> float:
        """Chernoff's bound on the far end, the best of a few: it falls, then rises."""

        def at(i: int) -> float:
            total = math.fsum(p.log_moment(sign * away[i]) for p in parts)
            return (total + budget) / (away[i] * interval)

        best = at(start)
        for way in (1, -1):
            i = start + way
            while 0 <= i < len(away) and (found := at(i)) < best:
                best, i = found, i + way
        return best

    high, low = min(most, end(1.0)), max(least, -end(-1.0))
    return math.floor(low), min(math.ceil(max(high, low)) + 1, int(most))


def _power(values: NDArray[np.complex128], exponent: int) -> NDArray[np.complex128]:
    """Repeated squaring: many times faster than the general complex power, and as exact; nothing where it is tiny."""
    squares = values.real**2 + values.imag**2
    left = np.flatnonzero(squares > math.exp(2.0 * _NOTHING / exponent))
    result = np.zeros_like(values)
    base, power = values[left], np.ones(left.size, dtype=np.complex128)
    while exponent:
        if exponent & 1:
            power = power * base
        exponent >>= 1
        if exponent:
            base = base * base
    result[left] = power
    return result


def _norm(weights: FloatArray) -> float:
    return float(np.sqrt(np.sum(weights * weights)))
