"""Composing loss laws by FFT with an explicit error bound, relative to the tail that is asked about.

An FFT is right to about 1e-16 of the largest mass, so plain convolution certifies nothing below 1e-13. Weighting
every mass by e^(tilt loss) before, and undoing it after, moves the largest mass to the losses in question: the
error at epsilon shrinks to a Chernoff factor e^(K(tilt) - tilt epsilon) of it. Written here, and not
dp-accounting's `self_compose`, because that has no error bound; tests compare the two.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..core.profile import Curve
from ..numerics.log_domain import FloatArray, log_sum
from .discretize import LossLaw, discounted

_OUTSIDE = 1e-15  # mass dropped at the ends of a law, or outside the window and folded back in: counted as error
_UNIT = 1.2e-16
_UNDERFLOW = 1e-300  # no entry is known better than this, in units of the largest
_GOOD_ENOUGH = 1e-5  # relative error at which a table is kept rather than a better tilt sought
_AWAY = tuple(2.0**k for k in (-6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6, 8))  # for the window around a tilted law
_LADDER = (0.0, *(2.0**k for k in range(-3, 14)))
WIDEST, _WORTH = 2**22, 2**20  # points of a window that fit into memory; that a further tilt may cost anyhow


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

    def log_delta(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """log of the computed delta, and of a bound on its error (convolution, summation, underflow)."""
        at = np.floor(epsilon / self.interval) + (1.0 - self.first)
        i = np.clip(at, 0.0, self.above.size - 1.0).astype(np.int64)  # cut first: it may be beyond all whole numbers
        above = self.above[i]
        gap = np.minimum(epsilon - (self.first + i) * self.interval, 0.0)  # epsilon is below entry i
        value = above - np.exp(gap) * self.discounted[i]
        with np.errstate(divide="ignore"):
            main = np.log(np.maximum(value, 0.0)) + self.log_scale
            rounding = np.log(self.above.size * (8.0 * _UNIT * above + _UNDERFLOW)) + self.log_scale
        return main, np.logaddexp(rounding, self.log_error - (self.tilt * epsilon if self.tilt else 0.0))


@dataclass(slots=True)
class Composed:
    """Several loss laws, each taken `steps` times, on one grid."""

    laws: tuple[tuple[LossLaw, int], ...]
    upper: bool
    _tables: dict[float, Table] = field(default_factory=dict)
    _moments: dict[float, float] = field(default_factory=dict)
    _points: dict[float, int] = field(default_factory=dict)

    @property
    def log_infinite(self) -> float:
        """log of the probability that some step has an infinite loss."""
        log_none = sum(steps * math.log1p(-min(law.infinite, 1.0 - _UNIT)) for law, steps in self.laws)
        return math.log(-math.expm1(log_none)) if log_none < 0.0 else -math.inf

    def curve(self, largest_loss: float = math.inf) -> Curve:
        """The composed curve for epsilon >= 0."""
        return Curve(self.log_delta, largest_loss)

    def log_delta(self, epsilon: FloatArray) -> FloatArray:
        """log delta, above the truth (below it for a lower bound), by the best tilt for each epsilon."""
        epsilon = np.asarray(epsilon, dtype=np.float64)
        if not all(np.any(law.mass > 0) for law, _ in self.laws):
            return np.zeros_like(epsilon)  # some step's loss is infinite for sure
        if not self._tables:
            self._tables[0.0] = self._table(0.0)
        best, loose = self._evaluate(epsilon)
        while np.any(loose):  # each round adds a tilt that was not there, so it ends
            middle = float(np.median(epsilon[loose]))
            tilt = self.best_tilt(middle)
            if tilt in self._tables:
                edges = {self.best_tilt(float(e)) for e in (np.min(epsilon[loose]), np.max(epsilon[loose]))}
                new = sorted(edges - set(self._tables))
                if not new:
                    break
                tilt = new[0]
            self._tables[tilt] = self._table(tilt)
            best, loose = self._evaluate(epsilon)
        return best

    def _evaluate(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The best of the tables at each epsilon, and where none of them is precise."""
        bounds, ratios = [], []
        for table in self._tables.values():
            main, error = table.log_delta(epsilon)
            with np.errstate(invalid="ignore", divide="ignore"):
                ratio = np.where(np.isneginf(main), np.inf, error - main)
                if self.upper:
                    bounds.append(np.logaddexp(np.logaddexp(main, error), self.log_infinite))
                else:
                    bounds.append(np.where(ratio < 0, main + np.log1p(-np.exp(np.minimum(ratio, 0.0))), -np.inf))
            ratios.append(ratio)
        ratio = np.minimum.reduce(ratios)
        best = np.minimum.reduce(bounds) if self.upper else np.maximum.reduce(bounds)
        negligible = best < self.log_infinite + math.log(10.0) if self.upper else np.zeros_like(ratio, dtype=bool)
        return best, (ratio > math.log(_GOOD_ENOUGH)) & ~negligible

    def best_tilt(self, epsilon: float) -> float:
        """The tilt of a coarse ladder (so that tables are reused) with the smallest Chernoff bound."""
        best, best_value = 0.0, 0.0
        for tilt in _LADDER[1:]:
            value = self.log_moment(tilt) - tilt * epsilon
            if value > best_value:
                break
            if self.points(tilt) <= max(_WORTH, 2 * self.points(0.0)):
                best, best_value = tilt, value
        return best

    def points(self, tilt: float) -> int:
        """How many grid points the composed law needs at this tilt."""
        if tilt not in self._points:
            first, last = _window([_tilted(law, tilt, steps) for law, steps in self.laws])
            self._points[tilt] = last - first + 1
        return self._points[tilt]

    def log_moment(self, tilt: float) -> float:
        """K(tilt) = log E e^(tilt loss) over the finite losses."""
        if tilt not in self._moments:
            self._moments[tilt] = sum(steps * log_moment(law, tilt) for law, steps in self.laws)
        return self._moments[tilt]

    def _table(self, tilt: float) -> Table:
        """Multiply the transforms of the tilted laws, transform back, undo the tilt, sum up."""
        from scipy import fft

        parts = [_tilted(law, tilt, steps) for law, steps in self.laws]
        first, last = _window(parts)
        size = fft.next_fast_len(max(last - first + 1, 2), real=True)
        spectrum = np.ones(size // 2 + 1, dtype=np.complex128)
        error = _OUTSIDE * (1.0 + len(parts))
        for part in parts:
            spectrum *= _power(fft.rfft(_folded(part.weights, size), size), part.steps)
            error += _fft_error(part.weights, size, part.steps)
        shift = first - sum(part.first * part.steps for part in parts)
        mass = np.roll(fft.irfft(spectrum, size), -shift)[: last - first + 1]
        interval = self.laws[0][0].interval
        with np.errstate(divide="ignore"):
            log_mass = np.log(np.maximum(mass, 0.0)) - tilt * (np.arange(mass.size) * interval)
        top = float(np.max(log_mass))
        untilted = np.exp(log_mass - top)
        return Table(
            tilt=tilt,
            first=first,
            interval=interval,
            log_scale=top + self.log_moment(tilt) - tilt * first * interval,
            above=np.append(np.cumsum(untilted[::-1])[::-1], 0.0),
            discounted=np.append(discounted(untilted, interval), 0.0),
            log_error=math.log(error) + self.log_moment(tilt),
        )


def log_moment(law: LossLaw, tilt: float) -> float:
    """log E e^(tilt loss) of one law."""
    with np.errstate(divide="ignore"):
        return float(log_sum(np.log(law.mass) + tilt * law.losses))


@dataclass(frozen=True, slots=True)
class Tilted:
    """A tilted law without its far ends, to be taken `steps` times."""

    first: int
    weights: FloatArray
    interval: float
    steps: int

    def log_moment(self, tilt: float) -> float:
        """log E e^(tilt loss), the loss counted from `first`."""
        with np.errstate(divide="ignore"):
            return float(log_sum(np.log(self.weights) + tilt * self.interval * np.arange(self.weights.size)))


def _tilted(law: LossLaw, tilt: float, steps: int) -> Tilted:
    """The tilted law; ends that weigh less than `_OUTSIDE` over all steps are dropped and counted as error."""
    with np.errstate(divide="ignore"):
        log_weights = np.log(law.mass) + tilt * law.losses
    weights = np.exp(log_weights - log_sum(log_weights))
    spare = 0.5 * _OUTSIDE / steps
    low = int(np.searchsorted(np.cumsum(weights), spare, side="right"))
    high = weights.size - int(np.searchsorted(np.cumsum(weights[::-1]), spare, side="right"))
    return Tilted(law.first + low, weights[low : max(high, low + 1)], law.interval, steps)


def _window(parts: list[Tilted]) -> tuple[int, int]:
    """Grid indices outside which the sum has at most `_OUTSIDE` of its mass (Chernoff)."""
    interval, budget = parts[0].interval, math.log(2.0 / _OUTSIDE)
    least, most = 0.0, float(sum((p.weights.size - 1) * p.steps for p in parts))
    low, high = least, most
    for away in _AWAY:
        up, down = (sum(p.steps * p.log_moment(sign * away) for p in parts) for sign in (1.0, -1.0))
        high = min(high, (up + budget) / (away * interval))
        low = max(low, (down + budget) / (-away * interval))
    start = sum(p.first * p.steps for p in parts)
    return start + math.floor(low), start + min(math.ceil(max(high, low)) + 1, int(most))


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


def _folded(values: FloatArray, size: int) -> FloatArray:
    """Values wrapped around to the given length, as a circular convolution would."""
    if values.size <= size:
        return values
    padded = np.zeros(-(-values.size // size) * size)
    padded[: values.size] = values
    return np.asarray(padded.reshape(-1, size).sum(axis=0))


def _fft_error(weights: FloatArray, size: int, steps: int) -> float:
    """Bound on the summed error of a power of a transform.

    In the 2-norm a transform errs by at most 2 u log2(N) times its size (u = 1.1e-16), a k-th power by k times
    the error of its base, because the transform of a probability is at most 1; N errors sum to at most sqrt(N)
    times their 2-norm.
    """
    norm = float(np.sqrt(np.sum(weights * weights)))
    return _UNIT * math.sqrt(size) * norm * (steps + 1) * (2.0 * math.log2(size) + 4.0)
