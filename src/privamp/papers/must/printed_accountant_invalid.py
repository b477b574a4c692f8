"""INVALID: the Fourier accountant of MUST with the pair it prints. Nothing here is a guarantee.

Equation 6 and sections S5-S7 compose the loss of f_X = sum_u p_u N(u, sigma^2) against
f_X' = sum_u p_u N(-u, sigma^2). Real neighbours have sum_u p_u N(2u, sigma^2) against N(0, sigma^2), which are
much easier to distinguish, so its delta is too small at every k (docs/errata.md). It is kept to show by how much. Only
this package may import it; a test enforces that.

The algorithm (S7): the loss s has density omega(s) = f_X(t) dt/ds, L(t) = s. On s_i = -L + i dx, dx = 2L/r, take
c_i = dx omega(s_i), and the least and the greatest omega of each cell; the k-th power of the discrete Fourier
transform gives the composed law u; delta = sum over s_j > eps of (1 - e^(eps - s_j)) u_j.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...core.multiplicity import Multiplicity
from ...numerics.log_domain import FloatArray, as_floats, log_normal_density, log_sum
from ...numerics.roots import NumericalFailure

TRUNCATION, GRID = 10.0, 500_000  # the paper's L and r
_ROUNDS, _FAR = 100, -60.0  # Newton steps; log of a count's mass below which it is negligible


@dataclass(frozen=True, slots=True)
class InvalidDelta:
    """What the printed method calls delta, and the interval it calls strict. Not a bound on anything."""

    low: float
    value: float
    high: float


class InvalidPrintedPair:
    """f_X and f_X' of Equation 6, sums of records in [-1, 1], in units of sigma."""

    def __init__(self, law: Multiplicity, sigma: float) -> None:
        log_p = np.append(law.log_none, law.log_p)
        kept = log_p > _FAR
        self.log_p: FloatArray = log_p[kept]
        self.shift: FloatArray = np.arange(log_p.size)[kept] / sigma

    def log_ratio(self, t: FloatArray, sign: float) -> FloatArray:
        """log of each p_u N(+-u)/N(0) at t, shape (t, U)."""
        return self.log_p + self.shift * (sign * t[:, None] - 0.5 * self.shift)

    def loss(self, t: FloatArray) -> FloatArray:
        """log f_X/f_X'."""
        return log_sum(self.log_ratio(t, 1.0), axis=1) - log_sum(self.log_ratio(t, -1.0), axis=1)

    def slope(self, t: FloatArray) -> FloatArray:
        """The derivative of the loss: the mean shifts of the two posteriors of u, added."""
        total = np.zeros_like(t)
        for sign in (1.0, -1.0):
            terms = self.log_ratio(t, sign)
            weights = np.exp(terms - log_sum(terms, axis=1)[:, None])
            total += weights @ self.shift
        return total

    def density(self, s: FloatArray) -> FloatArray:
        """omega at increasing losses s."""
        t = self._inverse(s)
        log_f = log_sum(self.log_ratio(t, 1.0), axis=1) + log_normal_density(t)
        return np.asarray(np.exp(log_f) / self.slope(t))

    def _inverse(self, s: FloatArray) -> FloatArray:
        """t with loss(t) = s: from a table, then by Newton's method."""
        top = float(np.max(np.abs(s)))
        end = 1.0
        while float(self.loss(as_floats([end]))[0]) < top:
            end *= 1.5
        table = np.linspace(-end, end, 10_001)
        t: FloatArray = np.interp(s, self.loss(table), table)
        for _ in range(_ROUNDS):
            step = (self.loss(t) - s) / self.slope(t)
            t = t - step
            if np.max(np.abs(step)) < 1e-9 * end:
                return t
        raise NumericalFailure("the printed pair's loss could not be inverted")


def invalid_printed_deltas(
    law: Multiplicity,
    sigma: float,
    epsilon: float,
    steps: list[int],
    truncation: float = TRUNCATION,
    grid: int = GRID,
) -> list[InvalidDelta]:
    """Algorithm 1 (S7) on the pair of Equation 6, for several numbers of compositions."""
    width = 2.0 * truncation / grid
    at = -truncation + width * np.arange(grid + 1)
    pair = InvalidPrintedPair(law, sigma)
    omega = np.concatenate([pair.density(piece) for piece in np.array_split(at, max(grid // 20_000, 1))])
    cells = (np.minimum(omega[:-1], omega[1:]), omega[:-1], np.maximum(omega[:-1], omega[1:]))
    powers = [np.fft.rfft(np.fft.ifftshift(width * cell)) for cell in cells]
    gains = np.maximum(-np.expm1(np.minimum(epsilon - at[:-1], 0.0)), 0.0)
    found = []
    for count in steps:
        low, value, high = (_delta(transform, count, gains) for transform in powers)
        found.append(InvalidDelta(low, value, high))
    return found


def _delta(transform: NDArray[np.complex128], steps: int, gains: FloatArray) -> float:
    return float(gains @ np.fft.fftshift(np.fft.irfft(transform**steps, gains.size)))
