"""From noisy sums and counts to the next centres: all of it post-processing, which is free.

A centre is sum/count, pulled back column by column by v/(v + tau²), v the column's variance and tau² the known variance
of the noise in it. It stays where it was when its count is below its noise, and every centre is moved into the ball.
Before another step, a centre that holds too little is placed beside one that holds much, and both move apart; when all
hold enough, a few pairs of neighbours that are cheap to join make room to split centres that stand for much.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..chance.stream import Stream
from ..numerics.log_domain import FloatArray
from .starts import into_ball

_LIGHT = 0.1  # of the mean cluster
_GAIN = 0.1  # of count times squared distance to the next centre, saved by a split; 1/16 for a uniform interval
_EXCHANGES = 3  # a step
_APART = 0.35  # of the distance to the next centre


@dataclass(frozen=True, slots=True)
class Smoothing:
    """What is known about the noise and the columns."""

    variances: FloatArray = field(repr=False)  # (d,)
    column_variance: float  # of the noise in one column of a sum
    count_error: float
    mean_cluster: float

    def next_centres(self, sums: FloatArray, counts: FloatArray, before: FloatArray) -> FloatArray:
        """The centres after a step."""
        error = max(self.count_error, 1.0)
        size = np.maximum(counts, error)
        noise = (self.column_variance / size**2)[:, None]
        pulled = self.variances / np.maximum(self.variances + noise, 1e-300)
        moved = into_ball(sums / size[:, None] * pulled)
        return np.where((counts > error)[:, None], moved, before)

    def split(self, centres: FloatArray, counts: FloatArray, stream: Stream) -> FloatArray:
        """The same number of centres, where they are worth more."""
        light = np.flatnonzero(counts < max(2.0 * self.count_error, _LIGHT * self.mean_cluster))
        if light.size:
            return self._beside_heavy(centres, counts, light, stream)
        return self._exchanged(centres, counts, stream) if len(centres) > 3 else centres

    def _beside_heavy(
        self, centres: FloatArray, counts: FloatArray, light: NDArray[np.intp], stream: Stream
    ) -> FloatArray:
        """Light centres join heavy ones; the pair moves apart by about a cluster's width."""
        heavy = np.argsort(-counts)[: light.size]
        apart = stream.normals((light.size, centres.shape[1])) * self._width(len(centres))
        moved = centres.copy()
        for i, j, shift in zip(light, heavy, apart, strict=True):
            if i != j and counts[j] > self.count_error:
                moved[i], moved[j] = centres[j] + shift, centres[j] - shift
        return into_ball(moved)

    def _exchanged(self, centres: FloatArray, counts: FloatArray, stream: Stream) -> FloatArray:
        """Join neighbours, which costs n n'/(n + n') d² (Ward), where a split elsewhere saves more."""
        squared = np.sum((centres[:, None] - centres[None]) ** 2, axis=2)
        np.fill_diagonal(squared, np.inf)
        near, gap, n = np.argmin(squared, axis=1), np.min(squared, axis=1), np.maximum(counts, 1.0)
        costs, gains = gap * n * n[near] / (n + n[near]), _GAIN * n * gap
        free = np.ones(len(centres), dtype=np.bool_)
        moved = centres.copy()
        shifts = stream.normals((_EXCHANGES, centres.shape[1])) * self._width(len(centres))
        shifts /= np.maximum(np.linalg.norm(shifts, axis=1, keepdims=True), 1e-300)
        for shift in shifts:
            open_pairs = free & free[near]
            i = int(np.argmin(np.where(open_pairs, costs, np.inf)))
            j = int(near[i])
            others = free.copy()
            others[[i, j]] = False
            split = int(np.argmax(np.where(others, gains, -np.inf)))
            if not open_pairs[i] or not others[split] or costs[i] >= gains[split]:
                break
            moved[j] = (n[i] * centres[i] + n[j] * centres[j]) / (n[i] + n[j])
            aside = _APART * np.sqrt(gap[split]) * shift
            moved[i], moved[split] = centres[split] + aside, centres[split] - aside
            free[[i, j, split]] = False
        return into_ball(moved)

    def _width(self, clusters: int) -> FloatArray:
        """Clusters share the volume: each is narrower by clusters^(1/effective dimension)."""
        total = float(np.sum(self.variances))
        if total == 0.0:
            return np.zeros_like(self.variances)
        effective = max(total**2 / float(np.sum(self.variances**2)), 1.0)
        return np.asarray(0.7 * np.sqrt(self.variances) * clusters ** (-1.0 / effective))
