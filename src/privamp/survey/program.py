"""The convex program behind `allocate`: sampling rates and noise that together make the variance least.

With s = 1/(N b), b the scale of the noise, v the variance of noise of scale 1, strata of N_h records with standard
deviation S_h and range R_h,

    minimise  (1/N^2) sum_h N_h S_h^2 (1/r_h - 1) + v/(N s)^2
    subject to  s R_h <= phi_h(r_h),  sum_h N_h r_h <= m,  r_h <= 1.

Jointly convex, since phi is concave. For fixed s the rates are clip(kappa S_h, phi_h^-1(s R_h), 1) with kappa such that
the sizes add up to m; the derivative of the minimum in s is -2v/(N^2 s^3) + sum_h mu_h R_h with mu_h the multiplier of
stratum h, so s is a root of an increasing function. Derivation: docs/allocation.md.
"""

from dataclasses import dataclass

import numpy as np

from ..numerics.log_domain import FloatArray
from ..numerics.roots import least_passing
from .hidden_signal import Strength

_PRECISE = 1e-9  # of s; the variance is flat there, so it is right to the square of that
_TOO_MUCH = float("inf")  # s beyond what the sample allows


@dataclass(frozen=True, slots=True)
class Problem:
    """Strata as arrays (H,), the sample size and the strength of the noise."""

    population: FloatArray  # N_h
    range: FloatArray  # R_h
    sd: FloatArray  # S_h
    size: float  # m
    strength: Strength

    @property
    def total(self) -> float:
        """N."""
        return float(self.population.sum())

    def sampling_variance(self, rates: FloatArray) -> float:
        """Of the weighted mean, without noise."""
        with np.errstate(divide="ignore", invalid="ignore"):
            parts = np.where(self.sd > 0, self.population * self.sd**2 * (1.0 / rates - 1.0), 0.0)
        return float(parts.sum()) / self.total**2

    def scale(self, rates: FloatArray) -> float:
        """The least noise that hides every stratum; inf where a rate is too small to protect anyone."""
        if np.any(rates < self.strength.least):
            return float("inf")
        return float(np.max(self.range / self.strength.phi(rates))) / self.total

    def noise_variance(self, scale: float) -> float:
        """Of the noise; inf where a stratum is hardly drawn."""
        return self.strength.variance * scale * scale  # inf, not an error, where it is too large for a float

    def variance(self, rates: FloatArray) -> float:
        """Both, with the least noise that these rates allow."""
        return self.sampling_variance(rates) + self.noise_variance(self.scale(rates))

    def floor(self, s: float) -> FloatArray:
        """The smallest rates that noise of scale 1/(N s) hides."""
        return self.strength.inverse(s * self.range)


def best_rates(problem: Problem) -> FloatArray:
    """The rates of the optimum."""
    if problem.size >= problem.total:
        return np.ones_like(problem.population)
    even = np.full_like(problem.population, max(problem.size / problem.total, problem.strength.least))

    def growth(scale: float) -> float:
        return _growth(problem, 1.0 / scale)

    low = high = float(np.max(problem.range / problem.strength.phi(even)))  # what proportional allocation needs
    while growth(high) > 0:
        high *= 2.0
    while growth(low) <= 0:
        low, high = low / 2.0, low
    return shared(problem, problem.floor(1.0 / least_passing(growth, low, high, relative=_PRECISE)))


def shared(problem: Problem, floor: FloatArray) -> FloatArray:
    """clip(kappa S_h, floor_h, 1) with sizes that add up to m."""
    return np.clip(_kappa(problem, floor) * problem.sd, floor, 1.0) if np.any(problem.sd > 0) else floor


def _kappa(problem: Problem, floor: FloatArray) -> float:
    """Where sum N clip(kappa S, floor, 1) = m, exactly: the sum is linear between sorted corners."""
    N, S = problem.population, problem.sd
    live = S > 0
    rest = problem.size - float((N * floor)[~live].sum())
    N, S, floor = N[live], S[live], floor[live]
    if rest >= N.sum():
        return float(1.0 / S.min())
    corners = np.concatenate([floor / S, 1.0 / S])
    slopes = np.concatenate([N * S, -N * S])
    order = np.argsort(corners, kind="stable")
    corners, slope = corners[order], np.cumsum(slopes[order])
    used = float((N * floor).sum()) + np.concatenate([[0.0], np.cumsum(slope[:-1] * np.diff(corners))])
    at = int(np.searchsorted(used, rest, side="right")) - 1
    if at < 0:
        return float(corners[0])
    return float(corners[at] + (rest - used[at]) / slope[at]) if slope[at] > 0 else float(corners[at])


def _growth(problem: Problem, s: float) -> float:
    """The derivative in s of the least variance, times N^2."""
    N, R, S = problem.population, problem.range, problem.sd
    floor = problem.floor(s)
    if not float((N * floor).sum()) <= problem.size:  # nan where a stratum cannot be hidden at all
        return _TOO_MUCH
    live = S > 0
    kappa = _kappa(problem, floor) if np.any(live) else np.inf
    price = 0.0 if np.all(kappa * S[live] >= 1.0) else kappa**-2.0  # N^2 times the multiplier of the size
    tied = (kappa * S <= floor) & (floor > problem.strength.least) if np.isfinite(kappa) else np.zeros_like(live)
    multiplier = N * (price - (S / floor) ** 2) / problem.strength.slope(floor, s * R)
    pull = float((multiplier * R)[tied & (multiplier > 0)].sum())
    return pull - 2.0 * problem.strength.variance / s**3
