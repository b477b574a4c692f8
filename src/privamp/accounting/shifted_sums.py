"""E[W(u + loss)] at all points of a grid for several laws at once, by transforms with bounded rounding errors."""

import math
from collections.abc import Sequence

import numpy as np

from ..numerics.log_domain import FloatArray

_UNIT = 1.2e-16


class ShiftedSums:
    """Laws (first index, masses), and W at `points` points, with `left` more before them and `right` more after."""

    def __init__(self, laws: Sequence[tuple[int, FloatArray]], points: int) -> None:
        from scipy import fft

        left = max(max(-first for first, _ in laws), 0)
        right = max(max(first + mass.size - 1 for first, mass in laws), 0)
        self.points = points
        self.left, self.right = min(left, points), min(right, points)  # a longer jump always ends outside
        self.size = int(fft.next_fast_len(points + self.left + self.right, real=True))
        self.beyond = np.zeros((len(laws), 1))  # masses of jumps beyond `right`
        kernels = np.zeros((len(laws), self.size))
        for row, beyond, (first, mass) in zip(kernels, self.beyond, laws, strict=True):
            at = np.arange(first, first + mass.size)
            is_far = at > self.right
            beyond += float(np.sum(mass[is_far]))
            np.add.at(row, np.maximum(at[~is_far], -self.left) % self.size, mass[~is_far])
        self._kernels = np.conj(fft.rfft(kernels, axis=1))
        self._norm = float(np.max(np.sqrt(np.sum(kernels * kernels, axis=1))))

    def transformed(self, padded: FloatArray) -> FloatArray:
        """The transform of W, given at left + points + right points."""
        from scipy import fft

        return np.asarray(fft.rfft(padded, self.size))

    def of(self, laws: slice, transformed: FloatArray) -> FloatArray:
        """The sums of some laws, shape (laws, points)."""
        from scipy import fft

        products = self._kernels[laws] * transformed
        sums = fft.irfft(products, self.size, axis=1, overwrite_x=True)
        return np.asarray(sums[:, self.left : self.left + self.points])

    def error(self, padded: FloatArray) -> float:
        """A bound on the rounding error of a sum."""
        size = math.sqrt(float(padded @ padded)) + 1.0
        return 4.0 * _UNIT * (math.log2(self.size) + 4.0) * self._norm * size
