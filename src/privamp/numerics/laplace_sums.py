"""The tail of a sum of independent errors: several Laplace ones, a normal one, and a number from a list.

By inversion of the characteristic function (Gil-Pelaez 1951),

    Pr[X > t] = 1/2 + (1/pi) int_0^inf Im(e^(-ist) phi(s)) / s ds,

with the trapezoid rule at half steps h (n + 1/2): what it leaves out are tails that lie 2 pi / h away (Davies 1973).
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from .log_domain import FloatArray

_FAR = 60.0  # standard deviations from where on tails are left out
_POINTS = 2**13


class SumOfErrors:
    """Laplace errors of these scales, a normal one, and `numbers` with their chances (by default always 0)."""

    def __init__(
        self,
        scales: Sequence[float],
        normal: float = 0.0,
        numbers: FloatArray | None = None,
        chances: FloatArray | None = None,
    ) -> None:
        given = numbers is not None and chances is not None
        at, weight = (numbers, chances) if given else (np.zeros(1), np.ones(1))
        assert at is not None
        assert weight is not None
        mean = float(at @ weight)
        variance = 2.0 * math.fsum(s * s for s in scales) + normal * normal + float((at - mean) ** 2 @ weight)
        self.error = math.sqrt(variance)
        self._mean = mean
        step = math.pi / (_FAR * max(self.error, 1e-300))
        s = step * (np.arange(_POINTS, dtype=np.float64) + 0.5)
        phi = np.exp(-0.5 * (normal * s) ** 2).astype(np.complex128)
        for scale in scales:
            phi /= 1.0 + (scale * s) ** 2
        if given:
            phi *= _transform(s, at, weight)
        self._s, self._phi = s, phi * (step / math.pi) / s

    def above(self, t: float) -> float:
        """Pr[X > t]."""
        if self.error == 0.0:
            return 1.0 if self._mean > t else 0.0
        found = 0.5 + float(np.sum((np.exp(-1j * self._s * t) * self._phi).imag))
        return min(max(found, 0.0), 1.0)

    def quantile(self, tail: float) -> float:
        """t with Pr[X > t] = tail."""
        if self.error == 0.0:
            return self._mean
        far = 30.0 * self.error
        return float(brentq(lambda t: self.above(t) - tail, self._mean - far, self._mean + far, xtol=1e-6 * self.error))


def _transform(s: FloatArray, at: FloatArray, weight: FloatArray) -> NDArray[np.complex128]:
    """sum of weight e^(i s at), in pieces."""
    found = np.zeros(len(s), dtype=np.complex128)
    for k in range(0, len(at), 64):
        found += np.exp(1j * np.outer(s, at[k : k + 64])) @ weight[k : k + 64]
    return found
