"""Composing loss laws by FFT with an explicit error bound, relative to the tail that is asked about.

An FFT is right to about 1e-16 of the largest mass, so plain convolution certifies nothing below 1e-13. Weighting
every mass by e^(tilt loss) before, and undoing it after, moves the largest mass to the losses in question: the
error at epsilon shrinks to a Chernoff factor e^(K(tilt) - tilt epsilon) of it. Written here, and not
dp-accounting's `self_compose`, because that has no error bound; tests compare the two.

A step that has no loss with probability 1 - p, and a loss of law w with probability p, has the transform
1 + p(w^ - 1), and k of them exp(k log1p(p(w^ - 1))): its error grows with k p, the number of steps in which something
happens, and not with k. NumPy's complex log1p loses its digits near 0; log1p(x + iy) is
log1p(2x + x^2 + y^2)/2 + i atan2(y, 1 + x).

Which tilt serves an epsilon depends on that epsilon alone, so that no answer depends on what was asked before.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..core.profile import Curve
from ..numerics.log_domain import FloatArray, as_floats, log_sum
from .discretize import LossLaw, discounted

_OUTSIDE = 1e-15  # mass dropped at the ends of a law, or outside the window and folded back in: counted as error
_UNIT = 1.2e-16
_SMALL = 600.0  # an exponent whose exponential is a double
_UNDERFLOW = 1e-300  # no entry is known better than this, in units of the one at the tilted law's top
_HIGHEST = 600.0  # log of the largest entry of a table, in the same units: what lies left of it is left out
_SPARE = 14.0  # a tilt is tried first when its Chernoff bound is within e^14 of the best
_DEEP = -1e4  # log delta below which nobody asks for digits
_GOOD_ENOUGH = 1e-5  # relative error at which the best tilt is not sought
_RARE = 0.25  # steps with a loss in fewer cases than this are composed by the logarithm
_AWAY = tuple(2.0**k for k in (*range(-12, 10), 12, 15, 18))  # for the window, in units of 1/width of one law
_LADDER = (0.0, *(2.0 ** (0.5 * k) for k in range(-6, 48)))
WIDEST, _WORTH = 2**22, 2**21  # points of a window that fit into memory; that a further tilt may cost anyhow

Ints = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Table:
    """The composed law at one tilt, in units of e^log_scale, summed from the far end: `above[i]` is from i on."""

    tilt: float
    first: int  # grid index of entry 0
    interval: float
    log_scale: float
    above: FloatArray
    discounted: FloatArray  # the same with the factor e^(loss_i - loss)
    log_error: float  # log of the convolution's total error, before the factor e^(-tilt epsilon)
    relative: float  # relative error of the sums and of the scale
    is_cut: bool  # whether losses below the first entry were left out

    def log_delta(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """log of the computed delta, and of a bound on its error (convolution, summation, underflow)."""
        at = np.floor(epsilon / self.interval) + (1.0 - self.first)
        i = np.clip(at, 0.0, self.above.size - 1.0).astype(np.int64)  # cut first: it may be beyond all whole numbers
        above = self.above[i]
        gap = np.minimum(epsilon - (self.first + i) * self.interval, 0.0)  # epsilon is below entry i
        value = above - np.exp(gap) * self.discounted[i]
        with np.errstate(divide="ignore"):
            main = np.log(np.maximum(value, 0.0)) + self.log_scale
            rounding = np.log(self.relative * above + self.above.size * _UNDERFLOW) + self.log_scale
        error = np.logaddexp(rounding, self.log_error - (self.tilt * epsilon if self.tilt else 0.0))
        return main, np.where((at < 0) & self.is_cut, np.inf, error)


@dataclass(frozen=True, slots=True)
class Tilted:
    """A tilted law without its far ends, to be taken `steps` times: weights at grid indices."""

    index: Ints
    weights: FloatArray
    interval: float
    steps: int

    def log_moment(self, tilt: float) -> float:
        """log E e^(tilt loss)."""
        with np.errstate(divide="ignore"):
            return float(log_sum(np.log(self.weights) + tilt * self.interval * self.index))

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


@dataclass(slots=True)
class Composed:
    """Several loss laws, each taken `steps` times, on one grid."""

    laws: tuple[tuple[LossLaw, int], ...]
    upper: bool
    _tables: dict[float, Table] = field(default_factory=dict)
    _moments: dict[float, tuple[float, float]] = field(default_factory=dict)
    _points: dict[float, int] = field(default_factory=dict)

    @property
    def log_infinite(self) -> float:
        """log of the probability that some step has an infinite loss."""
        log_none = sum(steps * math.log1p(-min(law.infinite, 1.0 - _UNIT)) for law, steps in self.laws)
        return math.log(-math.expm1(log_none)) if log_none < 0.0 else -math.inf

    @property
    def _has_losses(self) -> bool:
        return all(np.any(law.mass > 0) for law, _ in self.laws)

    def curve(self, largest_loss: float = math.inf) -> Curve:
        """The composed curve for epsilon >= 0."""
        return Curve(self.log_delta, largest_loss)

    def log_delta(self, epsilon: FloatArray) -> FloatArray:
        """log delta, above the truth (below it for a lower bound), each epsilon by the tilt that suits it."""
        epsilon = np.asarray(epsilon, dtype=np.float64)
        if not self._has_losses:
            return np.zeros_like(epsilon)  # some step's loss is infinite for sure
        flat = epsilon.ravel()
        if not self.upper:
            return np.asarray(self._by_tables(flat).reshape(epsilon.shape))
        chernoff = np.min(self._chernoff(flat), axis=0)
        best = np.logaddexp(chernoff, self.log_infinite)
        worth = chernoff > max(_DEEP, self.log_infinite + math.log(_GOOD_ENOUGH))  # else Chernoff's own bound will do
        if np.any(worth):
            best[worth] = np.minimum(best[worth], self._by_tables(flat[worth]))
        return np.asarray(best.reshape(epsilon.shape))

    def _by_tables(self, epsilon: FloatArray) -> FloatArray:
        """By a tilt that is likely to do, and where it does not, by the best one."""
        best, loose = self._by_tilts(epsilon, _SPARE)
        if np.any(loose):
            again, _ = self._by_tilts(epsilon[loose], 0.0)
            best[loose] = np.minimum(best[loose], again) if self.upper else np.maximum(best[loose], again)
        return best

    def _by_tilts(self, epsilon: FloatArray, spare: float) -> tuple[FloatArray, BoolArray]:
        chosen = self._tilts(epsilon, spare)
        bound, loose = np.empty_like(epsilon), np.zeros(epsilon.shape, dtype=np.bool_)
        for tilt in np.unique(chosen).tolist():
            here = chosen == tilt
            bound[here], loose[here] = self._bound(epsilon[here], tilt)
        return bound, loose

    def _bound(self, epsilon: FloatArray, tilt: float) -> tuple[FloatArray, BoolArray]:
        """The bound by one tilt, and where its error is not small."""
        if tilt not in self._tables:
            self._tables[tilt] = self._table(tilt)
        main, error = self._tables[tilt].log_delta(epsilon)
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = np.where(np.isneginf(main) | np.isinf(error), np.inf, error - main)
            if self.upper:
                bound = np.minimum(np.logaddexp(np.logaddexp(main, error), self.log_infinite), 0.0)
                loose = ~(error < bound + math.log(_GOOD_ENOUGH))  # lost mass counts: what matters is the sum
                return np.asarray(bound), np.asarray(loose)
            finite = np.where(ratio < 0, main + np.log1p(-np.exp(np.minimum(ratio, 0.0))), -np.inf)
        bound = np.logaddexp(finite, self.log_infinite + math.log1p(-1e-9))
        return np.asarray(bound), np.asarray(ratio > math.log(_GOOD_ENOUGH))

    def _tilts(self, epsilon: FloatArray, spare: float) -> FloatArray:
        """The smallest tilt of a ladder whose Chernoff bound is within e^spare of the best."""
        table, most = self._chernoff(epsilon), max(_WORTH, 2 * self.points(0.0))
        while True:
            chosen = np.argmax(table <= np.min(table, axis=0) + spare, axis=0)
            too_wide = [i for i in np.unique(chosen).tolist() if i > 0 and self.points(_LADDER[i]) > most]
            if not too_wide:
                return as_floats(np.asarray(_LADDER)[chosen])
            table[too_wide] = np.inf

    def _chernoff(self, epsilon: FloatArray) -> FloatArray:
        """K(tilt) - tilt epsilon, a row for each tilt of the ladder up to where all have begun to rise."""
        bounds = [np.zeros_like(epsilon)]
        for tilt in _LADDER[1:]:
            value = sum(self.moments(tilt)) - tilt * epsilon * (1.0 - 4.0 * _UNIT)
            if np.all(value > bounds[-1]):  # K is convex: it only gets worse
                break
            bounds.append(value)
        return np.stack(bounds)

    def points(self, tilt: float) -> int:
        """How many grid points the composed law needs at this tilt."""
        if not self._has_losses:
            return 1
        if tilt not in self._points:
            first, last = _window([_tilted(law, tilt, steps) for law, steps in self.laws])
            self._points[tilt] = last - first + 1
        return self._points[tilt]

    def log_moment(self, tilt: float) -> float:
        """K(tilt) = log E e^(tilt loss) over the finite losses."""
        return self.moments(tilt)[0]

    def moments(self, tilt: float) -> tuple[float, float]:
        """K(tilt) and a bound on its error."""
        if tilt not in self._moments:
            found = [(steps, *_moment(law, tilt)) for law, steps in self.laws]
            value, error = (sum(row[0] * row[i] for row in found) for i in (1, 2))
            self._moments[tilt] = value, error + 1e-15 * abs(value)
        return self._moments[tilt]

    def _table(self, tilt: float) -> Table:
        """Multiply the transforms of the tilted laws, transform back, undo the tilt, sum up."""
        from scipy import fft

        parts = [_tilted(law, tilt, steps) for law, steps in self.laws]
        first, last = _window(parts)
        size = fft.next_fast_len(max(last - first + 1, 2), real=True)
        spectrum = np.ones(size // 2 + 1, dtype=np.complex128)
        relative = 0.0
        for part in parts:
            power, of_power = part.spectrum(size)
            spectrum, relative = spectrum * power, relative + of_power
        mass = np.roll(fft.irfft(spectrum, size), -first)[: last - first + 1]
        # a k-th power errs by k |value|^(k-1) times the error of its base; summed over the grid at most the 2-norm over
        # all frequencies (Parseval, Cauchy-Schwarz); the way back errs in the 2-norm like the way there
        least = min(part.steps for part in parts)
        height = np.abs(spectrum) ** (1.0 - 1.0 / least)
        error = _OUTSIDE * (1.0 + len(parts)) + relative * math.sqrt(2.0) * _norm(height)
        error += _UNIT * math.sqrt(size) * _norm(mass) * (2.0 * math.log2(size) + 4.0)
        interval = self.laws[0][0].interval
        return _summed(mass, tilt, first, interval, self.moments(tilt), error)


def _summed(
    mass: FloatArray, tilt: float, first: int, interval: float, moments: tuple[float, float], error: float
) -> Table:
    """Undo the tilt, leave out what is too large to be of interest at this tilt, and add up from the far end."""
    log_moment, of_moment = moments
    with np.errstate(divide="ignore"):
        log_mass = np.log(np.maximum(mass, 0.0)) - tilt * (np.arange(mass.size) * interval)
    top = float(log_mass[int(np.argmax(mass))])
    high = np.flatnonzero(log_mass - top > _HIGHEST)
    start = int(high[-1]) + 1 if high.size else 0
    untilted = np.exp(log_mass[start:] - top)
    return Table(
        tilt=tilt,
        first=first + start,
        interval=interval,
        log_scale=top + log_moment - tilt * first * interval,
        above=np.append(np.cumsum(untilted[::-1])[::-1], 0.0),
        discounted=np.append(discounted(untilted, interval), 0.0),
        log_error=math.log(error) + log_moment + of_moment,
        relative=8.0 * _UNIT * (untilted.size + tilt * interval * mass.size) + math.expm1(min(of_moment, 1.0)),
        is_cut=start > 0,
    )


def _moment(law: LossLaw, tilt: float) -> tuple[float, float]:
    """log E e^(tilt loss) of one law, and its error: that of the losses that are not 0, where they are rare.

    The mass at 0 is what the others leave of 1; so nothing is lost by adding a small number to 1.
    """
    index = np.flatnonzero(law.mass > 0)
    exponent = (law.first + index) * (law.interval * tilt)
    active = law.mass[index] * (exponent != 0.0) if tilt else law.mass[index] * (law.first + index != 0)
    if float(np.sum(active)) <= _RARE and np.max(np.abs(exponent), initial=0.0) < _SMALL:
        terms = active * np.expm1(exponent)
        total = float(np.sum(terms)) - law.infinite
        size = float(np.sum(np.abs(terms) * (1.0 + np.abs(exponent)))) + law.infinite
        if total > -0.5:
            return math.log1p(total), _UNIT * 64.0 * size
    value = float(log_sum(np.log(law.mass[index]) + exponent))
    return value, _UNIT * (64.0 + abs(value) + float(np.max(np.abs(exponent), initial=0.0)))


def _tilted(law: LossLaw, tilt: float, steps: int) -> Tilted:
    """The tilted law; ends that weigh less than `_OUTSIDE` over all steps are dropped and counted as error."""
    live = np.flatnonzero(law.mass > 0)
    index = live + law.first
    weights = np.exp(np.log(law.mass[live]) + tilt * law.interval * index - _moment(law, tilt)[0])
    spare = 0.5 * _OUTSIDE / steps
    low = int(np.searchsorted(np.cumsum(weights), spare, side="right"))
    high = weights.size - int(np.searchsorted(np.cumsum(weights[::-1]), spare, side="right"))
    kept = slice(low, max(high, low + 1))
    return Tilted(index[kept], weights[kept], law.interval, steps)


def _window(parts: list[Tilted]) -> tuple[int, int]:
    """Grid indices outside which the sum has at most `_OUTSIDE` of its mass (Chernoff)."""
    interval, budget = parts[0].interval, math.log(2.0 / _OUTSIDE)
    least, most = (float(sum(int(p.index[end]) * p.steps for p in parts)) for end in (0, -1))
    low, high = least, most
    widest = max(float(p.index[-1] - p.index[0]) for p in parts) * interval
    for away in (a / widest for a in _AWAY if math.isfinite(a / widest)) if widest > 0 else ():
        up, down = (sum(p.steps * p.log_moment(sign * away) for p in parts) for sign in (1.0, -1.0))
        high = min(high, (up + budget) / (away * interval))
        low = max(low, (down + budget) / (-away * interval))
    return math.floor(low), min(math.ceil(max(high, low)) + 1, int(most))


def _power(values: NDArray[np.complex128], exponent: int) -> NDArray[np.complex128]:
    """Repeated squaring: many times faster than the general complex power, and as exact."""
    result = np.ones_like(values)
    while exponent:
        if exponent & 1:
            result = result * values
        exponent >>= 1
        if exponent:
            values = values * values
    return result


def _norm(weights: FloatArray) -> float:
    return float(np.sqrt(np.sum(weights * weights)))
