"""How strong a signal a sampling rate can hide: the function phi of the allocation problem.

A record of a stratum sampled at rate r, without replacement, moves the estimate by R/(N r) when it is drawn. Noise of
scale b hides it when R/(N b) <= phi(r) = r theta(r), theta(r) the largest signal-to-noise ratio that the rate amplifies
to the target guarantee:

    Laplace:   theta = log(1 + (e^eps - 1)/r), closed;
    Gaussian:  theta solves r delta_G(theta; log(1 + (e^eps - 1)/r)) = delta, delta_G the Gaussian profile.

phi is increasing and concave: for Laplace always (phi' = log(1+c/r) - c/(r+c) > 0 falls), for Gaussian from r = 4 delta
on (below about 2 delta it is not: there (eps, delta) is reached by publishing records outright, so such rates are
refused). phi(r) <= phi(1): a weighted mean never needs less noise because of subsampling.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.special import log_ndtr

from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray, as_floats, log_mills_gap
from ..numerics.roots import bisected
from ..validation import in_range, one_of

FEWEST_DELTAS = 4.0  # smallest Gaussian rate, in units of delta
_ROUNDS = 100
_MANY, _LARGE = 16.0, 600.0  # an epsilon from which on e^eps is kept as a logarithm; an exponent of a double
_LARGEST_DELTA = 0.01


class Strength(ABC):
    """phi, its slope and its inverse, vectorised over strata (each with its own epsilon)."""

    epsilon: FloatArray  # one per stratum
    variance: float  # of noise with scale 1
    least: float  # the smallest rate it covers

    @abstractmethod
    def phi(self, rate: FloatArray) -> FloatArray:
        """The largest R/(N scale) that is hidden at this rate."""

    @abstractmethod
    def slope(self, rate: FloatArray, phi: FloatArray) -> FloatArray:
        """phi', where phi(rate) is known."""

    @cached_property
    def top(self) -> FloatArray:
        """phi(1), the most that any rate hides."""
        return self.phi(np.ones_like(self.epsilon))

    @abstractmethod
    def newton(self, log_rate: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A function of log rate that is zero where phi = target and grows with the rate, and its derivative."""

    def inverse(self, target: FloatArray) -> FloatArray:
        """The smallest rate in [least, 1] with phi(rate) >= target; nan where phi(1) is too small."""
        feasible = target <= self.top * (1.0 + 1e-13)
        low, high = np.full_like(target, np.log(self.least)), np.zeros_like(target)
        t = np.clip(np.log(target / self.top), low, high)  # phi is concave: at or above the root
        for _ in range(_ROUNDS):  # Newton's steps, halved where they leave the bracket: few evaluations of phi
            value, slope = self.newton(t, target)
            low, high = np.where(value < 0, t, low), np.where(value < 0, high, t)
            with np.errstate(divide="ignore", invalid="ignore"):
                step = value / slope
            if np.all((np.abs(step) <= 1e-14 * (1.0 + np.abs(t))) | (high - low <= 1e-14) | ~feasible):
                break
            inside = (t - step > low) & (t - step < high)
            t = np.where(inside, t - step, 0.5 * (low + high))
        return np.where(feasible, np.exp(np.minimum(t, 0.0)), np.nan)


@dataclass(frozen=True)
class LaplaceStrength(Strength):
    """Laplace noise under pure epsilon."""

    epsilon: FloatArray
    variance: float = 2.0
    least: float = 1e-300

    def phi(self, rate: FloatArray) -> FloatArray:
        """r log(1 + (e^eps - 1)/r)."""
        return rate * _inside(self.epsilon, rate)

    def slope(self, rate: FloatArray, phi: FloatArray) -> FloatArray:
        """log(1 + c/r) - c/(r + c), c = e^eps - 1."""
        c = np.expm1(np.minimum(self.epsilon, _LARGE))
        return phi / rate - c / (rate + c)

    def newton(self, log_rate: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray]:
        """log phi - log target: concave in log r, so Newton comes from one side."""
        rate = np.exp(log_rate)
        phi = self.phi(rate)
        return np.log(phi / target), rate * self.slope(rate, phi) / phi


@dataclass(frozen=True)
class GaussianStrength(Strength):
    """Gaussian noise under (epsilon, delta)."""

    epsilon: FloatArray
    delta: float
    variance: float = 1.0

    @property
    def least(self) -> float:  # type: ignore[override]
        """Rates near delta protect no one."""
        return FEWEST_DELTAS * self.delta

    def _inner(self, rate: FloatArray) -> FloatArray:
        return _inside(self.epsilon, rate)

    def _beyond(self, theta: FloatArray, inner: FloatArray) -> FloatArray:
        """(e^eps - 1) times the chance of a loss above `inner` without the record; by logarithms, for large eps."""
        log_c = self.epsilon + np.log(-np.expm1(-self.epsilon))
        return as_floats(np.exp(np.minimum(log_c + log_ndtr(-0.5 * theta - inner / theta), _LARGE)))

    def theta(self, rate: FloatArray) -> FloatArray:
        """The largest shift/sigma whose amplified delta at epsilon is at most delta (by bisection, from below)."""
        inner, wanted = self._inner(rate), np.log(self.delta / rate)
        low, high = np.full_like(wanted, -40.0), np.full_like(wanted, 12.0)
        is_above = lambda x: np.asarray(_log_delta(np.exp(x), inner) > wanted)  # noqa: E731
        is_narrow = lambda low, high: np.all(high - low <= 2e-15 * (1.0 + np.abs(low)))  # noqa: E731
        return np.exp(bisected(is_above, low, high, rounds=_ROUNDS, until=is_narrow)[0])

    def phi(self, rate: FloatArray) -> FloatArray:
        """r theta(r)."""
        return rate * self.theta(rate)

    def slope(self, rate: FloatArray, phi: FloatArray) -> FloatArray:
        """By implicit differentiation: theta + r theta'."""
        theta, inner = phi / rate, self._inner(rate)
        log_delta = np.log(self.delta / rate)
        by_theta = _density(0.5 * theta - inner / theta)
        by_rate = np.exp(log_delta) / rate + self._beyond(theta, inner) / rate**2
        with np.errstate(over="ignore", divide="ignore"):
            return as_floats(theta - rate * by_rate / by_theta)

    def newton(self, log_rate: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray]:
        """log delta - log(amplified delta) at theta = target/r."""
        rate = np.exp(log_rate)
        theta, inner = target / rate, self._inner(rate)
        log_delta = _log_delta(theta, inner)
        gain = target * _density(0.5 * theta - inner / theta) - self._beyond(theta, inner)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            slope = gain / (rate * np.exp(log_delta)) - 1.0
        return np.log(self.delta) - log_rate - log_delta, slope


def _log_delta(theta: FloatArray, epsilon: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):
        return log_mills_gap(epsilon / theta - 0.5 * theta, theta)


def _inside(epsilon: FloatArray, rate: FloatArray) -> FloatArray:
    """log(1 + (e^eps - 1)/r), also where e^eps is no double."""
    few = np.log1p(np.expm1(np.minimum(epsilon, _MANY)) / rate)
    return as_floats(np.where(epsilon > _MANY, epsilon - np.log(rate) + np.log1p((rate - 1.0) * np.exp(-epsilon)), few))


def _density(x: FloatArray) -> FloatArray:
    return as_floats(np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi))


def strength(noise: str, epsilon: FloatArray, delta: float) -> Strength:
    """The strength of a noise under a budget."""
    one_of(("laplace", "gaussian"), noise=noise)
    if noise == "laplace":
        if delta != 0.0:
            raise InvalidInput(f"delta must be 0 for laplace noise, got {delta!r} instead; or use noise='gaussian'")
        return LaplaceStrength(epsilon)
    in_range(0, _LARGEST_DELTA, delta=delta)
    if delta == 0.0:
        raise InvalidInput("delta must be above 0 for gaussian noise, got 0 instead; use noise='laplace' for pure DP")
    return GaussianStrength(epsilon, delta)


@lru_cache(maxsize=256)
def signal(rates: tuple[float, ...], epsilon: float, delta: float, noise: str) -> FloatArray:
    """The signal-to-noise ratio that each stratum's rate allows."""
    rate = as_floats(rates)
    hidden = strength(noise, np.full(rate.shape, epsilon), delta)
    if np.any(rate < hidden.least):
        raise InvalidInput(
            "a stratum is drawn at a rate below 4 delta, where (epsilon, delta) protects no one; draw more or use a "
            "smaller delta"
        )
    return hidden.phi(rate) / rate
